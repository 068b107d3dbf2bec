"""Optimality of a whole release in exact arithmetic, by prices of the flow on the tree."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.loops.certify import Certificate
from forcopt.models.census_release.problem import ConsistentRelease

__all__ = ["tree_certificate"]


def tree_certificate(problem: ConsistentRelease, counts: tuple[Array, ...]) -> Certificate:
    """Prove or refute that whole counts are optimal in joint order.

    Parameters
    ----------
    problem : ConsistentRelease
        Separable, whole, in joint order.
    counts : tuple[Array, ...]
        By level, shapes ``(units, types)``.

    Notes
    -----
    Counts are optimal exactly if each unit's children have a price such that the difference between the price
    above a unit and that below it lies between the unit's last and next marginal cost (0 above the root and
    below the leaves). Upwards, the interval of prices that a unit allows its parent is the intersection of
    its children's, shifted by its own marginal costs. All numbers are integers: floats are read as fractions
    and brought to one denominator. O(n).

    Counts that tie in decimals need not tie in binary floats; then a release that is optimal up to rounding
    is refuted. Whole noise, and precisions such as 1/4, have no rounding.
    """
    if not (problem.separable and problem.integer and problem.order == "joint"):
        raise DeclarationError("tree_certificate: the problem must be separable, whole and in joint order")
    h = problem.hierarchy
    evaluation = problem.evaluate(counts)
    whole = all((level == np.round(level)).all() for level in counts)
    exact = (
        whole
        and evaluation.violation == 0
        and all(
            (h.up(level, counts[level].astype(np.int64)) == counts[level - 1]).all()
            for level in range(1, h.depth)
        )
    )
    if not exact:
        amount = Fraction(float(evaluation.violation))
        return Certificate(False, amount, None, None, False, "the counts break the declaration")
    wrong = [t for t in range(problem.types) if not _has_prices(problem, counts, t)]
    objective = problem.exact_objective(tuple(level.astype(np.int64) for level in counts))
    if wrong:
        how = f"exact: no prices support the counts of type {wrong[0]}, so that an exchange improves them"
        return Certificate(True, Fraction(0), objective, None, False, how)
    how = "exact: prices on the tree support every count, in integer arithmetic"
    return Certificate(True, Fraction(0), objective, objective, True, how)


def _has_prices(problem: ConsistentRelease, counts: tuple[Array, ...], t: int) -> bool:
    h = problem.hierarchy
    weights = [Fraction(float(w[t])) for w in problem.weights]
    noisy = [[Fraction(float(y)) for y in level[:, t]] for level in problem.noisy]
    scale = lcm(*(w.denominator for w in weights)) * lcm(*{y.denominator for level in noisy for y in level})
    endless = 2 * sum(
        int(w * scale * (2 * max(abs(int(x)) + abs(y) for x, y in zip(level[:, t], ys, strict=True)) + 2)) + 1
        for w, level, ys in zip(weights, counts, noisy, strict=True)
    )
    below: tuple[Array, Array] | None = None
    for level in range(h.depth - 1, -1, -1):
        slope = int(weights[level] * scale)
        ys = np.array([int(y * scale) for y in noisy[level]], dtype=object)  # times weight below
        found = np.array([int(x) for x in counts[level][:, t]], dtype=object)
        gap = 2 * (found * scale - ys)  # marginal cost times scale^2 / weight, but for +- scale
        last, following = slope * (gap - scale), slope * (gap + scale)
        limit = endless * scale * 4
        if level == h.depth - 1 and problem.nonnegative:
            last = np.where(found == 0, -limit, last)
        held = ~np.isnan(problem.held[level][:, t])
        low = last if below is None else below[0] + last
        high = following if below is None else below[1] + following
        low, high = np.where(held, -limit, low), np.where(held, limit, high)
        if (low > high).any():
            return False
        if level == 0:
            return bool(low[0] <= 0 <= high[0])
        order, begin = h.children[level - 1]
        low = np.maximum.reduceat(low[order], begin[:-1])
        high = np.minimum.reduceat(high[order], begin[:-1])
        if (low > high).any():
            return False
        below = low, high
    raise AssertionError
