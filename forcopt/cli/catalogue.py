"""What can be declared, what solves it, and files of it: ``forcopt models``, ``export``, ``instances``."""

from __future__ import annotations

import inspect
import json
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from forcopt.cli import output
from forcopt.errors import check_known

if TYPE_CHECKING:
    from rich.console import Console

    from forcopt.problem import Problem


ModelArgument = Annotated[
    str,
    Argument(
        metavar="MODEL", help="A name that 'forcopt models' lists.", autocompletion=output.complete_model
    ),
]


def models(as_json: output.JsonOption = False) -> None:
    """List the models: the classes of problems that can be declared."""
    from forcopt.problem.method import RANKS

    rows: list[dict[str, Any]] = [
        {
            "model": name,
            "summary": _documentation(cls)[0],
            "methods": {n: m.rank for n, m in cls.methods.items()},
        }
        for name, cls in sorted(_classes().items())
    ]
    if as_json:
        return output.print_json(rows)
    out = output.table("model", "summary", "methods: the default first", "for comparison")
    for row in rows:
        kinds = row["methods"].items()
        chosen = [", ".join(n for n, rank in kinds if (rank in ranks)) for ranks in (RANKS[:2], RANKS[2:])]
        out.add_row(row["model"], row["summary"], *chosen)
    output.print_table(out)
    return None


def examples(
    files: Annotated[
        Path | None,
        Option("--files", metavar="FOLDER", help="Write a file for each task, to try its command."),
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """List the shipped examples; solve and compare take their names. Or write example files of all tasks."""
    from forcopt.data.examples import COMMANDS, write_examples
    from forcopt.problem import registry

    if files is not None:
        names = [path.name for path in write_examples(files)]
        if as_json:
            return output.print_json({"folder": str(files), "files": names, "commands": COMMANDS})
        print(f"{len(names)} files are in {files}: {', '.join(names)}", f"cd {files}", sep="\n")
        print(*(f"forcopt {command}" for command in COMMANDS.values()), sep="\n")
        return None
    rows = [
        {"example": name, "model": type(registry.load(path)).__name__}
        for name, path in registry.examples().items()
    ]
    if as_json:
        return output.print_json(rows)
    out = output.table("example", "model")
    for row in rows:
        out.add_row(row["example"], row["model"])
    output.print_table(out)
    return None


def describe(model: ModelArgument) -> None:
    """Describe a model: its fields with types and rules, its methods with their options, its examples."""
    from forcopt.problem import registry

    cls = _class(model)
    _, text, meanings = _documentation(cls)
    screen = output.console()
    screen.print(f"[bold]{model}[/bold]", end="\n\n")
    screen.print(text, markup=False)

    layout = cls.file_schema()
    screen.print("\n[bold]Fields[/bold]")
    for name, field in layout["properties"].items():
        if name != cls.tag:
            needed = name in layout["required"]
            default = "required" if needed else f"default {json.dumps(field.get('default'))}"
            rule = ", ".join(text.format(field[key]) for key, text in _RULES.items() if key in field)
            _entry(screen, name, [_type(field, layout), rule, default], meanings.get(name, ""))

    screen.print("\n[bold]Methods[/bold]")
    for name, method in cls.methods.items():
        options = ", ".join(f"{k}={v!r}" for k, v in method.options.items())
        options = f"options: {options}" if options else ""
        takes = f"takes {', '.join(method.common)}" if method.kind == "algorithm" and method.common else ""
        rules = f"rules: {', '.join(method.rules)}" if method.rules else ""
        facts = [method.rank, method.kind, method.promise, options, takes, rules]
        _entry(screen, name, facts, method.summary, method.cites)

    known = [name for name, path in registry.examples().items() if isinstance(registry.load(path), cls)]
    screen.print(f"\n[bold]Examples[/bold]\n  {', '.join(known) or 'none'}")


def _entry(screen: Console, name: str, facts: list[str], *lines: str) -> None:
    """Print a name with facts beside it and lines below."""
    from rich.padding import Padding
    from rich.text import Text

    head = Text.assemble((name, "bold cyan"), "  ", ", ".join(filter(None, facts)))
    screen.print(Padding(head, (0, 0, 0, 2)))
    for line in filter(None, lines):
        screen.print(Padding(Text(line), (0, 0, 0, 6)))


def schema(model: ModelArgument) -> None:
    """Write the JSON schema of a model's declarations."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    print(json.dumps({**draft, **_class(model).file_schema()}, indent=1))


def _classes() -> dict[str, type[Problem]]:
    """The registered classes, and those of modules that ``--import`` names."""
    from forcopt.problem import Problem, problem_classes

    imported = [cls for cls in Problem._kinds() if not cls.__module__.startswith("forcopt.")]
    return problem_classes() | {cls.__name__: cls for cls in imported if issubclass(cls, Problem)}


def _class(name: str) -> type[Problem]:
    known = _classes()
    check_known("model", name, known)
    return known[name]


_SECTION = re.compile(r"(?m)^(\w[\w ]*)\n-{3,}\n")


def _documentation(cls: type) -> tuple[str, str, dict[str, str]]:
    """Read a class's docstring, in numpy's form.

    Returns
    -------
    tuple[str, str, dict[str, str]]
        The first sentence; the paragraphs before the first section; the meaning of each field, of this class
        or its bases.
    """
    head, *sections = _SECTION.split((inspect.getdoc(cls) or "").replace("`", ""))
    paragraphs = [" ".join(block.split()) for block in re.split(r"\n\s*\n", head.partition(">>>")[0].strip())]
    meanings = {} if cls.__base__ in (None, object) else _documentation(cls.__base__)[2]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title in ("Attributes", "Parameters"):
            for entry in re.split(r"\n(?=\S)", inspect.cleandoc(body)):
                name, _, rest = entry.partition(":")
                meaning = " ".join(rest.partition("\n")[2].split())
                meanings |= dict.fromkeys(name.strip().split(", "), meaning)
    return paragraphs[0], "\n\n".join(filter(None, paragraphs)), meanings


def _type(field: dict[str, Any], layout: dict[str, Any]) -> str:
    """Give a JSON schema's type in words."""
    if "$ref" in field:
        name = str(field["$ref"]).rpartition("/")[2]
        kinds = layout["$defs"][name].get("anyOf", [])
        return name + (f" ({', '.join(k['title'] for k in kinds)})" if kinds else "")
    if "anyOf" in field:
        return " or ".join(_type(kind, layout) for kind in field["anyOf"])
    if "enum" in field or "const" in field:
        return " or ".join(json.dumps(v) for v in field.get("enum", [field.get("const")]))
    if "array" in field.get("type", ""):
        return f"list of {_type(field['items'], layout)}" if field.get("items") else "array of numbers"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"mapping to {_type(field['additionalProperties'], layout)}"
    return str(field.get("type", "anything"))


_RULES = {
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "multipleOf": "a multiple of {}",
    "pattern": "matches {}",
}


def backends(as_json: output.JsonOption = False) -> None:
    """List the backends: capabilities, version, and how to install missing ones."""
    from forcopt.backends import registry

    rows = []
    for name, backend in registry.backends().items():
        lack, version = backend.missing(), None
        try:
            version = None if lack else backend.version()
        except ImportError as error:
            lack = f"cannot be imported: {error}"
        rows.append(
            {
                "backend": name,
                "through": backend.through,
                "takes": backend.capabilities.describe(),
                "version": version,
                "missing": lack,
                "install": backend.install,
            }
        )
    if as_json:
        return output.print_json(rows)
    out = output.table("backend", "through", "takes", "version")
    for row in rows:
        here = row["version"] or f"{row['missing']}; install it with: {row['install']}"
        out.add_row(row["backend"], row["through"], row["takes"], here, style="dim" if row["missing"] else "")
    output.print_table(out)
    for prefix, found in registry.families().items():
        output.console().print(
            f"{prefix}:NAME is any solver that {prefix} finds; here: {', '.join(found) or 'none'}",
            markup=False,
        )
    return None


class Format(StrEnum):
    """The formats that can be written."""

    mps = "mps"
    lp = "lp"


def export(
    spec: output.SpecArgument,
    target: Annotated[Path, Option("--output", "-o", metavar="FILE", help="Ends in .mps or .lp.")],
    method: Annotated[str | None, Option("--method", "-m", help="Which formulation.")] = None,
) -> None:
    """Write the model of a formulation as an MPS or LP file."""
    from forcopt.loops.exchange import write

    output.keep_inputs([spec], target)
    model, handles = output.problem_from(spec).formulate(method)
    if handles.unit != 1:
        print(f"1 of the file's objective is {handles.unit:.10g} of the problem's", file=sys.stderr)
    write(model, target)


instances = typer.Typer(no_args_is_help=True, help="List the instance library, or export it as MPS or LP.")

NamesArgument = Annotated[
    list[str] | None, Argument(metavar="[NAME]...", help="Names, or how they begin; all if left out.")
]


@instances.command("list")
def list_instances(names: NamesArgument = None, as_json: output.JsonOption = False) -> None:
    """List the instances with the known bounds of their optima and the certificates; JSON has more fields."""
    from forcopt.study import library

    known = library.known()
    rows = [
        {"name": i.name, "formulation": i.method, **{k: known.get(i.name, {}).get(k) for k in library.KNOWN}}
        for i in library.find(names or [])
    ]
    if as_json:
        return output.print_json(rows)
    out = output.table("instance", "best known", "bound", "seconds", "certified")
    out.columns[0].no_wrap = True
    for row in rows:
        forms = {"objective": ".8g", "bound": ".8g", "seconds": ".3g"}
        numbers = ["-" if row[k] is None else f"{row[k]:{form}}" for k, form in forms.items()]
        out.add_row(row["name"], *numbers, _brief(row["certified"]))
    output.print_table(out)
    return None


def _brief(certified: str | None) -> str:
    """Of several methods that agree only the number; JSON names them."""
    how, _, methods = (certified or "-").partition(": ")
    return f"{how}: {methods.count(', ') + 1} methods" if ", " in methods else certified or "-"


@instances.command("export")
def export_instances(
    folder: Annotated[Path, Argument(metavar="DIR", help="The target folder; made if it does not exist.")],
    names: NamesArgument = None,
    form: Annotated[Format, Option("--format", "-f", help="Of the files.")] = Format.mps,
) -> None:
    """Write instances as MPS or LP files, and manifest.json with the known facts about each."""
    from forcopt.study import library

    files = library.export(folder, form.value, names or [])
    count = len(files) - 1
    print(f"{count} instance{'' if count == 1 else 's'} and {files[-1].name} in {folder}")
