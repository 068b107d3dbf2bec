"""``forcopt compare`` and ``forcopt sweep``: methods side by side, and each point of a grid of parameters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from forcopt.cli import output
from forcopt.errors import DeclarationError, check_known, require

if TYPE_CHECKING:
    from forcopt.study import Comparison


MethodsOption = Annotated[
    list[str] | None,
    Option(
        "--methods",
        "-m",
        metavar="A,B@BACKEND,...",
        help="The methods to run; NAME@* stands for every installed backend that can.",
    ),
]
HtmlOption = Annotated[Path | None, Option("--html", metavar="FILE", help="Write a sortable page.")]
CsvOption = Annotated[Path | None, Option("--csv", metavar="FILE", help="Write a table.")]
PlotOption = Annotated[Path | None, Option("--plot", metavar="FILE", help="Draw it (.png, .svg, .pdf).")]
KindOption = Annotated[
    str,
    Option("--kind", metavar="KIND", help="The chart: runs, profile, cactus, progress, scaling or pareto."),
]
XOption = Annotated[str | None, Option("--x", metavar="NUMBER", help="With --kind pareto: horizontal axis.")]
YOption = Annotated[str | None, Option("--y", metavar="NUMBER", help="With --kind pareto: vertical axis.")]
StoreOption = Annotated[
    Path | None,
    Option("--store", metavar="FILE.sqlite", help="Keep each run; a run in the store is not repeated."),
]


def names(methods: list[str] | None) -> list[str] | None:
    """Read lists of methods that are separated by commas."""
    return [name.strip() for name in ",".join(methods).split(",")] if methods else None


@dataclass(frozen=True)
class Report:
    """Where a comparison is shown and written; refuses what could not be, before anything runs."""

    html: Path | None
    csv: Path | None
    plot: Path | None
    store: Path | None
    kind: str
    axes: dict[str, str | None]
    as_json: bool
    specs: list[str]

    def __post_init__(self) -> None:
        from forcopt.study.charts import CHARTS

        check_known("kind of plot", self.kind, ["runs", *CHARTS])
        if self.kind != "runs" and self.plot is None:
            raise DeclarationError(f"--kind is {self.kind}, but --plot names no file to draw it to")
        for axis, value in self.axes.items():
            if value is not None and self.kind != "pareto":
                raise DeclarationError(f"--{axis} is {value}, but only --kind pareto has axes to choose")
        output.check_target(self.plot, *output.DRAWN)
        output.keep_inputs(self.specs, self.html, self.csv, self.plot, self.store)

    def show(self, result: Comparison) -> None:
        """Show and write a comparison, and end with its exit code."""
        if self.as_json:
            output.print_json(result)
        elif (screen := output.console()).is_terminal:
            screen.print(result)
        else:
            print(result.table())
        for path, write in ((self.html, result.to_html), (self.csv, result.to_csv)):
            if path is not None:
                write(path)
        if self.plot is not None:
            chosen: dict[str, Any] = {axis: value for axis, value in self.axes.items() if value is not None}
            result.plot(self.plot, self.kind, **chosen)
        if any(row.status is None for row in result.rows):
            raise typer.Exit(130)  # Ctrl-C
        if not any(row.solved for row in result.rows):
            raise typer.Exit(1)


def compare(
    specs: Annotated[
        list[str],
        Argument(
            metavar="SPEC...",
            help="Declarations (JSON or TOML; - is standard input), .mps or .lp files, examples, instances.",
            autocompletion=output.complete_spec,
        ),
    ],
    methods: MethodsOption = None,
    repeats: Annotated[int, Option("--repeats", "-r", help="The number of times that each run is made.")] = 1,
    time_limit: output.TimeLimitOption = None,
    memory_limit: output.MemoryLimitOption = None,
    seed: output.SeedOption = None,
    certify: output.CertifyOption = False,
    html: HtmlOption = None,
    csv: CsvOption = None,
    plot: PlotOption = None,
    kind: KindOption = "runs",
    x: XOption = None,
    y: YOption = None,
    store: StoreOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Compare methods on problems, each in a process of its own: a crash or a hang costs one row.

    All methods are run if none are named.
    """
    from forcopt.study import compare

    report = Report(html, csv, plot, store, kind, {"x": x, "y": y}, as_json, specs)
    problems = {spec: output.problem_from(spec) if spec == "-" else spec for spec in specs}
    given: Any = problems if "-" in problems else specs
    limits: dict[str, Any] = {"time_limit": time_limit, "memory_limit": memory_limit, "store": store}
    limits |= {"progress": output.progress_wanted(), "repeats": repeats, "certify": certify, "seed": seed}
    report.show(compare(given, names(methods), **limits))


def sweep(
    spec: output.SpecArgument,
    over: Annotated[
        list[str] | None,
        Option(
            "--over",
            "-p",
            metavar="NAME=V1,V2,...",
            help="A field, a field of a field (constraint.tolerance) or an option, with its values; repeat.",
        ),
    ] = None,
    methods: MethodsOption = None,
    seeds: Annotated[
        int | None, Option("--seeds", metavar="N", help="Run each point with the seeds 0 to N - 1.")
    ] = None,
    time_limit: output.TimeLimitOption = None,
    memory_limit: output.MemoryLimitOption = None,
    isolate: Annotated[
        bool, Option("--isolate", help="Give each run a process of its own: a crash costs one row.")
    ] = False,
    html: HtmlOption = None,
    csv: CsvOption = None,
    plot: PlotOption = None,
    kind: KindOption = "runs",
    x: XOption = None,
    y: YOption = None,
    store: StoreOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Solve a problem at every point of a grid of parameters, with every seed.

    The default method is run if none is named. With --store an interrupted sweep continues.
    """
    from forcopt.study import sweep

    report = Report(html, csv, plot, store, kind, {"x": x, "y": y}, as_json, [spec])
    require(seeds is None or seeds >= 1, "--seeds", seeds, "be at least 1")
    grid: dict[str, list[Any]] = {}
    for name, values in map(_values, over or []):
        if name in grid:
            raise DeclarationError(f"--over names {name} twice; list all its values once: NAME=V1,V2,...")
        grid[name] = values
    limits: dict[str, Any] = {"time_limit": time_limit, "memory_limit": memory_limit, "store": store}
    limits |= {"progress": output.progress_wanted(), "isolate": isolate}
    limits |= {"seeds": (None,) if seeds is None else range(seeds)}
    given = output.problem_from(spec) if spec == "-" else spec
    report.show(sweep(given, grid, names(methods), **limits))


def _values(text: str) -> tuple[str, list[Any]]:
    """Read ``NAME=V1,V2,...``; each value is JSON, or else text."""
    name, given, values = text.partition("=")
    require(given and values, "--over", text, "be NAME=V1,V2,...")
    try:
        return name, list(json.loads(f"[{values}]"))
    except json.JSONDecodeError:
        return name, [output.parsed(part) for part in values.split(",")]
