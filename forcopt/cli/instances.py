"""``forcopt instances``: seeded instances, and files of them for those who build solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forcopt.cli.export import Format
from forcopt.cli.output import JsonOption, console, print_json, table

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="List the instance library, or export it as MPS or LP files.")

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Names, or how they begin; all if left out.")
]


@app.command("list")
def list_(names: NamesArgument = None, as_json: JsonOption = False) -> None:
    """List the instances: the formulation, and what is known of the optimum and how it was certified."""
    from forcopt.study import library

    known = library.known()
    rows = [
        {"name": i.name, "formulation": i.method, **{k: known.get(i.name, {}).get(k) for k in library.KNOWN}}
        for i in library.find(names or [])
    ]
    if as_json:
        return print_json(rows)
    out = table("instance", "formulation", "status", "best known", "bound", "seconds", "certified")
    for row in rows:
        numbers = ["-" if row[k] is None else f"{row[k]:.8g}" for k in ("objective", "bound", "seconds")]
        out.add_row(row["name"], row["formulation"], row["status"] or "-", *numbers, row["certified"] or "-")
    console().print(out, markup=False)
    return None


@app.command("export")
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; made if there is none.")],
    names: NamesArgument = None,
    form: Annotated[Format, typer.Option("--format", "-f", help="Of the files.")] = Format.mps,
) -> None:
    """Write instances as MPS or LP files, and manifest.json with what is known of each."""
    from forcopt.study import library

    files = library.export(folder, form.value, names or [])
    count = len(files) - 1
    print(f"{count} instance{'' if count == 1 else 's'} and {files[-1].name} in {folder}")
