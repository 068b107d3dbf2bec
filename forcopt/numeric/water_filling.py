"""Water-filling: sizes in proportion to rates within floors and caps, and the least sum of reciprocals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array

__all__ = ["Filled", "Limit", "least_reciprocals", "water_fill"]

Limit = tuple[Array, float]
"""A linear constraint: ``costs @ sizes <= limit``, with positive costs and a positive limit."""

_ROUNDING = 1e-9
"""A limit may be exceeded by this much, relative: three times 0.1 is more than 0.3."""


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
    bends = np.unique(np.concatenate([opens, closes]))
    first, last = 0, len(bends) - 1
    while last - first > 1:
        middle = (first + last) // 2
        spent = fixed + float(c @ np.clip(bends[middle] * r, lo, hi))
        first, last = (middle, last) if spent <= limit else (first, middle)
    free = (opens <= bends[first]) & (closes >= bends[last])
    ends = np.where(closes <= bends[first], hi, lo)
    slope = float((c * r)[free].sum())
    level = float(bends[first])
    if slope > 0:
        level = (limit - fixed - float(c[~free] @ ends[~free])) / slope
    level = float(np.clip(level, bends[first], bends[last]))
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
    if any(costs @ floors > limit * (1 + _ROUNDING) for costs, limit in limits):
        return None
    units = [costs / limit for costs, limit in limits]
    if len(units) == 1:
        return _one(gains, floors, caps, units[0])
    for one in units:
        filled = _one(gains, floors, caps, one)
        if all(other @ filled.sizes <= 1 + _ROUNDING for other in units):
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

    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 1000}
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
