"""Private allocation by a sweep over the scale of the noise."""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np

from forcopt.models.allocation.greedy import greedy_sizes
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.water_filling import least
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["sweep"]


@PrivateAllocation.algorithm("sweep", exact=True, cites="Bun et al. (2022), equation (5)")
def sweep(problem: PrivateAllocation) -> Outcome:
    """Lower the scale of the noise step by step; for each scale, the least variance is greedy's.

    A scale asks for a least size of each stratum's sample, and what is left of the sample goes where it
    lowers the variance most. The scale is the largest that a stratum needs, so that to lower it, that stratum
    gets one record more. At most `sample_size` steps of O(k log k).
    """
    gains, caps, limits = problem.coefficients[:, 0], problem.sizes, problem.limits()
    floors = problem.floors.astype(float)
    short = problem.without_privacy().shortage
    if short:
        return Outcome(None, status=Status.INFEASIBLE, message=short)
    spare = int(np.floor(problem.sample_size + 1e-9 - floors.sum()))
    needs = [(-float(s), i) for i, s in enumerate(problem.scales(floors))]
    heapify(needs)
    best, chosen, variance, steps = np.inf, floors.copy(), 0.0, 0
    while True:
        scale, i = -needs[0][0], needs[0][1]
        # the least variance only grows with the floors: without a better scale it need not be computed
        if 2 * scale**2 + variance < best:
            filled = least(gains, floors, caps, limits)
            assert filled is not None
            sizes = greedy_sizes(gains, filled.prices, floors, caps, limits)
            variance, steps = float(problem.variances(sizes)[0]), steps + 1
            value = problem.evaluate(sizes).objective
            if value < best:
                best, chosen = value, sizes
        if spare == 0 or floors[i] == caps[i] or variance >= best:
            return Outcome(problem.allocation(chosen), iterations=steps)
        floors[i] += 1
        spare -= 1
        heapreplace(needs, (-float(problem.scales(floors[[i]], np.array([i]))[0]), i))
