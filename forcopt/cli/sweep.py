"""``forcopt sweep``: every point of a grid of parameters."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from forcopt.cli.output import (
    JsonOption,
    MemoryLimitOption,
    SpecArgument,
    TimeLimitOption,
    problem_from,
    progress_wanted,
)
from forcopt.cli.report import (
    CsvOption,
    ExecutorOption,
    HtmlOption,
    KindOption,
    MethodsOption,
    PlotOption,
    StoreOption,
    XOption,
    YOption,
    check_report,
    names,
    opened,
    report,
)
from forcopt.errors import DeclarationError

__all__ = ["sweep"]


def sweep(
    spec: SpecArgument,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            "-p",
            metavar="NAME=V1,V2,...",
            help="A field, a field of a field (constraint.tolerance) or an option, with its values; repeat.",
        ),
    ] = None,
    methods: MethodsOption = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", metavar="N", help="Run each point with the seeds 0 to N - 1.")
    ] = None,
    time_limit: TimeLimitOption = None,
    memory_limit: MemoryLimitOption = None,
    isolate: Annotated[
        bool, typer.Option("--isolate", help="Give each run a process of its own: a crash costs one row.")
    ] = False,
    html: HtmlOption = None,
    csv: CsvOption = None,
    plot: PlotOption = None,
    kind: KindOption = "runs",
    x: XOption = None,
    y: YOption = None,
    store: StoreOption = None,
    executor: ExecutorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a problem at every point of a grid of parameters, with every seed.

    The default method is run if none is named. With --store an interrupted sweep continues.
    """
    from forcopt.study import sweep

    axes = {"x": x, "y": y}
    check_report(html, csv, plot, store, kind, axes)
    if seeds is not None and seeds < 1:
        raise DeclarationError(f"--seeds is {seeds}; it must be at least 1")
    grid: dict[str, list[Any]] = {}
    for name, values in map(_values, over or []):
        if name in grid:
            raise DeclarationError(f"--over names {name} twice; list all its values once: NAME=V1,V2,...")
        grid[name] = values
    with opened(executor) as pool:
        result = sweep(
            problem_from(spec) if spec == "-" else spec,
            grid,
            names(methods),
            seeds=(None,) if seeds is None else range(seeds),
            time_limit=time_limit,
            memory_limit=memory_limit,
            isolate=isolate,
            store=store,
            executor=pool,
            progress=progress_wanted(),
        )
    report(result, html, csv, plot, kind, axes, as_json)


def _values(text: str) -> tuple[str, list[Any]]:
    """Read ``NAME=V1,V2,...``; each value is JSON, or else text."""
    name, given, values = text.partition("=")
    if not given or not values:
        raise DeclarationError(f"--over is {text!r}; it must be NAME=V1,V2,...")
    try:
        return name, list(json.loads(f"[{values}]"))
    except json.JSONDecodeError:
        return name, [_value(part) for part in values.split(",")]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
