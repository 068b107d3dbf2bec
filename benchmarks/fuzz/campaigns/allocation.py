"""Allocations of a sample to strata, against all allocations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.fuzz.case import ProblemCase
from forcopt.models.allocation import PrecisionAllocation, PrivateAllocation, StratifiedAllocation

Array = np.ndarray
INFINITY = float("inf")


def strata(rng: np.random.Generator) -> tuple[Array, Array, int]:
    """Sizes, deviations (some 0) and the minimum of up to four strata."""
    count = int(rng.integers(1, 5))
    sizes = rng.integers(1, 7, size=count)
    deviations = np.where(rng.random(count) < 0.15, 0.0, np.round(rng.gamma(2.0, 2.0, size=count), 6))
    return sizes, deviations, int(rng.integers(1, 3))


def allocations(sizes: Array, minimum: int) -> Iterator[Array]:
    """All whole sizes between the minimum and the strata's sizes."""
    floors = np.minimum(minimum, sizes)
    for counts in product(*(range(a, b + 1) for a, b in zip(floors, sizes, strict=True))):
        yield np.array(counts)


def variance(sizes: Array, deviations: Array, counts: Array) -> float:
    """Of the estimated mean."""
    return float((sizes**2 * deviations**2 * (1 / counts - 1 / sizes)).sum()) / float(sizes.sum()) ** 2


def stratified(rng: np.random.Generator) -> ProblemCase:
    """Limits at both ends (a census, one unit, fewer than the minimums) are ordinary input."""
    sizes, deviations, minimum = strata(rng)
    given = {"sizes": sizes.tolist(), "deviations": deviations.tolist(), "minimum": minimum}
    most = float(rng.integers(1, sizes.sum() + 2))
    costs = rng.integers(1, 4, size=len(sizes)) if rng.random() < 0.4 else None
    if costs is None:
        problem = StratifiedAllocation(**given, sample_size=int(most))
    else:
        problem = StratifiedAllocation(**given, costs=costs.tolist(), budget=most)
    price = np.ones(len(sizes)) if costs is None else costs
    tried = (variance(sizes, deviations, m) for m in allocations(sizes, minimum) if price @ m <= most)
    best = min(tried, default=INFINITY)
    return ProblemCase(problem, "infeasible" if best == INFINITY else "optimal", best)


def precision(rng: np.random.Generator) -> ProblemCase:
    """The cheapest sizes for a variance; some targets are attained exactly by an allocation."""
    sizes, deviations, minimum = strata(rng)
    tried = list(allocations(sizes, minimum))
    target = variance(sizes, deviations, tried[int(rng.integers(len(tried)))]) * float(rng.choice([1, 1.3]))
    target = target or 0.01
    costs = rng.integers(1, 4, size=len(sizes))
    problem = PrecisionAllocation(
        sizes=sizes.tolist(),
        deviations=deviations.tolist(),
        minimum=minimum,
        targets=target,
        costs=costs.tolist(),
    )
    allowed = [m for m in tried if variance(sizes, deviations, m) <= target * (1 + 1e-9)]
    return ProblemCase(problem, "optimal", min(float(costs @ m) for m in allowed))


def private(rng: np.random.Generator) -> ProblemCase:
    """The least variance with Laplace noise against the substitution of a record."""
    sizes, deviations, minimum = strata(rng)
    epsilon, bound = float(rng.choice([0.1, 0.5, 1.0, 3.0])), float(rng.choice([1.0, 5.0]))
    most = int(rng.integers(1, sizes.sum() + 2))
    problem = PrivateAllocation(
        sizes=sizes.tolist(),
        deviations=deviations.tolist(),
        minimum=minimum,
        sample_size=most,
        epsilon=epsilon,
        value_bound=bound,
    )
    best = INFINITY
    for m in allocations(sizes, minimum):
        if m.sum() <= most:
            amplified = np.log1p(sizes / m * np.expm1(epsilon))
            scale = float((bound * sizes / (sizes.sum() * m * amplified)).max())
            best = min(best, variance(sizes, deviations, m) + 2 * scale**2)
    return ProblemCase(problem, "infeasible" if best == INFINITY else "optimal", best)


CAMPAIGNS = {
    "stratified-allocation": stratified,
    "precision-allocation": precision,
    "private-allocation": private,
}
