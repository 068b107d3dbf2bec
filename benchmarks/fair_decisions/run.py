"""Runs the benchmark of fair decisions on counts, and writes a Markdown table.

python benchmarks/fair_decisions/run.py --out benchmarks/fair_decisions/results.md
"""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.report import Page, Row, data, environment, parser, row, table
from forcopt.arrays import Array
from forcopt.models import Apportionment, CoverageDecision, FormulaGrant
from forcopt.models.fair_decisions import (
    Dawa,
    Nested,
    audit,
    expected_shares,
)
from forcopt.models.fair_decisions.instances import random_jurisdictions
from forcopt.privacy import AdditiveMechanism, Laplace

PEERS = {"apportionment": "1.0"}


def laplace(epsilon: float) -> AdditiveMechanism:
    return AdditiveMechanism(Laplace(epsilon=epsilon))


def apportionments() -> list[dict[str, str]]:
    with data("us/apportionment.csv").open() as file:
        return list(csv.DictReader(file))


def census_2020() -> list[dict[str, str]]:
    return [x for x in apportionments() if x["census"] == "2020"]


def school_districts() -> list[dict[str, str]]:
    with gzip.open(data("us/school-districts-2013.csv.gz"), "rt") as file:
        return list(csv.DictReader(file))


def michigan() -> Array:
    """Poor children by school district."""
    return np.array([int(x["poor"]) for x in school_districts() if x["state"] == "26"], dtype=float)


def apportionment_package(populations: list[int]) -> tuple[list[int], float]:
    """The seats of 2020 by Huntington and Hill, and the seconds that they take."""
    code = (
        "import json, sys, time; from apportionment import methods\n"
        "before = time.perf_counter()\n"
        "parties = list(map(str, range(len(sys.argv) - 1)))\n"
        "found = methods.compute('huntington', list(map(int, sys.argv[1:])), 435, parties=parties)\n"
        "print(json.dumps([found, time.perf_counter() - before]))"
    )
    command = [environment(__file__, PEERS), "-c", code, *map(str, populations)]
    found, seconds = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found, seconds


def seats(quick: bool) -> tuple[str, list[Row]]:
    lines = apportionments()
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
    mine = census_2020()
    theirs, slower = apportionment_package([int(x["population"]) for x in mine])
    ours = Apportionment([int(x["population"]) for x in mine], seats=435).solve()
    same = "equal" if ours.decision.seats.tolist() == theirs else "different"
    subject = f"2020 by the package apportionment {PEERS['apportionment']} in {slower:.2g} s"
    rows.append([subject, f"{same}, {ours.seconds:.2g} s", "equal"])
    return table(["what", "found", "target"], rows), [row(*rows[0][:2], "official", "-")]


def grants(quick: bool) -> tuple[str, list[Row]]:
    children, rows = michigan(), []
    for epsilon in (1, 0.1, 0.01):
        p = FormulaGrant(children, laplace(epsilon))
        ours, printed = p.solve(), p.solve("no-penalty")
        theirs = f"{printed.objective:.4g}" if printed.decision else "impossible"
        noisy = children + np.random.default_rng(1).laplace(scale=1 / epsilon, size=(10_000, len(children)))
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
    counts = np.array([float(x["poor"]) for x in school_districts() if x["poor"] != "0"])[
        : 888 if quick else None
    ]
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


def dawa(quick: bool) -> tuple[str, list[Row]]:
    """Grants on Dawa's counts against Laplace's: Michigan's districts in the order of the file."""
    children, trials = michigan(), 5 if quick else 100
    rule = FormulaGrant(children, laplace(1)).solve("plain").decision
    rows = []
    for epsilon in (0.1, 0.01, 0.001):
        for name, mechanism in (
            ("Laplace", laplace(epsilon)),
            ("Dawa", Dawa(epsilon=epsilon, order="as given")),
            ("Dawa, powers of two", Dawa(epsilon=epsilon, order="as given", lengths="powers of two")),
        ):
            before = time.process_time()
            found = audit(rule, children, mechanism, trials=trials, seed=1)
            seconds = (time.process_time() - before) / trials
            shares = found[found.outcome > 0]
            off = np.sqrt(((found.expected - found.outcome) ** 2).mean())
            spread = np.sqrt((found.standard_error**2).mean() * trials)
            rows.append(
                [
                    f"{epsilon:g}",
                    name,
                    f"{shares.ratio.min():.2f} to {shares.ratio.max():.3g}",
                    f"{1e6 * off:.3g}",
                    f"{1e6 * spread:.3g}",
                    f"{found.inverted.sum()} of {len(found)}",
                    f"{seconds:.2g} s",
                ]
            )
    columns = [
        "epsilon",
        "counts",
        "expected grant / share",
        "bias, per million",
        "deviation, per million",
        "in the wrong order",
        "CPU of a draw",
    ]
    note = (
        f"\n\nMeans of {trials} draws; bias and deviation are root mean squares over districts. Two "
        "districts count as wrongly ordered if the difference is significant, by simultaneous 95 % "
        "intervals of all means.\n"
    )
    return table(columns, rows) + note, []


def draws(quick: bool) -> tuple[str, list[Row]]:
    """False positives of the best tables on several draws of the jurisdictions."""
    count, seeds = ((20, 200), 2) if quick else ((175, 5005), 10)
    rows = []
    for seed in range(seeds):
        p = CoverageDecision(random_jurisdictions(*count, seed=seed), mechanism=Nested(mechanism=laplace(1)))
        found = [
            p.replace(holds_for=who, least_rate=least).solve().objective
            for who in ("given", "every")
            for least in (0.8, 0.9)
        ]
        rows.append([f"{seed}", *(f"{value:.1f}" for value in found)])
    columns = ["seed", "given, 0.8", "given, 0.9", "every, 0.8", "every, 0.9"]
    return table(columns, rows), []


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


PARTS = {
    "Seats": seats,
    "Grants": grants,
    "Coverage": coverage,
    "Draws of jurisdictions": draws,
    "Dawa": dawa,
}


def main() -> None:
    given = parser(__doc__, *PARTS).parse_args()
    page = Page("Fair decisions on private counts", given.out, "numpy", "scipy", "highspy")
    page.run({name: PARTS[name] for name in given.parts}, given.quick)


if __name__ == "__main__":
    main()
