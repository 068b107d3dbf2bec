"""From a file to a report: ``forcopt districts``, ``fair``, ``sample`` and ``release``."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from forcopt.cli import output
from forcopt.errors import DeclarationError, require

PeopleArgument = Annotated[Path, Argument(metavar="FILE", help="CSV or Excel, a row for a person or record.")]
IdOption = Annotated[str | None, Option("--id", metavar="COLUMN", help="Names the rows or units.")]

_NORMAL = 1.96
"""The 97.5 % point of the normal distribution, for margins."""

_KEPT = 1 - 1e-9
"""The part of a budget that tables share: the losses of all, each rounded, stay below the budget."""

_MANY = {"n", "count", "counts", "freq", "frequency", "weight", "people", "persons"}
"""Names of columns of tables whose rows are several people."""

_LONGEST = 60
"""Signs of a file's name, which has 255 bytes at most."""

_MOST = {"rho": 10.0, "epsilon": 20.0, "delta": 0.01}
"""Budgets above which a release hardly protects anyone."""


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _finish(page: Path, task: str, known: Mapping[str, Any], as_json: bool, **parts: Any) -> None:
    """Write the report, and show what is known."""
    from forcopt.problem.report_page import report

    page.write_text(report(task, known, **parts), encoding="utf-8")
    shown = {name: value for name, value in known.items() if isinstance(value, str)}
    output.show_facts({**shown, "files": ", ".join(map(str, [page, *parts["plans"]]))}, as_json)


def districts(
    units: Annotated[Path, Argument(metavar="MAP", help="GeoJSON, shapefile, GeoPackage, a graph as JSON.")],
    count: Annotated[int, Option("--districts", "-k", metavar="K", help="How many.")],
    tolerance: Annotated[str, Option(help="The largest deviation from the mean population.")] = ".5%",
    population: Annotated[str, Option(metavar="PROPERTY", help="The number of people.")] = "TOTPOP",
    identifier: IdOption = None,
    adjacency: Annotated[Literal["rook", "queen"], Option(help="By a border, or by a corner.")] = "rook",
    bridge: Annotated[bool, Option("--bridge", help="Join islands to the nearest unit.")] = False,
    objective: Annotated[str | None, Option(metavar="NAME", help="cut by default; see the guide.")] = None,
    enacted: Annotated[
        Path | None, Option("--plan", metavar="CSV", help="An old plan: change it least, by default.")
    ] = None,
    plan: Annotated[Path | None, Option("--map", help="The plan as .geojson, or as .csv of units.")] = None,
    page: Annotated[Path | None, Option("--page", help="An interactive map: one HTML file.")] = None,
    out: Annotated[Path, Option("--report", "-o", help="An HTML page.")] = Path("districts.html"),
    fix: output.FixOption = None,
    time_limit: output.TimeLimitOption = 60,
    as_json: output.JsonOption = False,
) -> None:
    """Check a map, find the best connected districts, by default with the fewest cut borders, and report."""
    from forcopt.data.maps import read_map
    from forcopt.models.districting import Districting, Plan
    from forcopt.notebook import picture_html
    from forcopt.problem.report_page import picture, table

    output.check_target(out, ".html")
    output.check_target(plan, ".geojson", ".csv")
    output.check_target(page, ".html")
    output.keep_inputs([units, enacted], out, plan, page)
    require(page is None or page.resolve() != out.resolve(), "--page", str(page), "differ from --report")
    share, fixes = output.share_from(tolerance, "--tolerance", most=0.2), output.fixes_from(fix)
    graph, found = read_map(
        units, population, identifier=identifier, adjacency=adjacency, bridge=bridge, fixes=fixes
    )
    output.stop_at_faults(found, as_json)
    problem = Districting(graph=graph, districts=count, tolerance=share, population=population)
    if enacted is not None:
        problem = problem.least_change(Plan.from_csv(problem, enacted))
    if objective is not None:
        problem = problem.replace(objective=objective)
    solution = problem.solve(time_limit=time_limit)
    output.require_solution(solution, as_json)
    made, mean, (low, high) = solution.decision, problem.mean, problem.population_bounds
    if plan is not None:
        (made.to_csv if plan.suffix.lower() == ".csv" else made.to_geojson)(plan)
    if page is not None:
        made.to_html(page, solution)
    scored = problem.evaluate(solution.decision).metrics
    cut = f"{scored['cut_edges']:g} of {len(problem.arrays.edges)} pairs of neighbours are cut"
    least = (
        "No plan cuts fewer" if solution.status == "optimal" else f"Any plan cuts {solution.bound:g} at least"
    )
    if problem.objective != "cut":
        end = "at most" if problem.sense == "max" else "at least"
        value, bound = (f"{number:,.10g}" for number in (solution.objective, solution.bound))
        least = f"The objective {problem.objective} is {value}, for any plan {end} {bound}"
    scores = made.polsby_popper or [float("nan")] * count
    rows = [
        (d + 1, len(part), f"{people:,}", f"{people / mean - 1:+.2%}", f"{scores[d]:.2f}")
        for d, (part, people) in enumerate(zip(made.parts, made.populations, strict=True))
    ]
    head = ("district", "units", "people", "from the mean", "compactness (Polsby-Popper)")
    shown = picture(picture_html(made.plot(first=1)), f"Map: {count} districts of {len(graph)} units; {cut}.")
    question = {"map": units.name, "units": len(graph), "people": f"{problem.total:,}", "districts": count}
    question["people of a district"] = (
        f"{low:,} to {high:,}; the mean is {mean:,.1f}, the tolerance {100 * share:.6g} %"
    )
    known = {"status": str(solution.status), "cut": cut, "proof": f"{least}, which is proved.", "low": low}
    if enacted is not None:
        known["change"] = f"{scored['least-change']:,.0f} people in {scored['changed_nodes']:g} units move"
    known |= {"objective": str(problem.objective), "high": high, "count": count}
    known |= {"method": solution.method, "seconds": solution.seconds}
    notes = [f"{note.value} {note.rule}." for note in found.notes]
    answer = {"The map": shown + table("The districts", head, rows)}
    parts = {"question": question, "findings": found, "answer": answer, "limits": notes}
    _finish(out, "districts", known, as_json, plans=list(filter(None, [plan, page])), **parts)


def fair(
    people: PeopleArgument,
    label: Annotated[str, Option(metavar="COLUMN", help="The outcome, of two values.")],
    sensitive: Annotated[str, Option(metavar="COLUMNS", help="Of the groups, such as sex or sex,age.")],
    notion: Annotated[str, Option(help="Also demographic_parity, equal_opportunity.")] = "equalized_odds=5%",
    positive: Annotated[str | None, Option(metavar="VALUE", help="The better label.")] = None,
    leave_out: Annotated[list[str] | None, Option(metavar="COLUMN", help="Is no feature.")] = None,
    policy: Annotated[Path, Option("--policy", "-o", help="For 'forcopt predict'.")] = Path("policy.json"),
    out: Annotated[Path, Option("--report", help="An HTML page.")] = Path("fair.html"),
    fix: output.FixOption = None,
    encoding: output.EncodingOption = None,
    seed: output.SeedOption = 0,
    as_json: output.JsonOption = False,
) -> None:
    """Check a table, learn thresholds by group that are fair, test them on a third of it, and report."""
    from forcopt.data.intake import IntakeError
    from forcopt.models.fair_postprocessing.file_report import fair_report, notion_from

    output.check_target(policy, ".json")
    output.check_target(out, ".html")
    output.keep_inputs([people], policy, out)
    fields: dict[str, Any] = {"label": label, "sensitive": _names(sensitive), "notion": notion_from(notion)}
    fields |= {"positive": positive, "leave_out": leave_out or (), "fixes": output.fixes_from(fix)}
    try:
        made = fair_report(people, **fields, encoding=encoding, seed=0 if seed is None else seed)
    except IntakeError as error:
        output.stop_at_faults(error.findings, as_json)
        raise
    output.stop_at_faults(made.findings, as_json)
    made.policy.save(policy)
    made.to_html(out)
    shown = dict(zip(("error of the policy", "error of the learner alone"), made.errors, strict=True))
    shown |= {f"difference of the {name}": gap for name, gap in made.rates.difference().items()}
    facts = {name: f"{share:.2%}" for name, share in shown.items()}
    asked = ("groups", "too small to test", "demand", "on the test records")
    facts = {name: made.question[name] for name in asked if name in made.question} | facts
    output.show_facts({"status": "tested", **facts, "policy": str(policy), "report": str(out)}, as_json)


def sample(
    frame: PeopleArgument,
    strata: Annotated[str, Option(metavar="COLUMNS", help="One or several, such as region,age.")],
    size: Annotated[int, Option("--size", "-n", metavar="N", help="Of the sample.")],
    value: Annotated[str | None, Option(metavar="COLUMN", help="A number whose mean to estimate.")] = None,
    identifier: IdOption = None,
    out: Annotated[Path, Option("--out", "-o", help="The drawn rows; the report goes beside.")] = Path(
        "drawn.csv"
    ),
    fix: output.FixOption = None,
    encoding: output.EncodingOption = None,
    seed: output.SeedOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Check a frame, find the best sizes of the samples of the strata, draw them, and report."""
    from forcopt.data.intake import Expected, check_table, typed
    from forcopt.models.allocation import StratifiedAllocation
    from forcopt.notebook import picture_html
    from forcopt.privacy import StratifiedSample, draw
    from forcopt.problem.report_page import picture, table

    output.check_target(out, ".csv")
    page = out.with_suffix(".html")
    output.keep_inputs([frame], out, page)
    by = _names(strata)
    if len(set(by)) < len(by):
        raise DeclarationError(f"--strata is {strata!r}; it names a column twice")
    if value in by or identifier in by or (value and value == identifier):
        rule = "stratum, value and name of a record must be different columns"
        raise DeclarationError(f"--strata is {strata!r}, --value {value!r}, --id {identifier!r}; {rule}")
    schema = dict.fromkeys(by, Expected("group"))
    schema |= {value: Expected("number")} if value else {}
    schema |= {identifier: Expected("key")} if identifier else {}
    records, found = check_table(frame, frame.name, schema, fixes=output.fixes_from(fix), encoding=encoding)
    output.stop_at_faults(found, as_json)
    require(1 <= size <= len(records), "--size", size, f"be from 1 to {len(records)}, the rows of the frame")
    if added := {"stratum", "weight"} & set(records.columns):
        raise DeclarationError(f"{frame.name} has a column {added.pop()}, which the sample adds; rename it")
    if value and records[value].nunique() == 1:
        rule = f"all rows have {records[value].iloc[0]}, so that the mean is known without a sample"
        raise DeclarationError(f"--value is {value!r}; {rule}; name another column")
    known = typed(records, schema).assign(stratum=records[by].agg(", ".join, axis=1), share=0.0)
    problem = StratifiedAllocation.from_records(
        known, "stratum", value or "share", sample_size=size, minimum=2
    )
    if not value:  # the share of any answer, at half of each stratum
        problem = problem.replace(deviations=[0.5] * len(problem.sizes), means=None)
    solution = problem.solve()
    output.require_solution(solution, as_json)
    made, number = solution.decision, secrets.randbelow(2**31) if seed is None else seed
    design = StratifiedSample(by="stratum", sizes=made.by_stratum())
    drawn = draw(design, records.assign(stratum=known.stratum), number, weight="weight")
    drawn.to_csv(out, index=False)
    deviation = _NORMAL * made.variance**0.5
    goal = f"the mean of {value}" if value else "the share of any answer"
    rows = [
        (name, f"{n:,}", f"{m:g}", f"{m / n:.2%}", f"{n / m:.4g}")
        for name, n, m in zip(made.names, made.strata.tolist(), made.sizes.tolist(), strict=True)
    ]
    strata_table = table("By stratum", ("stratum", "records", "sample", "rate", "weight"), rows)
    drawing = picture(picture_html(made.plot()), "Bars of the sample sizes of all strata, as in the table.")
    facts: dict[str, Any] = {"status": str(solution.status), "drawn": len(drawn), "records": len(records)}
    fewer = f"; more than {len(drawn):,} would not make the margin smaller" if len(drawn) < size else ""
    facts["sample"] = f"{len(drawn):,} of {len(records):,} records{fewer}"
    facts |= {"margin": f"±{deviation:.4g}" if value else f"±{deviation:.2%}", "seed": str(number)}
    facts |= {"strata": "; ".join(made.names[:12]), "goal": goal, "count": len(rows)}
    facts["method"] = solution.method
    question = {"frame": frame.name, "strata": ", ".join(by), "size": size}
    question |= {"goal": f"the least variance of {goal}"}
    parts = {"question": question, "findings": found, "answer": {"The strata": strata_table + drawing}}
    _finish(page, "sample", facts, as_json, plans=[out], **parts)


def release(
    people: PeopleArgument,
    schema: Annotated[
        Path, Option(metavar="FILE.json", help='{"age": {"lower": 0, "upper": 99}, "sex": ["f"]}')
    ],
    budget: Annotated[str, Option(help="rho=.5, or epsilon=1, or epsilon=1,delta=1e-6.")],
    tables: Annotated[list[str] | None, Option("--table", help="region,sex; else all of 1 and 2.")] = None,
    simulate: Annotated[int | None, Option(metavar="SEED", help="A trial that is not private.")] = None,
    out: Annotated[Path, Option("--out", "-o", help="A folder for tables and report.")] = Path("tables"),
    ledger: Annotated[
        Path | None, Option(metavar="FILE.json", help="Of all releases; else beside the people.")
    ] = None,
    fix: output.FixOption = None,
    encoding: output.EncodingOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Check a file, count people by the categories of the schema, add noise, and report what is private.

    The findings are for the holder of the file alone: no file in the folder has them.
    """
    from forcopt.data.intake import Expected, check_table, read_json
    from forcopt.privacy import Bounded, DiscreteGaussian, DiscreteLaplace, Ledger, Schema, Simulated, Table
    from forcopt.problem.report_page import table

    values, make = _budget_from(budget)
    public = Schema.from_dict(read_json(schema))
    names = [name for name, column in public.items() if not isinstance(column, Bounded)]
    pairs = [list(pair) for k in (1, 2) for pair in combinations(names, k)]
    wanted = list(map(_names, tables or [])) or pairs
    if not wanted:
        raise DeclarationError(f"{schema} has no categories to count by; add a column such as sex: [f, m]")
    for i, columns in enumerate(wanted):
        if len(set(columns)) < len(columns) or set(columns) in map(set, wanted[:i]):
            raise DeclarationError(f"--table {','.join(columns)} names a column or a table twice")
    expected = {}
    for name, column in public.items():
        ends: dict[str, Any] = {end: getattr(column, end, 0.0) for end in ("lower", "upper")}
        levels = tuple(map(str, getattr(column, "values", ())))
        if len({" ".join(level.split()).casefold() for level in levels} - {""}) < len(levels):
            words = "one is blank, or two differ in capitals and spaces alone"
            raise DeclarationError(f"{schema}: the categories of {name!r} are {', '.join(levels)}; {words}")
        expected[name] = Expected("group", levels) if levels else Expected("number", **ends)
    rows, found = check_table(people, people.name, expected, fixes=output.fixes_from(fix), encoding=encoding)
    _refuse_counts(rows, public, people.name, found)
    output.stop_at_faults(found, as_json)
    private = Table(rows, public)
    queries = [private.group_by(*columns).count() for columns in wanted]
    out.mkdir(parents=True, exist_ok=True)
    files, page = _table_files(wanted, out), out / "report.html"
    path = ledger or people.with_suffix(".ledger.json")  # one for all folders; a trial spends nothing
    output.keep_inputs([people, schema], *files, page, path)
    account = Ledger(make(*values.values()), path=path) if simulate is None else None
    pure = list(values) == ["epsilon"]
    noise = DiscreteLaplace if pure else DiscreteGaussian
    words = f"discrete {'Laplace' if pure else 'Gaussian'} noise in whole numbers"
    each = make(*(_KEPT * value / len(wanted) for value in values.values()))
    answer = {}
    rng = None if simulate is None else Simulated(simulate)  # one, whose draws go on from table to table
    for columns, query, file in zip(wanted, queries, files, strict=True):
        made = (query >> noise.calibrated(each)).release(account, rng)
        made.to_csv(file)
        cells = list(made.to_pandas(margins=0.95).reset_index().itertuples(index=False))
        lines = [[*row[:-1], f"±{row[-1]:g}"] for row in cells]
        below = "A count below 0 is noise: few or none." if any(row[-2] < 0 for row in cells) else ""
        answer[f"By {' and '.join(columns)}"] = table(below, [*columns, "count", "margin (95 %)"], lines)
    kind = "drawn securely" if simulate is None else f"SIMULATED with the seed {simulate}: NOT PRIVATE"
    spent = ", ".join(f"{name} = {value:g}" for name, value in values.items())
    known = {"count": len(wanted), "budget": spent, "noise": f"{words}, {kind}"}
    question = {"tables": "; ".join(" by ".join(columns) for columns in wanted)}
    question |= {"budget": f"{spent}, the same for each table", "a person": "is a row"}
    parts = {"question": question, "findings": found, "answer": answer, "public_check": False}
    _finish(page, "release", known, as_json, plans=files, **parts)


def _table_files(tables: list[list[str]], folder: Path) -> list[Path]:
    """A file for each table, named by its columns: _ for signs of no safe name, and a number for a double."""
    taken: dict[str, Path] = {}
    for columns in tables:
        name = stem = re.sub(r"[^\w .+()-]|^\.", "_", "-".join(columns))[:_LONGEST]
        while name.casefold() in taken:  # some systems do not tell capitals apart
            name = f"{stem}-{int(name[len(stem) + 1 :] or 1) + 1}"
        taken[name.casefold()] = folder / f"{name}.csv"
    return list(taken.values())


def _refuse_counts(rows: Any, public: Mapping[str, Any], file: str, found: Any) -> None:
    """Add a fault for a column beside the schema by which a row is several people."""
    for name in sorted({*rows.columns} - {*public}):
        if name.casefold() in _MANY and set(rows[name].to_numpy().ravel()) != {"1"}:
            rule = "tells that a row is several people, but each row counts as one; repeat the rows,"
            found.fault(file, 1, name, name, f"{rule} or rename the column by a fix if it does not")


def _budget_from(text: str) -> tuple[dict[str, float], Any]:
    """Read a budget, such as ``rho=.5``, and the class of its kind."""
    from forcopt.data.intake import is_number
    from forcopt.privacy import ZCDP, ApproximateDP, PureDP

    makes = {("rho",): ZCDP, ("epsilon",): PureDP, ("epsilon", "delta"): ApproximateDP}
    parts = (part.partition("=") for part in text.split(","))
    pairs = {name.strip(): value.strip() for name, _, value in parts}
    make = makes.get(tuple(pairs)) if text.count("=") == len(pairs) else None
    if make is None or not all(map(is_number, pairs.values())):
        rule = "it must be rho=NUMBER, epsilon=NUMBER, or epsilon=NUMBER,delta=NUMBER"
        raise DeclarationError(f"--budget is {text!r}; {rule}")
    numbers = {name: float(value) for name, value in pairs.items()}
    for name, value in numbers.items():
        if not 0 < value <= _MOST[name]:
            raise DeclarationError(f"--budget is {text!r}; {name} must be in (0, {_MOST[name]:g}]")
    return numbers, make
