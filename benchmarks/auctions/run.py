"""Runs the benchmark of individually fair auctions, and writes a Markdown table.

    python benchmarks/auctions/run.py --out benchmarks/auctions/results.md

Everything is seeded. Seconds are those of the processor in this process, so that other work on the machine
counts little; limits are on the clock, 240 s for each solve, 90 s for more than a million rows.
``--quick`` does a small part of each table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp

import forcopt as fo
from benchmarks.report import Page, Row, parser, progress, row, table
from forcopt.models import FairAuction
from forcopt.models.fair_auctions import (
    OrderedValueStability,
    PowerStability,
    inverse_proportional,
    payments,
    proportional,
)
from forcopt.models.fair_auctions.notions import value_ratios

LIMIT = 240.0  # seconds for one solve
SHORT = 90.0  # of a program with all of more than a million rows
ALL_ROWS = 500_000  # more are not given to cvxpy
ONE = OrderedValueStability(f=1.0)


def cpu(act: Callable[[], object]) -> tuple[float, object]:
    began = time.process_time()
    found = act()
    return time.process_time() - began, found


def drawn(users: int, slots: int = 3, objective: str = "welfare") -> FairAuction:
    values = np.random.default_rng(1).lognormal(size=(users, 5))
    beta = [1.0, 0.6, 0.4][:slots]
    return FairAuction(values, beta, constraint=ONE, objective=objective)


def told(p: FairAuction, method: str, limit: float = LIMIT) -> tuple[str, float, float]:
    seconds, s = cpu(lambda: p.solve(method, time_limit=limit))
    progress(len(p.values), p.objective, method, s)
    if not s.status.has_solution or s.status.name != "OPTIMAL":
        return f"{s.status} in {seconds:.0f} s", seconds, np.nan
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s", seconds, s.objective


def by_cvxpy(p: FairAuction) -> tuple[float, float]:
    """The same rows as sparse matrices in cvxpy, solved by HiGHS."""
    import cvxpy as cp

    T, n = p.values.shape
    k = len(p.slots)
    D = PowerStability(ell=1.0)(value_ratios(p.effective))
    pairs = np.array(list(combinations(range(T), 2)))

    def act() -> float:
        A = cp.Variable((T, n * k), nonneg=True)
        rows = np.arange(len(pairs))
        ones = np.ones(len(pairs))
        gap = sp.csr_array((ones, (rows, pairs[:, 0])), (len(pairs), T)) - sp.csr_array(
            (ones, (rows, pairs[:, 1])), (len(pairs), T)
        )
        d = np.repeat(D[pairs[:, 0], pairs[:, 1]][:, None], n * k, axis=1)
        fill = np.kron(np.ones((n, 1)), np.eye(k))
        rise = np.kron(np.eye(n), np.eye(k)[:, 1:] - np.eye(k)[:, :-1])
        worth = (p.effective[:, :, None] * -np.diff(p.slots, append=0.0)).reshape(T, n * k)
        asked = [A <= 1, A @ fill == np.tile(np.arange(1, k + 1), (T, 1)), gap @ A <= d, gap @ A >= -d]
        if k > 1:
            asked.append(A @ rise >= 0)
        problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(worth, A))), asked)
        problem.solve(solver=cp.HIGHS)
        return float(problem.value)

    return cpu(act)  # type: ignore[return-value]


def welfare(quick: bool) -> tuple[str, list[Row]]:
    """Lazy rows against all rows."""
    rows, head = [], []
    for users in (40, 80) if quick else (50, 150, 450):
        for slots in (1, 3):
            p = drawn(users, slots)
            pairs = users * (users - 1) // 2
            count = pairs * 5 * slots * 2
            lazy, seconds, value = told(p, "cuts")
            everything = told(p, "lp", LIMIT if count < 1e6 else SHORT)[0]
            peer, peer_seconds = "-", np.nan
            if count <= ALL_ROWS:
                peer_seconds, theirs = by_cvxpy(p)
                assert abs(theirs - value) <= 1e-5 * value, (theirs, value)
                peer = f"{peer_seconds:.3g} s"
            rules = [
                p.solve(r).evaluation.metrics["efficiency"] for r in ("inverse-proportional", "proportional")
            ]
            rows.append(
                [
                    f"{users}, {slots}",
                    f"{pairs:,}",
                    f"{count:,}",
                    lazy,
                    everything,
                    peer,
                    f"{value / p.scale:.5f}",
                    *(f"{r:.5f}" for r in rules),
                ]
            )
            if not np.isnan(peer_seconds) and slots == 3:
                head = [
                    row(
                        f"best fair allocation, {pairs:,} pairs",
                        lazy,
                        f"cvxpy {peer}",
                        f"{peer_seconds / seconds:.1f}",
                    )
                ]
    columns = ["users, slots", "pairs", "rows", "`cuts`", "`lp`", "cvxpy, HiGHS"]
    columns += ["welfare", "inverse prop.", "proportional"]
    text = "5 ads, log-normal values, ordered stability at ell = 1; welfare over that without fairness.\n\n"
    return text + table(columns, rows), head


def ratios(quick: bool) -> tuple[str, list[Row]]:
    """The worst ratio as objective."""
    rows = []
    for users in (40,) if quick else (150, 250, 450):
        p = drawn(users, 3, "ratio")
        seconds, _, value = told(p, "cuts")
        rule = p.solve("inverse-proportional").objective
        shown = "-" if np.isnan(value) else f"{value:.5f}"
        rows.append([f"{users * (users - 1) // 2:,}", seconds, shown, f"{rule:.5f}"])
    return table(["pairs", "`cuts`", "worst ratio", "inverse proportional"], rows), []


def rules(quick: bool) -> tuple[str, list[Row]]:
    """Rules and payments of many users."""
    users = 10_000 if quick else 1_000_000
    u = np.random.default_rng(2).lognormal(size=(users, 10))
    rows = []
    for name, rule in (("inverse proportional", inverse_proportional), ("proportional", proportional)):
        for ell in (1.0, 2.0):
            seconds, _ = cpu(lambda rule=rule, ell=ell: rule(u, 3, ell))
            progress(name, ell, seconds)
            rows.append([f"{name}, {users:,} users, 10 ads, 3 slots", f"{ell:g}", f"{seconds:.2g} s"])
    some = u[:10_000]
    for name in ("inverse-proportional", "proportional"):
        for ell in (1.0, 2.0, 3.0, 1.5):
            seconds, _ = cpu(lambda name=name, ell=ell: payments(name, some, [1, 0.6, 0.4], ell=ell))
            rows.append([f"payments, {name}, {len(some):,} auctions", f"{ell:g}", f"{seconds:.2g} s"])
    return table(["what", "ell", "seconds"], rows), []


def main() -> None:
    given = parser(__doc__).parse_args()
    fo.Model().solve("highs")  # imports it before anything is timed
    page = Page("Individually fair auctions", given.out, "numpy", "scipy", "highspy", "cvxpy")
    parts = {
        "The best fair allocation": welfare,
        "The best worst ratio": ratios,
        "Rules and payments": rules,
    }
    page.run(parts, given.quick)


if __name__ == "__main__":
    main()
