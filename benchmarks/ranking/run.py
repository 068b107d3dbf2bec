"""Runs the benchmark of fair rankings, and writes a Markdown table.

    python benchmarks/ranking/run.py --out benchmarks/ranking/results.md

Everything is seeded. ``--quick`` does a small part of each table. FairRankTune gets an environment of its
own; COMPAS needs ../shared/data.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pandas as pd

from benchmarks.report import Page, Row, data, environment, parser, progress, row, table
from forcopt.causal import CausalModel
from forcopt.fairness import CounterfactualOrder, ExposureParity, PrefixQuotas
from forcopt.models import FairRanking
from forcopt.models.fair_ranking import Ranking, random_ranking
from forcopt.problem import Solution

LIMIT, PEER_LIMIT = 60.0, 120.0
SOLVERS = {"HIGHS": "cvxpy, HiGHS", "CLARABEL": "cvxpy, Clarabel"}
PEERS = {"FairRankTune": "0.0.7", "pandas": "3.1.1"}


def seconds_of(s: Solution) -> str:
    """Seconds, and the gap if there is one."""
    if not s.status.has_solution:
        return f"{s.status} after {s.seconds:.0f} s"
    return f"{s.seconds:.2g} s" + (f" (gap {s.gap:.1g})" if 1e-9 < s.gap < np.inf else "")


def by_cvxpy(p: FairRanking, solver: str) -> tuple[float, float | None]:
    """Seconds and optimum of the assignment with parity, as a reader of Singh and Joachims would write it.

    The optimum is None if the solver does not reach it in `PEER_LIMIT` seconds.
    """
    import cvxpy as cp

    began = time.perf_counter()
    n, k, w = p.size, p.length, p.position_weights
    x = cp.Variable((n, k), nonneg=True)
    e = x @ w
    rows = [cp.sum(x, axis=0) == 1, cp.sum(x, axis=1) <= 1]
    _, codes, sizes = p.candidates.cells(None)
    for group, size in enumerate(sizes):
        rows.append(cp.sum(e[codes == group]) == size * p.candidates.mean_exposure)
    program = cp.Problem(cp.Maximize(p.scores @ e), rows)
    option = "highs_options" if solver == "HIGHS" else "time_limit"
    limit = {"time_limit": PEER_LIMIT} if solver == "HIGHS" else PEER_LIMIT
    try:
        value = program.solve(solver=solver, **{option: limit})
    except cp.error.SolverError:
        value = None
    seconds = time.perf_counter() - began
    return seconds, float(value) if value is not None and program.status == "optimal" else None


def parity(quick: bool) -> tuple[str, list[Row]]:
    rows, head = [], []
    for n, k in ((300, 30),) if quick else ((300, 30), (2000, 100), (100_000, 1000)):
        p = random_ranking(n, k, seed=1, constraint=ExposureParity())
        s = {"column-generation": p.solve("column-generation")}
        if n < 10_000:
            for name in ("prefix-counts", "assignment"):
                s[name] = p.solve(name, time_limit=LIMIT)
            best = s["prefix-counts"].objective
            assert all(abs(v.objective / best - 1) < 1e-6 for v in s.values())
        cells = [f"{n:,} x {k:,}", *(seconds_of(s[m]) if m in s else "" for m in METHODS)]
        cells.append(str(len(s["column-generation"].decision.probabilities)))
        if n < 10_000:
            peers = {}
            for solver, name in SOLVERS.items():
                seconds, value = by_cvxpy(p, solver)
                assert value is None or abs(value / best - 1) < 1e-5
                cells.append(f"{seconds:.2g} s" + (" (not solved)" if value is None else ""))
                peers[name] = seconds
            ours, peer = p.solve(), min(peers, key=lambda name: peers[name])
            head = [
                row(
                    f"exposure parity, {n:,} candidates, {k} positions",
                    f"{ours.seconds:.2g} s ({ours.method}, the default)",
                    f"{peer}: {peers[peer]:.2g} s",
                    f"{peers[peer] / ours.seconds:.0f}",
                )
            ]
        else:
            default = p.solve()
            cells += ["not tried"] * len(SOLVERS)
            head.append(
                row(
                    f"exposure parity, {n:,} candidates, {k:,} positions",
                    f"{seconds_of(default)} ({default.method}, the default)",
                )
            )
        rows.append(cells)
        progress(*cells)
    rng = np.random.default_rng(0)
    n, k = (300, 30) if quick else (2000, 100)
    base = random_ranking(n, k, seed=1)
    u = FairRanking(utilities=rng.uniform(0, 1, (n, k)), groups=base.groups, constraint=ExposureParity())
    one, other = u.solve("column-generation"), u.solve("assignment", time_limit=LIMIT)
    note = (
        "Lotteries, four groups of two attributes. Seconds of the whole solve; the last columns are the "
        "rankings of the generated lottery, and the assignment written in cvxpy.\n\n"
    )
    after = (
        f"\nUtilities by position, {n:,} x {k}: column generation (pricing by assignment) {seconds_of(one)}, "
        f"assignment LP {seconds_of(other)}.\n"
    )
    return note + table(
        ["candidates x positions", *METHODS, "rankings", *SOLVERS.values()], rows
    ) + after, head


METHODS = ("column-generation", "prefix-counts", "assignment")


def order(quick: bool) -> tuple[str, list[Row]]:
    """Two of four groups gain a point in counterfactual score, and everybody a little."""
    rows, head = [], []
    for n, k in ((300, 30),) if quick else ((2000, 100), (100_000, 1000)):
        p = random_ranking(n, k, seed=1)
        gained = np.array([level == "1" for level in p.groups["a"]])
        scores = p.scores + gained + np.random.default_rng(1).normal(0, 0.1, n)
        for slack in (0.0, 0.25, 0.5, 1.0):
            q = p.replace(constraint=CounterfactualOrder(scores, slack))
            s = {"isotonic": q.solve("isotonic")}
            both = q.replace(constraint=q.constraint & ExposureParity(0.1, by="b"))
            s["and parity"] = both.solve(time_limit=LIMIT)
            if n < 10_000:
                s["assignment"] = q.solve("assignment", time_limit=LIMIT)
            best = s["isotonic"]
            if "assignment" in s and s["assignment"].status == "optimal":
                assert abs(s["assignment"].objective / best.objective - 1) < 1e-6
            loss = f"{100 * best.evaluation.metrics['loss']:.2f} %"
            cells = [f"{n:,} x {k:,}", f"{slack:g}", f"{best.objective:.6f}", loss]
            names = ("isotonic", "assignment", "and parity")
            rows.append([*cells, *(seconds_of(s[name]) if name in s else "" for name in names)])
            progress(*rows[-1])
            if slack == 0.5:
                head.append(
                    row(f"counterfactual order, {n:,} x {k:,}, slack .5", f"{seconds_of(best)}, loses {loss}")
                )
    note = (
        "One group of the first attribute gains a point in counterfactual score. The last column adds parity "
        "of exposure for the second attribute within 10 %, by column generation.\n\n"
    )
    columns = ["candidates x positions", "slack", "utility", "loss", "isotonic", "assignment"]
    return note + table([*columns, "order and parity"], rows), head


def below_floors(p: FairRanking, ranking: np.ndarray) -> int:
    """How many counts of groups in prefixes are below their floor."""
    _, codes, sizes = p.candidates.cells(None)
    counts = np.cumsum(codes[ranking][None, :] == np.arange(len(sizes))[:, None], axis=1)
    return int((counts < np.floor(np.outer(sizes / p.size, np.arange(1, p.length + 1)) + 1e-9)).sum())


def quotas(quick: bool) -> tuple[str, list[Row]]:
    n, k = (300, 30) if quick else (2000, 100)
    p = random_ranking(n, k, seed=1, constraint=PrefixQuotas(), integer=True)
    rows = []
    for name in ("dynamic-programme", "prefix-counts", "sort"):
        s = p.solve(name)
        below = below_floors(p, s.decision.order)
        rows.append(
            [f"{n} x {k}, 4 groups", name, f"{s.objective:.4f}", f"{s.seconds:.2g} s", below, str(s.status)]
        )
        progress(*rows[-1])
    names, codes, _ = p.candidates.cells(None)
    task = {"scores": p.scores.tolist(), "groups": [names[c] for c in codes], "k": k}
    script = Path(__file__).with_name("peer_fairranktune.py")
    out = subprocess.run(
        [environment(__file__, PEERS), str(script)],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(out.stdout)
    ranking = np.array(theirs["order"])
    value = p.evaluate(Ranking(ranking)).objective
    peer = f"FairRankTune's DetConstSort: {below_floors(p, ranking)} counts below their floor"
    rows.append(
        [
            f"{n} x {k}, 4 groups",
            "FairRankTune",
            f"{value:.4f}",
            f"{theirs['seconds']:.2g} s",
            below_floors(p, ranking),
            "no bound",
        ]
    )
    head = [row(f"prefix quotas, {n:,} x {k}", f"exact in {rows[0][3]} (dynamic-programme)", peer)]
    three = PrefixQuotas(by="a") & PrefixQuotas(by="b") & PrefixQuotas(by="c")
    q = random_ranking(n, k, (2, 2, 3), seed=1, constraint=three, integer=True)
    beam = q.solve("dynamic-programme", beam=200)
    rows.append(
        ["three attributes", "beam of 200", f"{beam.objective:.4f}", seconds_of(beam), "", str(beam.status)]
    )
    exact = q.solve("prefix-counts", time_limit=LIMIT)
    rows.append(
        [
            "three attributes",
            "prefix-counts",
            f"{exact.objective:.4f}",
            seconds_of(exact),
            "",
            str(exact.status),
        ]
    )
    progress(*rows[-2], *rows[-1])
    head.append(
        row(
            f"three attributes, {n:,} x {k}",
            f"beam of 200: {seconds_of(beam)}; prefix-counts {seconds_of(exact)}",
        )
    )
    return table(["instance", "method", "utility", "time", "below floors", "status"], rows), head


def compas(quick: bool) -> tuple[str, list[Row]]:
    d = pd.read_csv(data("ranking/cifrank-compas.csv"))
    model = CausalModel([("G", "X"), ("R", "X"), ("G", "Y"), ("R", "Y"), ("X", "Y")], ["G", "R"], "Y")
    fit, base = model.fit(d), {"G": "Female", "R": "Black"}
    worth = np.round((d["Y"] - d["Y"].min()) / 0.352553).to_numpy()
    fields = {"positions": 500, "weights": np.ones(500), "groups": {"G": d["G"], "R": d["R"]}}
    rows = []
    for tolerance in (0.0, 0.05, 0.1, 0.2, 0.4):
        p = FairRanking(worth, **fields, constraint=ExposureParity(tolerance))
        found = [p.solve()]
        if tolerance:
            found.append(p.replace(integer=True).solve())
        cells = [f"{s.evaluation.metrics['loss']:.4f}" for s in found]
        rows.append([f"parity, tolerance {tolerance:g}", *cells, *[""] * (2 - len(cells))])
    for name, resolving in (("resolving", ["X"]), ("non-resolving", [])):
        scores = fit.counterfactual(d, base, resolving).scores
        p = FairRanking(worth, **fields, constraint=CounterfactualOrder(scores))
        cells = [f"{p.solve(m).evaluation.metrics['loss']:.4f}" for m in ("isotonic", "counterfactual")]
        rows.append([f"counterfactual order, {name}", *cells])
    knife = []
    for rho in (0.0, -0.001, -0.0011, -0.01):
        scores = fit.counterfactual(d, base, ["X"], rho=rho).scores
        knife.append([f"{rho:g}", int((d["GR"].iloc[Ranking.by_score(scores, 500).order] == "MW").sum())])
    text = (
        "Loss of score of the first 500 of the authors' 4,162 records. For the orders, the ranking "
        "is the sort by counterfactual score.\n\n"
        + table(["demand", "lottery", "one ranking"], rows)
        + "\nWhite men among the first 500 by resolving scores:\n\n"
        + table(["correlation of errors", "White men"], knife)
    )
    return text, [
        row(
            "COMPAS, first 500: loss",
            f"parity {rows[0][1]}, resolving {rows[-2][2]}, non-resolving {rows[-1][2]}",
        )
    ]


def main() -> None:
    options = parser(__doc__, "parity", "order", "quotas", "compas").parse_args()
    parts = {
        "Exposure parity": parity,
        "Counterfactual order": order,
        "Prefix quotas": quotas,
        "COMPAS": compas,
    }
    chosen = {title: part for title, part in parts.items() if part.__name__ in options.parts}
    page = Page("Fair rankings", options.out, "numpy", "highspy", "cvxpy")
    page.run(chosen, options.quick)


if __name__ == "__main__":
    main()
