"""Runs the benchmark of fair decisions on counts, and writes a Markdown table.

python benchmarks/fair_decisions/run.py --out benchmarks/fair_decisions/results.md
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.report import Page, Row, data, parser, row, table
from forcopt.models import Apportionment, CoverageDecision, FormulaGrant
from forcopt.models.fair_decisions import Nested, expected_shares, seat_probabilities
from forcopt.models.fair_decisions.generators import random_jurisdictions
from forcopt.privacy import AdditiveMechanism, Laplace


def laplace(epsilon: float) -> AdditiveMechanism:
    return AdditiveMechanism(Laplace(epsilon=epsilon))


def seats(quick: bool) -> tuple[str, list[Row]]:
    with data("us/apportionment.csv").open() as file:
        lines = list(csv.DictReader(file))
    equal = []
    for census in sorted({x["census"] for x in lines}):
        mine = [x for x in lines if x["census"] == census]
        s = Apportionment([int(x["population"]) for x in mine], seats=435).solve()
        equal.append(s.decision.seats.tolist() == [int(x["seats"]) for x in mine])
    parties = 1_000 if quick else 100_000
    populations = np.round(1e5 * np.random.default_rng(0).lognormal(0, 1.2, parties))
    large = Apportionment(populations, seats=9 * parties).solve()
    rows = [
        ["Huntington-Hill gives the official seats", f"{sum(equal)} of {len(equal)} censuses", "all"],
        [f"{parties:,} parties, {9 * parties:,} seats", f"{large.seconds:.2g} s", "< 1 s at 100,000"],
    ]
    mine = [x for x in lines if x["census"] == "2020"]
    p = Apportionment([int(x["population"]) for x in mine], seats=435)
    york = [x["state"] for x in mine].index("NY")
    for epsilon, sampled in ((0.1, ".0444"), (0.01, ".4053"), (0.001, ".4906")):
        before = time.perf_counter()
        law = seat_probabilities(p, laplace(epsilon))
        seconds = time.perf_counter() - before
        more = law[york, int(mine[york]["seats"]) + 1 :].sum()
        what = f"New York takes Minnesota's seat of 2020, epsilon {epsilon}; all 50 states"
        target = f"{sampled} (4,000,000 samples); < 5 s"
        rows.append([what, f"{more:.4f}, {seconds:.2g} s", target])
    return table(["what", "found", "target"], rows), [row(*rows[0][:2], "official", "-")]


def grants(quick: bool) -> tuple[str, list[Row]]:
    with gzip.open(data("us/school-districts-2013.csv.gz"), "rt") as file:
        lines = list(csv.DictReader(file))
    michigan = np.array([int(x["poor"]) for x in lines if x["state"] == "26"], dtype=float)
    rows = []
    for epsilon in (1, 0.1, 0.01):
        p = FormulaGrant(michigan, laplace(epsilon))
        ours, printed = p.solve(), p.solve("no-penalty")
        theirs = f"{printed.objective:.4g}" if printed.decision else "impossible"
        noisy = michigan + np.random.default_rng(1).laplace(scale=1 / epsilon, size=(10_000, len(michigan)))
        rule = ours.decision
        handed = (noisy + rule.slacks) / (noisy.sum(axis=1, keepdims=True) - rule.total_slack)
        lost = (handed < p.shares()).any(axis=1).mean()
        rows.append([f"{epsilon}", theirs, f"{ours.objective:.4g}", f"{ours.seconds:.2g} s", f"{lost:.4f}"])
    columns = [
        "epsilon",
        "printed rule",
        "exact-quantile",
        "time",
        "failures of 10,000 (s.e. .002), at most .05",
    ]
    found = table(columns, rows)
    counts = np.array([float(x["poor"]) for x in lines if x["poor"] != "0"])[: 888 if quick else None]
    times = []
    for some in (counts[:888], counts):
        before = time.perf_counter()
        shares = expected_shares(some, 10.0)
        seconds = time.perf_counter() - before
        times.append([f"{len(some):,}", f"{seconds:.2g} s", f"{abs(shares.sum() - 1):.1e}"])
    found += "\n\nExpected shares at epsilon .1, all districts with poor children:\n\n"
    found += table(["districts", "time", "error of the sum"], times)
    summary = [
        row(f"Michigan, epsilon {r[0]}: inflation", r[2], f"Pujol et al., corrected: {r[1]}", "-")
        for r in rows
    ]
    return found, [
        *summary,
        row(f"expected shares of {times[-1][0]} districts", times[-1][1], "sampled", "-"),
    ]


def coverage(quick: bool) -> tuple[str, list[Row]]:
    count = (20, 200) if quick else (175, 5005)
    every = CoverageDecision(random_jurisdictions(*count), mechanism=Nested(mechanism=laplace(1)))
    fresh = CoverageDecision(
        random_jurisdictions(*count, seed=1), mechanism=every.mechanism, holds_for="given"
    )
    given = every.replace(holds_for="given")
    rows, found = [], {}
    for p, method, least in (
        (given, "standard", 0.8),
        (every, "posterior", 0.8),
        (every, "margins", 0.8),
        (every, "decision-table", 0.8),
        (every, "decision-table", 0.9),
        (given, "posterior", 0.8),
        (given, "margins", 0.8),
        (given, "decision-table", 0.8),
        (given, "decision-table", 0.9),
    ):
        s = p.replace(least_rate=least).solve(method)
        again = fresh.evaluate(s.decision)
        found[p.holds_for, method, least] = f"{s.objective:.4g}"
        rows.append(
            [
                f"{method}, {least}",
                "-" if method == "standard" else p.holds_for,
                f"{s.objective:.4g}",
                f"{s.evaluation.metrics['least rate']:.4f}",
                f"{again.objective:.4g}",
                f"{again.metrics['least rate']:.4f}",
                f"{s.seconds:.2g} s",
            ]
        )
    columns = [
        "decider, least rate",
        "holds for",
        "false positives",
        "least rate",
        "on fresh data",
        "least rate",
        "time",
    ]
    ours = row(
        "5,180 jurisdictions, least rate .8 for every covered one: false positives",
        found["every", "decision-table", 0.8],
        "posterior, printed: 870",
        "-",
    )
    return table(columns, rows), [] if quick else [ours]


PARTS = {"Seats": seats, "Grants": grants, "Coverage": coverage}


def main() -> None:
    given = parser(__doc__).parse_args()
    Page("Fair decisions on private counts", given.out, "numpy", "scipy", "highspy").run(PARTS, given.quick)


if __name__ == "__main__":
    main()
