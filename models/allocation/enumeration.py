"""All whole allocations, for checking."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import ROUNDING, Strata, StratifiedAllocation
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["enumerate_allocations"]

MOST = 1_000_000
DECIMALS = 9


@StratifiedAllocation.algorithm("enumeration", exact=True, cites="brute force")
def enumerate_allocations(problem: StratifiedAllocation) -> Outcome:
    """Try all whole sizes; there may be a million."""
    sizes = _all_sizes(problem)
    losses = problem.variable_weights * _variances(problem, sizes)
    if problem.criterion == "weighted":
        return _best(problem, sizes, losses.sum(axis=1))
    largest_first = -np.sort(-losses, axis=1)
    scale = largest_first.max(initial=0.0) or 1.0
    order = np.lexsort((largest_first / scale).round(DECIMALS).T[::-1])
    return _best(problem, sizes, np.argsort(order).astype(float))


@PrivateAllocation.algorithm("enumeration", exact=True, cites="brute force")
def enumerate_private(problem: PrivateAllocation) -> Outcome:
    """Try all whole sizes; there may be a million."""
    sizes = _all_sizes(problem)
    every = np.arange(len(problem.sizes))
    scales = np.array([problem.scales(m, every).max() for m in sizes])
    return _best(problem, sizes, _variances(problem, sizes)[:, 0] + 2 * scales**2)


@PrecisionAllocation.algorithm("enumeration", exact=True, cites="brute force")
def enumerate_precise(problem: PrecisionAllocation) -> Outcome:
    """Try all whole sizes; there may be a million."""
    sizes = _all_sizes(problem)
    precise = (_variances(problem, sizes) <= problem.targets * (1 + 1e-12)).all(axis=1)
    return _best(problem, sizes[precise], sizes[precise] @ problem.unit_costs)


def _all_sizes(problem: Strata) -> Array:
    """All whole sizes within floors, caps and limits, shape ``(n, k)``."""
    if not problem.integer:
        raise DeclarationError("integer is False; enumeration tries whole sizes only")
    count = float(np.prod(problem.sizes - problem.floors + 1.0))
    if count > MOST:
        raise DeclarationError(f"there are {count:.3g} allocations; enumeration tries {MOST:,} at most")
    ranges = [np.arange(a, b + 1) for a, b in zip(problem.floors, problem.sizes, strict=True)]
    sizes = np.stack([g.ravel() for g in np.meshgrid(*ranges, indexing="ij")], axis=1)
    for costs, limit in problem.limits():
        sizes = sizes[sizes @ costs <= limit * (1 + ROUNDING)]
    return sizes


def _variances(problem: Strata, sizes: Array) -> Array:
    return np.asarray((1 / sizes) @ problem.coefficients - problem.constant)


def _best(problem: Strata, sizes: Array, values: Array) -> Outcome:
    if not len(values):
        return Outcome(None, status=Status.INFEASIBLE, message="no whole sizes are within the limits")
    return Outcome(problem.allocation(sizes[int(np.argmin(values))]), iterations=len(values))
