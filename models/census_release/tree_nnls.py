"""Joint nonnegative least squares on a tree by adding up the children's supply functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.data.hierarchy import Hierarchy
from forcopt.models.census_release.common import demand, infeasible, out_of_time
from forcopt.models.census_release.passes import check_clock, least_squares
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.problem import Outcome

__all__ = ["nonnegative_leaves", "tree_nnls"]


@njit(cache=True)
def _leaf_supply(noisy, weight, fixed):  # type: ignore[no-untyped-def]
    """The supply of leaves: a fixed one has no knot, another leaves 0 at the multiplier -weight * noisy."""
    n = len(noisy)
    begin = np.zeros(n + 1, np.int64)
    for v in range(n):
        begin[v + 1] = begin[v] + (not fixed[v])
    at = np.empty(begin[n])
    for v in range(n):
        if not fixed[v]:
            at[begin[v]] = -weight * noisy[v]
    return begin, at, np.zeros(begin[n]), np.full(begin[n], 1.0 / weight)


@njit(cache=True)
def _merge(order, kids, noisy, weight, held, low, begin, at, slope):  # type: ignore[no-untyped-def]
    """The supply of units from that of their children.

    Knots of a unit: multipliers `at`, supply `value` there, `slope` after it; below the first, the supply is
    `low`. The children's functions add up: their knots are merged. The unit's own term shifts each knot by
    its derivative there. A held unit keeps the merged knots, for the way down.
    """
    n = len(noisy)
    own = np.zeros(n + 1, np.int64)
    for p in range(n):
        count = 0
        for i in range(kids[p], kids[p + 1]):
            count += begin[order[i] + 1] - begin[order[i]]
        own[p + 1] = own[p] + count
    out_at, out_value, out_slope = np.empty(own[n]), np.empty(own[n]), np.empty(own[n])
    for p in range(n):
        count = own[p + 1] - own[p]
        if not count:
            continue
        knots, steps = np.empty(count), np.empty(count)
        k = 0
        for i in range(kids[p], kids[p + 1]):
            c, before = order[i], 0.0
            for j in range(begin[c], begin[c + 1]):
                knots[k], steps[k] = at[j], slope[j] - before
                before = slope[j]
                k += 1
        ranks = np.argsort(knots)
        value, rise, last = low[p], 0.0, knots[ranks[0]]
        for k in range(count):
            r = ranks[k]
            value += rise * (knots[r] - last)
            rise += steps[r]
            last = knots[r]
            j = own[p] + k
            out_value[j] = value
            if np.isnan(held[p]):
                out_at[j] = last + weight * (value - noisy[p])
                out_slope[j] = rise / (1.0 + weight * rise)
            else:
                out_at[j], out_slope[j] = last, rise
    return own, out_at, out_value, out_slope


@njit(cache=True)
def _hide(begin, held, at, value, slope):  # type: ignore[no-untyped-def]
    """The knots without those of held units, whose supply is constant for their parents."""
    n = len(held)
    own = np.zeros(n + 1, np.int64)
    for v in range(n):
        own[v + 1] = own[v] + (begin[v + 1] - begin[v] if np.isnan(held[v]) else 0)
    out_at, out_slope = np.empty(own[n]), np.empty(own[n])
    for v in range(n):
        if np.isnan(held[v]):
            for j in range(begin[v + 1] - begin[v]):
                out_at[own[v] + j], out_slope[own[v] + j] = at[begin[v] + j], slope[begin[v] + j]
    return own, out_at, out_slope


@njit(cache=True)
def _pass_down(parent, above, noisy, weight, held, begin, at, value, slope):  # type: ignore[no-untyped-def]
    """The multiplier of each unit's children, from that above the unit; -inf if all are at their least."""
    n = len(noisy)
    out = np.empty(n)
    for v in range(n):
        first, end = begin[v], begin[v + 1]
        if first == end:
            out[v] = -np.inf
        elif np.isnan(held[v]):
            price = above[parent[v]]
            j = first + np.searchsorted(at[first:end], price, side="right") - 1
            if j < first:
                out[v] = -np.inf
            else:
                out[v] = price - weight * (value[j] + slope[j] * (price - at[j]) - noisy[v])
        else:
            j = first + np.searchsorted(value[first:end], held[v], side="left") - 1
            out[v] = -np.inf if j < first else at[j] + (held[v] - value[j]) / slope[j]
    return out


def _support(
    h: Hierarchy,
    noisy: list[Array],
    weights: list[float],
    held: list[Array],
    low: list[Array],
    clock: Deadline,
) -> Array:
    """Which leaves of one type are above 0 in the optimum, shape ``(leaves,)``."""
    last = h.depth - 1
    fixed = ~np.isnan(held[last])
    supply: list[Any] = [None] * h.depth
    supply[last] = _leaf_supply(noisy[last], weights[last], fixed)
    begin, at, _, slope = supply[last]
    for level in range(last - 1, -1, -1):
        check_clock(clock)
        order, kids = h.children[level]
        below = h.up(level + 1, low[level + 1])
        supply[level] = _merge(
            order, kids, noisy[level], weights[level], held[level], below, begin, at, slope
        )
        begin, at, slope = _hide(supply[level][0], held[level], *supply[level][1:])
    price = np.zeros(1)  # of the root's sum, which is free
    for level in range(last):
        check_clock(clock)
        parent = np.zeros(1, dtype=np.int64) if level == 0 else h.parents[level - 1]
        price = _pass_down(parent, price, noisy[level], weights[level], held[level], *supply[level])
    price = np.zeros(h.leaves) if last == 0 else price[h.parents[-1]]
    return np.asarray(~fixed & (price > -weights[last] * noisy[last]))


def nonnegative_leaves(problem: ConsistentRelease, deadline: Deadline) -> Array:
    """The leaves of the joint optimum with counts at least 0, shape ``(leaves, types)``.

    The supply functions give the leaves above 0; least squares on these leaves gives their counts without the
    rounding of long sums.
    """
    h = problem.hierarchy
    held = problem.held
    zeros = [level.copy() for level in held]
    for t in range(problem.types):
        support = _support(
            h,
            [np.array(level[:, t]) for level in problem.noisy],
            [float(w[t]) for w in problem.weights],
            [np.array(level[:, t]) for level in held],
            [np.array(low[:, t]) for low, _ in problem.floors],
            deadline,
        )
        column = zeros[-1][:, t]
        column[~support & np.isnan(column)] = 0.0
    found = least_squares(h, problem.noisy, list(problem.weights), zeros, deadline)
    return np.maximum(found, np.where(np.isnan(held[-1]), 0.0, held[-1]))


def _prepare() -> None:
    tree = Hierarchy(parents=(np.array([0, 0]), np.array([0, 0, 1])))
    noisy = (np.array([3.0]), np.array([1.0, 2.0]), np.ones(3))
    ConsistentRelease(tree, noisy, np.ones(3)).solve("tree-nnls")


@ConsistentRelease.algorithm(
    "tree-nnls",
    exact=True,
    cites="supply functions of separable quadratic flows; after Hochbaum and Shanthikumar (1990)",
    prepare=_prepare,
)
def tree_nnls(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real nonnegative counts in joint order, in O(n depth log n).

    Let f(s) be the least cost below a unit whose count is s. Its derivative is piecewise linear and
    increasing; the inverse, the *supply* at a multiplier, is the sum of the children's supplies with each
    knot shifted by the derivative of the unit's own term. Upwards, supplies are merged; downwards, each
    unit's multiplier follows from its parent's.
    """
    demand(problem, "tree-nnls", order="joint", nonnegative=True)
    if (none := infeasible(problem)) is not None:
        return none
    try:
        leaves = nonnegative_leaves(problem, Deadline(time_limit))
    except TimeoutError as error:
        return out_of_time(error)
    return Outcome(Release.of_leaves(problem.hierarchy, leaves))
