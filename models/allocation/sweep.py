"""Private allocation by a sweep over the scale of the noise."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.models.allocation.greedy import greedy_sizes
from forcopt.models.allocation.private import PrivateAllocation
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
    """Lower the scale of the noise step by step; for each scale, the least variance is greedy's.

    A scale asks for a least size of each stratum's sample, and the rest of the sample goes where it
    lowers the variance most. The scale is the largest that a stratum needs, so that to lower it, that stratum
    gets one record more: at most `sample_size` steps. Since the variance only grows along them and the noise
    only falls, whole stretches of steps are ruled out by their ends; the others take O(k log k) each.
    """
    short = problem.without_privacy().infeasibility_reason()
    if short:
        return Outcome(None, status=Status.INFEASIBLE, message=short)
    trace = Trace(Deadline(time_limit), on_improvement)
    raised, scales = _steps(problem)
    noise = 2 * scales**2
    gains, caps, limits = problem.coefficients[:, 0], problem.sizes, problem.limits()
    best, chosen, solved = np.inf, np.empty(0), 0
    open_stretches: list[tuple[float, int, int]] = []

    def variance(step: int) -> float:
        nonlocal best, chosen, solved
        floors = problem.floors + np.bincount(raised[:step], minlength=len(caps))
        filled = least_reciprocals(gains, floors, caps, limits)
        assert filled is not None
        sizes = greedy_sizes(gains, filled.prices, floors, caps, limits)
        value, solved = problem.evaluate(sizes).objective, solved + 1
        if value < best:
            best, chosen = value, sizes
            trace.add(value, open_stretches[0][0] if open_stretches else 0.0)
        return float(problem.variances(sizes)[0])

    last = len(raised)
    open_stretches = [(variance(0) + noise[last], 0, last)]
    variance(last)
    least_variance = {0: open_stretches[0][0] - noise[last]}
    while open_stretches:
        bound, first, end = heappop(open_stretches)
        if bound >= best:
            break
        if end - first > 1 and trace.over:
            message = "stretches of steps were left when the run ended"
            found = problem.allocation(chosen)
            return Outcome(found, bound, Status.FEASIBLE, solved, message, trace.steps)
        if end - first > 1:
            middle = (first + end) // 2
            least_variance[middle] = variance(middle)
            for a, b in ((first, middle), (middle, end)):
                heappush(open_stretches, (least_variance[a] + noise[b], a, b))
    return Outcome(problem.allocation(chosen), iterations=solved, trace=trace.steps)


def _steps(problem: PrivateAllocation) -> tuple[Array, Array]:
    """The stratum that gets one record more in each step, shape ``(n,)``, and the scales, ``(n + 1,)``."""
    floors, caps = problem.floors.astype(float), problem.sizes
    spare = int(np.floor(problem.sample_size + 1e-9 - floors.sum()))
    needs = [(-float(s), i) for i, s in enumerate(problem.scales(floors))]
    heapify(needs)
    raised: list[int] = []
    scales = [-needs[0][0]]
    while spare > len(raised) and floors[i := needs[0][1]] < caps[i]:
        floors[i] += 1
        raised.append(i)
        heapreplace(needs, (-float(problem.scales(floors[[i]], np.array([i]))[0]), i))
        scales.append(-needs[0][0])
    return np.array(raised, dtype=np.int64), np.array(scales)
