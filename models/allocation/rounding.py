"""Closed forms: proportional, Neyman's and two-stage samples; and whole sizes from fractional ones."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import StratifiedAllocation
from forcopt.models.allocation.tolerances import PROVED, ROUNDING, SUM
from forcopt.numeric import Limit, least_reciprocals, systematic_rounding, water_fill
from forcopt.problem import Outcome
from forcopt.status import Status

Rounding = Literal["largest-remainder", "ceiling", "nearest", "randomized"]


def rounded(
    sizes: Array,
    floors: Array,
    caps: Array,
    limits: list[Limit],
    rounding: Rounding,
    seed: int | np.random.Generator | None = None,
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
    first = int(
        (np.cumsum(each, axis=0) <= left).all(axis=1).sum()
    )  # the number that fit one after the other
    down[order[:first]] += 1
    left -= each[:first].sum(axis=0)
    for i, costs in zip(order[first:], each[first:], strict=True):  # then the ones cheap enough for the rest
        if (left < each.min(axis=0)).any():
            break
        if (costs <= left).all():
            down[i] += 1
            left -= costs
    return down


def within_limits(sizes: Array, floors: Array, limits: list[Limit]) -> Array:
    """Shrink fractional sizes towards their floors until the limits hold exactly.

    Solvers meet limits up to a tolerance. The shrinking factor is the largest that meets all limits, so that
    the sizes change by the solver's error only. O(k) a limit.
    """
    factor = 1.0
    above = sizes - floors
    for costs, limit in limits:
        if costs @ sizes > limit and costs @ above > 0:
            factor = min(factor, max(float((limit - costs @ floors) / (costs @ above)), 0.0))
    return sizes if factor == 1.0 else np.asarray(floors + factor * above)


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
    seed: int | np.random.Generator | None = None,
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
    if (outcome := Outcome.infeasible(problem.infeasibility_reason())) is not None:
        return outcome
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
    if (outcome := Outcome.infeasible(problem.infeasibility_reason())) is not None:
        return outcome
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


class TwoStageDesign(NamedTuple):
    """A sample of clusters, and of units within each.

    Attributes
    ----------
    clusters : float
        The number of clusters, n; whole if `whole` was asked for.
    units : float
        The number of units in each cluster, m.
    variance : float
        Of the estimated mean, relative to that of one unit: ``(1 + delta (m - 1)) / (n m)``.
    cost : float
        ``n (cluster_cost + unit_cost m)``.

    Examples
    --------
    >>> from forcopt.models.allocation import two_stage_design
    >>> d = two_stage_design(cluster_cost=750, unit_cost=100, correlation=0.05, budget=100_000)
    >>> d.clusters, d.units, d.cost, round(d.variance, 6)
    (54.0, 11.0, 99900.0, 0.002525)
    """

    clusters: float
    units: float
    variance: float
    cost: float


def two_stage_design(
    *,
    cluster_cost: float,
    unit_cost: float,
    correlation: float,
    budget: float | None = None,
    variance: float | None = None,
    most_units: int | None = None,
    whole: bool = True,
) -> TwoStageDesign:
    """Choose the number of clusters and of units in each, for the least variance or the least cost.

    Parameters
    ----------
    cluster_cost, unit_cost : float
        Of adding a cluster, and of adding a unit to a sampled cluster; above 0.
    correlation : float
        The intraclass correlation delta (measure of homogeneity) of the variable, between 0 and 1.
    budget, variance : float, optional
        Exactly one: the cost allowed, or the variance allowed relative to that of one unit,
        ``(CV / unit CV)²`` for a coefficient of variation.
    most_units : int, optional
        The units of a cluster.
    whole : bool, default True
        Whether both numbers are whole.

    Returns
    -------
    TwoStageDesign
        The optimum: of whole designs by comparing all numbers of units that can be best, else in closed
        form.

    Raises
    ------
    DeclarationError
        For numbers out of range, or a budget below the cost of one cluster with one unit.

    Notes
    -----
    Without rounding ``m = sqrt(cluster_cost / unit_cost * (1 - delta) / delta)``, whatever the budget is. For
    whole numbers, n follows from each m; m is tried from 1 to the largest that the budget, or the optimum's
    cost, allows. O(that number), vectorized.

    References
    ----------
    Cochran: Sampling Techniques, 3rd edition, 1977, section 10.6. Valliant, Dever, Kreuter: Practical Tools
    for Designing and Weighting Survey Samples, 2nd edition, 2018, section 9.2.

    Examples
    --------
    >>> two_stage_design(cluster_cost=750, unit_cost=100, correlation=0.05, budget=100_000, whole=False).units
    11.937336386313323
    >>> two_stage_design(cluster_cost=750, unit_cost=100, correlation=0.05, budget=100_000)[:2]
    (54.0, 11.0)
    """
    for name, value in (("cluster_cost", cluster_cost), ("unit_cost", unit_cost)):
        if not (value > 0 and np.isfinite(value)):
            raise DeclarationError(f"{name} is {value}; it must be above 0")
    if not 0 <= correlation <= 1:
        raise DeclarationError(f"correlation is {correlation}; it must be between 0 and 1")
    if (budget is None) == (variance is None):
        raise DeclarationError("give either budget or variance, one of them")
    if budget is not None and budget < cluster_cost + unit_cost:
        raise DeclarationError(
            f"budget is {budget:g}; one unit of one cluster costs {cluster_cost + unit_cost:g}"
        )
    if variance is not None and not variance > 0:
        raise DeclarationError(f"variance is {variance}; it must be above 0")
    if most_units is not None and most_units < 1:
        raise DeclarationError(f"most_units is {most_units}; it must be at least 1")
    free = np.inf
    if correlation > 0:
        free = np.sqrt(cluster_cost / unit_cost * (1 - correlation) / correlation)
    top = np.inf if most_units is None else float(most_units)
    if budget is not None:
        top = min(top, (budget - cluster_cost) / unit_cost)
    elif not np.isfinite(top):
        top = max(free if np.isfinite(free) else 0.0, 1.0) * 4 + 1 / variance  # type: ignore[operator]
    if whole:
        units = np.arange(1.0, np.floor(min(top, 1e7)) + 1)
        if budget is not None:
            clusters = np.floor(budget / (cluster_cost + unit_cost * units) * (1 + SUM))
        else:
            clusters = np.ceil((1 + correlation * (units - 1)) / (units * variance) * (1 - SUM))
        clusters = np.maximum(clusters, 1.0)
    else:
        units = np.array([min(max(free, 1.0), top)])
        per = cluster_cost + unit_cost * units
        clusters = (
            budget / per if budget is not None else (1 + correlation * (units - 1)) / (units * variance)
        )
    reached = (1 + correlation * (units - 1)) / (clusters * units)
    costs = clusters * (cluster_cost + unit_cost * units)
    best = int(np.lexsort((costs, reached) if budget is not None else (reached, costs))[0])
    return TwoStageDesign(*(float(each[best]) for each in (clusters, units, reached, costs)))
