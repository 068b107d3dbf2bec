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
    from forcopt.data.intake import IntakeError
    from forcopt.models.fair_postprocessing.fair_report import fair_report, notion_from

    check_target(policy, ".json")
    check_target(out, ".html")
    try:
        made = fair_report(
            people,
            label=label,
            sensitive=[name.strip() for name in sensitive.split(",")],
            notion=notion_from(notion),
            positive=positive,
            leave_out=leave_out or (),
            fixes=fixes_from(fix),
            encoding=encoding,
            seed=0 if seed is None else seed,
        )
    except IntakeError as error:
        stop_at_faults(error.findings, as_json)
        raise
    stop_at_faults(made.findings, as_json)
    made.policy.save(policy)
    made.to_html(out)
    shown = dict(zip(("error of the policy", "error of the learner alone"), made.errors, strict=True))
    shown |= {f"difference of the {name}": gap for name, gap in made.rates.difference().items()}
    facts = {name: f"{share:.2%}" for name, share in shown.items()}
    show_facts({"status": "tested", **facts, "policy": str(policy), "report": str(out)}, as_json)
