"""Runs the benchmark of individually fair auctions, and writes a Markdown table.

    python benchmarks/auctions/run.py --out benchmarks/auctions/results.md --parts allocations
    python benchmarks/auctions/run.py --out benchmarks/auctions/results-bounds.md --parts bounds

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
from forcopt.models import CompetitiveRatio, FairAuction
from forcopt.models.fair_auctions import (
    OrderedValueStability,
    PowerStability,
    inverse_proportional,
    payments,
    proportional,
    two_profile_bound,
)
from forcopt.models.fair_auctions.formulations import slot_steps
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
        worth = (p.effective[:, :, None] * slot_steps(p.slots)).reshape(T, n * k)
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


def best_ratios(quick: bool) -> tuple[str, list[Row]]:
    """Upper bounds on the ratio of every rule, for n ads and k equal slots."""
    sizes = {2: 41, 3: 13, 4: 7} if quick else {2: 41, 3: 21, 4: 9, 5: 6, 6: 5}
    rows = []
    for n, levels in sizes.items():
        for k in range(1, min(n, 4)):
            for ell in (0.5, 1.0, 2.0) if n <= 3 else (1.0,):
                grid = np.geomspace(0.25, 1.0, levels)
                p = CompetitiveRatio(ads=n, slots=np.ones(k), stability=ell, levels=grid)
                seconds, s = cpu(lambda p=p: p.solve("cuts", time_limit=LIMIT))
                progress(n, k, ell, s)
                shown = f"{s.objective:.5f}" if s.status.has_solution else f"at most {s.bound:.5f}"
                formula = f"{two_profile_bound(n, ell):.5f}" if k == 1 else "-"
                rule = p.solve("inverse-proportional").objective
                rows.append(
                    [
                        f"{n}, {k}",
                        f"{ell:g}",
                        f"{len(p.profiles):,}",
                        shown,
                        formula,
                        f"{rule:.5f}",
                        f"{seconds:.2g} s",
                    ]
                )
    text = (
        "Upper bounds on the worst-case ratio of every ordered-stable rule, on and off the grid; grids from "
        "1 to 1/4, logarithmic.\n\n"
    )
    head = [
        "ads, slots",
        "ell",
        "profiles",
        "linear program",
        "two profiles",
        "inverse prop. on the grid",
        "seconds",
    ]
    return text + table(head, rows), []


def refined(quick: bool) -> tuple[str, list[Row]]:
    """One slot: the linear program as the grid is refined around the best level of two profiles."""
    rows = []
    for n, ell, counts in (
        (2, 1.0, (1, 2, 4, 8, 16, 32)),
        (3, 1.0, (1, 2, 4, 8)),
        (3, 0.5, (1, 2, 4, 8)),
        (3, 2.0, (1, 2, 4, 8)),
        (4, 1.0, (1, 2, 3)),
    ):
        x = np.linspace(0.01, 1, 1_000_001)
        lost = np.maximum(x**ell - 1 / n, x ** (2 * ell) * (n - 1) / n) * (1 - x)
        best = float(x[lost.argmax()])
        found = []
        for divide in counts[:2] if quick else counts:
            levels = best ** (np.arange(3 * divide + 1) / divide)
            p = CompetitiveRatio(ads=n, slots=[1.0], stability=ell, levels=levels)
            s = p.solve("cuts", time_limit=LIMIT)
            progress(n, ell, divide, s)
            found.append(f"{len(levels)}: {s.objective:.7f}")
        rows.append([f"{n}, {ell:g}", "; ".join(found), f"{two_profile_bound(n, ell):.7f}"])
    return table(["ads, ell", "levels: linear program", "two profiles"], rows), []


PARTS = {
    "allocations": {
        "The best fair allocation": welfare,
        "The best worst ratio": ratios,
        "Rules and payments": rules,
    },
    "bounds": {
        "Upper bounds on every rule": best_ratios,
        "One slot, refined": refined,
    },
}
TITLES = {
    "allocations": "Individually fair auctions",
    "bounds": "Individually fair auctions: upper bounds on every rule",
}


def main() -> None:
    given = parser(__doc__, *PARTS).parse_args()
    fo.Model().solve("highs")  # imports it before anything is timed
    chosen = {name: part for group in given.parts for name, part in PARTS[group].items()}
    page = Page(TITLES[given.parts[0]], given.out, "numpy", "scipy", "highspy", "cvxpy")
    page.run(chosen, given.quick)


if __name__ == "__main__":
    main()
