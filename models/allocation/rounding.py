"""Closed forms: proportional and Neyman's samples; and whole sizes from fractional ones."""

from __future__ import annotations

from typing import Literal

import numpy as np

from forcopt.arrays import Array, Seed
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import StratifiedAllocation
from forcopt.models.allocation.tolerances import PROVED, ROUNDING
from forcopt.numeric import Limit, least_reciprocals, systematic_rounding, water_fill
from forcopt.problem import Outcome
from forcopt.status import Status

Rounding = Literal["largest-remainder", "ceiling", "nearest", "randomized"]


def rounded(
    sizes: Array, floors: Array, caps: Array, limits: list[Limit], rounding: Rounding, seed: Seed = None
) -> Array:
    """Round sizes within floors and caps.

    Parameters
    ----------
    sizes : Array
        Fractional, within floors, caps and limits; shape ``(k,)``.
    floors, caps : Array
        Whole numbers.
    limits : list[Limit]
        On the sizes.
    rounding : Rounding
        ``"largest-remainder"``: all down, then up by one in the order of the remainders, as long as the
        limits hold. ``"ceiling"``: all up; it may break the limits by up to one record a stratum.
        ``"nearest"``: as ``round`` in most software (halves to even); it may break the limits.
        ``"randomized"``: up with the probability of the remainder, jointly so that the total is the sum of
        the sizes, rounded up or down at random; may break a budget.
    seed : int or numpy.random.Generator, optional
        For ``"randomized"``: an int or a generator.
    """
    near = np.round(sizes)
    sizes = np.where(np.abs(sizes - near) < ROUNDING * np.maximum(1.0, near), near, sizes)
    down = np.floor(sizes)
    rest = sizes - down
    if rounding == "ceiling":
        return np.minimum(np.ceil(sizes), caps)
    if rounding == "nearest":
        return np.clip(np.round(sizes), floors, caps)
    if rounding == "randomized":
        return down + systematic_rounding(rest, np.random.default_rng(seed))
    order = np.argsort(-rest, kind="stable")[: np.count_nonzero(rest)]
    each = np.stack([costs for costs, _ in limits], axis=1)[order]
    left = np.array([limit * (1 + ROUNDING) - costs @ down for costs, limit in limits])
    first = int((np.cumsum(each, axis=0) <= left).all(axis=1).sum())  # that fit one after the other
    down[order[:first]] += 1
    left -= each[:first].sum(axis=0)
    for i, costs in zip(order[first:], each[first:], strict=True):  # then the ones cheap enough for the rest
        if (left < each.min(axis=0)).any():
            break
        if (costs <= left).all():
            down[i] += 1
            left -= costs
    return down


def precise_enough(problem: PrecisionAllocation, sizes: Array) -> Array:
    """Enlarge fractional sizes by one common factor, up to their caps, until all variances meet the targets.

    Solvers meet the targets up to a tolerance that is relative to a sum. Where almost all records are
    sampled, that sum is much larger than a target. The smallest factor is found by bisection: the variances
    fall as it rises. O(k V), times 60.
    """

    def meets(factor: float) -> bool:
        return bool((problem.variances(np.minimum(sizes * factor, problem.caps)) <= problem.targets).all())

    if meets(1.0):
        return sizes
    low, high = 1.0, float((problem.caps / sizes).max())
    for _ in range(60):
        middle = np.sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (low, float(middle)) if meets(float(middle)) else (float(middle), high)
    return np.minimum(sizes * high, problem.caps)


def whole_and_precise(problem: PrecisionAllocation, sizes: Array) -> Array:
    """Add records to whole sizes, each where it helps the most violated target most for its cost.

    O(k) a record; none is added where the targets are met as `PrecisionAllocation.allowed` says, or where all
    strata that help are at their caps.
    """
    found = np.clip(sizes, problem.floors, problem.caps)
    while True:
        excess = problem.variances(found) / problem.allowed - 1
        worst = int(np.argmax(excess))
        if excess[worst] <= 0:
            return found
        with np.errstate(divide="ignore"):
            gain = problem.coefficients[:, worst] / (found * (found + 1)) / problem.unit_costs
        gain = np.where(found < problem.caps, gain, 0.0)
        if not gain.any():
            return found
        found[np.argmax(gain)] += 1


@StratifiedAllocation.algorithm("proportional", cites="Cochran (1977), section 5.9", rank="published")
def proportional(
    problem: StratifiedAllocation,
    *,
    rounding: Rounding = "largest-remainder",
    seed: Seed = None,
    time_limit: float | None = None,
) -> Outcome:
    """The same share of every stratum, within floors and caps; it needs no deviations.

    Parameters
    ----------
    rounding : {"largest-remainder", "ceiling", "nearest", "randomized"}, optional
        How sizes become whole.
    seed : int or numpy.random.Generator, optional
        Of the randomized rounding.

    Returns
    -------
    Outcome
        The sizes, without a bound.
    """
    shares = problem.sizes.astype(float)
    filled = [water_fill(shares, problem.floors, problem.caps, c, limit)[0] for c, limit in problem.limits()]
    return Outcome(problem.allocation(_whole(problem, np.min(filled, axis=0), rounding, seed)))


@StratifiedAllocation.algorithm("neyman", exact=True, cites="Neyman (1934); caps by water-filling")
def neyman(
    problem: StratifiedAllocation,
    *,
    rounding: Rounding = "largest-remainder",
    seed: Seed = None,
    time_limit: float | None = None,
) -> Outcome:
    """Sizes in proportion to ``N S / sqrt(cost)`` within floors and caps: optimal, then rounded.

    The bound is the variance before rounding. Without `integer` sizes are not rounded, and it is the optimum.

    Parameters
    ----------
    rounding : {"largest-remainder", "ceiling", "nearest", "randomized"}, optional
        How sizes become whole.
    seed : int or numpy.random.Generator, optional
        Of the randomized rounding.

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
    whole = chosen.variance + float(problem.constant @ problem.variable_weights)
    proved = chosen.variance - bound <= PROVED * whole
    return Outcome(chosen, bound=bound, status=Status.OPTIMAL if proved else Status.FEASIBLE)


def _whole(problem: StratifiedAllocation, sizes: Array, rounding: Rounding, seed: Seed) -> Array:
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
