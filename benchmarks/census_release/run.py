"""Runs the benchmark of census releases, and writes a Markdown table.

    python benchmarks/census_release/run.py --out benchmarks/census_release/results.md

Trees and noise are seeded; the last part reads the authors' data. ``--quick`` takes small trees.
"""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import networkx as nx
import numpy as np

import forcopt as fo
from benchmarks.report import MEDIANS, Page, Row, data, middle, parser, progress, row, table
from forcopt.data import Hierarchy, load_graph
from forcopt.models import ConsistentRelease, Districting
from forcopt.models.census_release import Invariant, Region, deviation_factor, measure, noise_variances
from forcopt.models.census_release.formulations import Counts, measured, squares
from forcopt.models.census_release.instances import TEXAS, random_release, state_like

SMALL = (1, 10, 100, 400, 3980)  # 4,491 nodes
MIDDLE = (1, 20, 300, 1471, 48000)  # 49,792 nodes
LIMIT = 60.0
SPLITS = {
    "equal": (1 / 5,) * 5,
    "state-heavy": (1 / 2, 1 / 4, 1 / 12, 1 / 12, 1 / 12),
    "tract-heavy": (1 / 12, 1 / 6, 1 / 2, 1 / 6, 1 / 12),
    "group-heavy": (1 / 12, 1 / 12, 1 / 6, 1 / 2, 1 / 6),
    "block-heavy": (1 / 12, 1 / 12, 1 / 12, 1 / 4, 1 / 2),
}


def nested_release(children: int, types: int, *, seed: int = 0) -> ConsistentRelease:
    """Draw a level problem of TopDown: invariants are the parent's counts, queries types, pairs and all."""
    tree = state_like((1, children), types=types, seed=seed)
    pairs = np.kron(np.eye(types // 2, dtype=int), np.ones((1, 2), dtype=int))
    rows = np.vstack([np.eye(types, dtype=int), pairs, np.ones((1, types), dtype=int)])
    fixed = tuple(Invariant(0, 0, float(v), (t,)) for t, v in enumerate(tree.counts.sum(axis=0)))
    shares = np.repeat([0.1, 0.3, 0.6], [types, types // 2, 1]) / np.repeat(
        [types, types // 2, 1], [types, types // 2, 1]
    )
    return measure(tree, [1.0, 1.0], workload=rows, shares=shares, seed=seed, integer=True, invariants=fixed)


def warm() -> None:
    p = random_release((1, 2, 4), seed=0)
    p.replace(nonnegative=False).solve("tree-wls")
    p.solve("tree-nnls")
    p.replace(integer=True).solve("tree-integer")
    for backend in ("highs", "clarabel", "osqp"):
        p.solve("qp", backend=backend)


def told(s) -> list[str]:
    residue = max((v for k, v in s.evaluation.violations.items() if k.startswith("additivity")), default=0.0)
    counts = s.decision.counts
    h = s.decision.hierarchy
    gaps = [float(np.abs(h.up(i, counts[i]) - counts[i - 1]).max()) for i in range(1, h.depth)]
    return [f"{s.seconds:.3g}", f"{s.objective:,.6f}", f"{max(gaps, default=residue):.1g}"]


def timed(act: Callable[..., Any], *given: object) -> tuple[float, Any]:
    """Seconds and result."""
    began = time.perf_counter()
    found = act(*given)
    return time.perf_counter() - began, found


def clarabel_directly(p: ConsistentRelease, solver: str) -> tuple[float, float]:
    """cvxpy with a solver on the same data, without this library: seconds and objective."""
    import cvxpy as cp
    import scipy.sparse as sp

    h = p.hierarchy
    began = time.perf_counter()
    x = [cp.Variable(size) for size in h.sizes]
    cost = sum(
        float(w[0]) * cp.sum_squares(v - y[:, 0]) for w, v, y in zip(p.weights, x, p.noisy, strict=True)
    )
    limits = [x[-1] >= 0]
    for i in range(1, h.depth):
        n = h.sizes[i]
        adds = sp.csr_array((np.ones(n), (h.parents[i - 1], np.arange(n))), shape=(h.sizes[i - 1], n))
        limits.append(adds @ x[i] == x[i - 1])
    problem = cp.Problem(cp.Minimize(cost), limits)
    problem.solve(solver=solver)
    return time.perf_counter() - began, float(problem.value)


def peers(quick: bool) -> tuple[str, list[Row]]:
    """Small enough for every solver of quadratic programs; and OpenDP on a complete tree."""
    import opendp.prelude as dp

    rows, p = [], random_release((1, 5, 40, 300) if quick else SMALL, seed=1)
    nodes = f"{sum(p.hierarchy.sizes):,}"
    for method, q in (("tree-nnls", p), ("simplex", p.replace(order="top-down"))):
        rows.append([nodes, method, *told(middle(partial(q.solve, method)))])
    for order in ("joint", "top-down"):
        for backend in ("clarabel", "osqp", "highs"):
            q = p.replace(order=order)
            s = middle(partial(q.solve, "qp", backend=backend, time_limit=30.0))
            rows.append([nodes, f"qp, {backend}, {order}: {s.status}", *told(s)])
            progress(*rows[-1])
    dp.enable_features("contrib")
    consistent = dp.t.make_consistent_b_ary_tree(4, TIA=int, TOA=float)
    h, rng = Hierarchy.homogeneous([4] * (5 if quick else 9)), np.random.default_rng(0)
    noisy = [rng.integers(-5, 40, size) for size in h.sizes]
    q = ConsistentRelease(h, tuple(noisy), np.ones(h.depth), nonnegative=False)
    s = middle(partial(q.solve, "tree-wls"))
    flat, nodes = [int(v) for level in noisy for v in level], f"{sum(h.sizes):,}"
    seconds, theirs = middle(partial(timed, consistent, flat), lambda run: run[0])
    off = float(np.abs(np.array(theirs) - s.decision.leaves.ravel()).max())
    rows.append([nodes, "tree-wls, complete 4-ary tree", *told(s)])
    rows.append([nodes, f"OpenDP, leaves differ by {off:.0e}", f"{seconds:.3g}", "", ""])
    progress(*rows[-1])
    headline = row(
        f"{nodes} units, complete 4-ary tree",
        f"tree-wls {s.seconds:.3g} s",
        f"OpenDP {seconds:.3g} s, leaves differ by {off:.0e}",
        f"{seconds / s.seconds:.0f}",
    )
    return table(["units", "method", "seconds", "objective", "largest gap in a sum"], rows), [headline]


def integer_quadratic(p: ConsistentRelease) -> fo.Model:
    """The quadratic program with whole leaves, which the linear program of unit steps takes the place of."""
    model = fo.Model("integer quadratic")
    levels = measured(p, Counts(p, model, integer=True).levels)
    model.minimize(fo.sum(squares(parts, 1.0) for parts in levels))
    return model


def nested(quick: bool) -> tuple[str, list[Row]]:
    """TopDown's level problem with queries of types, pairs and all: three children with eight types."""
    rows, worse, unproved, limit = [], 0, 0, 3.0 if quick else 30.0
    for seed in range(2 if quick else 6):
        p = nested_release(3, 8, seed=seed)
        lp = p.solve("network-lp", backend="highs")
        s = integer_quadratic(p).solve("scip", time_limit=limit)
        worse += s.objective > lp.objective * (1 + 1e-6) + 1e-9
        unproved += str(s.status) != "optimal"
        cells = [f"{lp.seconds:.2f}", f"{lp.objective:.6g}", f"{s.seconds:.1f}", f"{s.objective:.6g}"]
        rows.append([seed, *cells, s.status])
        progress(*rows[-1])
    head = ["seed", "network-lp, HiGHS, s", "optimum", f"miqp, SCIP, s (limit {limit:.0f})", "best", "status"]
    return table(head, rows), [
        row(
            "nested level problem, 24 integers",
            "network-lp optimal in all",
            f"SCIP: {unproved} of {len(rows)} unproved, {worse} worse",
        )
    ]


def balanced(quick: bool) -> tuple[str, list[Row]]:
    """Maine's two districts within 0.5 % on releases, with margins of z standard deviations."""
    true = Districting(graph=load_graph(data("us/ME-county.json")), districts=2, tolerance=0.005)
    people = np.array(true.arrays.weights)
    tree = Hierarchy(parents=(np.zeros(len(people), dtype=int),), counts=people[:, None])
    low, high = true.population_bounds
    rows, runs = [], 2 if quick else 20
    for deviations, budgets in ((0.0, (0.1, 0.01, 0.005)), (2.0, (0.1,))):
        for epsilon in budgets:
            drawn = valid = 0
            factor = deviation_factor(tree, noise_variances([epsilon / 2] * 2, noise="geometric"))
            for seed in range(runs):
                p = measure(tree, [epsilon / 2] * 2, seed=seed, order="top-down")
                seen = p.solve("simplex").decision.leaves.ravel().round().astype(int)
                graph = true.graph.copy()
                nx.set_node_attributes(graph, dict(zip(true.nodes, seen.tolist(), strict=True)), "population")
                found = margin_plan(
                    Districting(graph=graph, districts=2, bounds=(low, high)), factor, deviations
                )
                drawn += found is not None
                valid += found is not None and true.evaluate(found.assignment).feasible
            rows.append([f"{deviations:g}", epsilon, runs, drawn, valid])
            progress(*rows[-1])
    note = (
        "Maine's 16 counties have a single plan of two districts within 0.5 % of the mean. Epsilon is split "
        "equally over state and counties. *Found*: there is a plan whose noisy counts stay within the "
        "bounds by a margin of z standard deviations. *Valid*: the true counts of this plan are within the "
        "bounds.\n\n"
    )
    first = rows[0]
    return note + table(["z", "epsilon", "releases", "found", "valid"], rows), [
        row("Maine's only plan, epsilon 0.1", f"found and valid in {first[4]} of {first[2]}")
    ]


def margin_plan(problem: Districting, factor, deviations: float):
    """The plan of least cut with margins, by tangents of the cones; None if there is none.

    The best plan without margins is the best one if it keeps them.
    """
    nominal = problem.solve(seed=0)
    if nominal.decision is None:
        return None
    place = nominal.decision.assignment
    member = np.array([[place[v] == j for j in range(2)] for v in problem.nodes], dtype=float)
    weights = np.array(problem.arrays.weights)
    counts, margins = weights @ member, deviations * np.linalg.norm(factor @ member, axis=0)
    low, high = problem.population_bounds
    if (counts + margins <= high).all() and (counts - margins >= low).all():
        return nominal.decision
    m = fo.Model("districts on a release")
    plan = problem.declare(m, "flow", all_rows=False)

    def separate(value):
        for j in range(problem.districts):
            spread = factor @ np.round(value(plan.member)[:, j])
            length = np.linalg.norm(spread)
            tangent = deviations * (factor.T @ spread / max(length, 1e-9)) @ plan.member[:, j]
            count = float(value(plan.population)[j])
            if count + deviations * length > high + 1e-6:
                yield plan.population[j] + tangent <= high
            if count - deviations * length < low - 1e-6:
                yield plan.population[j] - tangent >= low

    m.lazy(separate)
    m.minimize(plan.objective)
    found = m.solve("highs", time_limit=60)
    return plan.decision(found) if found.status.has_solution else None


def zero_balance(quick: bool) -> tuple[str, list[Row]]:
    """Four commissioners' districts of five Texan counties, balanced on noisy and on true counts."""
    rows = []
    for county in ("bell", "brazoria", "cameron", "galveston", "nueces"):
        graph = load_graph(data(f"texas/{county}-tract.json"))
        names, people = list(graph), np.array([graph.nodes[v]["population"] for v in graph])
        tree = Hierarchy(parents=(np.zeros(len(people), dtype=int),), counts=people[:, None])
        p = measure(tree, [0.2, 0.2], seed=0, order="top-down", integer=True)
        seen = p.solve("largest-remainder").decision.leaves.ravel().astype(int)
        noisy = graph.copy()
        nx.set_node_attributes(noisy, dict(zip(names, seen.tolist(), strict=True)), "population")
        cells = []
        for drawn_on in (graph, noisy):
            q = Districting(graph=drawn_on, districts=4, objective="deviation", bounds=(0, int(people.sum())))
            s = q.solve("local-search", seed=0, restarts=2 if quick else 8, time_limit=5)
            place = s.decision.assignment
            for counts in (people, seen):
                each = np.bincount([place[v] for v in names], weights=counts, minlength=4)
                cells.append(f"{each.max() - each.min():.0f}")
        rows.append([county, len(names), f"{people.sum() / 4:,.0f}", *cells])
        progress(*rows[-1])
    note = (
        "The largest minus the smallest population of a district, in the most balanced plan that local "
        "search finds; epsilon 0.2 for county and tracts. The noise of its districts unbalances a plan that "
        "is balanced on noisy counts.\n\n"
    )
    head = ["county", "tracts", "people a district"]
    head += [f"drawn on {a}, counted on {b}" for a in ("true", "noisy") for b in ("true", "noisy")]
    return note + table(head, rows), []


def real(quick: bool) -> tuple[str, list[Row]]:
    rows, headline = [], []
    for sizes in ((1, 5, 40, 300),) if quick else (MIDDLE, TEXAS):
        p = random_release(sizes, seed=1)
        nodes = f"{sum(sizes):,}"
        s = middle(partial(p.replace(nonnegative=False).solve, "tree-wls"))
        rows.append([nodes, "tree-wls (signs free)", *told(s)])
        s = middle(partial(p.solve, "tree-nnls"))
        rows.append([nodes, "tree-nnls", *told(s)])
        for solver in ("CLARABEL",) if sizes == TEXAS else ("CLARABEL", "OSQP"):
            seconds, value = middle(partial(clarabel_directly, p, solver), lambda run: run[0])
            rows.append([nodes, f"cvxpy + {solver.capitalize()}", f"{seconds:.3g}", f"{value:,.6f}", ""])
            progress(*rows[-1])
            if solver == "CLARABEL":
                headline.append(
                    row(
                        f"{nodes} units, real counts at least 0",
                        f"tree-nnls {s.seconds:.3g} s, {s.objective:,.3f}",
                        f"Clarabel through cvxpy {seconds:.3g} s, {value:,.3f}",
                        f"{seconds / s.seconds:.0f}",
                    )
                )
        q = p.replace(order="top-down")
        rows.append(
            [
                nodes,
                "simplex (top-down)",
                *told(middle(partial(q.solve, "simplex"))),
            ]
        )
    return table(["units", "method", "seconds", "objective", "largest gap in a sum"], rows), headline


def whole(quick: bool) -> tuple[str, list[Row]]:
    rows, headline = [], []
    for sizes in ((1, 5, 40, 300),) if quick else (MIDDLE, TEXAS):
        p = random_release(sizes, seed=1, integer=True)
        nodes = f"{sum(sizes):,}"
        exact = middle(partial(p.solve, "tree-integer"))
        rows.append([nodes, "tree-integer", *told(exact)])
        s = p.solve("largest-remainder")
        rows.append([nodes, "largest-remainder", *told(s)])
        if sizes != TEXAS:
            lp = middle(partial(p.solve, "network-lp", backend="highs", time_limit=LIMIT))
            rows.append([nodes, "network-lp, HiGHS", *told(lp)])
            headline.append(
                row(
                    f"{nodes} units, whole counts",
                    f"tree-integer {exact.seconds:.3g} s, {exact.objective:,.3f}",
                    f"network LP, HiGHS {lp.seconds:.3g} s, {lp.objective:,.3f}",
                    f"{lp.seconds / exact.seconds:.0f}",
                )
            )
        else:
            began = time.perf_counter()
            optimal = p.certify(exact.decision).optimal
            rows.append(
                [nodes, f"certificate: optimal is {optimal}", f"{time.perf_counter() - began:.3g}", "", ""]
            )
            headline.append(row(f"{nodes} units, whole counts", f"tree-integer {exact.seconds:.3g} s"))
        progress(*rows[-1])
    return table(["units", "method", "seconds", "objective", "largest gap in a sum"], rows), headline


def seven(quick: bool) -> tuple[str, list[Row]]:
    sizes = (1, 5, 40, 300) if quick else TEXAS
    code = (
        "from pathlib import Path\n"
        "from forcopt.models.census_release.instances import random_release\n"
        "def peak():\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    return next(int(x.split()[1]) for x in lines if x.startswith('VmHWM')) / 2**20\n"
        "random_release((1, 2, 4), seed=0, integer=True).solve('tree-integer')\n"
        f"p = random_release({sizes}, seed=1, types=%d, integer=True)\n"
        "before = peak()\n"
        "s = p.solve('tree-integer')\n"
        "print(s.seconds, before, peak())\n"
    )
    rows = []
    for types in (1, 7):
        ran = subprocess.run([sys.executable, "-c", code % types], capture_output=True, text=True, check=True)
        seconds, before, peak = map(float, ran.stdout.split())
        rows.append([types, f"{seconds:.3g}", f"{before:.2f}", f"{peak:.2f}"])
        progress(*rows[-1])
    note = "Each run has its own process; memory of the whole process in GB.\n\n"
    return note + table(["types", "tree-integer, seconds", "GB before", "GB at the peak"], rows), []


def dallas() -> tuple[Hierarchy, np.ndarray]:
    with gzip.open(data("texas/dallas-blocks.csv.gz"), "rt") as file:
        blocks = list(csv.DictReader(file))
    with data("texas/counties.csv").open() as file:
        counties = [r for r in csv.DictReader(file) if r["county"] != "48113"]
    groups = [k for k in blocks[0] if not k.startswith("vap_")][2:]
    codes = [r["county"] for r in counties] + [r["block"] for r in blocks]
    counts = [sum(int(r[g]) for g in groups) for r in [*counties, *blocks]]
    return Hierarchy.from_geoids(codes, counts=counts), np.array([n.startswith("48113") for n in codes])


def accuracy(quick: bool) -> tuple[str, list[Row]]:
    h, _ = dallas()
    rng = np.random.default_rng(0)
    tracts = [i for i, n in enumerate(h.names[2]) if n.startswith("48113")]
    group = [i for i, n in enumerate(h.names[4]) if n.startswith("48113")]
    chosen = rng.choice(tracts, len(tracts) // 4, replace=False)
    above = h.ancestors(2)
    regions = {
        "a tract": [Region(h, np.flatnonzero(above == t)) for t in rng.choice(tracts, 5 if quick else 40)],
        "a quarter of the tracts": [Region(h, np.flatnonzero(np.isin(above, chosen)))],
        "a quarter of the blocks": [Region(h, rng.choice(group, len(group) // 4, replace=False))],
    }
    rows = []
    for split, shares in SPLITS.items():
        cells = [split]
        for found in regions.values():
            each = [np.sqrt(np.mean([r.variance(shares, e) for r in found])) for e in ("top-down", "joint")]
            cells.append(f"{each[0]:.1f} → {each[1]:.1f}")
        rows.append(cells)
        progress(*cells)
    note = (
        "Standard deviation of a count of one type, top-down → joint, by the formulas; epsilon 1 over five "
        "levels from the state down, real Dallas under 254 counties.\n\n"
    )
    last = rows[-1]
    return note + table(["split", *regions], rows), [
        row(
            "real Dallas, block-heavy split",
            f"joint: tract {last[1].split()[-1]}",
            f"top-down: tract {last[1].split()[0]}",
        )
    ]


PARTS = {
    "Peers": peers,
    "Nested level problems": nested,
    "Districts that surely balance": balanced,
    "Zero balance": zero_balance,
    "Seven types": seven,
    "Accuracy by split": accuracy,
    "Whole counts": whole,
    "Real counts": real,
}


def main() -> None:
    given = parser(__doc__, *PARTS).parse_args()
    warm()
    used = ("numpy", "scipy", "numba", "highspy", "clarabel", "cvxpy")
    page = Page("Census releases", given.out, *used, note=MEDIANS)
    page.run({name: PARTS[name] for name in given.parts}, given.quick)


if __name__ == "__main__":
    main()
