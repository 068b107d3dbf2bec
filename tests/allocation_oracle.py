"""Brute force for the tests of allocation, as the method ``enumeration`` of its problems."""

from collections.abc import Callable, Iterator

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import Strata, StratifiedAllocation
from forcopt.models.allocation.tolerances import ROUNDING
from forcopt.problem import Outcome
from forcopt.status import Status

MOST = 1_000_000
DECIMALS = 9
_BATCH = 100_000


@StratifiedAllocation.algorithm("enumeration", exact=True, cites="brute force", rank="oracle")
def enumerate_allocations(problem: StratifiedAllocation, *, time_limit: float | None = None) -> Outcome:
    """Try all whole sizes, at most a million.

    Parameters
    ----------
    problem : StratifiedAllocation
        With whole sizes.

    Returns
    -------
    Outcome
        INFEASIBLE with the reason if no sizes are within the limits; FEASIBLE after the time limit.
    """
    if problem.criterion == "weighted":
        return _best(problem, lambda m: _variances(problem, m) @ problem.variable_weights, time_limit)
    scale = float((_variances(problem, problem.floors[None]) * problem.variable_weights).max()) or 1.0

    def sorted_losses(sizes: Array) -> Array:
        losses = _variances(problem, sizes) * problem.variable_weights / scale
        return np.asarray(-np.sort(-losses, axis=1).round(DECIMALS))

    return _best(problem, sorted_losses, time_limit)


@PrivateAllocation.algorithm("enumeration", exact=True, cites="brute force", rank="oracle")
def enumerate_private(problem: PrivateAllocation, *, time_limit: float | None = None) -> Outcome:
    """Try all whole sizes, at most a million; see `enumerate_allocations`."""

    def losses(sizes: Array) -> Array:
        return np.asarray(_variances(problem, sizes)[:, 0] + 2 * problem.scales(sizes).max(axis=1) ** 2)

    return _best(problem, losses, time_limit)


@PrecisionAllocation.algorithm("enumeration", exact=True, cites="brute force", rank="oracle")
def enumerate_precise(problem: PrecisionAllocation, *, time_limit: float | None = None) -> Outcome:
    """Try all whole sizes, at most a million; see `enumerate_allocations`."""

    def losses(sizes: Array) -> Array:
        precise = (_variances(problem, sizes) <= problem.allowed).all(axis=1)
        return np.where(precise, sizes @ problem.unit_costs, np.inf)

    return _best(problem, losses, time_limit)


def _batches(problem: Strata) -> Iterator[Array]:
    """All whole sizes within floors, caps and limits, in batches of shape ``(n, k)``."""
    if not problem.integer:
        raise DeclarationError("integer is False; enumeration tries whole sizes only")
    counts = (problem.caps - problem.floors + 1).astype(float)
    if counts.prod() > MOST:
        raise DeclarationError(
            f"there are {counts.prod():.3g} allocations; enumeration tries {MOST:,} at most"
        )
    shape, total = tuple(counts.astype(int).tolist()), int(counts.prod())
    for first in range(0, total, _BATCH):
        places = np.unravel_index(np.arange(first, min(first + _BATCH, total)), shape)
        sizes = problem.floors + np.stack(places, axis=1)
        for costs, limit in problem.limits():
            sizes = sizes[sizes @ costs <= limit * (1 + ROUNDING)]
        yield sizes


def _variances(problem: Strata, sizes: Array) -> Array:
    return np.asarray((1 / sizes - 1 / problem.sizes) @ problem.coefficients)


def _best(problem: Strata, losses: Callable[[Array], Array], time_limit: float | None) -> Outcome:
    """The sizes of the least loss; losses of shape ``(n, V)`` are compared lexicographically."""
    deadline = Deadline(time_limit)
    best, chosen, tried = (np.inf,), None, 0
    for sizes in _batches(problem):
        if deadline.passed:
            break
        tried += len(sizes)
        if not len(sizes):
            continue
        values = losses(sizes).reshape(len(sizes), -1)
        at = int(np.lexsort(values.T[::-1])[0])
        if tuple(values[at].tolist()) < best:
            best, chosen = tuple(values[at].tolist()), sizes[at]
    if deadline.passed:
        status = Status.LIMIT if chosen is None else Status.FEASIBLE
        found = None if chosen is None else problem.allocation(chosen)
        return Outcome(found, status=status, iterations=tried, message=f"{deadline.end} after {tried} sizes")
    if chosen is None:
        message = problem.infeasibility_reason() or "no whole sizes are within the limits"
        return Outcome(None, status=Status.INFEASIBLE, message=message)
    return Outcome(problem.allocation(chosen), iterations=tried)
