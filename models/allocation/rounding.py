"""From fractional sizes to whole ones."""

from __future__ import annotations

from typing import Literal

import numpy as np

from forcopt.arrays import Array
from forcopt.models.allocation.problem import ROUNDING
from forcopt.numeric import Limit, systematic_rounding

__all__ = ["Rounding", "rounded"]

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
        limits hold. ``"ceiling"``: all up; may break the limits by as much as one record a stratum.
        ``"nearest"``: what ``round`` does in most software (halves to even); may break the limits.
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
    first = int((np.cumsum(each, axis=0) <= left).all(axis=1).sum())  # so many fit one after the other
    down[order[:first]] += 1
    left -= each[:first].sum(axis=0)
    for i, costs in zip(order[first:], each[first:], strict=True):  # then those cheap enough for what is left
        if (left < each.min(axis=0)).any():
            break
        if (costs <= left).all():
            down[i] += 1
            left -= costs
    return down
