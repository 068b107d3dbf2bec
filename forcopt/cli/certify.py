"""``forcopt certify``: the proof of a model's optimum as a file that other programs check."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from typer import Argument, Option

from forcopt.cli.output import MemoryLimitOption, Screen, keep_inputs
from forcopt.clock import stop_on_interrupt
from forcopt.errors import DeclarationError, require
from forcopt.memory import memory_limited

if TYPE_CHECKING:
    from forcopt.language.model import Model
    from forcopt.loops.solution import ModelSolution


_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def certify(
    model: Annotated[Path, Argument(metavar="MODEL.mps", help="A linear or integer model.")],
    output: Annotated[Path, Option("--output", "-o", metavar="FILE.vipr", help="Where the proof goes.")],
    solution: Annotated[
        Path | None,
        Option("--solution", metavar="FILE", help="A point: lines of a column's name and its value."),
    ] = None,
    time_limit: Annotated[
        float, Option("--time-limit", "-t", metavar="SECONDS", help="For solver and proof, each.")
    ] = 600.0,
    memory_limit: MemoryLimitOption = None,
) -> None:
    """Prove the optimum of a model, or that it has none, and write the proof in the VIPR format.

    Numbers count as the decimals that the file prints. The proof is checked against the file before the
    command ends, by the program that 'python -m forcopt.check FILE.vipr MODEL.mps' runs. 'forcopt -v certify'
    shows lines of progress.
    """
    from forcopt import check
    from forcopt.loops.certify import certify_model
    from forcopt.loops.exchange import read

    keep_inputs([model, solution], output)
    if model.suffix != ".mps":
        raise DeclarationError(f"the model is {str(model)!r}; its name must end in .mps")
    program = read(model)
    with memory_limited(memory_limit), stop_on_interrupt():
        if solution is None:
            found = program.solve("highs", time_limit=time_limit, gap=0.0)
        else:
            found = solution_file(program, solution)
        certificate = certify_model(
            found,
            number=printed_numbers(model),
            time_limit=time_limit,
            save=output,
            progress=_report if Screen.verbose else None,
        )
    print(certificate)
    if "the proof is in" not in certificate.how:
        raise typer.Exit(1)
    raise typer.Exit(check.main([str(output), str(model)]))


def _report(nodes: int, depth: int) -> None:
    print(f"{nodes:9,} subproblems, depth {depth}", file=sys.stderr)


def printed_numbers(path: Path) -> Callable[[float], Any]:
    """Give a reader of floats that knows the decimals of a file: each float is the number printed there.

    Raises
    ------
    DeclarationError
        If two different numbers of the file round to one float.
    """
    from forcopt.loops.exact_lp import decimal
    from forcopt.rationals import fmpq

    known: dict[float, Any] = {}
    for word in path.read_text(encoding="utf-8", errors="replace").split():
        if not _NUMBER.fullmatch(word):
            continue
        exact = Fraction(word)
        for sign in (1, -1):
            own = fmpq(sign * exact.numerator, exact.denominator)
            if known.setdefault(sign * float(word), own) != own:
                raise DeclarationError(f"{path}: {word} and another number round to the same float")
    return lambda value: known.get(value) or decimal(value)


def solution_file(model: Model, path: Path) -> ModelSolution:
    """Read a point: each line that begins with a column's name gives its value next; others are 0.

    Raises
    ------
    DeclarationError
        If no line names a column, or a value is no number.
    """
    from forcopt.loops.solution import ModelSolution
    from forcopt.status import Status

    columns = {model.column_name(j): j for j in range(model.column_count)}
    point, named = np.zeros(model.column_count), False
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) < 2 or words[0] not in columns:
            continue
        require(_NUMBER.fullmatch(words[1]), f"{path}: the value of {words[0]}", words[1], "be a number")
        point[columns[words[0]]], named = float(words[1]), True
    if not named:
        raise DeclarationError(f"{path}: no line names a column of {model.name!r}")
    return ModelSolution(model, Status.FEASIBLE, 0.0, 0.0, (0.0,), point, 0.0, "highs", ())
