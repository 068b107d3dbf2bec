"""Three tiers of instances from the library's families, 60 each: seconds, minutes and an hour for a solver.

    python benchmarks/instances/tiers.py --write seconds [--known 20]

Writes the MPS, LP and CBF files of a tier to benchmarks/instances/tiers/NAME, which git does not keep: each
is drawn with its seed. ``features-NAME.csv`` has rows, columns, entries, density, share of integers, of equal
columns (symmetry) and of equal right-hand sides (degeneracy). With --known each is solved by HiGHS and SCIP
within so many seconds; optima on which both agree become ``known.json`` and ``known.solu``.

Candidates are drawn for each family and seed. Models with equal numbers are duplicates, and a model that
HiGHS's presolve empties is trivial: both are left out. Of what is left the 60 that are farthest apart in the
logarithms of the features are chosen (Gonzalez's greedy k-center), so that no family of one size fills the
tier; MIPLIB 2017 was selected for diversity in the same spirit. How long each takes is not known before it is
run: the sizes of the tiers minutes and hour are extrapolated.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import highspy
import numpy as np

import forcopt as fo
from benchmarks.cbf import write_cbf
from benchmarks.report import progress
from forcopt.backends.highs import highs_of
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.data import delaunay
from forcopt.fairness import EqualizedOdds
from forcopt.models import Districting
from forcopt.models.allocation.instances import random_strata
from forcopt.models.census_release.instances import random_release
from forcopt.models.fair_auctions.instances import _ORDERED, random_auction
from forcopt.models.fair_postprocessing.instances import draw as drawn_table
from forcopt.models.fair_ranking.instances import _THREE, random_ranking
from forcopt.models.leximax_cohort.instances import random_block, random_cohort, random_panel
from forcopt.models.strategic import StrategicLinearClassifier
from forcopt.models.strategic.instances import credit, random_discrete

TIERS = {"seconds": 0, "minutes": 1, "hour": 2}
COUNT, SEEDS = 60, 7

Make = Callable[..., Any]


def _paid(strata: int, seed: int) -> Any:
    """Strata whose units cost differently, within a budget."""
    drawn = random_strata(strata, largest=300, seed=seed)
    costs = np.random.default_rng(seed).integers(1, 30, strata).astype(float)
    return random_strata(strata, largest=300, seed=seed, costs=costs, budget=float(0.1 * costs @ drawn.sizes))


def _classifier(agents: int, features: int, seed: int) -> StrategicLinearClassifier:
    """A tenth of the agents qualify as they are; every other feature can be improved."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 11, (agents, features)).astype(float)
    truth = rng.integers(1, 6, features)
    return StrategicLinearClassifier(
        X=X,
        truth=(truth.tolist(), float(np.quantile(X @ truth, 0.9))),
        costs=rng.integers(2, 11, features) / 20,
        improvable=(np.arange(features) % 2 == 0).tolist(),
        max_false_positives=agents // 20,
    )


OPTIONS = {"allocation": {"reduce": False}}
"""Options of the formulations."""

FAMILIES: dict[str, tuple[Make, str, tuple[tuple[Any, ...], ...]]] = {
    "strategic-random": (
        lambda a, c, most, seed: random_discrete(a, c, seed=seed, max_false_positives=most),
        "milp",
        ((400, 40, 20), (1000, 60, 40), (2000, 100, 100)),
    ),
    "strategic-credit": (
        lambda a, most, seed: credit(a, seed=seed, max_false_positives=most),
        "milp",
        ((600, 20), (2000, 40), (6000, 90)),
    ),
    "strategic-classifier": (_classifier, "margin-milp", ((80, 4), (160, 5), (400, 6))),
    "districting": (
        lambda n, k, seed: Districting(graph=delaunay(n, seed=seed), districts=k, tolerance=0.2),
        "flow",
        ((24, 3), (44, 4), (90, 6)),
    ),
    "cohort-whole": (
        lambda n, m, seed: random_cohort(n, m, n // 5, grid=20, seed=seed, integer=True, objective="maximin"),
        "convex-program",
        ((60, 15), (150, 40), (400, 90)),
    ),
    "cohort-hitting": (
        lambda n, m, k, seed: random_block(n, m, k, share=0.2, seed=seed, integer=True, objective="maximin"),
        "convex-program",
        ((80, 150, 10), (180, 500, 13), (400, 2000, 18)),
    ),
    "auctions-welfare": (
        lambda u, a, s, seed: random_auction(u, a, s, seed=seed, constraint=_ORDERED),
        "lp",
        ((40, 5, 3), (90, 6, 3), (200, 7, 3)),
    ),
    "census": (
        lambda sizes, seed: random_release(sizes, seed=seed, integer=True, order="joint"),
        "network-lp",
        (((1, 15, 80, 300, 2000),), ((1, 30, 120, 500, 8000),), ((1, 60, 300, 2000, 40000),)),
    ),
    "ranking": (
        lambda n, k, seed: random_ranking(n, k, (2, 2, 3), seed=seed, constraint=_THREE, integer=True),
        "prefix-counts",
        ((100, 20), (500, 50), (2000, 120)),
    ),
    "postprocessing": (
        lambda groups, seed: drawn_table(groups, EqualizedOdds(0.05), seed),
        "lp",
        ((3000,), (20000,), (100000,)),
    ),
    "cohort-panel": (
        lambda n, k, seed: random_panel(n, k, features=2, seed=seed, objective="maximin"),
        "convex-program",
        ((1000, 80), (3000, 200), (10000, 500)),
    ),
    "allocation": (
        _paid,
        "milp",
        ((200,), (1000,), (5000,)),
    ),
}
"""For each family its maker, its formulation and the sizes of the three tiers."""

ROWS = Capabilities(frozenset({"rows", "integer", "quadratic"}))


def features(model: fo.Model) -> tuple[dict[str, float], str, bool]:
    """The features of a model, a digest of its numbers, and whether presolve leaves nothing of it."""
    program = compile_model(model, ROWS, "a file")
    rows, n = program.rows, program.columns
    matrix = rows.matrix(n).tocsc()
    columns = [
        hashlib.sha256(matrix.indices[a:b].tobytes() + matrix.data[a:b].tobytes()).hexdigest()
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]
    shapes = [matrix.data[a:b].tobytes() for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
    digest = hashlib.sha256("".join(columns).encode() + program.stages[0].cost.tobytes()).hexdigest()
    highs = highs_of(program)
    highs.setOptionValue("output_flag", False)
    highs.presolve()
    emptied = highs.getModelPresolveStatus() == highspy.HighsPresolveStatus.kReducedToEmpty
    sides = np.concatenate([rows.lower[np.isfinite(rows.lower)], rows.upper[np.isfinite(rows.upper)]])
    return (
        {
            "rows": rows.count,
            "columns": n,
            "entries": rows.data.size,
            "density": rows.data.size / max(1, rows.count * n),
            "integers": float((program.integer == 1).mean()),
            "symmetry": 1.0 - len(set(shapes)) / n,
            "degeneracy": 1.0 - len(np.unique(sides)) / max(1, sides.size),
        },
        digest,
        emptied,
    )


def spread(points: np.ndarray[Any, Any], count: int) -> list[int]:
    """The indices of points that are far apart: each next one is farthest from those that are chosen."""
    chosen = [0]
    near = np.linalg.norm(points - points[0], axis=1)
    while len(chosen) < min(count, len(points)):
        near[chosen] = -1.0
        chosen.append(int(np.argmax(near)))
        near = np.minimum(near, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return sorted(chosen)


def _features(tier: str) -> Path:
    return Path(__file__).with_name(f"features-{tier}.csv")


def write(tier: str, folder: Path, count: int = COUNT) -> list[str]:
    """Draw, select and write a tier; gives the names."""
    folder.mkdir(parents=True, exist_ok=True)
    seen: set[str] = set()
    candidates: list[tuple[str, fo.Model, dict[str, float]]] = []
    for family, (make, method, sizes) in FAMILIES.items():
        for seed in range(SEEDS):
            model = make(*sizes[TIERS[tier]], seed=seed).to_model(method, **OPTIONS.get(family, {}))
            found, digest, trivial = features(model)
            if trivial or digest in seen:
                progress(f"{family}-{seed}: {'trivial' if trivial else 'a duplicate'}")
                continue
            seen.add(digest)
            candidates.append((f"{family}-{seed}", model, found))
        progress(f"{family}: {len(candidates)} candidates")
    table = np.array([list(found.values()) for *_, found in candidates])
    logs = np.log1p(table)
    logs = (logs - logs.mean(axis=0)) / np.maximum(logs.std(axis=0), 1e-12)
    names = []
    with _features(tier).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", *candidates[0][2]])
        for at in spread(logs, count):
            name, model, found = candidates[at]
            model.write(folder / f"{name}.mps.gz")
            if tier == "seconds":
                model.write(folder / f"{name}.lp.gz")
                write_cbf(model, folder / f"{name}.cbf")
            writer.writerow([name, *(f"{value:.6g}" for value in found.values())])
            names.append(name)
    progress(f"{len(names)} instances of {len(candidates)} candidates")
    return names


def solve(folder: Path, limit: float) -> None:
    """Solve each by HiGHS and SCIP; keep the optima on which both agree. An interrupted run goes on."""
    path = folder / "known.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for file in sorted(folder.glob("*.mps.gz")):
        name = file.name.removesuffix(".mps.gz")
        if name in known:
            continue
        model = fo.read(file)
        found = {b: model.solve(b, time_limit=limit, threads=1) for b in ("highs", "scip")}
        agree = all(s.status is fo.Status.OPTIMAL for s in found.values())
        values = [s.objective for s in found.values()]
        agree = agree and abs(values[0] - values[1]) <= 1e-6 * max(1.0, abs(values[0]))
        known[name] = {
            "status": "optimal" if agree else "open",
            "objective": values[0] if agree else None,
            **{b: {"status": str(s.status), "seconds": s.parts.get("solver")} for b, s in found.items()},
        }
        path.write_text(json.dumps(known, indent=1))
        progress(name, known[name])
    lines = [f"=opt= {n} {k['objective']!r}" for n, k in known.items() if k["status"] == "optimal"]
    (folder / "known.solu").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--write", choices=TIERS, required=True, metavar="TIER")
    options.add_argument("--count", type=int, default=COUNT)
    options.add_argument("--known", type=float, metavar="SECONDS", help="solve each within so many seconds")
    options.add_argument("--folder", type=Path, default=Path(__file__).with_name("tiers"))
    given = options.parse_args()
    folder = given.folder / given.write
    if not any(folder.glob("*.mps.gz")):
        write(given.write, folder, given.count)
    if given.known:
        solve(folder, given.known)


if __name__ == "__main__":
    main()
