"""``forcopt districts``: from a map of units to districts, their report and the plan as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from forcopt.cli.output import (
    FixOption,
    JsonOption,
    ReportOption,
    TimeLimitOption,
    check_target,
    fixes_from,
    share_from,
    show_facts,
    stop_at_faults,
)


def districts(
    units: Annotated[
        Path,
        typer.Argument(
            metavar="MAP", help="GeoJSON, a shapefile, a GeoPackage, or the JSON of a graph, as GerryChain's."
        ),
    ],
    count: Annotated[int, typer.Option("--districts", "-k", metavar="K", help="How many.")],
    tolerance: Annotated[
        str, typer.Option(metavar="SHARE", help="The largest deviation of a population from the mean.")
    ] = ".5%",
    population: Annotated[str, typer.Option(metavar="PROPERTY", help="The number of people.")] = "TOTPOP",
    identifier: Annotated[
        str | None, typer.Option("--id", metavar="PROPERTY", help="Names the units.")
    ] = None,
    adjacency: Annotated[
        Literal["rook", "queen"], typer.Option(help="Neighbours share a border, or a corner at least.")
    ] = "rook",
    bridge: Annotated[bool, typer.Option("--bridge", help="Join islands to the nearest unit.")] = False,
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="See 'forcopt describe Districting'.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="The plan: .geojson, or .csv of units.")
    ] = None,
    out: ReportOption = Path("districts.html"),
    fix: FixOption = None,
    time_limit: TimeLimitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Check the map, find connected districts with the fewest cut borders, and report them."""
    from forcopt.data.maps import read_map
    from forcopt.models.districting import Districting
    from forcopt.notebook import picture_html
    from forcopt.problem.report_page import picture, report, table

    check_target(out, ".html")
    check_target(plan, ".geojson", ".csv")
    share = share_from(tolerance, "--tolerance", most=0.2)
    graph, findings = read_map(
        units, population, identifier=identifier, adjacency=adjacency, bridge=bridge, fixes=fixes_from(fix)
    )
    stop_at_faults(findings, as_json)
    problem = Districting(graph=graph, districts=count, tolerance=share, population=population)
    solution = problem.solve(method, time_limit=time_limit)
    known: dict[str, Any] = {"status": str(solution.status)}
    if not solution.status.has_solution:
        show_facts(known | {"reason": solution.reason or solution.message}, as_json)
        raise typer.Exit(1)
    found = solution.decision
    if plan is not None:
        (found.to_csv if plan.suffix.lower() == ".csv" else found.to_geojson)(plan)
    cut = f"{solution.objective:g} of {graph.number_of_edges()} pairs of neighbours are cut"
    least = (
        "No plan cuts fewer" if solution.status == "optimal" else f"Any plan cuts {solution.bound:g} at least"
    )
    proof = f"{least}, which is proved."
    round_scores, means = found.polsby_popper, problem.mean
    rows = []
    for d, (part, people) in enumerate(zip(found.parts, found.populations, strict=True)):
        score = f"{round_scores[d]:.2f}" if round_scores else "not known"
        rows.append((d + 1, len(part), f"{people:,}", f"{people / means - 1:+.2%}", score))
    head = ("district", "units", "people", "from the mean", "compactness (Polsby-Popper)")
    low, high = problem.population_bounds
    drawing = found.plot()
    for d, text in enumerate(drawing.legends[0].get_texts() if drawing.legends else ()):
        text.set_text(f"{d + 1}: {found.populations[d]:,}")  # as in the table and in the files
    alt = f"A map of {count} districts of {len(graph)} units; {cut}."
    question = {
        "map": units.name,
        "units": f"{len(graph):,}",
        "people": f"{problem.total:,}",
        "districts": count,
        "people of a district": f"{low:,} to {high:,}; the mean is {means:,.1f}, the tolerance {share:.6g}",
        "goal": "the fewest pairs of neighbours in different districts",
    }
    known |= {"cut": cut, "proof": proof, "report": str(out)} | ({"plan": str(plan)} if plan else {})
    texts = {"count": count, "low": low, "high": high, "method": solution.method, "seconds": solution.seconds}
    page = report(
        "districts",
        texts | known,
        question=question,
        findings=findings,
        answer={"The map": picture(picture_html(drawing), alt) + table("The districts", head, rows)},
        limits=[f"{note.value} {note.rule}." for note in findings.notes],
        plans=[plan] if plan else [],
    )
    out.write_text(page, encoding="utf-8")
    show_facts(known, as_json)
