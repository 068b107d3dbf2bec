"""``forcopt certify``: the proof of a model's optimum as a file that other programs check."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from forcopt.cli.output import Screen
from forcopt.errors import DeclarationError

__all__ = ["certify"]


def certify(
    model: Annotated[Path, typer.Argument(metavar="MODEL.mps", help="A linear or integer model.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.vipr", help="Where the proof goes.")
    ],
    solution: Annotated[
        Path | None,
        typer.Option("--solution", metavar="FILE", help="A point: lines of a column's name and its value."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option("--time-limit", "-t", metavar="SECONDS", help="For solver and proof, each.")
    ] = 600.0,
) -> None:
    """Prove the optimum of a model, or that it has none, and write the proof in the VIPR format.

    Numbers count as the decimals that the file prints. The proof is checked against the file before the
    command ends, by the program that 'python -m forcopt.check FILE.vipr MODEL.mps' runs.
    """
    from forcopt import check
    from forcopt.loops.certify import certify_model
    from forcopt.loops.certify.printed import printed_numbers, solution_file
    from forcopt.loops.exchange import read

    if model.suffix != ".mps":
        raise DeclarationError(f"the model is {str(model)!r}; its name must end in .mps")
    program = read(model)
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
