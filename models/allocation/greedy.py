"""Whole sizes: one record after the other, and a sweep over scales of noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import StratifiedAllocation
from forcopt.models.allocation.tolerances import ROUNDING, SUM
from forcopt.numeric import Limit, least_reciprocals
from forcopt.problem import Outcome
from forcopt.status import Status


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


@PrivateAllocation.algorithm("sweep", exact=True, cites="Bun et al. (2022), equation (5)")
def sweep(
    problem: PrivateAllocation,
    *,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Search the noise scales by branch and bound; greedy gives the least variance for each scale.

    A noise scale requires a minimum sample of each stratum. Greedy distributes the other records. The
    stratum with the largest requirement determines the scale, so a lower scale needs one more record of that
    stratum. There are at most `sample_size` such steps. Along the steps the sampling variance never falls,
    and the noise variance never rises. Therefore the sampling variance at the first step of an interval plus
    the noise variance at its last step is a lower bound on the interval. An interval whose bound is not below
    the best known value is discarded. Each evaluated step costs O(k log k) for k strata.
    """
    if (outcome := Outcome.infeasible(problem.without_privacy().infeasibility_reason())) is not None:
        return outcome
    trace = Trace(Deadline(time_limit), on_improvement)
    gains, caps, limits = problem.coefficients[:, 0], problem.caps, problem.limits()
    raised, scales, all_known = _steps(problem, trace.deadline)
    noise = 2 * scales**2
    ended = "the run ended before all intervals of noise scales were searched"
    best, chosen, solved = np.inf, np.empty(0), 0
    open_intervals: list[tuple[float, int, int]] = []

    def variance(step: int) -> float:
        nonlocal best, chosen, solved
        floors = problem.floors + np.bincount(raised[:step], minlength=len(caps))
        filled = least_reciprocals(gains, floors, caps, limits)
        assert filled is not None
        sizes = greedy_sizes(gains, filled.prices, floors, caps, limits)
        value, solved = problem.evaluate(sizes).objective, solved + 1
        if value < best:
            best, chosen = value, sizes
            trace.add(value, open_intervals[0][0] if open_intervals else 0.0)
        return float(problem.variances(sizes)[0])

    last = len(raised)
    least_variance = {0: variance(0), last: variance(last)}
    if not all_known:
        bound = least_variance[0] + 2 * float(problem.scales(caps).max()) ** 2
        return Outcome(problem.allocation(chosen), bound, Status.FEASIBLE, solved, ended, trace.steps)
    open_intervals = [(least_variance[0] + noise[last], 0, last)]
    while open_intervals:
        bound, first, end = heappop(open_intervals)
        if bound >= best:
            break
        if end - first > 1 and trace.over:
            return Outcome(problem.allocation(chosen), bound, Status.FEASIBLE, solved, ended, trace.steps)
        if end - first > 1:
            middle = (first + end) // 2
            least_variance[middle] = variance(middle)
            for a, b in ((first, middle), (middle, end)):
                heappush(open_intervals, (least_variance[a] + noise[b], a, b))
    return Outcome(problem.allocation(chosen), iterations=solved, trace=trace.steps)


def _steps(problem: PrivateAllocation, deadline: Deadline) -> tuple[Array, Array, bool]:
    """List the steps from one noise scale to the next.

    Returns
    -------
    tuple[Array, Array, bool]
        The growing stratum of each step, shape ``(n,)``; the noise scales, ``(n + 1,)``; False if the
        deadline ended the list.
    """
    floors, caps = problem.floors.astype(float), problem.caps
    spare = int(np.floor(problem.sample_size + ROUNDING - floors.sum()))
    needs = [(-float(s), i) for i, s in enumerate(problem.scales(floors))]
    heapify(needs)
    raised: list[int] = []
    scales = [-needs[0][0]]
    while (more := spare > len(raised) and floors[i := needs[0][1]] < caps[i]) and not deadline.passed:
        floors[i] += 1
        raised.append(i)
        heapreplace(needs, (-float(problem.scales(floors[[i]], np.array([i]))[0]), i))
        scales.append(-needs[0][0])
    return np.array(raised, dtype=np.int64), np.array(scales), not more
