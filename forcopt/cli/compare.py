"""``forcopt compare``: methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forcopt.cli.output import (
    DRAWN,
    JsonOption,
    SeedOption,
    TimeLimitOption,
    check_target,
    console,
    print_json,
)
from forcopt.errors import DeclarationError, unknown

__all__ = ["compare"]


def compare(
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC...", help="Declarations (JSON or TOML), .mps or .lp files, examples or instances."
        ),
    ],
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "-m",
            metavar="A,B@BACKEND,...",
            help="What to run; NAME@* stands for every installed backend that can. All methods if left out.",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", "-r", help="Make each run so often.")] = 1,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a sortable page.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a table.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it (.png, .svg, .pdf).")] = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="What to draw: runs, profile, cactus, progress, scaling or pareto."
        ),
    ] = "runs",
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE.sqlite", help="Keep each run; those that are there are not run again."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare methods on problems, each in a process of its own: a crash or a hang costs one row."""
    from forcopt.study import compare
    from forcopt.study.charts import CHARTS

    if kind not in (kinds := ["runs", *CHARTS]):
        raise unknown("kind of plot", kind, kinds)
    if kind != "runs" and plot is None:
        raise DeclarationError(f"--kind is {kind}, but --plot names no file to draw it to")
    for path, endings in ((html, ()), (csv, ()), (plot, DRAWN), (store, ())):
        check_target(path, *endings)
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    result = compare(specs, names, repeats=repeats, time_limit=time_limit, seed=seed, store=store)
    if as_json:
        print_json(result)
    elif (screen := console()).is_terminal:
        screen.print(result)
    else:
        print(result.table())
    for path, write in ((html, result.to_html), (csv, result.to_csv)):
        if path is not None:
            write(path)
    if plot is not None:
        result.plot(plot, kind)
    if any(row.status is None for row in result.rows):
        raise typer.Exit(130)  # Ctrl-C
    if not any(row.solved for row in result.rows):
        raise typer.Exit(1)
