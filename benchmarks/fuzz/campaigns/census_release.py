"""Releases against all active sets or all whole points; districts, budgets and regressions likewise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog, lsq_linear

from benchmarks.fuzz.case import ProblemCase
from forcopt import Solution
from forcopt.data import Hierarchy
from forcopt.models.census_release import (
    ConsistentRelease,
    EcologicalRegression,
    Invariant,
    LevelBudget,
    Measurement,
    StableDistrict,
)

Random = np.random.Generator
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A matrix over leaves and types, noisy counts, precision."""


def tree(rng: Random, leaves: int) -> tuple[Hierarchy, list[np.ndarray]]:
    """A random tree of one to four levels, and by level the 0/1 matrix from leaves to units."""
    depth = int(rng.integers(1, 5)) if leaves > 1 else int(rng.integers(1, 3))
    sizes = [leaves if depth > 1 else 1]
    for _ in range(depth - 2):
        sizes.append(int(rng.integers(1, sizes[-1] + 1)))
    sizes = [*sizes[: depth - 1], 1][::-1]
    parents = [
        rng.permutation(np.concatenate([np.arange(a), rng.integers(0, a, b - a)])) for a, b in pairwise(sizes)
    ]
    at, found = np.arange(sizes[-1]), [np.eye(sizes[-1])]
    for level in range(depth - 2, -1, -1):
        at = parents[level][at]
        found.append((at == np.arange(sizes[level])[:, None]).astype(float))
    return Hierarchy(parents=tuple(parents)), found[::-1]


@dataclass
class Least:
    """Least squares over ``equal x = value``, in stages."""

    stages: list[Rows]
    equal: np.ndarray
    value: np.ndarray
    nonnegative: bool

    def real(self) -> float | None:
        """The sum of the stages' optima by trying all active sets; None if infeasible or too ill for that."""
        equal, value, total = self.equal, self.value, 0.0
        for a, y, w in self.stages:
            best, at = np.inf, np.zeros(0)
            for active in product((False, True), repeat=a.shape[1]) if self.nonnegative else [()]:
                kept = ~np.array(active, dtype=bool) if active else np.ones(a.shape[1], dtype=bool)
                x = np.zeros(a.shape[1])
                found = _on_face(a[:, kept], y, w, equal[:, kept], value)
                if found is None or (self.nonnegative and found.min(initial=0.0) < -1e-8):
                    continue
                x[kept] = found
                cost = float(w @ (a @ x - y) ** 2)
                if cost < best:
                    best, at = cost, x
            if not np.isfinite(best):
                return None
            total += best
            equal, value = np.vstack([equal, a]), np.concatenate([value, a @ at])
        return total

    def whole(self, low: int, high: int) -> float | None:
        """The sum of the stages' optima over all whole points of a box; None if one lies at an edge."""
        n = self.equal.shape[1]
        x = np.array(list(product(range(low, high + 1), repeat=n)), dtype=float)
        x = x[(x @ self.equal.T == self.value).all(axis=1)]
        total = 0.0
        for a, y, w in self.stages:
            if not len(x):
                return None
            cost = ((x @ a.T - y) ** 2) @ w
            x, total = x[cost == cost.min()], total + float(cost.min())
        at_edge = (x == high).any() or (not self.nonnegative and (x == low).any())
        return None if at_edge else total

    def feasible(self) -> bool:
        """Whether the equations have a real solution of the right signs."""
        bounds = (0.0 if self.nonnegative else None, None)
        found = linprog(np.zeros(self.equal.shape[1]), A_eq=self.equal, b_eq=self.value, bounds=bounds)
        return bool(found.status != 2)


def _on_face(
    a: np.ndarray, y: np.ndarray, w: np.ndarray, equal: np.ndarray, value: np.ndarray
) -> np.ndarray | None:
    if not a.shape[1]:
        return np.zeros(0) if np.abs(value).max(initial=0.0) < 1e-9 else None
    start, free = np.zeros(a.shape[1]), np.eye(a.shape[1])
    if len(equal):
        start = np.linalg.lstsq(equal, value, rcond=1e-11)[0]
        if np.abs(equal @ start - value).max() > 1e-9:
            return None
        free = null_space(equal, rcond=1e-10)
    if not free.shape[1]:
        return start
    root, moves = np.sqrt(w), a @ free
    moves[np.abs(moves) < 1e-12] = 0.0
    return start + free @ np.linalg.lstsq(root[:, None] * moves, root * (y - a @ start), rcond=1e-11)[0]


def consistent_release(rng: Random, spread: int = 4) -> ProblemCase:
    """Up to six counts: real or whole, any order, signs, workload, invariants, zeros and regions besides."""
    integer, nonnegative = bool(rng.random() < 0.5), bool(rng.random() < 0.7)
    types = int(rng.choice([1, 1, 2, 3]))
    most = (5 if nonnegative else 4) if integer else 6
    h, levels = tree(rng, int(rng.integers(1, max(most // types, 1) + 1)))
    queries, workload = np.eye(types, dtype=int), None
    if types > 1 and rng.random() < 0.4:
        rows = rng.permutation(np.array(list(product((0, 1), repeat=types))[1:]))[: int(rng.integers(1, 4))]
        missing = (rows.sum(axis=0) == 0).astype(int)
        queries = workload = np.unique(np.vstack([rows, missing]) if missing.any() else rows, axis=0)
    count = len(queries)
    noise = [
        np.round(rng.normal(2.5, 3.0, (len(level), count)) * 8) / 8
        if rng.random() < 0.7
        else rng.integers(-3, 5, (len(level), count)).astype(float)
        for level in levels
    ]
    precision = 2.0 ** rng.integers(1 - spread, spread, (h.depth, count))
    zeros = np.flatnonzero(rng.random(h.leaves) < (0.3 if rng.random() < 0.2 else 0.0))
    extra = []
    if rng.random() < 0.2:
        leaves = np.flatnonzero(rng.random(h.leaves) < 0.6)
        extra.append(
            Measurement(leaves, rng.integers(-2, 9, count).astype(float), 2.0 ** rng.integers(-2, 3))
        )
    truth = rng.integers(0, 4, (h.leaves, types))
    if rng.random() < 0.7:
        truth[zeros] = 0
    invariants, equal, value = [], [], []
    for _ in range(int(rng.integers(1, 4)) if rng.random() < 0.4 else 0):
        level = int(rng.integers(h.depth))
        unit = int(rng.integers(h.sizes[level]))
        chosen = np.flatnonzero(rng.random(types) < 0.6)
        of = np.isin(np.arange(types), chosen) if len(chosen) else np.ones(types, dtype=bool)
        amount = float((levels[level][unit] @ truth)[of].sum()) + float(rng.random() < 0.1)
        invariants.append(Invariant(level, unit, amount, tuple(int(t) for t in chosen)))
        equal.append(np.kron(levels[level][unit], of.astype(float)))
        value.append(amount)
    for leaf in zeros:
        for t in range(types):
            row = np.zeros(h.leaves * types)
            row[leaf * types + t] = 1.0
            equal.append(row)
            value.append(0.0)
    stages: list[Rows] = [
        (np.kron(a, queries), y.ravel(), np.tile(w, len(a)))
        for a, y, w in zip(levels, noise, precision, strict=True)
    ]
    for item in extra:
        row = np.isin(np.arange(h.leaves), item.leaves).astype(float)[None]
        more = (np.kron(row, queries), item.noisy, np.full(count, float(item.precision)))
        stages[-1] = tuple(np.concatenate(pair) for pair in zip(stages[-1], more, strict=True))
    order = str(rng.choice(["joint", "top-down"]))
    if order == "joint":
        stages = [tuple(np.concatenate(parts) for parts in zip(*stages, strict=True))]
    problem = ConsistentRelease(
        h,
        tuple(noise),
        precision,
        order=order,
        nonnegative=nonnegative,
        integer=integer,
        workload=workload,
        invariants=tuple(invariants),
        zeros=zeros,
        extra=tuple(extra),
    )
    wide = h.leaves * types
    oracle = Least(stages, np.array(equal).reshape(-1, wide), np.array(value), nonnegative)
    if not oracle.feasible():
        return ProblemCase(problem, "infeasible")
    best = oracle.whole(0 if nonnegative else -7, 8 if wide > 4 else 10) if integer else oracle.real()
    # A level's counts are as precise as the square root of a solver's tolerance where a bound just touches.
    tolerance = 1e-3 if order == "top-down" and not integer else 1e-5
    if best is None:
        return ProblemCase(problem, "unknown")
    least = float(precision.min())

    def check(s: Solution) -> str:
        # All squares are exact in floats: see the least level's squares beside those that weigh 1e9 as much.
        off = abs(s.objective - best)
        return f"off by {off:g}" if s.method in UNIT_STEPS and off > 1e-3 * least else ""

    # Top-down is lexicographic: a decision that is worse at the root may have a smaller sum.
    return ProblemCase(
        problem,
        "optimal",
        best,
        tolerance=tolerance,
        unit=min(1.0, least if integer else float(np.median(precision))),
        ordered=order == "top-down",
        check=check,
    )


def release_ratios(rng: Random) -> ProblemCase:
    """As `consistent_release`, with precisions in ratios of 1e-9 to 1e9."""
    return consistent_release(rng, 16)


UNIT_STEPS = ("network-lp", "tree-integer")
"""Methods for whole counts that compare single steps."""


def _effects(h: Hierarchy, member: np.ndarray) -> np.ndarray:
    """The factors of the levels' variances in that of a district: weights minus the parents' weights."""
    weight, found = member.astype(float), []
    for parent, above in zip(h.parents[::-1], h.sizes[-2::-1], strict=True):
        mean = np.array([weight[parent == unit].mean() for unit in range(above)])
        found.append(float(((weight - mean[parent]) ** 2).sum()))
        weight = mean
    return np.array([float(weight[0] ** 2), *found[::-1]])


def stable_district(rng: Random) -> ProblemCase:
    """Districts of up to nine leaves, against all subsets."""
    h, _ = tree(rng, int(rng.integers(1, 10)))
    if rng.random() < 0.5:
        h = Hierarchy.homogeneous([int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3)))])
    epsilon, people = 10.0 ** rng.uniform(-1, 1, h.depth), rng.integers(0, 20, h.leaves)
    h = h.replace(counts=people[:, None])
    sets = np.array(list(product((0, 1), repeat=h.leaves)))
    if rng.random() < 0.5:
        size = int(rng.integers(1, h.leaves + 1))
        problem, allowed = StableDistrict(h, epsilon, size=size), sets.sum(axis=1) == size
    else:
        low = int(rng.integers(0, people.sum() + 3))
        high = low + int(rng.integers(0, 10))
        problem = StableDistrict(h, epsilon, bounds=(low, high))
        allowed = (sets @ people >= low) & (sets @ people <= high)
    if not allowed.any():
        return ProblemCase(problem, "infeasible")
    best = min(float(_effects(h, member) @ (8 / epsilon**2)) for member in sets[allowed])
    return ProblemCase(problem, "optimal", best)


def level_budget(rng: Random) -> ProblemCase:
    """The mean over regions in top-down order, whose optimum has a closed form."""
    h, _ = tree(rng, int(rng.integers(1, 9)))
    members = rng.random((int(rng.integers(1, 6)), h.leaves)) < 0.5
    members[~members.any(axis=1), 0] = True
    effects = np.mean([_effects(h, member) for member in members], axis=0)
    regions, total = tuple(np.flatnonzero(m) for m in members), float(10 ** rng.uniform(-1, 1))
    if rng.random() < 0.5:
        best = float(8 * (effects ** (1 / 3)).sum() ** 3 / total**2)
        return ProblemCase(LevelBudget(h, regions, epsilon=total), "optimal", best)
    best = float((effects**0.5).sum() ** 2 / total)
    return ProblemCase(LevelBudget(h, regions, rho=total), "optimal", best)


def ecological_regression(rng: Random) -> ProblemCase:
    """A few units, many alike, with rates bounded or not."""
    n = int(rng.integers(2, 8))
    share = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 3, n) / 2
    share[:2] = 0.0, 1.0
    support, votes = rng.random(n), rng.choice([0.0, 1.0, 10.0, 11.0, 50.0, 1000.0], n)
    votes[:2] = 20.0, 30.0
    weighting, missing = rng.choice(["all", "filtered", "weighted"]), rng.choice(["zero", "drop"])
    bounded = bool(rng.random() < 0.5)
    problem = EcologicalRegression(
        share, support, votes, weighting=str(weighting), missing=str(missing), bounded=bounded
    )
    weight = {"all": np.ones(n), "filtered": (votes > 10) * 1.0, "weighted": votes}[str(weighting)]
    weight = weight * (votes > 0) if missing == "drop" else weight
    root, seen = np.sqrt(weight), np.where(votes > 0, support, 0.0)
    a = np.stack([share, 1 - share], axis=1)
    limits = (0.0, 1.0) if bounded else (-np.inf, np.inf)
    rates = lsq_linear(root[:, None] * a, root * seen, limits, tol=1e-14).x
    best = float(weight @ (a @ rates - seen) ** 2)
    return ProblemCase(problem, "optimal", best, tolerance=1e-4)  # that of SCIP is relative to all squares


CAMPAIGNS = {
    "consistent-release": consistent_release,
    "release-ratios": release_ratios,
    "stable-district": stable_district,
    "level-budget": level_budget,
    "ecological-regression": ecological_regression,
}
