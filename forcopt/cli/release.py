"""``forcopt release``: from a file of people and a public schema to private tables."""

from __future__ import annotations

import json
from itertools import combinations
from math import nextafter
from pathlib import Path
from typing import Annotated, Any

import typer

from forcopt.cli.output import (
    EncodingOption,
    FixOption,
    JsonOption,
    fixes_from,
    show_facts,
    stop_at_faults,
)
from forcopt.data.intake import is_number
from forcopt.errors import DeclarationError

_LARGE = {"rho": 10.0, "epsilon": 20.0}
"""Budgets above which a release hardly protects anyone."""


def release(
    people: Annotated[
        Path, typer.Argument(metavar="PEOPLE", help="A CSV or Excel file, a row for each person.")
    ],
    schema: Annotated[
        Path,
        typer.Option(
            metavar="FILE.json", help='Such as {"age": {"lower": 0, "upper": 110}, "sex": ["f", "m"]}.'
        ),
    ],
    budget: Annotated[
        str, typer.Option(metavar="BUDGET", help="rho=.5, or epsilon=1, or epsilon=1,delta=1e-6.")
    ],
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table", metavar="COLUMNS", help="Such as region,sex. By default all of one and two columns."
        ),
    ] = None,
    unit: Annotated[str | None, typer.Option(metavar="COLUMN", help="Names the person of a row.")] = None,
    rows_per_unit: Annotated[int, typer.Option(metavar="N", help="So many rows of a person count.")] = 1,
    simulate: Annotated[int | None, typer.Option(metavar="SEED", help="A trial that is not private.")] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Of the tables and the report.")
    ] = Path("tables"),
    fix: FixOption = None,
    encoding: EncodingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the file, count people by the categories of the schema, add noise, and report what is private.

    The findings are for the holder of the file alone: no file in the folder has them.
    """
    from forcopt.data.intake import Expected, check_table
    from forcopt.privacy import Bounded, Ledger, Schema, Secure, Simulated, Table
    from forcopt.problem.report_page import report, table

    spent, described = _budget_from(budget)
    try:
        described_columns = json.loads(schema.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DeclarationError(f"{schema} is no JSON in UTF-8: {error}") from None
    public = Schema.from_dict(described_columns)
    names = [name for name, column in public.items() if not isinstance(column, Bounded)]
    listed = [tuple(part.strip() for part in text.split(",")) for text in tables or []]
    wanted = listed or [pair for k in (1, 2) for pair in combinations(names, k)]
    if not wanted:
        raise DeclarationError(f"{schema} has no categories to count by; add a column such as sex: [f, m]")
    expected = {
        name: Expected("number", lower=column.lower, upper=column.upper)
        if isinstance(column, Bounded)
        else Expected("group", tuple(map(str, column.values)))  # type: ignore[attr-defined]
        for name, column in public.items()
    }
    expected |= {unit: Expected("text")} if unit else {}
    rows, findings = check_table(people, people.name, expected, fixes=fixes_from(fix), encoding=encoding)
    stop_at_faults(findings, as_json)
    private = Table(rows, public, unit=unit, rows_per_unit=rows_per_unit)
    each = spent.split(len(wanted))
    queries = {columns: private.group_by(*columns).count() for columns in wanted}
    out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(spent.whole, path=out / "ledger.json")
    source = Secure() if simulate is None else Simulated(simulate)
    answer, files = {}, []
    for columns, query in queries.items():
        made = (query >> spent.noise.calibrated(each)).release(ledger, source)
        files.append(out / f"{'-'.join(columns)}.csv")
        made.to_csv(files[-1])
        shown = made.to_pandas(margins=0.95).reset_index()
        lines = [[*row[:-1], f"±{row[-1]:g}"] for row in shown.itertuples(index=False)]
        answer[f"By {' and '.join(columns)}"] = table("", [*columns, "count", "margin (95 %)"], lines)
    kind = "drawn securely" if simulate is None else f"SIMULATED with the seed {simulate}: NOT PRIVATE"
    question = {
        "columns": ", ".join(names),
        "tables": "; ".join(" by ".join(columns) for columns in wanted),
        "budget": f"{described}, the same for each table",
        "a person": f"{rows_per_unit} rows at most" if unit else "a row",
    }
    known = {"count": len(wanted), "budget": described, "kind": kind, "privacy": spent.name}
    trial = "This is a trial: throw it away, and run it again without --simulate."
    text = report(
        "release",
        known | {"noise": spent.noise.__name__},
        question=question,
        findings=findings,
        public_check=False,
        answer=answer,
        limits=[] if simulate is None else [trial],
        plans=files,
    )
    (out / "report.html").write_text(text, encoding="utf-8")
    listed_files = ", ".join(path.name for path in files)
    facts = {"tables": listed_files, "budget": described, "noise": kind, "report": str(out / "report.html")}
    show_facts(facts, as_json)


class _Spent:
    """A budget, its noise, and its equal parts."""

    def __init__(self, values: dict[str, float]) -> None:
        from forcopt.privacy import ZCDP, ApproximateDP, DiscreteGaussian, DiscreteLaplace, PureDP

        self._make: Any = ZCDP if "rho" in values else ApproximateDP if "delta" in values else PureDP
        self._values = list(values.values())
        self.noise: Any = DiscreteLaplace if self._make is PureDP else DiscreteGaussian
        self.whole = self._make(*self._values)
        names = {"ZCDP": "zero-concentrated differentially private", "PureDP": "differentially private"}
        self.name = names.get(self._make.__name__, "approximately differentially private")

    def split(self, parts: int) -> Any:
        return self._make(*(nextafter(value / parts, 0.0) for value in self._values))


def _budget_from(text: str) -> tuple[_Spent, str]:
    """Read a budget, such as ``rho=.5``."""
    pairs = [part.partition("=") for part in text.split(",")]
    values = {name.strip(): value.strip() for name, _, value in pairs}
    rule = "it must be rho=NUMBER, epsilon=NUMBER, or epsilon=NUMBER,delta=NUMBER"
    if list(values) not in (["rho"], ["epsilon"], ["epsilon", "delta"]) or not all(
        map(is_number, values.values())
    ):
        raise DeclarationError(f"--budget is {text!r}; {rule}")
    numbers = {name: float(value) for name, value in values.items()}
    for name, most in _LARGE.items():
        if not 0 < numbers.get(name, most) <= most:
            raise DeclarationError(
                f"--budget is {text!r}; {name} must be above 0, and above {most:g} it protects nobody"
            )
    return _Spent(numbers), ", ".join(f"{name} = {value:g}" for name, value in numbers.items())
