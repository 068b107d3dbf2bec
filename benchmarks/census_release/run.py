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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.report import Page, Row, data, parser, progress, row, table
from forcopt.data import Hierarchy
from forcopt.models import ConsistentRelease
from forcopt.models.census_release import Region
from forcopt.models.census_release.generators import TEXAS, random_release

MIDDLE = (1, 20, 300, 1471, 48000)  # 49,792 nodes
LIMIT = 60.0
SPLITS = {
    "equal": (1 / 5,) * 5,
    "state-heavy": (1 / 2, 1 / 4, 1 / 12, 1 / 12, 1 / 12),
    "tract-heavy": (1 / 12, 1 / 6, 1 / 2, 1 / 6, 1 / 12),
    "group-heavy": (1 / 12, 1 / 12, 1 / 6, 1 / 2, 1 / 6),
    "block-heavy": (1 / 12, 1 / 12, 1 / 12, 1 / 4, 1 / 2),
}


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


def real(quick: bool) -> tuple[str, list[Row]]:
    rows, headline = [], []
    for sizes in ((1, 5, 40, 300),) if quick else (MIDDLE, TEXAS):
        p = random_release(sizes, seed=1)
        nodes = f"{sum(sizes):,}"
        s = min((p.replace(nonnegative=False).solve("tree-wls") for _ in range(3)), key=lambda s: s.seconds)
        rows.append([nodes, "tree-wls (signs free)", *told(s)])
        s = min((p.solve("tree-nnls") for _ in range(3)), key=lambda s: s.seconds)
        rows.append([nodes, "tree-nnls", *told(s)])
        for solver in ("CLARABEL",) if sizes == TEXAS else ("CLARABEL", "OSQP"):
            seconds, value = clarabel_directly(p, solver)
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
                *told(min((q.solve("simplex") for _ in range(2)), key=lambda s: s.seconds)),
            ]
        )
    return table(["units", "method", "seconds", "objective", "largest gap in a sum"], rows), headline


def whole(quick: bool) -> tuple[str, list[Row]]:
    rows, headline = [], []
    for sizes in ((1, 5, 40, 300),) if quick else (MIDDLE, TEXAS):
        p = random_release(sizes, seed=1, integer=True)
        nodes = f"{sum(sizes):,}"
        exact = min((p.solve("tree-integer") for _ in range(2)), key=lambda s: s.seconds)
        rows.append([nodes, "tree-integer", *told(exact)])
        s = p.solve("largest-remainder")
        rows.append([nodes, "largest-remainder", *told(s)])
        if sizes != TEXAS:
            lp = p.solve("network-lp", backend="highs", time_limit=LIMIT)
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
        "from forcopt.models.census_release.generators import random_release\n"
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
    note = "Each in a process of its own; memory in GB, of the whole process.\n\n"
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
    "Real counts": real,
    "Whole counts": whole,
    "Seven types": seven,
    "Accuracy by split": accuracy,
}


def main() -> None:
    given = parser(__doc__).parse_args()
    warm()
    page = Page("Census releases", given.out, "numpy", "scipy", "numba", "highspy", "clarabel", "cvxpy")
    page.run(PARTS, given.quick)


if __name__ == "__main__":
    main()
