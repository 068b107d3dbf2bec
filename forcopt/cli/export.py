"""``forcopt export``: a model as a file for other solvers."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from forcopt.cli.output import SpecArgument, is_model_file, problem_from
from forcopt.errors import DeclarationError

__all__ = ["export"]


class Format(StrEnum):
    """The formats that can be written."""

    mps = "mps"
    lp = "lp"


def export(
    spec: SpecArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to.")],
    form: Annotated[
        Format | None, typer.Option("--format", "-f", help="By default as the file ends.")
    ] = None,
    method: Annotated[str | None, typer.Option("--method", "-m", help="Which formulation.")] = None,
) -> None:
    """Write the model of a formulation as an MPS or LP file."""
    from forcopt.loops.exchange import read, write

    if form is not None and output.suffix != f".{form}":
        raise DeclarationError(f"the output is {output}; for the format {form} its name must end in .{form}")
    if is_model_file(spec):
        if method is not None:
            raise DeclarationError(f"{spec} holds a bare model, which has no method {method!r}")
        model = read(spec)
    else:
        model, handles = problem_from(spec).formulate(method)
        if handles.unit != 1:
            print(f"1 of the file's objective is {handles.unit:.10g} of the problem's", file=sys.stderr)
    write(model, output)
