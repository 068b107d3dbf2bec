"""Which sizes an optimal allocation can have at all, by the Lagrangian bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.models.allocation.greedy import greedy_sizes
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import StratifiedAllocation
from forcopt.models.allocation.rounding import precise_enough, whole_and_precise
from forcopt.models.allocation.tolerances import FLAT, ROUNDING, SLOPE, STEP, SUM
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


def private_windows(problem: PrivateAllocation) -> tuple[Array, Array]:
    """The windows for the least variance with noise, for a problem that has an allocation.

    The Lagrangian has a multiplier for the number of records and one for the noise that each stratum needs;
    the latter sum to 2, the factor of the squared scale. They are those of the continuous optimum, found by
    bisection of the scale; any multipliers give valid windows. Greedy with the least sizes of some scales
    nearby gives the value to beat. O(k) a step of two nested bisections.

    Returns
    -------
    tuple[Array, Array]
        The ends of the windows, whole numbers within floors and caps, shape ``(k,)`` each.
    """
    gains, caps, limits = problem.coefficients[:, 0], problem.caps.astype(float), problem.limits()
    floors = problem.floors.astype(float)
    best, highest = np.inf, float(problem.scales(floors).max())
    low, high = float(problem.scales(caps).max()), highest
    price, needs = _noise_multipliers(problem, highest) or (0.0, np.zeros(len(caps)))
    for _ in range(40):
        middle = float(np.sqrt(low * high))
        found = _noise_multipliers(problem, middle)
        if found is None or found[1].sum() > 2:
            low = middle
        else:
            high, (price, needs) = middle, found
    for scale in (highest, *(high * np.geomspace(0.9, 1.1, 21))):
        least = np.ceil(_least_sizes(problem, scale) * (1 - SUM))
        filled = None if (least > caps).any() else least_reciprocals(gains, least, caps, limits)
        if filled is not None:
            sizes = greedy_sizes(gains, filled.prices, least, caps, limits)
            best = min(best, problem.evaluate(sizes).objective)

    def term(sizes: Array) -> Array:
        return np.asarray(gains / sizes + needs * problem.scales(sizes) ** 2 + price * sizes)

    def first(start: Array, end: Array, holds: Callable[[Array], Array]) -> Array:
        while (start < end).any():
            middle = np.floor((start + end) / 2)
            held = holds(middle)
            start, end = np.where(held | (start == end), start, middle + 1), np.where(held, middle, end)
        return start

    least = first(floors, caps, lambda m: term(np.minimum(m + 1, caps)) >= term(m))
    constant = float(problem.constant[0])
    gap = best + constant - (float(term(least).sum()) - price * problem.sample_size * (1 + ROUNDING))
    level = term(least) + max(gap, 0.0) + ROUNDING * (abs(best) + constant)
    return (
        first(floors, least, lambda m: term(m) <= level).astype(np.int64),
        first(least, caps, lambda m: term(np.minimum(m + 1, caps)) > level).astype(np.int64),
    )


def _noise_multipliers(problem: PrivateAllocation, scale: float) -> tuple[float, Array] | None:
    """The price of a record and of each stratum's noise at the least variance for a scale; None if none."""
    least = _least_sizes(problem, scale)
    caps, gains = problem.caps, problem.coefficients[:, 0]
    filled = None if (least > caps).any() else least_reciprocals(gains, least, caps, problem.limits())
    if filled is None:
        return None
    price, step = float(filled.prices.max()), STEP * least
    slope = (problem.scales(least + step) ** 2 - problem.scales(least - step) ** 2) / (2 * step)
    binds = (filled.sizes <= least * (1 + ROUNDING)) & (least > problem.floors)
    return price, np.where(binds, np.maximum(price - gains / least**2, 0.0) / -slope, 0.0)


def _least_sizes(problem: PrivateAllocation, scale: float) -> Array:
    """The least real sizes that need no more noise than a scale; more than the caps where these need more."""
    low, high = problem.floors.astype(float), problem.caps.astype(float)
    done = problem.scales(low) <= scale
    never = problem.scales(high) > scale * (1 + SUM)
    for _ in range(60):
        middle = np.sqrt(low * high)
        enough = problem.scales(middle) <= scale
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(done, problem.floors, np.where(never, problem.caps + 1.0, high))
