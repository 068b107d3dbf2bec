"""``forcopt compare``: methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forcopt.cli.output import JsonOption, SeedOption, SpecArgument, TimeLimitOption, console, print_json

__all__ = ["compare"]


def compare(
    spec: SpecArgument,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "-m",
            metavar="A,B@BACKEND,...",
            help="What to run; NAME@* stands for every installed backend that can. All methods if left out.",
        ),
    ] = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a sortable page.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a table.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it (.png, .svg, .pdf).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare methods on a problem, each in a process of its own: a crash or a hang costs one row."""
    from forcopt.study import compare

    names = None if methods is None else [name.strip() for name in methods.split(",")]
    result = compare(spec, names, time_limit=time_limit, seed=seed)
    if as_json:
        print_json(result)
    elif (screen := console()).is_terminal:
        screen.print(result)
    else:
        print(result.table())
    for path, write in ((html, result.to_html), (csv, result.to_csv), (plot, result.plot)):
        if path is not None:
            write(path)
    if any(row.status is None for row in result.rows):
        raise typer.Exit(130)  # Ctrl-C
    if not any(row.solved for row in result.rows):
        raise typer.Exit(1)
