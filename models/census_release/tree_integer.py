"""Joint least squares over whole counts on a tree by merging marginal costs; its proof by prices."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.compiled import njit
from forcopt.data.hierarchy import Hierarchy
from forcopt.errors import DeclarationError
from forcopt.loops.certify import Certificate
from forcopt.models.census_release.common import Column, column_of, demand, out_of_time
from forcopt.models.census_release.passes import check_clock, least_squares
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.models.census_release.tree_real import nonnegative_leaves
from forcopt.problem import Outcome

_NARROWEST = 2
"""Half the width of a unit's first window."""


class _Units(NamedTuple):
    """The units of one level: their counts may lie from `low` to `high`, their children's sums allow more.

    The children of unit p are ``order[kids[p]:kids[p + 1]]``; leaves have none.
    """

    order: Array
    kids: Array
    noisy: Array
    weight: float
    low: Array
    high: Array
    least: Array
    most: Array


class _Steps(NamedTuple):
    """The marginal costs of one more in each unit v, rising: ``cost[begin[v]:begin[v + 1]]``."""

    begin: Array
    cost: Array


@njit(cache=True)
def _room(units):  # type: ignore[no-untyped-def]
    """Empty steps for the windows of these units."""
    begin = np.zeros(len(units.noisy) + 1, np.int64)
    begin[1:] = np.cumsum(units.high - units.low)
    return _Steps(begin, np.empty(begin[-1]))


@njit(cache=True)
def _leaf_steps(units):  # type: ignore[no-untyped-def]
    """The costs of one more in each leaf, within its window."""
    low, out = units.low, _room(units)
    # The leaves before v have their costs; leaf v has those of its first j steps.
    for v in range(len(units.noisy)):
        for j in range(units.high[v] - low[v]):
            out.cost[out.begin[v] + j] = units.weight * (2.0 * (low[v] + j - units.noisy[v]) + 1.0)
    return out


@njit(cache=True)
def _gather(p, units, below):  # type: ignore[no-untyped-def]
    """The marginal costs of the children of p in order of size, and the child that each belongs to."""
    order, kids, begin = units.order, units.kids, below.begin
    count = 0
    # `count` is the number of steps of the children seen.
    for i in range(kids[p], kids[p + 1]):
        count += begin[order[i] + 1] - begin[order[i]]
    costs, owner = np.empty(count), np.empty(count, np.int64)
    k = 0
    # The first k places hold the steps of the children seen, child by child.
    for i in range(kids[p], kids[p + 1]):
        c = order[i]
        for j in range(begin[c], begin[c + 1]):
            costs[k], owner[k] = below.cost[j], c
            k += 1
    ranks = np.argsort(costs, kind="mergesort")
    return costs[ranks], owner[ranks]


@njit(cache=True)
def _merge(units, below):  # type: ignore[no-untyped-def]
    """The costs of one more in each unit: its children's cheapest, and its own term."""
    low, out = units.low, _room(units)
    # The units before p have their costs: the children's in order of size from `low` on, plus the own term's.
    for p in range(len(units.noisy)):
        costs, _ = _gather(p, units, below)
        for j in range(units.high[p] - low[p]):
            own = units.weight * (2.0 * (low[p] + j - units.noisy[p]) + 1.0)
            out.cost[out.begin[p] + j] = costs[low[p] - units.least[p] + j] + own
    return out


@njit(cache=True)
def _share(counts, units, below, low):  # type: ignore[no-untyped-def]
    """The children's counts, from `low` up: each unit takes its children's cheapest steps."""
    out = low.copy()
    # The children of the units before p add up to these units' counts.
    for p in range(len(counts)):
        _, owner = _gather(p, units, below)
        for k in range(counts[p] - units.least[p]):
            out[owner[k]] += 1
    return out


def _whole(
    h: Hierarchy, column: Column, centre: list[Array], floor: float, clock: Deadline, widen: int
) -> tuple[Array, int]:
    """The optimal leaves of one type, and the rounds of windows."""
    reach = [np.full(len(c), _NARROWEST * widen, dtype=np.int64) for c in centre]
    middle = [np.floor(c).astype(np.int64) for c in centre]
    rounds = 0
    while True:
        rounds += 1
        levels, steps = _windows(h, column, middle, reach, floor, clock)
        count = levels[0].low.copy()
        if np.isnan(column.held[0][0]):
            count += int((steps[0].cost < 0).sum())
        counts = [count]
        for level in range(1, h.depth):
            check_clock(clock)
            counts.append(_share(counts[-1], levels[level - 1], steps[level], levels[level].low))
        settled = True
        for level, (found, units) in enumerate(zip(counts, levels, strict=True)):
            wall = -np.inf if level < h.depth - 1 else floor
            tight = (found == units.low) & (units.low > np.maximum(wall, units.least))
            tight |= (found == units.high) & (units.high < units.most)
            tight &= np.isnan(column.held[level])
            if tight.any():
                settled = False
                reach[level][tight] *= 4
        if settled:
            return counts[-1], rounds


def _windows(
    h: Hierarchy, column: Column, middle: list[Array], reach: list[Array], floor: float, clock: Deadline
) -> tuple[list[_Units], list[_Steps]]:
    """By level, root first: the units with their windows, and marginal costs within.

    `reach` grows in place where the windows of the children cannot reach an invariant.
    """
    levels: list[_Units] = []
    steps: list[_Steps] = []
    for level in range(h.depth - 1, -1, -1):
        check_clock(clock)
        noisy, held, weight = column.noisy[level], column.held[level], column.weights[level]
        is_held = ~np.isnan(held)
        value = np.where(is_held, held, 0.0).astype(np.int64)
        low, high = middle[level] - reach[level], middle[level] + reach[level]
        if level == h.depth - 1:
            order = kids = np.empty(0, dtype=np.int64)
            least, most = np.full(len(value), -np.inf), np.full(len(value), np.inf)
            low = np.maximum(low, int(floor)) if np.isfinite(floor) else low
            high = np.maximum(high, low)
        else:
            order, kids = h.children[level]
            least, most = h.up(level + 1, levels[-1].low), h.up(level + 1, levels[-1].high)
            low, high = np.clip(low, least, most), np.clip(high, least, most)
            if is_held.any() and ((value < least) | (value > most))[is_held].any():
                reach[level + 1] *= 4
                return _windows(h, column, middle, reach, floor, clock)
        low, high = np.where(is_held, value, low), np.where(is_held, value, high)
        levels.append(_Units(order, kids, noisy, weight, low, high, least, most))
        steps.append(_merge(levels[-1], steps[-1]) if steps else _leaf_steps(levels[-1]))
    return levels[::-1], steps[::-1]


@ConsistentRelease.algorithm(
    "tree-integer",
    exact=True,
    cites="Murota (2003), Discrete Convex Analysis, Theorem 6.26; laminar sums are M-natural-convex",
)
def tree_integer(problem: ConsistentRelease, *, windows: int = 1, time_limit: float | None = None) -> Outcome:
    """Whole counts in joint order, by merging marginal costs in windows about the real optimum.

    The least cost below a unit is a convex function of its whole count; its marginal costs are the children's
    in order of size, plus that of the unit's own term. They are merged upwards within windows; downwards each
    unit takes its children's cheapest steps. The objective, a sum of convex functions of a laminar family, is
    M-natural-convex, so that a point which no exchange of one person improves is optimal: an optimum within
    windows at none of whose edges it lies is the optimum. Otherwise the windows at the edge are widened.

    Parameters
    ----------
    problem : ConsistentRelease
        With ``order="joint"`` and ``integer=True``.
    windows : int, default 1
        A factor for the first windows. The objective does not depend on it.
    """
    demand(problem, "tree-integer", order="joint", integer=True)
    h, clock, held = problem.hierarchy, Deadline(time_limit), problem.held
    floor = 0.0 if problem.nonnegative else -np.inf
    try:
        if problem.nonnegative:
            centre = h.sums(nonnegative_leaves(problem, clock))
        else:
            centre = h.sums(least_squares(h, problem.noisy, list(problem.weights), held, clock))
        columns, rounds = [], 0
        for t in range(problem.types):
            near = [level[:, t] for level in centre]
            leaves, used = _whole(h, column_of(problem, t), near, floor, clock, windows)
            columns.append(leaves)
            rounds += used
    except TimeoutError as error:
        return out_of_time(error)
    return Outcome(Release.of_leaves(h, np.stack(columns, axis=1)), iterations=rounds)


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
