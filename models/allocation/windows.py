"""Which sizes an optimal allocation can have at all, by the Lagrangian bound."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.models.allocation.greedy import greedy_sizes
from forcopt.numeric import Filled, Limit

__all__ = ["allocation_windows", "windows"]

ROUNDING = 1e-12


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
    level = best * (1 + ROUNDING) + gap
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(np.maximum(level**2 - 4 * gains * prices, 0.0))
        low = np.where(gains > 0, 2 * gains / (level + root), 0.0)
        high = np.where(prices > 0, (level + root) / (2 * prices), caps)
    return (
        np.clip(np.ceil(low * (1 - ROUNDING)), floors, caps).astype(np.int64),
        np.clip(np.floor(high * (1 + ROUNDING)), floors, caps).astype(np.int64),
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
    return windows(gains, prices, floors, caps, gap + ROUNDING * abs(bound))


def _levels(gains: Array, prices: Array, floors: Array, caps: Array, found: Array) -> list[float]:
    """Multiples of the prices to try: 1, and those at which greedy's last record or its next one pays."""
    if not (prices > 0).all():
        return [1.0]
    worth = gains / prices
    last, following = found > floors, (found < caps) & (gains > 0)
    lost = (worth[last] / (found[last] * (found[last] - 1.0))).min(initial=np.inf)
    won = (worth[following] / (found[following] * (found[following] + 1.0))).max(initial=0.0)
    return [1.0, *(float(level) for level in (lost, won) if 0 < level < np.inf)]
