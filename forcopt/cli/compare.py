"""``forcopt compare``: methods side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from forcopt.cli.completion import complete_spec
from forcopt.cli.output import (
    CertifyOption,
    JsonOption,
    MemoryLimitOption,
    SeedOption,
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

__all__ = ["compare"]


def compare(
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC...",
            help="Declarations (JSON or TOML; - is standard input), .mps or .lp files, examples, instances.",
            autocompletion=complete_spec,
        ),
    ],
    methods: MethodsOption = None,
    repeats: Annotated[
        int, typer.Option("--repeats", "-r", help="The number of times that each run is made.")
    ] = 1,
    time_limit: TimeLimitOption = None,
    memory_limit: MemoryLimitOption = None,
    seed: SeedOption = None,
    certify: CertifyOption = False,
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
    """Compare methods on problems, each in a process of its own: a crash or a hang costs one row.

    All methods are run if none are named.
    """
    from forcopt.study import compare

    axes = {"x": x, "y": y}
    check_report(html, csv, plot, store, kind, axes)
    problems = {spec: problem_from(spec) if spec == "-" else spec for spec in specs}
    given = problems if "-" in problems else specs
    with opened(executor) as pool:
        result = compare(
            given,
            names(methods),
            repeats=repeats,
            time_limit=time_limit,
            memory_limit=memory_limit,
            seed=seed,
            certify=certify,
            store=store,
            executor=pool,
            progress=progress_wanted(),
        )
    report(result, html, csv, plot, kind, axes, as_json)
