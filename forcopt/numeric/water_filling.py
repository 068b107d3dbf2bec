"""Water-filling, the least sum of reciprocals, and projections onto a simplex or a box with a fixed sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.errors import DeclarationError, require_shape
from forcopt.numeric.tolerances import LEAST_DECREASE, LEAST_GRADIENT, ROUNDING


def project_box(point: Any, lower: Any, upper: Any, total: float, weights: Any = 1.0) -> Array:
    """Project onto the box with a sum ``{lower <= x <= upper, weights @ x = total}``.

    Parameters
    ----------
    point : array_like
        Shape ``(n,)``.
    lower, upper : array_like
        Finite bounds, one number or one for each entry.
    total : float
        The weighted sum; between the sums of the bounds, up to 1e-9 relative.
    weights : array_like, default 1.0
        Positive; one number or one for each entry.

    Returns
    -------
    Array
        The nearest point, shape ``(n,)``. Its sum is `total` up to rounding.

    Raises
    ------
    DeclarationError
        If the set is empty, naming the total and the sums of the bounds, or for other bad input.

    Notes
    -----
    By the optimality conditions ``x = clip(point - level * weights, lower, upper)`` for one level, the
    multiplier of the sum. The sum falls piecewise linearly in the level and bends where an entry meets a
    bound. The algorithm sorts the bends, finds the neighboring pair around the level by bisection, and solves
    the linear equation between them. O(n log n).

    References
    ----------
    Helgason, Kennington, Lall: A polynomially bounded algorithm for a singly constrained quadratic program.
    Mathematical Programming 18, 1980.

    Examples
    --------
    >>> project_box([3.0, 0.0, 0.0], lower=[0, 1, 0], upper=[2, 5, 5], total=4).round(9).tolist()
    [2.0, 1.0, 1.0]
    """
    x = as_numbers(point, "point")
    require_shape(x.ndim == 1 and x.size, "point has", x, "be (n,) with n >= 1")
    read = [as_numbers(v, name) for v, name in ((lower, "lower"), (upper, "upper"), (weights, "weights"))]
    for values, name in zip(read, ("lower", "upper", "weights"), strict=True):
        if values.shape not in ((), (1,), x.shape):
            raise DeclarationError(f"{name} has shape {values.shape}; it must be one number or {x.shape}")
    low, high, w = (np.broadcast_to(values, x.shape) for values in read)
    if (low > high).any():
        at = int(np.argmax(low > high))
        raise DeclarationError(f"lower[{at}] is {low[at]:g}, above upper[{at}], {high[at]:g}")
    check_entries(w, w <= 0, "weights", "it must be above 0")
    least, most = float(w @ low), float(w @ high)
    margin = ROUNDING * max(float(w @ np.maximum(np.abs(low), np.abs(high))), abs(total))
    if not least - margin <= total <= most + margin:
        raise DeclarationError(f"total is {total:g}; between the bounds it can be {least:g} to {most:g}")
    if total <= least:
        return np.array(low)
    if total >= most:
        return np.array(high)
    x = x - (w @ x - total) / (w @ w) * w  # the projection stays the same; large entries would lose the total
    enters, leaves = (x - high) / w, (x - low) / w  # between these levels an entry is between its bounds
    # the sum falls as the level rises
    first, last = _span(enters, leaves, lambda level: w @ np.clip(x - level * w, low, high) >= total)
    free = (enters <= first) & (leaves >= last)
    fixed = np.where(leaves <= first, low, high)
    if not free.any():  # the sum is constant between the two bends
        return np.asarray(np.clip(x - first * w, low, high))
    level = (float(w[free] @ x[free]) + float(w[~free] @ fixed[~free]) - total) / float(w[free] @ w[free])
    found = np.where(free, np.clip(x - level * w, low, high), fixed)
    # entries of a large point lose digits; their sum is known
    step = (total - float(w @ found)) / float(w[free] @ w[free])
    return np.where(free, np.clip(found + step * w, low, high), found)


def _span(opens: Array, closes: Array, below: Callable[[float], Any]) -> tuple[float, float]:
    """The neighbouring levels at which entries leave their bounds, by bisection, around the one wanted.

    Parameters
    ----------
    opens, closes : Array
        For each entry the levels at which it leaves its first bound and reaches the other one.
    below : Callable[[float], Any]
        Whether a level is at most the one wanted; the first level is taken to be.
    """
    bends = np.unique(np.concatenate([opens, closes]))
    first, last = 0, len(bends) - 1
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if below(bends[middle]) else (first, middle)
    return float(bends[first]), float(bends[last])


Limit = tuple[Array, float]
"""A linear constraint: ``costs @ sizes <= limit``, with positive costs and a positive limit."""


class Filled(NamedTuple):
    """The minimizer of a sum of reciprocals, with its dual certificate.

    Attributes
    ----------
    sizes : Array
        Shape ``(k,)``.
    prices : Array
        The reduced price of one unit of each entry, in units of the objective: the multipliers of the limits
        times the unit's costs. Shape ``(k,)``; all 0 if no limit binds.
    multiplier : float
        The largest value of ``prices @ sizes`` within the limits.
    """

    sizes: Array
    prices: Array
    multiplier: float

    def bound(self, gains: Array, floors: Array, caps: Array) -> float:
        """The Lagrangian dual's value: no sizes within floors, caps and limits have a smaller sum."""
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(self.prices > 0, np.sqrt(gains / self.prices), np.where(gains > 0, caps, floors))
        best = np.clip(best, floors, caps)
        return float((gains / best + self.prices * best).sum() - self.multiplier)


def water_fill(rates: Array, floors: Array, caps: Array, costs: Array, limit: float) -> tuple[Array, float]:
    """Give ``clip(level * rates, floors, caps)`` at the level that exhausts a limit.

    Parameters
    ----------
    rates : Array
        At least 0, shape ``(k,)``. Entries with rate 0 stay at their floors.
    floors, caps : Array
        At least 0, with ``floors <= caps``; shape ``(k,)``.
    costs : Array
        Above 0, shape ``(k,)``.
    limit : float
        On ``costs @ sizes``.

    Returns
    -------
    sizes : Array
        Shape ``(k,)``. The floors if they use the whole limit (or more), the caps if the limit allows them.
    level : float
        Infinite if the limit allows the caps of all entries with a positive rate.

    Notes
    -----
    The cost is a nondecreasing, piecewise linear function of the level that bends at ``floors / rates`` and
    ``caps / rates``. The algorithm sorts the bends, finds the neighboring pair around the level by bisection
    with exact evaluations, and solves the linear equation between them. It keeps no running sums, so that its
    error does not grow with k. O(k log k).

    References
    ----------
    Patriksson: A survey on the continuous nonlinear resource allocation problem. European Journal of
    Operational Research 185, 2008, section 4 (breakpoint search).

    Examples
    --------
    >>> ones = np.ones(3)
    >>> sizes, level = water_fill(np.array([1.0, 2.0, 7.0]), ones, 5 * ones, ones, 9.0)
    >>> sizes.round(9).tolist(), round(level, 9)
    ([1.333333333, 2.666666667, 5.0], 1.333333333)
    """
    grows = (rates > 0) & (caps > floors)
    top = np.where(grows, caps, floors).astype(float)
    if not grows.any() or costs @ top <= limit:
        return top, np.inf
    r, c = rates[grows].astype(float), costs[grows].astype(float)
    lo, hi = floors[grows].astype(float), caps[grows].astype(float)
    fixed = float(costs[~grows] @ top[~grows])
    opens, closes = lo / r, hi / r
    first, last = _span(opens, closes, lambda level: fixed + c @ np.clip(level * r, lo, hi) <= limit)
    free = (opens <= first) & (closes >= last)
    ends = np.where(closes <= first, hi, lo)
    slope = float((c * r)[free].sum())
    level = first
    if slope > 0:
        level = (limit - fixed - float(c[~free] @ ends[~free])) / slope
    level = float(np.clip(level, first, last))
    sizes = top
    sizes[grows] = np.where(free, np.clip(level * r, lo, hi), ends)
    return sizes, level


def least_reciprocals(gains: Array, floors: Array, caps: Array, limits: Sequence[Limit]) -> Filled | None:
    """Minimize ``(gains / sizes).sum()`` within floors, caps and limits.

    Parameters
    ----------
    gains : Array
        At least 0, shape ``(k,)``.
    floors, caps : Array
        Above 0, with ``floors <= caps``; shape ``(k,)``.
    limits : sequence of Limit
        At least one.

    Returns
    -------
    Filled or None
        None if the floors break a limit.

    Notes
    -----
    With one limit, ``sizes = clip(level * sqrt(gains / costs), floors, caps)`` at the level that exhausts it:
    Neyman's allocation with strata at a floor or cap fixed. With two, the optimum is that of one limit, a
    convex combination of both; the weight is found by bisection. O(k log k), times 60 with two limits. With
    more, the concave Lagrangian dual is maximized by L-BFGS over the logarithms of the multipliers;
    the sizes then are within about 1e-6 of the optimum. O(k) a limit and iteration.

    References
    ----------
    Neyman: On the two different aspects of the representative method. Journal of the Royal Statistical
    Society 97, 1934.

    Examples
    --------
    >>> k = np.ones(2)
    >>> least_reciprocals(np.array([1.0, 9.0]), k, 10 * k, [(k, 8.0)]).sizes.round(9).tolist()
    [2.0, 6.0]
    """
    if any(costs @ floors > limit * (1 + ROUNDING) for costs, limit in limits):
        return None
    units = [costs / limit for costs, limit in limits]
    if len(units) == 1:
        return _one(gains, floors, caps, units[0])
    for one in units:
        filled = _one(gains, floors, caps, one)
        if all(other @ filled.sizes <= 1 + ROUNDING for other in units):
            return filled
    if len(units) > 2:
        filled = _several(gains, floors, caps, np.array(units))
    else:
        low, high = 0.0, 1.0  # the weight of the first limit
        for _ in range(60):
            share = (low + high) / 2
            filled = _one(gains, floors, caps, share * units[0] + (1 - share) * units[1])
            low, high = (share, high) if units[0] @ filled.sizes > units[1] @ filled.sizes else (low, share)
    # The limits hold up to rounding: entries above their floors shrink until all hold.
    over = max(float(unit @ filled.sizes) for unit in units)
    if over > 1:
        filled = filled._replace(sizes=np.maximum(floors, filled.sizes / over))
    return filled


def _several(gains: Array, floors: Array, caps: Array, units: Array) -> Filled:
    """The maximum of the Lagrangian dual of the limits ``units @ sizes <= 1``, shape ``(L, k)``."""
    from scipy.optimize import minimize

    unit = float((gains / floors).sum()) or 1.0

    def sizes(logs: Array) -> tuple[Array, Array]:
        multipliers = unit * np.exp(logs)
        with np.errstate(over="ignore"):
            return multipliers, np.clip(np.sqrt(gains / (multipliers @ units)), floors, caps)

    def negated(logs: Array) -> tuple[float, Array]:
        multipliers, m = sizes(logs)
        excess = units @ m - 1.0
        return -float((gains / m).sum() + multipliers @ excess) / unit, -multipliers * excess / unit

    options = {"ftol": LEAST_DECREASE, "gtol": LEAST_GRADIENT, "maxiter": 1000}
    starts = [np.full(len(units), level) for level in (-8.0, -3.0)]
    found = [
        minimize(negated, x, jac=True, method="L-BFGS-B", bounds=[(-40, 20)] * len(x), options=options)
        for x in starts
    ]
    multipliers, m = sizes(min(found, key=lambda result: float(result.fun)).x)
    return Filled(m, multipliers @ units, float(multipliers.sum()))


def _one(gains: Array, floors: Array, caps: Array, unit: Array) -> Filled:
    """As `least_reciprocals`, for the limit ``unit @ sizes <= 1``."""
    sizes, level = water_fill(np.sqrt(gains / unit), floors, caps, unit, 1.0)
    multiplier = 0.0 if np.isinf(level) else 1.0 / level**2
    return Filled(sizes, multiplier * unit, multiplier)
