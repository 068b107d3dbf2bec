"""``forcopt fair``: from a table of people to a tested fair policy."""

from __future__ import annotations

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


def fair(
    people: Annotated[
        Path, typer.Argument(metavar="PEOPLE", help="A CSV or Excel file, a row for each person.")
    ],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="The outcome, of two values.")],
    sensitive: Annotated[str, typer.Option(metavar="COLUMNS", help="Of the groups, such as sex or sex,age.")],
    notion: Annotated[
        str,
        typer.Option(metavar="NAME=SHARE", help="equalized_odds, demographic_parity, equal_opportunity, ..."),
    ] = "equalized_odds=5%",
    positive: Annotated[str | None, typer.Option(metavar="VALUE", help="The better label.")] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option("--leave-out", metavar="COLUMN", help="Is no feature. Repeat for more."),
    ] = None,
    policy: Annotated[
        Path, typer.Option("--policy", "-o", metavar="FILE.json", help="What 'forcopt predict' reads.")
    ] = Path("policy.json"),
    out: Annotated[Path, typer.Option("--report", metavar="FILE.html", help="The report to write.")] = Path(
        "fair.html"
    ),
    fix: FixOption = None,
    encoding: EncodingOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Check the table, learn thresholds by group that are fair, test them on a third of it, and report."""
    from forcopt.models.fair_postprocessing.fair_report import check_people, fair_report, notion_from

    check_target(policy, ".json")
    check_target(out, ".html")
    demand = notion_from(notion)
    groups = [name.strip() for name in sensitive.split(",")]
    fixes = fixes_from(fix)
    _, findings, _, better = check_people(people, label, groups, positive, leave_out or (), fixes, encoding)
    stop_at_faults(findings, as_json)
    made = fair_report(
        people,
        label=label,
        sensitive=groups,
        notion=demand,
        positive=better,
        leave_out=leave_out or (),
        fixes=fixes,
        encoding=encoding,
        seed=0 if seed is None else seed,
    )
    made.policy.save(policy)
    made.to_html(out)
    gaps = {f"difference of the {name}": f"{gap:.2%}" for name, gap in made.rates.difference().items()}
    show_facts(
        {"status": "tested", "finding": made.lead, **gaps, "policy": str(policy), "report": str(out)}, as_json
    )
