"""``forcopt panel``: from the files of the volunteers and the quotas to the page of a public draw."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from forcopt.cli import output
from forcopt.errors import DeclarationError


def panel(
    people: Annotated[Path, Argument(metavar="PEOPLE", help="A CSV file with a row for each volunteer.")],
    quotas: Annotated[Path, Argument(metavar="QUOTAS", help="A CSV file: feature, value, min, max.")],
    size: Annotated[int, Option("--size", "-k", metavar="K", min=1, help="Of the panel.")],
    out: Annotated[
        Path,
        Option("--out", "-o", metavar="FILE.html", help="The page; the panels go beside it as CSV and JSON."),
    ] = Path("panel.html"),
    identifier: Annotated[
        str | None, Option("--id", metavar="COLUMN", help="Names the people; else they are numbered.")
    ] = None,
    household: Annotated[
        list[str] | None,
        Option(metavar="COLUMN", help="Of the address: one person of each at most. Repeat for more."),
    ] = None,
    objective: Annotated[str, Option(help="leximin, maximin, nash, goldilocks, ...")] = "leximin",
    panels: Annotated[int, Option(metavar="M", min=1, help="How many panels have equal chances.")] = 1000,
    keep: Annotated[list[str] | None, Option(metavar="NAME", help="A member. Repeat for more.")] = None,
    drop: Annotated[list[str] | None, Option(metavar="NAME", help="Must be none. Repeat for more.")] = None,
    draw: Annotated[bool, Option("--draw", help="Draw a panel by the machine's random numbers.")] = False,
    thrown: Annotated[str | None, Option(metavar="NUMBER", help="The number that the dice showed.")] = None,
    reserves: Annotated[int, Option(metavar="R", min=0, help="How many reserves the drawn panel gets.")] = 0,
    attendance: Annotated[str, Option(help="The probability that a member attends.")] = "90%",
    fix: output.FixOption = None,
    encoding: output.EncodingOption = None,
    time_limit: output.TimeLimitOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Check the files, find the fairest lottery, round it to equal panels, publish them, and draw one.

    The rows of a drawn panel, and those of all others, are written to files beside the page.
    After dropouts, run it again with --keep for each member who stays and --drop for each who left.
    """
    from forcopt.data.intake import read_rows
    from forcopt.models.leximax_cohort import LeximaxCohort, choose_reserves, panel_intake, round_lottery
    from forcopt.models.leximax_cohort.page import draw_page
    from forcopt.models.leximax_cohort.panel import positions

    output.check_target(out, ".html")
    beside = [out.with_suffix(ending) for ending in (".csv", ".json")]
    parts = {word: out.with_name(f"{out.stem}-{word}.csv") for word in ("selected", "remaining")}
    drawn = parts.values() if draw or thrown is not None else ()
    output.keep_inputs([people, quotas], out, *beside, *drawn)
    attends = output.share_from(attendance, "--attendance")
    if draw and thrown is not None:
        raise DeclarationError(f"--thrown is {thrown}; --draw draws a number itself: give one of the two")
    if reserves and not draw and thrown is None:
        raise DeclarationError(f"--reserves is {reserves}; they are of a drawn panel: add --draw or --thrown")
    fixes = output.fixes_from(fix)
    fields, findings = panel_intake(
        people, quotas, size, identifier=identifier, household=household, fixes=fixes, encoding=encoding
    )
    output.stop_at_faults(findings, as_json)
    problem = LeximaxCohort(**(fields | {"size": size, "objective": objective}))
    for option, names in (("--keep: ", keep), ("--drop: ", drop)):
        positions(problem, names or (), option)
    problem = problem.after_dropouts(keep or (), drop or ())
    if reserves > (others := len(problem.names) - size):
        raise DeclarationError(f"--reserves is {reserves}; there are {others} other candidates")
    solution = problem.solve(time_limit=time_limit)
    output.require_solution(solution, as_json)
    lottery = round_lottery(solution.decision, panels, time_limit=time_limit)
    number = secrets.choice(lottery.numbers) if draw else thrown
    proof = "proved best" if solution.status == "optimal" else f"not proved; at most {solution.bound:.6g}"
    facts = {
        "objective": f"{objective}: {solution.objective:.6g}, {proof}",
        "smallest chance before rounding": f"{solution.decision.smallest:.4%}",
        "no equal panels have more than": f"{lottery.bound:.2%}",
    }
    if number is not None and reserves:
        chosen = choose_reserves(problem, lottery.members(number), reserves, attends)
        facts["reserves"] = ", ".join(chosen.names)
        facts["places missed on average"] = (
            f"{chosen.missed:.2f} with these reserves, {chosen.missed_without:.2f} without, if a member "
            f"attends with probability {attends:.4g}"
        )
    for path in beside:
        lottery.write(path)
    promised = [f"The lottery is {objective}-best among all lotteries over panels: {proof}."]
    out.write_text(draw_page(lottery, number, facts, findings, promised), encoding="utf-8")
    facts |= {"smallest chance": f"{lottery.smallest:.2%}", "page": str(out)}
    facts["panels"] = ", ".join(map(str, beside))
    if number is not None:
        table = read_rows(people, "candidates", encoding=encoding).loc[findings.rows["candidates"]]
        facts |= {"drawn": number, "members": ", ".join(lottery.members(number))}
        panel = lottery.panels[int(number)]
        for (word, path), rows in zip(parts.items(), (panel > 0, panel == 0), strict=True):
            table[rows].to_csv(path, index=False)
            facts[word] = str(path)
    output.show_facts({"status": str(solution.status), **facts}, as_json)
