"""How results are written: for people with rich, for programs as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from forcopt.arrays import plain
from forcopt.errors import DeclarationError, require

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from forcopt.data.intake import Finding, Findings
    from forcopt.problem import Problem


def complete_model(incomplete: str) -> list[str]:
    """Complete the name of a model."""
    from forcopt.problem import registry

    return _beginning(registry.problem_classes(), incomplete)


def complete_backend(incomplete: str) -> list[str]:
    """Complete the name of an installed backend."""
    from forcopt.backends import registry

    return _beginning((n for n, b in registry.backends().items() if not b.missing()), incomplete)


def complete_spec(incomplete: str) -> list[str]:
    """Complete the name of an example or instance; files are completed by the shell."""
    from forcopt.problem import registry
    from forcopt.study import library

    return _beginning([*registry.examples(), *library.instances()], incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


SpecArgument = Annotated[
    str,
    Argument(
        metavar="SPEC",
        help="A declaration (JSON or TOML, - for standard input), an .mps or .lp file, or the name of an "
        "example or instance.",
        autocompletion=complete_spec,
    ),
]
TimeLimitOption = Annotated[
    float | None, Option("--time-limit", "-t", metavar="SECONDS", help="Stop after this time.")
]
MemoryLimitOption = Annotated[
    str | None, Option("--memory-limit", metavar="BYTES", help="Such as '4 GB'; else half of what is free.")
]
CertifyOption = Annotated[bool, Option("--certify", help="Prove it in exact arithmetic, too.")]
SeedOption = Annotated[int | None, Option(help="Of whatever is random.")]
FixOption = Annotated[
    list[str] | None,
    Option(
        "--fix",
        metavar="WRONG=RIGHT",
        help="Change a value, or COLUMN:WRONG=RIGHT. Nothing after = drops the row; the same value confirms "
        "it. Repeat for more.",
    ),
]
EncodingOption = Annotated[
    str | None, Option(metavar="NAME", help="Of a CSV file that is no UTF-8, such as cp1252.")
]
JsonOption = Annotated[bool, Option("--json", help="Write JSON for programs.")]


_MOST_SHOWN = 40
"""Findings of a kind that the terminal shows; the report and ``--json`` have all."""

DRAWN = (".png", ".svg", ".pdf")
"""How the name of a picture may end."""


def problem_from(spec: str) -> Problem:
    """Give the problem that a word of the command line stands for; ``-`` reads JSON from standard input.

    Raises
    ------
    FileNotFoundError
        If it is no file, example or instance.
    DeclarationError
        If it declares no problem.
    """
    from forcopt.problem.registry import declared_problem
    from forcopt.study.library import problem_of

    if spec != "-":
        return problem_of(spec)
    try:
        data = json.loads(sys.stdin.read())
    except ValueError as error:
        raise DeclarationError(f"standard input is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise DeclarationError("standard input holds no declaration: it must be an object of fields")
    return declared_problem(data)


def parsed(text: str) -> Any:
    """Read a value of the command line: JSON, or else the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def fixes_from(words: list[str] | None) -> dict[str, Any]:
    """The stated changes of ``--fix``, as `forcopt.data.check_table` takes them."""
    found: dict[str, Any] = {}
    for word in words or []:
        wrong, given, right = word.rpartition("=")
        require(given, "--fix", word, "be WRONG=RIGHT or COLUMN:WRONG=RIGHT")
        column, named, value = wrong.partition(":")
        if named:
            found.setdefault(column, {})[value] = right or None
        else:
            found[wrong] = right or None
    return found


def share_from(text: str, option: str, most: float = 1.0) -> float:
    """Read a share: ``.5%`` or ``0.005``; a number above `most` must say that it is a percentage.

    Raises
    ------
    DeclarationError
        For another text, naming what it may mean.

    Examples
    --------
    >>> share_from(".5%", "--tolerance"), share_from("0.005", "--tolerance")
    (0.005, 0.005)
    """
    from forcopt.data.intake import is_number

    plain = text.strip()
    percent = plain.endswith("%")
    require(is_number(plain.rstrip("% ")), option, text, "be a share, such as 0.5% or 0.005")
    share = float(Fraction(plain.rstrip("% ")) / (100 if percent else 1))
    if share < 0 or share > 1 or (share > most and not percent):
        near = f"; write {plain}% or {float(plain) / 100:g}" if not percent and 0 < share <= 100 else ""
        raise DeclarationError(f"{option} is {text!r}; it must be a share from 0 to {most:g}{near}")
    return share


def findings_table(**kinds: list[Finding]) -> Table:
    """A table of findings by their kind; rows with the same value and fault are one line."""
    from forcopt.data.intake import grouped

    shown = table("", "file", "row", "column", "value", "what is wrong", "nearest right value")
    for kind, findings in kinds.items():
        lines = grouped(findings)
        for f, count in lines[:_MOST_SHOWN]:
            more = f" and {count - 1} more" if count > 1 else ""
            cells = (f.column, f.value, f.rule, f.nearest)
            seen = (text if text.isprintable() else repr(text)[1:-1] for text in cells)
            shown.add_row(kind, f.file, f"{f.row or ''}{more}", *seen)
        if len(lines) > _MOST_SHOWN:
            shown.add_row(kind, "", "", "", "", f"and {len(lines) - _MOST_SHOWN} more", "")
    return shown


def stop_at_faults(findings: Findings, as_json: bool) -> None:
    """Show the notes on the error output; if there are faults, list them and end with exit code 2."""
    from forcopt.data.intake import grouped

    if findings.faults:
        if as_json:
            print_json({"status": "bad input", "findings": [f._asdict() for f in findings.faults]})
        else:
            print_table(findings_table(fault=findings.faults))
        raise typer.Exit(2)
    for note, count in grouped(findings.notes)[: 0 if Screen.quiet else _MOST_SHOWN]:
        more = f" (and in {count - 1} more rows)" if count > 1 else ""
        print(f"note: {note}{more}", file=sys.stderr)


def show_facts(facts: Mapping[str, object], as_json: bool) -> None:
    """Write the facts about an answer, a line each."""
    if as_json:
        print_json(dict(facts))
        return
    for name, value in facts.items():
        console().print(f"{name}: {value}", markup=False, soft_wrap=True)


def require_solution(solution: Any, as_json: bool) -> None:
    """End with exit code 1 if there is no solution, and say why."""
    if not solution.status.has_solution:
        show_facts({"status": str(solution.status), "reason": solution.reason or solution.message}, as_json)
        raise typer.Exit(1)


class Screen:
    """The amount of output of the commands; the root command sets it.

    Attributes
    ----------
    quiet : bool
        No progress bars and no warnings.
    verbose : bool
        Every improvement of a search, on the error output.
    """

    quiet = False
    verbose = False


def progress_wanted() -> bool | None:
    """Give the argument `progress` of `compare` and `sweep`: False under ``forcopt -q``, else None."""
    return False if Screen.quiet else None


def check_target(path: Path | None, *endings: str) -> None:
    """Refuse a file that cannot be written, before hours go into its content.

    Raises
    ------
    DeclarationError
        For an ending that is not among the given ones, a folder that does not exist, or the name of a folder.
    """
    if path is None:
        return
    if endings and path.suffix.lower() not in endings:
        raise DeclarationError(f"cannot write {path}: the name must end in {', '.join(endings)}")
    if not path.absolute().parent.is_dir():
        raise DeclarationError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise DeclarationError(f"cannot write {path}: it is a folder")


def keep_inputs(inputs: Iterable[str | Path | None], *targets: Path | None) -> None:
    """Refuse to write where `check_target` cannot, or over a file that the command reads, by whatever path.

    Raises
    ------
    DeclarationError
        Which names the files.
    """
    for target in filter(None, targets):
        check_target(target)
        for given in inputs:
            if given and os.path.exists(target) and os.path.exists(given) and os.path.samefile(target, given):
                raise DeclarationError(f"cannot write {target}: the command reads {given}; name another file")


def console(piped_width: int = 160) -> Console:
    """Give the output; NO_COLOR drops all styling, and lines of a pipe have up to `piped_width` columns."""
    from rich.console import Console

    return Console(
        width=None if sys.stdout.isatty() else piped_width,
        highlight=False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )


def table(*headings: str, title: str | None = None) -> Table:
    """An empty table in the style of all commands."""
    from rich import box
    from rich.table import Table

    out = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for heading in headings:
        out.add_column(heading, overflow="fold")
    return out


def print_table(content: Table) -> None:
    """Write a table; without a terminal it takes the width of its content, and no line ends in spaces."""
    screen = console(piped_width=10_000)
    if screen.is_terminal:
        screen.print(content, markup=False)
        return
    with screen.capture() as written:
        screen.print(content, markup=False)
    print("\n".join(line.rstrip() for line in written.get().splitlines()).strip("\n"))


def print_json(data: Any) -> None:
    """Write plain data; numbers that are not finite become null."""
    print(json.dumps(plain(data), indent=1, allow_nan=False, ensure_ascii=False))
