"""Minimise ``sum_i a_i / m_i`` within floors, caps and linear limits: the continuous optimum."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.models.allocation.problem import ROUNDING, Limit

__all__ = ["Filled", "fill", "least"]


class Filled(NamedTuple):
    """The continuous optimum.

    Attributes
    ----------
    sizes : Array
        Shape ``(k,)``.
    prices : Array
        What one more record of each stratum costs at the optimum, in units of the objective; the multipliers
        of the limits times what a record takes of them. Shape ``(k,)``.
    multiplier : float
        ``prices @ sizes`` is this at most for all sizes within the limits.
    """

    sizes: Array
    prices: Array
    multiplier: float


def least(gains: Array, floors: Array, caps: Array, limits: list[Limit]) -> Filled | None:
    """Minimise ``(gains / sizes).sum()`` within floors, caps and one or two limits.

    With one limit, ``sizes = clip(s * sqrt(gains / costs), floors, caps)`` for the s that exhausts it:
    Neyman's allocation, with strata at a cap or floor fixed and the rest shared out anew. With two, their
    right mixture is one limit that is optimal for both; it is found by bisection.

    Returns
    -------
    Filled
        None if the floors break a limit. O(k log k), times 60 with two limits.
    """
    if any(costs @ floors > limit * (1 + ROUNDING) for costs, limit in limits):
        return None
    units = [costs / limit for costs, limit in limits]
    if len(units) == 1:
        return _one(gains, floors, caps, units[0])
    for one, other in (units, units[::-1]):
        filled = _one(gains, floors, caps, one)
        if other @ filled.sizes <= 1 + ROUNDING:
            return filled
    low, high = 0.0, 1.0  # the share of the first limit in the mixture
    for _ in range(60):
        share = (low + high) / 2
        filled = _one(gains, floors, caps, share * units[0] + (1 - share) * units[1])
        low, high = (share, high) if units[0] @ filled.sizes > units[1] @ filled.sizes else (low, share)
    # both limits hold with equality, up to rounding: shrink what is not at a floor until they do
    over = max(float(unit @ filled.sizes) for unit in units)
    if over > 1:
        filled = filled._replace(sizes=np.maximum(floors, filled.sizes / over))
    return filled


def _one(gains: Array, floors: Array, caps: Array, unit: Array) -> Filled:
    """As `least`, for the limit ``unit @ sizes <= 1``."""
    sizes, level = fill(np.sqrt(gains / unit), floors, caps, unit, 1.0)
    multiplier = 0.0 if np.isinf(level) else 1.0 / level**2
    return Filled(sizes, multiplier * unit, multiplier)


def fill(rates: Array, floors: Array, caps: Array, costs: Array, limit: float) -> tuple[Array, float]:
    """Give ``clip(level * rates, floors, caps)`` with the level at which it costs just the limit.

    The cost is piecewise linear in the level, so that sorting where it bends gives the level exactly. If even
    the caps cost less, the level is infinite; strata of rate 0 stay at their floors.
    """
    grows = (rates > 0) & (caps > floors)
    top = np.where(grows, caps, floors).astype(float)
    if costs @ top <= limit or not grows.any():
        return top, np.inf
    r, c, lo, hi = rates[grows], costs[grows], floors[grows], caps[grows]
    bends = np.concatenate([lo / r, hi / r])
    slopes = np.concatenate([c * r, -c * r])
    order = np.argsort(bends, kind="stable")
    at, slope = bends[order], np.cumsum(slopes[order])
    spent = float(costs @ floors) + np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(at))])
    first = max(int(np.searchsorted(spent, limit, side="right")) - 1, 0)
    level = at[first] + max(limit - spent[first], 0.0) / max(slope[first], np.finfo(float).tiny)
    # once more with the strata that are strictly between, without the sums' rounding
    free = (lo < level * r) & (level * r < hi)
    if free.any():
        fixed = float(costs[~grows] @ floors[~grows]) + float(
            c[~free] @ np.where(level * r >= hi, hi, lo)[~free]
        )
        level = (limit - fixed) / float((c * r)[free].sum())
    sizes = floors.astype(float)
    sizes[grows] = np.clip(level * r, lo, hi)
    return sizes, float(level)
