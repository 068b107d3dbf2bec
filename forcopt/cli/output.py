"""How results are written: for people with rich, for programs as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forcopt.errors import DeclarationError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "DRAWN",
    "JsonOption",
    "SeedOption",
    "SpecArgument",
    "TimeLimitOption",
    "check_target",
    "console",
    "is_model_file",
    "plain",
    "print_json",
    "table",
]

SpecArgument = Annotated[
    str,
    typer.Argument(
        metavar="SPEC",
        help="A declaration (JSON or TOML), an .mps or .lp file, or the name of an example or instance.",
    ),
]
TimeLimitOption = Annotated[
    float | None, typer.Option("--time-limit", "-t", metavar="SECONDS", help="Stop after so many seconds.")
]
SeedOption = Annotated[int | None, typer.Option(help="Of whatever is random.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


DRAWN = (".png", ".svg", ".pdf")
"""How the name of a picture may end."""


def is_model_file(spec: str) -> bool:
    """Whether `spec` names a file that holds a bare model instead of a problem's declaration."""
    return spec.lower().endswith((".mps", ".lp", ".mps.gz", ".lp.gz"))


def check_target(path: Path | None, *endings: str) -> None:
    """Say what keeps a file from being written before hours go into what it shall hold.

    Raises
    ------
    DeclarationError
        For another ending than those given, or a folder that does not exist.
    """
    if path is None:
        return
    if endings and path.suffix.lower() not in endings:
        raise DeclarationError(f"cannot write {path}: the name must end in {', '.join(endings)}")
    if not path.absolute().parent.is_dir():
        raise DeclarationError(f"cannot write {path}: there is no folder {path.parent}")


def console() -> Console:
    """The output; text is not folded to a terminal's width where there is no terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def table(*headings: str, title: str | None = None) -> Table:
    """An empty table in the style of all commands."""
    from rich import box
    from rich.table import Table

    out = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for heading in headings:
        out.add_column(heading, overflow="fold")
    return out


def print_json(data: Any) -> None:
    """Write plain data; what is no finite number becomes null."""
    print(json.dumps(plain(data), indent=1, allow_nan=False, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Give any value as what JSON can hold: arrays as lists, objects by their fields, otherwise as text."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        return plain(value.tolist())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return [plain(v) for v in value] if isinstance(value, Iterable) else str(value)
