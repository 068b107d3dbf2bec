"""``forcopt sample``: from a frame of records to a drawn stratified sample."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from forcopt.cli.output import (
    EncodingOption,
    FixOption,
    JsonOption,
    SeedOption,
    check_target,
    fixes_from,
    show_facts,
    stop_at_faults,
)
from forcopt.errors import DeclarationError

_JOIN = ", "
_NORMAL = 1.96
"""The 97.5 % point of the normal distribution, for margins."""


def sample(
    frame: Annotated[
        Path, typer.Argument(metavar="FRAME", help="A CSV or Excel file, a row for each record.")
    ],
    strata: Annotated[str, typer.Option(metavar="COLUMNS", help="One or several, such as region,age.")],
    size: Annotated[int, typer.Option("--size", "-n", metavar="N", help="Of the sample.")],
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A number whose mean to estimate; else shares.")
    ] = None,
    minimum: Annotated[int, typer.Option(metavar="M", help="The least sample of each stratum.")] = 2,
    identifier: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Names the records.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE.csv", help="The drawn records; the report goes beside it."),
    ] = Path("drawn.csv"),
    fix: FixOption = None,
    encoding: EncodingOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the frame, find the best sizes of the samples of the strata, draw them, and report."""
    from forcopt.data.intake import Expected, check_table, typed
    from forcopt.models.allocation import StratifiedAllocation
    from forcopt.notebook import picture_html
    from forcopt.privacy import StratifiedSample, draw
    from forcopt.problem.report_page import picture, report, table

    check_target(out, ".csv")
    by = [name.strip() for name in strata.split(",")]
    if value in by or identifier in by:
        raise DeclarationError(
            f"--strata is {strata!r}; a stratum is neither the value nor the name of a record"
        )
    schema = {name: Expected("group") for name in by}
    schema |= {value: Expected("number")} if value else {}
    schema |= {identifier: Expected("key")} if identifier else {}
    records, findings = check_table(frame, frame.name, schema, fixes=fixes_from(fix), encoding=encoding)
    stop_at_faults(findings, as_json)
    if not 1 <= size <= len(records):
        raise DeclarationError(
            f"--size is {size}; it must be from 1 to {len(records)}, the rows of the frame"
        )
    if {"stratum", "weight"} & set(records.columns):
        raise DeclarationError(
            f"{frame.name} has a column stratum or weight, which the sample adds; rename it"
        )
    known = typed(records, schema).assign(stratum=records[by].agg(_JOIN.join, axis=1))
    rules = {"sample_size": size, "minimum": minimum}
    if value:
        problem = StratifiedAllocation.from_records(known, "stratum", value, **rules)
    else:
        counts = known.stratum.value_counts().sort_index()
        names = tuple(map(str, counts.index))
        problem = StratifiedAllocation(
            sizes=counts.to_numpy(), deviations=[1.0] * len(counts), names=names, **rules
        )
    solution = problem.solve()
    facts: dict[str, object] = {"status": str(solution.status)}
    if not solution.status.has_solution:
        show_facts(facts | {"reason": solution.reason or solution.message}, as_json)
        raise typer.Exit(1)
    found = solution.decision
    number = secrets.randbelow(2**31) if seed is None else seed
    design = StratifiedSample(by="stratum", sizes=found.by_stratum())
    drawn = draw(design, records.assign(stratum=known.stratum), number, weight="weight")
    drawn.to_csv(out, index=False)
    goal = f"the mean of {value}" if value else "the share of any answer, at half of each stratum"
    deviation = found.variance**0.5 * (1.0 if value else 0.5)
    margin = f"±{_NORMAL * deviation:.4g}" if value else f"±{_NORMAL * deviation:.2%}"
    rows = [
        (name, f"{n:,}", f"{m:g}", f"{m / n:.2%}", f"{n / m:.4g}")
        for name, n, m in zip(found.names, found.strata.tolist(), found.sizes.tolist(), strict=True)
    ]
    head = ("stratum", "records", "sample", "rate", "weight")
    page = out.with_suffix(".html")
    facts |= {"drawn": len(drawn), "margin": margin, "seed": number, "sample": str(out), "report": str(page)}
    question = {
        "frame": frame.name,
        "strata": ", ".join(by),
        "size": size,
        "least sample of a stratum": minimum,
        "goal": f"the least variance of {goal}",
    }
    drawing = picture(picture_html(found.plot()), "Bars of the sample sizes of all strata, as in the table.")
    text = report(
        "sample",
        facts | {"records": len(records), "count": len(rows), "goal": goal, "method": solution.method},
        question=question,
        findings=findings,
        answer={"The strata": table("Records and sample by stratum", head, rows) + drawing},
        plans=[out],
    )
    page.write_text(text, encoding="utf-8")
    show_facts(facts, as_json)
