"""Private allocation by a sweep over the scale of the noise."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.models.allocation.greedy import greedy_sizes
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.tolerances import ROUNDING
from forcopt.numeric import least_reciprocals
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["sweep"]


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
    short = problem.without_privacy().infeasibility_reason()
    if short:
        return Outcome(None, status=Status.INFEASIBLE, message=short)
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
