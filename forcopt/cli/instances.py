"""``forcopt instances``: seeded instances, and files of them for authors of solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forcopt.cli.export import Format
from forcopt.cli.output import JsonOption, print_json, print_table, table

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="List the instance library, or export it as MPS or LP files.")

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Names, or how they begin; all if left out.")
]


@app.command("list")
def list_(names: NamesArgument = None, as_json: JsonOption = False) -> None:
    """List the instances with the known bounds of their optima and the certificates; JSON has more fields."""
    from forcopt.study import library

    known = library.known()
    rows = [
        {"name": i.name, "formulation": i.method, **{k: known.get(i.name, {}).get(k) for k in library.KNOWN}}
        for i in library.find(names or [])
    ]
    if as_json:
        return print_json(rows)
    out = table("instance", "best known", "bound", "seconds", "certified")
    out.columns[0].no_wrap = True
    for row in rows:
        forms = {"objective": ".8g", "bound": ".8g", "seconds": ".3g"}
        numbers = ["-" if row[k] is None else f"{row[k]:{form}}" for k, form in forms.items()]
        out.add_row(row["name"], *numbers, _brief(row["certified"]))
    print_table(out)
    return None


def _brief(certified: str | None) -> str:
    """Of several methods that agree only the number; JSON names them."""
    how, _, methods = (certified or "-").partition(": ")
    return f"{how}: {methods.count(', ') + 1} methods" if ", " in methods else certified or "-"


@app.command("export")
def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The target folder; made if it does not exist.")
    ],
    names: NamesArgument = None,
    form: Annotated[Format, typer.Option("--format", "-f", help="Of the files.")] = Format.mps,
) -> None:
    """Write instances as MPS or LP files, and manifest.json with the known facts about each."""
    from forcopt.study import library

    files = library.export(folder, form.value, names or [])
    count = len(files) - 1
    print(f"{count} instance{'' if count == 1 else 's'} and {files[-1].name} in {folder}")
