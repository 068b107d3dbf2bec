"""Three tiers of instances from the library's families, 60 each: seconds, minutes and an hour for a solver.

    python benchmarks/instances/tiers.py --write seconds [--known 20]

Writes the MPS files of a tier (LP and CBF, too, for seconds) to benchmarks/instances/tiers/NAME, which git
does not keep: each is drawn with its seed. A fifth of a tier has cones of second order and of the exponential
and is in CBF files alone. ``features-NAME.csv`` has rows, columns, entries, density, share of integers, of
equal columns (symmetry) and of equal right-hand sides (degeneracy), and the number of cones. With --known
each is solved by HiGHS and SCIP, or Clarabel and SCS, and by the problem's own exact method within so many
seconds each; ``known-NAME.csv`` has optimum, bound and proof, ``known-NAME.solu`` the optima that two of them
prove, or that the problem's own method proves and no solver contradicts, and ``discrimination-NAME.csv`` the
share of instances that separates two solvers. A second call goes on after a kill, and repeats what is open
only for a longer time.

Candidates are drawn for each family and seed. Models with equal numbers are duplicates, and a model that
HiGHS's presolve empties is trivial: both are left out. Of what is left the 48 without and the 12 with cones
that are farthest apart in the logarithms of the features are chosen (Gonzalez's greedy k-center), so that no
family of one size fills the tier; MIPLIB 2017 was selected for diversity in the same spirit. How long each
takes is not known before it is run: the sizes of the tiers minutes and hour are extrapolated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from shutil import copy
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import highspy
import numpy as np
import scipy.sparse as sp

import forcopt as fo
from benchmarks.cbf import TAKES, write_cbf
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


def _reciprocals(problem: Any) -> tuple[fo.Model, float]:
    """Sizes of samples, whole or real, with a cone of second order a stratum; and the unit of the objective.

    The variance of an estimate is a sum of reciprocals of the sizes, less a constant.
    """
    low, high, gains = (np.asarray(v, float) for v in (problem.floors, problem.caps, problem.gains))
    unit = float(np.median(gains / high))
    m = fo.Model("allocation")
    size = m.variable("size", len(low), lower=low, upper=high, integer=problem.integer)
    for name, (costs, limit) in problem.named_limits.items():
        m.subject_to(costs @ size <= limit, name=name)
    constant = float(problem.variances(high) @ problem.variable_weights) - (gains / high).sum()
    m.minimize((gains / unit * fo.inverse(size)).sum() + constant / unit)
    return m, unit


def _grown(size: int, seed: int) -> int:
    """From half the size to twice, by seed: models with cones shall differ in size, too."""
    return max(2, round(size * 2.0 ** ((seed - 3) / 3)))


OPTIONS = {"allocation": {"reduce": False}}
"""Options of the formulations."""

FAMILIES: dict[str, tuple[Make, str | Callable[..., Any], tuple[tuple[Any, ...], ...]]] = {
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
    "strategic-classifier": (_classifier, "margin-milp", ((160, 5), (200, 6), (400, 6))),
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
        ((40, 5, 3), (200, 7, 3), (400, 7, 3)),
    ),
    "census": (
        lambda sizes, seed: random_release(sizes, seed=seed, integer=True, order="joint"),
        "network-lp",
        (((1, 15, 80, 300, 2000),), ((1, 100, 600, 4000, 80000),), ((1, 200, 1500, 12000, 250000),)),
    ),
    "ranking": (
        lambda n, k, seed: random_ranking(n, k, (2, 2, 3), seed=seed, constraint=_THREE, integer=True),
        "prefix-counts",
        ((100, 20), (1000, 80), (4000, 300)),
    ),
    "postprocessing": (
        lambda groups, seed: drawn_table(groups, EqualizedOdds(0.05), seed),
        "lp",
        ((3000,), (20000,), (100000,)),
    ),
    "cohort-panel": (
        lambda n, k, seed: random_panel(n, k, features=2, seed=seed, objective="maximin"),
        "convex-program",
        ((1000, 80), (12000, 600), (40000, 2000)),
    ),
    "allocation": (
        _paid,
        "milp",
        ((200,), (1000,), (5000,)),
    ),
    "allocation-cones": (
        lambda strata, seed: _paid(_grown(strata, seed), seed),
        _reciprocals,
        ((24,), (120,), (600,)),
    ),
    "allocation-real": (
        lambda strata, seed: random_strata(_grown(strata, seed), largest=300, seed=seed, integer=False),
        _reciprocals,
        ((20,), (400,), (6000,)),
    ),
    "cohort-nash": (
        lambda n, m, seed: random_cohort(
            _grown(n, seed), _grown(m, seed), _grown(n, seed) // 5, grid=20, seed=seed, objective="nash"
        ),
        "convex-program",
        ((200, 30), (1500, 120), (12000, 800)),
    ),
    "census-squares": (
        lambda sizes, seed: random_release((1, *(_grown(n, seed) for n in sizes)), seed=seed, order="joint"),
        "qp",
        (((8, 40, 150),), ((30, 200, 1000),), ((100, 600, 4000, 40000),)),
    ),
}
"""For each family its maker, its formulation and the sizes of the three tiers."""

CONIC = ("allocation-cones", "allocation-real", "cohort-nash", "census-squares")
"""The families with cones, a fifth of each tier."""


def model_of(family: str, tier: str, seed: int) -> tuple[Any, fo.Model, float]:
    """A problem, its model, and the unit of the model's objective in the problem's."""
    make, method, sizes = FAMILIES[family]
    problem = make(*sizes[TIERS[tier]], seed=seed)
    if callable(method):
        return problem, *method(problem)
    options = OPTIONS.get(family, {})
    return problem, problem.to_model(method, **options), problem.formulate(method, **options)[1].unit


ROWS = Capabilities(frozenset({"rows", "integer", "quadratic"}))


def features(model: fo.Model, conic: bool = False) -> tuple[dict[str, float], str, bool]:
    """The features of a model, a digest of its numbers, and whether presolve leaves nothing of it.

    With cones, their rows count in entries, density and symmetry, and no presolve takes the model.
    """
    program = compile_model(model, TAKES if conic else ROWS, "a file")
    rows, n = program.rows, program.columns
    matrix = sp.csc_array(sp.vstack([rows.matrix(n), *(cone.matrix for cone in program.cones)]))
    columns = [
        hashlib.sha256(matrix.indices[a:b].tobytes() + matrix.data[a:b].tobytes()).hexdigest()
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]
    shapes = [matrix.data[a:b].tobytes() for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
    numbers = [program.stages[0].cost, *(cone.offset for cone in program.cones)]
    digest = hashlib.sha256("".join(columns).encode() + b"".join(v.tobytes() for v in numbers)).hexdigest()
    emptied = False
    if not conic:
        highs = highs_of(program)
        highs.setOptionValue("output_flag", False)
        highs.presolve()
        emptied = highs.getModelPresolveStatus() == highspy.HighsPresolveStatus.kReducedToEmpty
    sides = np.concatenate([rows.lower[np.isfinite(rows.lower)], rows.upper[np.isfinite(rows.upper)]])
    return (
        {
            "rows": rows.count,
            "columns": n,
            "entries": matrix.nnz,
            "density": matrix.nnz / max(1, matrix.shape[0] * n),
            "integers": float((program.integer == 1).mean()),
            "symmetry": 1.0 - len(set(shapes)) / n,
            "degeneracy": 1.0 - len(np.unique(sides)) / max(1, sides.size),
            "cones": sum(len(cone.offset) // cone.size for cone in program.cones),
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


FEATURES = ("rows", "columns", "entries", "density", "integers", "symmetry", "degeneracy", "cones")

TIER_FILES = Path(__file__).with_name("tiers")


def _committed(kind: str, tier: str) -> Path:
    """The committed copy of a table of a tier."""
    name, _, ending = kind.partition(".")
    return Path(__file__).with_name(f"{name}-{tier}.{ending}")


def write(tier: str, folder: Path, count: int = COUNT) -> list[str]:
    """Draw, select and write a tier; gives the names."""
    folder.mkdir(parents=True, exist_ok=True)
    conic = count // 5
    lines = [f"name,{','.join(FEATURES)}"]
    for families, share in ((set(FAMILIES) - set(CONIC), count - conic), (set(CONIC), conic)):
        lines += _write_part(tier, folder, [name for name in FAMILIES if name in families], share)
    _keep(folder / "features.csv", "\n".join(lines) + "\n")  # last: it tells that the tier is whole
    progress(f"{len(lines) - 1} instances")
    return [line.partition(",")[0] for line in lines[1:]]


def _write_part(tier: str, folder: Path, families: Iterable[str], count: int) -> list[str]:
    """The files of families with or without cones; gives their lines of features."""
    seen: set[str] = set()
    candidates: list[tuple[str, fo.Model, dict[str, float]]] = []
    for family in families:
        conic = family in CONIC
        for seed in range(SEEDS):
            model = model_of(family, tier, seed)[1]
            found, digest, trivial = features(model, conic)
            if trivial or digest in seen:
                progress(f"{family}-{seed}: {'trivial' if trivial else 'a duplicate'}")
                continue
            seen.add(digest)
            candidates.append((f"{family}-{seed}", model, found))
        progress(f"{family}: {len(candidates)} candidates")
    lines = []
    table = [[f"{value:.6g}" for value in found.values()] for *_, found in candidates]  # as it is kept
    for at in spread(scaled(table), count):
        name, model, _ = candidates[at]
        conic = name.rpartition("-")[0] in CONIC
        if not conic:
            model.write(folder / f"{name}.mps.gz")
        if tier == "seconds" and not conic:
            model.write(folder / f"{name}.lp.gz")
        if tier == "seconds" or conic:
            write_cbf(model, folder / f"{name}.cbf")
        lines.append(",".join([name, *table[at]]))
    return lines


def scaled(table: Any) -> np.ndarray[Any, Any]:
    """The logarithms of features, each with mean 0 and deviation 1."""
    logs = np.log1p(np.asarray(table, float))
    return np.asarray((logs - logs.mean(axis=0)) / np.maximum(logs.std(axis=0), 1e-12))


OWN = {
    "districting": "column-generation",
    "cohort-panel": "column-generation",
    "ranking": "dynamic-programme",
    "allocation": "greedy",
    "census": "tree-integer",
    "allocation-cones": "milp",
    "allocation-real": "neyman",
    "cohort-nash": "column-generation",
    "census-squares": "tree-nnls",
}
"""The problems' own exact methods, which prove optima by other means than solvers."""

SOLVERS = ("highs", "scip")
CONIC_SOLVERS = ("clarabel", "scs")
INEXACT = "scs"
"""A first-order method: what it claims holds to about 1e-4, which settles no optimum here."""


def solvers_of(family: str) -> tuple[str, ...]:
    """Those that can take a family."""
    return CONIC_SOLVERS if family in CONIC and family != "allocation-cones" else SOLVERS


def solve(tier: str, folder: Path, limit: float) -> None:
    """Solve each by HiGHS, SCIP and the problem's own exact method. An interrupted run goes on after a kill.

    ``known.json`` keeps each run as it ends; ``known.solu`` has the optima that are known, ``known.csv`` all
    instances with their proofs.
    """
    path = folder / "known.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    files = {file.name.partition(".")[0]: file for file in [*folder.glob("*.cbf"), *folder.glob("*.mps.gz")]}
    for name, file in sorted(files.items()):
        runs = known.setdefault(name, {}).setdefault("runs", {})
        family, _, seed = name.rpartition("-")
        for way in (*solvers_of(family), OWN.get(family)):
            if way is None or (way in runs and (runs[way]["proved"] or runs[way]["limit"] >= limit)):
                continue
            try:
                runs[way] = _attempt(file, way, tier, int(seed), limit)
            except fo.ForcoptError as error:  # one that cannot take this instance ends no run overnight
                progress(f"{name}: {way}: {error}")
                runs[way] = _NONE | {"limit": limit, "message": str(error)}
            maximize = next((run["maximize"] for run in runs.values() if run["maximize"] is not None), False)
            known[name] |= _judged(runs, maximize)
            _keep(path, json.dumps(known, indent=1))
        progress(name, known[name]["status"], known[name]["proof"])
    lines = [f"=opt= {n} {k['objective']!r}" for n, k in known.items() if k["status"] == "optimal"]
    _keep(folder / "known.solu", "".join(f"{line}\n" for line in lines))
    rows = [(n, k["status"], k["objective"], k["bound"], k["proof"]) for n, k in known.items()]
    table = [("name", "status", "objective", "bound", "proof"), *rows]
    text = "\n".join(
        ",".join("" if v is None else f'"{v}"' if "," in str(v) else str(v) for v in r) for r in table
    )
    _keep(folder / "known.csv", text + "\n")
    pairs = [f"{a},{b},{tried},{apart},{apart / tried:.2f}" for a, b, tried, apart in discrimination(known)]
    _keep(folder / "discrimination.csv", "\n".join(["solver,other,instances,separated,share", *pairs]) + "\n")


_NONE = {
    "objective": None,
    "bound": None,
    "status": "failed",
    "proved": False,
    "maximize": None,
    "seconds": 0.0,
}

FACTOR, LEAST_SECONDS = 2.0, 0.1
"""Two solvers that prove an optimum are separated by such a factor, and by so many seconds at least."""


def discrimination(known: dict[str, Any]) -> list[tuple[str, str, int, int]]:
    """For each pair of solvers how many instances both tried, and how many of these separate them.

    One of the two proves an optimum and the other does not, or their seconds differ by `FACTOR`.
    """
    found = []
    for a, b in combinations(dict.fromkeys([*SOLVERS, *CONIC_SOLVERS]), 2):
        pairs = [(k["runs"][a], k["runs"][b]) for k in known.values() if a in k["runs"] and b in k["runs"]]
        apart = 0
        for first, second in pairs:
            low, high = sorted((first["seconds"], second["seconds"]))
            slower = high > FACTOR * low and high - low > LEAST_SECONDS
            apart += first["proved"] != second["proved"] or (first["proved"] and slower)
        if pairs:
            found.append((a, b, len(pairs), apart))
    return found


def _keep(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(path)


def _attempt(file: Path, way: str, tier: str, seed: int, limit: float) -> dict[str, Any]:
    """What a solver finds in the file, or the problem's own method in the problem, in the file's units."""
    began = time.perf_counter()
    if way in SOLVERS + CONIC_SOLVERS:
        model = fo.read(file)
        s: Any = model.solve(way, time_limit=limit, threads=1)
        assert model.objective is not None
        maximize, unit, exact = model.objective.stages[0].maximize, 1.0, True
    else:
        problem, _, unit = model_of(file.name.partition(".")[0].rpartition("-")[0], tier, seed)
        own = problem.method(way)
        limited = {"time_limit": limit} if "time_limit" in own.common else {}
        s, maximize, exact = problem.solve(way, **limited), problem.sense == "max", own.exact
    told = s.status is not fo.Status.FAILED  # what is left of a failed run is no answer
    numbers = {"objective": float(s.objective) / unit, "bound": float(s.bound) / unit} if told else {}
    return {
        **dict.fromkeys(("objective", "bound")),
        **{key: value for key, value in numbers.items() if math.isfinite(value)},
        "status": str(s.status),
        "proved": bool(s.status is fo.Status.OPTIMAL and exact),
        "maximize": maximize,
        "seconds": round(time.perf_counter() - began, 3),
        "limit": limit,
    }


def _judged(runs: dict[str, Any], maximize: bool) -> dict[str, Any]:
    """What the runs of an instance prove together.

    An optimum is known if two of them prove the same, or if the problem's own method proves it and no solver
    contradicts it. Words for a contradiction stand in ``proof``.
    """
    sign = -1.0 if maximize else 1.0
    runs = {way: run for way, run in runs.items() if way != INEXACT}
    points = [sign * r["objective"] for r in runs.values() if r["objective"] is not None]
    bounds = [sign * r["bound"] for r in runs.values() if r["bound"] is not None]
    best, bound = min(points, default=None), max(bounds, default=None)
    room = 1e-6 * max(1.0, abs(best or 0.0))
    found = {
        "status": "open",
        "objective": None if best is None else sign * best,
        "bound": None if bound is None else sign * bound,
        "proof": "",
    }
    proofs = {way: sign * r["objective"] for way, r in runs.items() if r["proved"]}
    if best is not None and bound is not None and bound > best + room:
        return found | {"status": "contradiction", "proof": f"contradiction of {', '.join(runs)}"}
    meet = [way for way, value in proofs.items() if best is not None and abs(value - best) <= room]
    own = [way for way in meet if way not in SOLVERS + CONIC_SOLVERS]
    if len(meet) > 1:
        return found | {"status": "optimal", "proof": f"agreed: {', '.join(meet)}"}
    if own:
        return found | {"status": "optimal", "proof": f"proved by {own[0]}; no solver contradicts it"}
    return found | {"proof": f"claimed by {meet[0]} alone" if meet else ""}


def main() -> None:
    """Command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--write", choices=TIERS, required=True, metavar="TIER")
    options.add_argument("--count", type=int, default=COUNT)
    options.add_argument("--known", type=float, metavar="SECONDS", help="solve each within so many seconds")
    options.add_argument("--folder", type=Path, default=TIER_FILES)
    given = options.parse_args()
    folder = given.folder / given.write
    if not (folder / "features.csv").exists():
        write(given.write, folder, given.count)
    if given.known:
        solve(given.write, folder, given.known)
    for kind in (
        ("features.csv", "known.csv", "known.solu", "discrimination.csv")
        if given.folder == TIER_FILES
        else ()
    ):
        if (folder / kind).exists():
            copy(folder / kind, _committed(kind, given.write))


if __name__ == "__main__":
    main()
