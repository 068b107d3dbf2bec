"""One record after the other, where it gains most: exact for whole sizes, if all records cost the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

import numpy as np

from forcopt.arrays import Array
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.problem import StratifiedAllocation
from forcopt.models.allocation.tolerances import SUM
from forcopt.numeric import Limit, least_reciprocals
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["greedy", "greedy_sizes", "precise_greedy"]


@StratifiedAllocation.algorithm("greedy", exact=True, cites="Fox (1966); Wright (2012)")
def greedy(problem: StratifiedAllocation, *, time_limit: float | None = None) -> Outcome:
    """Add the record that lowers the variance most, until the sample is complete.

    The m-th record of a stratum lowers it by ``a / (m (m - 1))``, ever less, so that the best next record is
    among the best of any number; of equal ones, the first stratum's is taken. Optimal with `sample_size`
    alone; with a budget, the order is by gain for the price, and the bound is the continuous optimum.
    """
    gains, floors, caps, limits = problem.gains, problem.floors, problem.caps, problem.limits()
    filled = least_reciprocals(gains, floors, caps, limits)
    if filled is None:
        return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason())
    chosen = problem.allocation(greedy_sizes(gains, filled.prices, floors, caps, limits))
    if problem.costs is None and problem.integer:
        return Outcome(chosen)
    return Outcome(chosen, bound=problem.variance_bound(filled), status=Status.APPROXIMATE)


@PrecisionAllocation.algorithm("greedy", exact=True, cites="Wright (2017)")
def precise_greedy(problem: PrecisionAllocation, *, time_limit: float | None = None) -> Outcome:
    """One variable: add the record that lowers the variance most for its cost, until the target is met.

    Optimal if all records cost the same.
    """
    gains, costs, caps = problem.single, problem.unit_costs, problem.caps
    if problem.infeasibility_reason():
        return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason())
    target = float(problem.allowed[0])
    sizes = thresholded(gains, costs, problem.floors, caps, lambda m: problem.variances(m)[0] > target)
    order = rising(gains, costs, sizes, caps)
    while problem.variances(sizes)[0] > target:
        sizes[next(order)] += 1
    same = bool((costs == costs[0]).all()) and problem.integer
    status, bound = (Status.OPTIMAL, None) if same else (Status.APPROXIMATE, 0.0)
    return Outcome(problem.allocation(sizes), status=status, bound=bound)


def greedy_sizes(gains: Array, prices: Array, floors: Array, caps: Array, limits: list[Limit]) -> Array:
    """Start at the floors and add records in the order of their gain for the price, as long as they fit.

    Parameters
    ----------
    gains : Array
        A, of which the m-th record of a stratum gains ``a / (m (m - 1))``.
    prices : Array
        Of a record of each stratum; all 0 if the limits do not bind.
    floors, caps : Array
        Whole numbers.
    limits : list[Limit]
        The floors are within them.

    Returns
    -------
    Array
        Whole sizes, shape ``(k,)``. O(k log k): the bulk is added at once, up to a common gain for the price.
    """
    if not (prices > 0).any():
        return np.where(gains > 0, caps, floors)
    room = [limit * (1 + SUM) for _, limit in limits]

    def fits(sizes: Array) -> bool:
        return all(costs @ sizes <= most for (costs, _), most in zip(limits, room, strict=True))

    sizes = thresholded(gains, prices, floors, caps, fits)
    left = np.array([most - costs @ sizes for (costs, _), most in zip(limits, room, strict=True)])
    each = np.stack([costs for costs, _ in limits], axis=1)
    cheapest = each.min(axis=0)
    for i in rising(gains, prices, sizes, caps):
        if (left < cheapest).any():
            break
        if (left >= each[i]).all():
            sizes[i] += 1
            left -= each[i]
    return sizes


def thresholded(
    gains: Array, prices: Array, floors: Array, caps: Array, keeps: Callable[[Array], bool]
) -> Array:
    """All records that gain at least some multiple of their price; the smallest multiple that `keeps` allows.

    `keeps` must hold for the floors, and hold for fewer records if it does for more.
    """

    def taken(level: float) -> Array:
        worth = level * prices
        with np.errstate(over="ignore"):
            size = np.floor((1 + np.sqrt(1 + 4 * gains / worth)) / 2)
        size = np.clip(size, floors, caps)
        # the root is only as good as its rounding: gains decide, so that equal ones are taken together
        above, below = np.minimum(size + 1, caps), np.maximum(size, 2)
        size = np.where((above > size) & (gains / (above * size) >= worth), above, size)
        return np.where((size > floors) & (gains / (below * (below - 1)) < worth), size - 1, size)

    if not (gains > 0).any():
        return np.array(floors, dtype=float)
    ratio = gains[gains > 0] / prices[gains > 0]
    low, high = float((ratio / caps[gains > 0].astype(float) ** 2).min()) / 2, float(ratio.max())
    if keeps(taken(low)):
        return taken(low)
    for _ in range(60):
        middle = np.sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (low, middle) if keeps(taken(middle)) else (middle, high)
    sizes = taken(high)
    return sizes if keeps(sizes) else np.array(floors, dtype=float)


def rising(gains: Array, prices: Array, sizes: Array, caps: Array) -> Iterator[int]:
    """Strata in the order in which one more record gains most for the price, the first one among equals.

    Whoever takes a stratum raises its size; one that is not raised does not come again.
    """

    grows = np.flatnonzero((gains > 0) & (sizes < caps))
    worth = gains[grows] / (sizes[grows] * (sizes[grows] + 1)) / prices[grows]
    heap = list(zip((-worth).tolist(), grows.tolist(), strict=True))
    heapify(heap)
    while heap:
        _, i = heappop(heap)
        before = sizes[i]
        yield i
        if before < sizes[i] < caps[i]:
            heappush(heap, (-float(gains[i] / (sizes[i] * (sizes[i] + 1)) / prices[i]), i))
