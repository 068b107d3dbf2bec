"""The options for showing and keeping a comparison, shared by ``compare`` and ``sweep``."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forcopt.cli.output import DRAWN, check_target, console, print_json
from forcopt.errors import DeclarationError, unknown

if TYPE_CHECKING:
    from forcopt.study import Comparison

__all__ = [
    "CsvOption",
    "ExecutorOption",
    "HtmlOption",
    "KindOption",
    "MethodsOption",
    "PlotOption",
    "StoreOption",
    "XOption",
    "YOption",
    "check_report",
    "names",
    "opened",
    "report",
]

MethodsOption = Annotated[
    str | None,
    typer.Option(
        "--methods",
        "-m",
        metavar="A,B@BACKEND,...",
        help="The methods to run; NAME@* stands for every installed backend that can.",
    ),
]
HtmlOption = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a sortable page.")]
CsvOption = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write a table.")]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw it (.png, .svg, .pdf).")
]
KindOption = Annotated[
    str,
    typer.Option(
        "--kind", metavar="KIND", help="The chart: runs, profile, cactus, progress, scaling or pareto."
    ),
]
XOption = Annotated[
    str | None, typer.Option("--x", metavar="NUMBER", help="With --kind pareto: the horizontal axis.")
]
YOption = Annotated[
    str | None, typer.Option("--y", metavar="NUMBER", help="With --kind pareto: the vertical axis.")
]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE.sqlite", help="Keep each run; a run in the store is not repeated."),
]
ExecutorOption = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="ADDRESS",
        help="Several runs at once: processes:N, threads:N or dask://HOST:PORT.",
    ),
]


def names(methods: str | None) -> list[str] | None:
    """Read a list of methods that is separated by commas."""
    return None if methods is None else [name.strip() for name in methods.split(",")]


def check_report(
    html: Path | None,
    csv: Path | None,
    plot: Path | None,
    store: Path | None,
    kind: str,
    axes: dict[str, str | None],
) -> None:
    """Refuse output that could not be shown or written, before anything runs.

    Raises
    ------
    UnknownNameError
        For an unknown kind of plot.
    DeclarationError
        For a plot without a file, axes of another plot, or a file that cannot be written.
    """
    from forcopt.study.charts import CHARTS

    if kind not in (kinds := ["runs", *CHARTS]):
        raise unknown("kind of plot", kind, kinds)
    if kind != "runs" and plot is None:
        raise DeclarationError(f"--kind is {kind}, but --plot names no file to draw it to")
    for axis, value in axes.items():
        if value is not None and kind != "pareto":
            raise DeclarationError(f"--{axis} is {value}, but only --kind pareto has axes to choose")
    for path, endings in ((html, ()), (csv, ()), (plot, DRAWN), (store, ())):
        check_target(path, *endings)


@contextmanager
def opened(address: str | None) -> Iterator[Executor | None]:
    """Open the executor at an address; None without one."""
    if address is None:
        yield None
        return
    from forcopt.study.executors import executor_at

    with executor_at(address) as executor:
        yield executor


def report(
    result: Comparison,
    html: Path | None,
    csv: Path | None,
    plot: Path | None,
    kind: str,
    axes: dict[str, str | None],
    as_json: bool,
) -> None:
    """Show and write a comparison, and end with its exit code."""
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
        chosen: dict[str, Any] = {axis: value for axis, value in axes.items() if value is not None}
        result.plot(plot, kind, **chosen)
    if any(row.status is None for row in result.rows):
        raise typer.Exit(130)  # Ctrl-C
    if not any(row.solved for row in result.rows):
        raise typer.Exit(1)
