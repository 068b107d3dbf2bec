"""Joint least squares over whole counts on a tree, by merging marginal costs."""

from __future__ import annotations

import numpy as np
from numba import njit

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.data.hierarchy import Hierarchy
from forcopt.models.census_release.common import demand, infeasible, out_of_time
from forcopt.models.census_release.passes import check_clock, least_squares
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.models.census_release.tree_nnls import nonnegative_leaves
from forcopt.problem import Outcome

__all__ = ["tree_integer"]

_NARROWEST = 2
"""Half the width of a unit's first window."""


@njit(cache=True)
def _leaf_marginals(noisy, weight, low, high):  # type: ignore[no-untyped-def]
    """The costs of one more in each leaf, within its window."""
    n = len(noisy)
    begin = np.zeros(n + 1, np.int64)
    for v in range(n):
        begin[v + 1] = begin[v] + high[v] - low[v]
    cost = np.empty(begin[n])
    for v in range(n):
        for j in range(high[v] - low[v]):
            cost[begin[v] + j] = weight * (2.0 * (low[v] + j - noisy[v]) + 1.0)
    return begin, cost


@njit(cache=True)
def _gather(p, order, kids, begin, cost):  # type: ignore[no-untyped-def]
    """The children's marginal costs in order of size, and the child that each belongs to."""
    count = 0
    for i in range(kids[p], kids[p + 1]):
        count += begin[order[i] + 1] - begin[order[i]]
    costs, owner = np.empty(count), np.empty(count, np.int64)
    k = 0
    for i in range(kids[p], kids[p + 1]):
        c = order[i]
        for j in range(begin[c], begin[c + 1]):
            costs[k], owner[k] = cost[j], c
            k += 1
    ranks = np.argsort(costs, kind="mergesort")
    return costs[ranks], owner[ranks]


@njit(cache=True)
def _merge(order, kids, noisy, weight, least, low, high, begin, cost):  # type: ignore[no-untyped-def]
    """The costs of one more in each unit: its children's cheapest, and its own term."""
    n = len(noisy)
    own = np.zeros(n + 1, np.int64)
    for p in range(n):
        own[p + 1] = own[p] + high[p] - low[p]
    out = np.empty(own[n])
    for p in range(n):
        costs, _ = _gather(p, order, kids, begin, cost)
        for j in range(high[p] - low[p]):
            out[own[p] + j] = costs[low[p] - least[p] + j] + weight * (2.0 * (low[p] + j - noisy[p]) + 1.0)
    return own, out


@njit(cache=True)
def _share(order, kids, counts, least, low, begin, cost):  # type: ignore[no-untyped-def]
    """The children's counts: each unit takes its children's cheapest steps."""
    out = low.copy()
    for p in range(len(counts)):
        _, owner = _gather(p, order, kids, begin, cost)
        for k in range(counts[p] - least[p]):
            out[owner[k]] += 1
    return out


def _whole(
    h: Hierarchy,
    noisy: list[Array],
    weights: list[float],
    held: list[Array],
    centre: list[Array],
    floor: float,
    clock: Deadline,
    widen: int,
) -> tuple[Array, int]:
    """The optimal leaves of one type, and the rounds of windows."""
    reach = [np.full(len(c), _NARROWEST * widen, dtype=np.int64) for c in centre]
    middle = [np.floor(c).astype(np.int64) for c in centre]
    rounds = 0
    while True:
        rounds += 1
        low, high, least, most, supply = _windows(h, noisy, weights, held, middle, reach, floor, clock)
        begin, cost = supply[0]
        count = low[0].copy()
        if np.isnan(held[0][0]):
            count += int((cost < 0).sum())
        counts = [count]
        for level in range(1, h.depth):
            check_clock(clock)
            order, kids = h.children[level - 1]
            begin, cost = supply[level]
            counts.append(_share(order, kids, counts[-1], least[level - 1], low[level], begin, cost))
        settled = True
        for level, found in enumerate(counts):
            free = np.isnan(held[level])
            wall = -np.inf if level < h.depth - 1 else floor
            tight = (found == low[level]) & (low[level] > np.maximum(wall, least[level]))
            tight |= (found == high[level]) & (high[level] < most[level])
            tight &= free
            if tight.any():
                settled = False
                reach[level][tight] *= 4
        if settled:
            return counts[-1], rounds


def _windows(
    h: Hierarchy,
    noisy: list[Array],
    weights: list[float],
    held: list[Array],
    middle: list[Array],
    reach: list[Array],
    floor: float,
    clock: Deadline,
) -> tuple[list[Array], list[Array], list[Array], list[Array], list[tuple[Array, Array]]]:
    """By level: the windows, the sums of the children's windows, and marginal costs within."""
    depth = h.depth
    low: list[Array] = [np.empty(0)] * depth
    high, least, most = list(low), list(low), list(low)
    supply: list[tuple[Array, Array]] = [(np.empty(0), np.empty(0))] * depth
    for level in range(depth - 1, -1, -1):
        check_clock(clock)
        is_held = ~np.isnan(held[level])
        value = np.where(is_held, held[level], 0.0).astype(np.int64)
        if level == depth - 1:
            least[level] = np.full(len(value), -np.inf)
            most[level] = np.full(len(value), np.inf)
            low[level] = middle[level] - reach[level]
            if np.isfinite(floor):
                low[level] = np.maximum(low[level], int(floor))
            high[level] = np.maximum(middle[level] + reach[level], low[level])
        else:
            least[level], most[level] = h.up(level + 1, low[level + 1]), h.up(level + 1, high[level + 1])
            low[level] = np.clip(middle[level] - reach[level], least[level], most[level])
            high[level] = np.clip(middle[level] + reach[level], least[level], most[level])
            if is_held.any() and ((value < least[level]) | (value > most[level]))[is_held].any():
                reach[level + 1] *= 4  # the children's windows cannot reach an invariant
                return _windows(h, noisy, weights, held, middle, reach, floor, clock)
        low[level] = np.where(is_held, value, low[level])
        high[level] = np.where(is_held, value, high[level])
        if level == depth - 1:
            supply[level] = _leaf_marginals(noisy[level], weights[level], low[level], high[level])
        else:
            order, kids = h.children[level]
            supply[level] = _merge(
                order,
                kids,
                noisy[level],
                weights[level],
                least[level],
                low[level],
                high[level],
                *supply[level + 1],
            )
    return low, high, least, most, supply


def _prepare() -> None:
    tree = Hierarchy(parents=(np.array([0, 0]), np.array([0, 0, 1])))
    noisy = (np.array([3.0]), np.array([1.0, 2.0]), np.ones(3))
    ConsistentRelease(tree, noisy, np.ones(3), integer=True).solve("tree-integer")


@ConsistentRelease.algorithm(
    "tree-integer",
    exact=True,
    cites="Murota (2003), Discrete Convex Analysis, Theorem 6.26; laminar sums are M-natural-convex",
    prepare=_prepare,
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
    time_limit : float, optional
        Seconds.
    """
    demand(problem, "tree-integer", order="joint", integer=True)
    if (none := infeasible(problem)) is not None:
        return none
    h, clock, held = problem.hierarchy, Deadline(time_limit), problem.held
    try:
        if problem.nonnegative:
            centre = h.sums(nonnegative_leaves(problem, clock))
        else:
            centre = h.sums(least_squares(h, problem.noisy, list(problem.weights), held, clock))
        columns, rounds = [], 0
        for t in range(problem.types):
            leaves, used = _whole(
                h,
                [np.array(level[:, t]) for level in problem.noisy],
                [float(w[t]) for w in problem.weights],
                [np.array(level[:, t]) for level in held],
                [level[:, t] for level in centre],
                0.0 if problem.nonnegative else -np.inf,
                clock,
                windows,
            )
            columns.append(leaves)
            rounds += used
    except TimeoutError as error:
        return out_of_time(error)
    return Outcome(Release.of_leaves(h, np.stack(columns, axis=1)), iterations=rounds)
