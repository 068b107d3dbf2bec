"""Runs the benchmark of solving again with other numbers, and writes a Markdown table.

    python benchmarks/resolve/run.py --out benchmarks/resolve/results.md

A linear program of 1,000 columns is solved 1,000 times; right-hand sides, costs or both move between solves.
Three ways take turns, so that they share the load of the machine: HiGHS's own calls on arrays (change, run,
read the point and the duals), forcopt's parameters on HiGHS, and, at every twentieth solve, cvxpy's
parameters on HiGHS. All optima are compared. Times are of the processor.
Everything is seeded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cvxpy as cp
import highspy
import numpy as np
import scipy.sparse as sp

import forcopt as fo
from benchmarks.report import Page, Row, parser, row, table
from forcopt.arrays import Array

COLUMNS, SEED, RARELY = 1000, 20, 20
Solver = Callable[[Array, Array], float]


def sides(rows: int, density: float) -> tuple[sp.csr_array, Array, Array]:
    """Nonnegative rows, costs, and right-hand sides that some point meets."""
    rng = np.random.default_rng(SEED)
    matrix = sp.random_array((rows, COLUMNS), density=density, rng=rng, format="csr")
    matrix.data += 0.1
    return matrix, rng.random(COLUMNS) + 0.5, matrix @ rng.random(COLUMNS)


def by_highs(matrix: sp.csr_array, cost: Array, need: Array) -> Solver:
    """Change numbers in HiGHS itself."""
    m = fo.Model()
    x = m.variable("x", COLUMNS, lower=0, upper=3)
    m.subject_to(matrix @ x >= need)
    m.minimize(cost @ x)
    highs: highspy.Highs = m.to_highs()
    highs.setOptionValue("output_flag", False)
    rows, columns = np.arange(len(need), dtype=np.int32), np.arange(COLUMNS, dtype=np.int32)
    infinite = np.full(len(need), np.inf)

    def solve(price: Array, demand: Array) -> float:
        highs.changeRowsBounds(len(rows), rows, demand, infinite)
        highs.changeColsCost(len(columns), columns, price)
        highs.run()
        found = highs.getSolution()
        np.array(found.row_dual)
        return float(price @ np.array(found.col_value))

    return solve


def by_forcopt(matrix: sp.csr_array, cost: Array, need: Array) -> Solver:
    """Set parameters and solve."""
    m = fo.Model()
    price, demand = m.parameter("price", COLUMNS), m.parameter("demand", len(need))
    x = m.variable("x", COLUMNS, lower=0, upper=3)
    m.subject_to(matrix @ x >= demand)
    m.minimize(price @ x)

    def solve(costs: Array, needs: Array) -> float:
        price.value, demand.value = costs, needs
        return m.solve("highs").objective

    return solve


def by_cvxpy(matrix: sp.csr_array, cost: Array, need: Array) -> Solver:
    """Set parameters of cvxpy and solve on HiGHS."""
    price, demand = cp.Parameter(COLUMNS), cp.Parameter(len(need))
    x = cp.Variable(COLUMNS)
    problem = cp.Problem(cp.Minimize(price @ x), [matrix @ x >= demand, x >= 0, x <= 3])

    def solve(costs: Array, needs: Array) -> float:
        price.value, demand.value = costs, needs
        return float(problem.solve(solver=cp.HIGHS))

    return solve


WAYS = {"HiGHS": by_highs, "forcopt": by_forcopt, "cvxpy": by_cvxpy}


def part(moving: str, rows: int, density: float, spread: float, quick: bool) -> tuple[str, list[Row]]:
    """One kind of change, solved again and again."""
    times = 20 if quick else 1000
    every = 1 if quick else RARELY
    matrix, cost, need = sides(rows, density)
    ways = {name: way(matrix, cost, need) for name, way in WAYS.items()}
    for solve in ways.values():
        solve(cost, need)
    rng, spent, apart = np.random.default_rng(SEED + 1), dict.fromkeys(ways, 0.0), 0.0
    count = dict.fromkeys(ways, 0)
    for turn in range(times):
        price = cost * (1 + spread * rng.normal(size=COLUMNS)) if "costs" in moving else cost
        demand = need * (1 + spread * rng.normal(size=rows)) if "sides" in moving else need
        optima = []
        order = list(ways)
        for name in order[turn % 3 :] + order[: turn % 3]:
            if name == "cvxpy" and turn % every:
                continue
            began = time.process_time()
            optima.append(ways[name](price, demand))
            spent[name] += time.process_time() - began
            count[name] += 1
        apart = max(apart, (max(optima) - min(optima)) / max(optima))
    mean = {name: 1000 * seconds / count[name] for name, seconds in spent.items()}
    cells = [(name, f"{mean[name]:.2f}", f"{mean[name] / mean['HiGHS']:.2f}") for name in ways]
    text = f"{rows} rows, {matrix.nnz:,} entries, {times:,} solves; optima differ by {apart:.1g} at most.\n\n"
    ours, peer = mean["forcopt"] / mean["HiGHS"], mean["cvxpy"] / mean["HiGHS"]
    told = row(
        f"{moving} of {rows} rows, {times:,} solves",
        f"forcopt {mean['forcopt']:.2f} ms each",
        f"HiGHS's own calls {mean['HiGHS']:.2f} ms, cvxpy {mean['cvxpy']:.2f} ms",
        f"{ours:.2f} of HiGHS's; cvxpy {peer:.1f}",
    )
    return text + table(["way", "milliseconds each", "of HiGHS's own"], cells), [told]


CASES = {
    "Right-hand sides, 3,000 entries": partial(part, "right-hand sides", 300, 0.01, 0.02),
    "Right-hand sides, 10,000 entries": partial(part, "right-hand sides", 500, 0.02, 0.005),
    "Costs, 6,000 entries": partial(part, "costs", 300, 0.02, 0.01),
    "Both, 6,000 entries": partial(part, "costs and right-hand sides", 300, 0.02, 0.005),
}


def main() -> None:
    """Run all cases."""
    options = parser(__doc__).parse_args()
    page = Page(
        "Solving again with other numbers",
        options.out,
        "forcopt",
        "highspy",
        "cvxpy",
        "numpy",
        note="Times are of the processor.",
    )
    page.run(CASES, options.quick)


if __name__ == "__main__":
    main()
