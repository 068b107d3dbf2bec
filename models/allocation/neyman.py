"""The two classical allocations, proportional and Neyman's, in closed form, and rounded."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import StratifiedAllocation
from forcopt.models.allocation.rounding import Rounding, rounded
from forcopt.models.allocation.tolerances import PROVED
from forcopt.numeric import least_reciprocals, water_fill
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["neyman", "proportional"]


@StratifiedAllocation.algorithm("proportional", cites="Cochran (1977), section 5.9", rank="published")
def proportional(
    problem: StratifiedAllocation,
    *,
    rounding: Rounding = "largest-remainder",
    seed: int | np.random.Generator | None = None,
    time_limit: float | None = None,
) -> Outcome:
    """The same share of every stratum, within floors and caps; it needs no deviations.

    Parameters
    ----------
    problem : StratifiedAllocation
        The problem.
    rounding : {"largest-remainder", "ceiling", "nearest", "randomized"}, optional
        How sizes become whole.
    seed : int or numpy.random.Generator, optional
        Of the randomized rounding.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Outcome
        The sizes, without a bound.
    """
    if problem.infeasibility_reason():
        return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason())
    shares = problem.sizes.astype(float)
    filled = [water_fill(shares, problem.floors, problem.caps, c, limit)[0] for c, limit in problem.limits()]
    return Outcome(problem.allocation(_whole(problem, np.min(filled, axis=0), rounding, seed)))


@StratifiedAllocation.algorithm("neyman", exact=True, cites="Neyman (1934); caps by water-filling")
def neyman(
    problem: StratifiedAllocation,
    *,
    rounding: Rounding = "largest-remainder",
    seed: int | np.random.Generator | None = None,
    time_limit: float | None = None,
) -> Outcome:
    """Sizes in proportion to ``N S / sqrt(cost)`` within floors and caps: optimal, then rounded.

    The bound is the variance before rounding. Without `integer` sizes are not rounded, and it is the optimum.

    Parameters
    ----------
    problem : StratifiedAllocation
        The problem.
    rounding : {"largest-remainder", "ceiling", "nearest", "randomized"}, optional
        How sizes become whole.
    seed : int or numpy.random.Generator, optional
        Of the randomized rounding.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Outcome
        The sizes, and the variance before rounding as a bound.
    """
    filled = least_reciprocals(problem.gains, problem.floors, problem.caps, problem.limits())
    if filled is None:
        return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason())
    bound = problem.variance_bound(filled)
    chosen = problem.allocation(_whole(problem, filled.sizes, rounding, seed))
    if problem.integer:
        return Outcome(chosen, bound=bound, status=Status.APPROXIMATE)
    proved = chosen.variance - bound <= PROVED * (
        chosen.variance + float(problem.constant @ problem.variable_weights)
    )
    return Outcome(chosen, bound=bound, status=Status.OPTIMAL if proved else Status.FEASIBLE)


def _whole(
    problem: StratifiedAllocation, sizes: Array, rounding: Rounding, seed: int | np.random.Generator | None
) -> Array:
    if not problem.integer:
        return sizes
    return rounded(sizes, problem.floors, problem.caps, problem.limits(), rounding, seed)


@PrivateAllocation.algorithm("proportional", cites="Bun et al. (2022), section 6.3", rank="published")
def private_proportional(problem: PrivateAllocation, *, time_limit: float | None = None) -> Outcome:
    """Allocate proportionally as if there was no privacy, then add the noise that privacy needs."""
    return _at_equal_privacy(problem, "proportional")


@PrivateAllocation.algorithm("neyman", cites="Bun et al. (2022), section 6.2", rank="published")
def private_neyman(problem: PrivateAllocation, *, time_limit: float | None = None) -> Outcome:
    """Allocate for the least variance of the sample (greedily), then add the noise that privacy needs."""
    return _at_equal_privacy(problem, "greedy")


def _at_equal_privacy(problem: PrivateAllocation, method: str) -> Outcome:
    found = problem.without_privacy().solve(method)
    if found.decision is None:
        return Outcome(None, status=found.status, message=found.message)
    return Outcome(problem.allocation(found.decision.sizes))


@PrecisionAllocation.algorithm("neyman", exact=True, cites="Cochran (1977), section 5.5")
def precise_neyman(problem: PrecisionAllocation, *, time_limit: float | None = None) -> Outcome:
    """One variable: the cheapest fractional sizes in closed form, rounded up.

    With ``y = a / m`` the target limits ``y.sum()`` and the cost is ``(costs * a / y).sum()``: the same
    problem as the least variance within a budget. The bound is the cost before rounding.
    """
    a = problem.single
    if problem.infeasibility_reason():
        return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason())
    sizes = problem.floors.astype(float)
    varies = a > 0
    room = float(problem.allowed[0] + problem.constant[0])
    if varies.any():
        costs, low, high = problem.unit_costs[varies], problem.floors[varies], problem.caps[varies]
        part = a[varies]
        filled = least_reciprocals(part * costs, part / high, part / low, [(np.ones(len(part)), room)])
        assert filled is not None  # the caps meet the target
        sizes[varies] = np.clip(part / filled.sizes, low, high)
    bound = float(problem.unit_costs @ sizes)
    if not problem.integer:
        return Outcome(problem.allocation(sizes), bound=bound, status=Status.OPTIMAL)
    whole = rounded(sizes, problem.floors, problem.caps, [], "ceiling")
    return Outcome(problem.allocation(whole), bound=bound, status=Status.APPROXIMATE)
