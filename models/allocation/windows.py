"""Which sizes an optimal allocation can have at all, by the Lagrangian bound."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.models.allocation.greedy import greedy_sizes
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.problem import StratifiedAllocation
from forcopt.models.allocation.rounding import precise_enough, whole_and_precise
from forcopt.models.allocation.tolerances import FLAT, ROUNDING, SLOPE, SUM
from forcopt.numeric import Filled, Limit, least_reciprocals


def windows(gains: Array, prices: Array, floors: Array, caps: Array, gap: float) -> tuple[Array, Array]:
    """The sizes m of each stratum for which ``gains / m + prices * m`` is within `gap` of its least value.

    If a solution is within `gap` of the Lagrangian bound, any better one has its sizes in these windows
    (reduced cost fixing). The expression is convex in m, so that a window is an interval between two roots.

    Returns
    -------
    tuple[Array, Array]
        The ends of the windows, whole numbers within floors and caps, shape ``(k,)`` each.
    """
    best = least_term(gains, prices, floors, caps)
    level = best * (1 + SUM) + gap
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(np.maximum(level**2 - 4 * gains * prices, 0.0))
        low = np.where(gains > 0, 2 * gains / (level + root), 0.0)
        high = np.where(prices > 0, (level + root) / (2 * prices), caps)
    return (
        np.clip(np.ceil(low * (1 - SUM)), floors, caps).astype(np.int64),
        np.clip(np.floor(high * (1 + SUM)), floors, caps).astype(np.int64),
    )


def least_term(gains: Array, prices: Array, floors: Array, caps: Array) -> Array:
    """The least of ``gains / m + prices * m`` over whole m within floors and caps, by stratum."""
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.where(prices > 0, np.sqrt(gains / prices), np.where(gains > 0, caps, floors))
    near = [np.clip(f(middle), floors, caps) for f in (np.floor, np.ceil)]
    return np.asarray(np.minimum(*(gains / m + prices * m for m in near)))


def allocation_windows(
    gains: Array, floors: Array, caps: Array, limits: list[Limit], filled: Filled
) -> tuple[Array, Array]:
    """The windows for the least ``(gains / sizes).sum()`` within limits, given the continuous optimum."""
    found = greedy_sizes(gains, filled.prices, floors, caps, limits)
    prices, bound = filled.prices, -np.inf
    for level in _levels(gains, filled.prices, floors, caps, found):
        trial = level * filled.prices
        value = float(least_term(gains, trial, floors, caps).sum()) - level * filled.multiplier
        if value > bound:
            prices, bound = trial, value
    gap = max(float((gains / found).sum()) - bound, 0.0)
    low, high = windows(gains, prices, floors, caps, gap + SUM * abs(bound))
    return low, np.where(gains > 0, high, low)  # a record without a gain is not sampled


def _levels(gains: Array, prices: Array, floors: Array, caps: Array, found: Array) -> list[float]:
    """Multiples of the prices to try: 1, and those at which greedy's last record or its next one pays."""
    if not (prices > 0).all():
        return [1.0]
    worth = gains / prices
    last, following = found > floors, (found < caps) & (gains > 0)
    lost = (worth[last] / (found[last] * (found[last] - 1.0))).min(initial=np.inf)
    won = (worth[following] / (found[following] * (found[following] + 1.0))).max(initial=0.0)
    return [1.0, *(float(level) for level in (lost, won) if 0 < level < np.inf)]


def leximax_windows(problem: StratifiedAllocation) -> tuple[Array, Array] | None:
    """The windows for the least largest variance, by multipliers of the variables that sum to 1.

    No optimum has a weighted variance above the largest one of a known allocation, and so its weighted sum by
    the multipliers is not above it, either. The dual, concave in the multipliers, is maximized by L-BFGS over
    their logarithms; any multipliers give valid windows. Greedy for that weighted sum gives the value to
    beat. O(k V) and a continuous allocation an iteration.

    Returns
    -------
    tuple[Array, Array] or None
        The ends of the windows, whole numbers within floors and caps, shape ``(k,)`` each. None if there is
        no allocation, or all variances are 0.
    """
    from scipy.optimize import minimize

    floors, caps, limits = problem.floors, problem.caps, problem.limits()
    losses = problem.coefficients * problem.variable_weights
    whole = (losses / problem.sizes[:, None]).sum(axis=0)
    unit = float(losses.sum())
    if unit == 0 or problem.infeasibility_reason():
        return None

    def filled(logs: Array) -> tuple[Array, Array, Filled]:
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        gains = losses @ shares
        found = least_reciprocals(gains, floors, caps, limits)
        assert found is not None
        return shares, gains, found

    def negated(logs: Array) -> tuple[float, Array]:
        shares, _, found = filled(logs)
        slope = ((losses / found.sizes[:, None]).sum(axis=0) - whole) / unit
        return -float(shares @ slope), -shares * (slope - shares @ slope)

    start = np.zeros(losses.shape[1])
    best = minimize(negated, start, jac=True, method="L-BFGS-B", options={"ftol": FLAT, "gtol": SLOPE}).x
    shares, gains, found = filled(best)
    sizes = greedy_sizes(gains, found.prices, floors, caps, limits)
    largest = float(((losses / sizes[:, None]).sum(axis=0) - whole).max())
    constant = float(shares @ whole)
    bound = float(least_term(gains, found.prices, floors, caps).sum()) - found.multiplier
    gap = max(largest + constant - bound, 0.0)
    return windows(gains, found.prices, floors, caps, gap + ROUNDING * (abs(bound) + constant))


def precision_windows(problem: PrecisionAllocation) -> tuple[Array, Array]:
    """The windows for the least cost within all targets, by multipliers of the targets.

    The continuous Lagrangian dual, which is concave, is maximized by L-BFGS over the logarithms of the
    multipliers; any multipliers give valid windows. Its sizes, rounded down and then enlarged until all
    targets are met, give the value to beat. O(k V) an iteration.

    Returns
    -------
    tuple[Array, Array]
        The ends of the windows, whole numbers within floors and caps, shape ``(k,)`` each.
    """
    from scipy.optimize import minimize

    costs, floors, caps = problem.unit_costs, problem.floors, problem.caps
    room = problem.allowed + problem.constant
    shares = problem.coefficients / room  # variances relative to the room
    used = (shares > 0).any(axis=0)
    if not used.any():
        return floors, floors
    unit = float(costs @ caps)

    def sizes(logs: Array) -> tuple[Array, Array, Array]:
        multipliers = unit * np.where(used, np.exp(logs), 0.0)
        gains = shares @ multipliers
        return multipliers, gains, np.clip(np.sqrt(gains / costs), floors, caps)

    def negated(logs: Array) -> tuple[float, Array]:
        multipliers, gains, m = sizes(logs)
        slope = multipliers * ((shares / m[:, None]).sum(axis=0) - 1.0)
        return -float(costs @ m + (gains / m).sum() - multipliers.sum()) / unit, -slope / unit

    starts = [np.full(len(room), level) for level in (-6.0, -2.0)]
    found = [minimize(negated, x, jac=True, method="L-BFGS-B", bounds=[(-40, 40)] * len(x)) for x in starts]
    multipliers, gains, m = sizes(min(found, key=lambda result: float(result.fun)).x)
    whole = whole_and_precise(problem, np.floor(precise_enough(problem, m) * (1 + SUM)))
    bound = float(least_term(gains, costs, floors, caps).sum() - multipliers.sum())
    gap = max(float(costs @ whole) - bound, 0.0)
    return windows(gains, costs, floors, caps, gap + ROUNDING * abs(bound))
