"""Allocations of a sample to strata, against all allocations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import forcopt as fo
from benchmarks.fuzz.case import ProblemCase
from forcopt.models.allocation import PrecisionAllocation, PrivateAllocation, StratifiedAllocation

Array = np.ndarray
INFINITY = float("inf")


def strata(rng: np.random.Generator) -> tuple[dict[str, Any], list[Array]]:
    """Up to four strata, some deviations 0, with the least and the largest samples; and all allocations."""
    count = int(rng.integers(1, 5))
    sizes = rng.integers(1, 7, size=count)
    deviations = np.where(rng.random(count) < 0.15, 0.0, np.round(rng.gamma(2.0, 2.0, size=count), 6))
    if rng.random() < 0.2:
        deviations *= float(rng.choice([1e-4, 1e4]))
    minimum = int(rng.integers(1, 3))
    fields = {"sizes": sizes.tolist(), "deviations": deviations.tolist(), "minimum": minimum}
    most = sizes
    if rng.random() < 0.3:
        most = np.minimum(sizes, np.maximum(minimum, rng.integers(1, 7, size=count)))
        fields["maximum"] = np.maximum(most, minimum).tolist()
    return fields, list(allocations(np.minimum(minimum, sizes), most))


def allocations(floors: Array, caps: Array) -> Iterator[Array]:
    """All whole sizes between floors and caps."""
    for counts in product(*(range(a, b + 1) for a, b in zip(floors, caps, strict=True))):
        yield np.array(counts)


def variance(sizes: Array, deviations: Array, counts: Array) -> float:
    """Of the estimated mean."""
    return float((sizes**2 * deviations**2 * (1 / counts - 1 / sizes)).sum()) / float(sizes.sum()) ** 2


def stratified(rng: np.random.Generator) -> ProblemCase:
    """Limits at both ends (a census, one unit, fewer than the minimums) are ordinary input."""
    fields, tried = strata(rng)
    sizes, deviations = np.array(fields["sizes"]), np.array(fields["deviations"])
    most = float(rng.integers(1, sizes.sum() + 2))
    price, unit = np.ones(len(sizes)), 1.0
    if rng.random() < 0.4:
        price, unit = rng.integers(1, 4, size=len(sizes)), float(rng.choice([1.0, 2.0**-12, 2.0**12]))
        problem = StratifiedAllocation(**fields, costs=(price * unit).tolist(), budget=most * unit)
    else:
        problem = StratifiedAllocation(**fields, sample_size=int(most))
    best = min((variance(sizes, deviations, m) for m in tried if price @ m <= most), default=INFINITY)
    return of_variance(problem, best, tried)


def of_variance(problem: fo.Problem, best: float, tried: list[Array]) -> ProblemCase:
    """The least variance, in units of that of the smallest samples."""
    most = problem.evaluate(tried[0]).objective
    return ProblemCase(problem, "infeasible" if best == INFINITY else "optimal", best, unit=most or 1.0)


def precision(rng: np.random.Generator) -> ProblemCase:
    """The cheapest sizes for a variance; some targets are attained exactly by an allocation, some by none."""
    fields, tried = strata(rng)
    sizes, deviations = np.array(fields["sizes"]), np.array(fields["deviations"])
    at = tried[-1 if rng.random() < 0.1 else int(rng.integers(len(tried)))]
    target = variance(sizes, deviations, at) * float(rng.choice([1.0, 1.0, 1.3, 0.7])) or 0.01
    costs = rng.integers(1, 4, size=len(sizes))
    if rng.random() < 0.3:
        costs[:] = 1
    problem = PrecisionAllocation(**fields, targets=target, costs=costs.tolist())
    allowed = [m for m in tried if variance(sizes, deviations, m) <= target * (1 + 1e-9)]
    best = min((float(costs @ m) for m in allowed), default=INFINITY)
    return ProblemCase(problem, "infeasible" if best == INFINITY else "optimal", best)


def private(rng: np.random.Generator) -> ProblemCase:
    """The least variance with Laplace noise against the substitution of a record."""
    fields, tried = strata(rng)
    sizes, deviations = np.array(fields["sizes"]), np.array(fields["deviations"])
    epsilon, bound = float(rng.choice([0.1, 0.5, 1.0, 3.0])), float(rng.choice([1.0, 5.0]))
    most = int(rng.integers(1, sizes.sum() + 2))
    problem = PrivateAllocation(**fields, sample_size=most, epsilon=epsilon, value_bound=bound)
    best = INFINITY
    for m in tried:
        if m.sum() <= most:
            amplified = np.log1p(sizes / m * np.expm1(epsilon))
            scale = float((bound * sizes / (sizes.sum() * m * amplified)).max())
            best = min(best, variance(sizes, deviations, m) + 2 * scale**2)
    return of_variance(problem, best, tried)


def several(rng: np.random.Generator) -> ProblemCase:
    """Several variables under a size and a budget; the largest variance first, or the weighted sum."""
    count, variables = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    sizes = rng.integers(1, 6, size=count)
    deviations = np.round(rng.gamma(2.0, 2.0, size=(count, variables)), 3)
    deviations[rng.random(deviations.shape) < 0.2] = 0.0
    weights, costs = rng.choice([0.5, 1.0, 2.0], size=variables), rng.integers(1, 4, size=count)
    most, budget = int(rng.integers(count, sizes.sum() + 2)), float(rng.integers(count, 3 * sizes.sum() + 1))
    leximax = bool(rng.random() < 0.5)
    problem = StratifiedAllocation(
        sizes=sizes.tolist(),
        deviations=deviations.tolist(),
        sample_size=most,
        costs=costs.tolist(),
        budget=budget,
        weights=weights.tolist(),
        criterion="leximax" if leximax else "weighted",
    )
    tried = []
    for m in allocations(np.ones_like(sizes), sizes):
        if m.sum() <= most and costs @ m <= budget:
            each = [w * variance(sizes, s, m) for w, s in zip(weights, deviations.T, strict=True)]
            tried.append(tuple(sorted(each, reverse=True)) if leximax else (sum(each),))
    if not tried:
        return ProblemCase(problem, "infeasible")
    best = min(tried)

    def check(s: fo.Solution) -> str:
        found = np.sort(weights * np.asarray(s.decision.variances))[::-1] if leximax else np.zeros(0)
        late = [i for i in range(len(found)) if abs(found[i] - best[i]) > 1e-5 * max(1e-3, best[0])]
        return "" if not late or found[late[0]] < best[late[0]] else f"variances {found}, not {best}"

    return ProblemCase(problem, "optimal", best[0], check=check)


def precise(rng: np.random.Generator) -> ProblemCase:
    """Several targets."""
    count, variables = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    sizes = rng.integers(1, 7, size=count)
    deviations = np.round(rng.gamma(2.0, 2.0, size=(count, variables)), 3)
    deviations[rng.random(deviations.shape) < 0.15] = 0.0
    scale = float(rng.choice([1.0, 1.0, 1e-3, 1e3]))
    deviations *= scale
    tried = list(allocations(np.ones_like(sizes), sizes))
    at = tried[int(rng.integers(len(tried)))]
    targets = [variance(sizes, s, at) * float(rng.choice([1, 1.3])) or 0.01 for s in deviations.T]
    costs = rng.integers(1, 4, size=count)
    problem = PrecisionAllocation(
        sizes=sizes.tolist(), deviations=deviations.tolist(), targets=targets, costs=costs.tolist()
    )
    meets = [
        m
        for m in tried
        if all(variance(sizes, s, m) <= t * (1 + 1e-9) for s, t in zip(deviations.T, targets, strict=True))
    ]
    return ProblemCase(problem, "optimal", min(float(costs @ m) for m in meets))


CAMPAIGNS = {
    "stratified-allocation": stratified,
    "several-variables": several,
    "precision-allocation": precision,
    "several-precisions": precise,
    "private-allocation": private,
}
