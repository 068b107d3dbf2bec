"""Joint least squares on a tree: signs free by two passes, counts at least 0 by supply functions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.compiled import njit
from forcopt.data.hierarchy import Hierarchy
from forcopt.models.census_release.common import Column, answered, column_of, demand
from forcopt.models.census_release.passes import check_clock, least_squares
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.problem import Outcome


@ConsistentRelease.algorithm(
    "tree-wls",
    exact=True,
    cites="Hay, Rastogi, Miklau, Suciu (2010), Theorem 3, with weights",
    rank="published",
)
def tree_wls(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real counts of any sign in joint order: the best linear unbiased estimate, in O(n).

    Fixed counts (invariants and zeros) are measurements without variance.
    """
    demand(problem, "tree-wls", order="joint", nonnegative=False, integer=False)
    h, weights, clock = problem.hierarchy, list(problem.weights), Deadline(time_limit)
    return answered(problem, lambda: least_squares(h, problem.noisy, weights, problem.held, clock))


class _Units(NamedTuple):
    """The units of one level; the children of unit p are ``order[kids[p]:kids[p + 1]]``.

    `held` is the count that a unit must have, NaN if it is free; `low` the least that its children allow.
    """

    order: Array
    kids: Array
    noisy: Array
    weight: float
    held: Array
    low: Array


class _Supply(NamedTuple):
    """The supply of each unit at multipliers, piecewise linear; unit v has the knots from ``begin[v]`` on.

    At the multiplier `at` the supply is `value`, and rises by `slope` after it. Below the first knot it is
    constant.
    """

    begin: Array
    at: Array
    value: Array
    slope: Array


@njit(cache=True)
def _leaf_supply(noisy, weight, fixed):  # type: ignore[no-untyped-def]
    """The supply of leaves: a fixed one has no knot, another leaves 0 at the multiplier -weight * noisy."""
    n = len(noisy)
    begin = np.zeros(n + 1, np.int64)
    # begin[v] is the number of free leaves before v.
    for v in range(n):
        begin[v + 1] = begin[v] + (not fixed[v])
    at = np.empty(begin[n])
    # The free leaves before v have their knots.
    for v in range(n):
        if not fixed[v]:
            at[begin[v]] = -weight * noisy[v]
    return _Supply(begin, at, np.zeros(begin[n]), np.full(begin[n], 1.0 / weight))


@njit(cache=True)
def _merge(units, below, constant):  # type: ignore[no-untyped-def]
    """The supply of units from that of their children; a child that is `constant` adds no knots.

    The children's functions add up: their knots are merged. The unit's own term shifts each knot by its
    derivative there. A held unit keeps the merged knots, for the way down.
    """
    n, order, kids = len(units.noisy), units.order, units.kids
    own = np.zeros(n + 1, np.int64)
    # own[p + 1] - own[p] is the number of knots of the children of p that are not constant.
    for p in range(n):
        count = 0
        for i in range(kids[p], kids[p + 1]):
            if not constant[order[i]]:
                count += below.begin[order[i] + 1] - below.begin[order[i]]
        own[p + 1] = own[p] + count
    out = _Supply(own, np.empty(own[n]), np.empty(own[n]), np.empty(own[n]))
    # The units before p have their knots.
    for p in range(n):
        count = own[p + 1] - own[p]
        if not count:
            continue
        knots, steps = np.empty(count), np.empty(count)
        k = 0
        # The first k places hold the knots of the children seen, and by how much the slope rises at each.
        for i in range(kids[p], kids[p + 1]):
            c, before = order[i], 0.0
            if constant[c]:
                continue
            for j in range(below.begin[c], below.begin[c + 1]):
                knots[k], steps[k] = below.at[j], below.slope[j] - before
                before = below.slope[j]
                k += 1
        ranks = np.argsort(knots)
        value, rise, last = units.low[p], 0.0, knots[ranks[0]]
        # After the knot `last` the children's sum rises from `value` by `rise`.
        for k in range(count):
            r = ranks[k]
            value += rise * (knots[r] - last)
            rise += steps[r]
            last = knots[r]
            j = own[p] + k
            out.value[j] = value
            if np.isnan(units.held[p]):
                out.at[j] = last + units.weight * (value - units.noisy[p])
                out.slope[j] = rise / (1.0 + units.weight * rise)
            else:
                out.at[j], out.slope[j] = last, rise
    return out


@njit(cache=True)
def _pass_down(units, supply, above):  # type: ignore[no-untyped-def]
    """The multiplier of each unit's children, from that above the unit; -inf if all are at their least."""
    out = np.empty(len(units.noisy))
    # The units before v have the multiplier of their children.
    for v in range(len(out)):
        first, end = supply.begin[v], supply.begin[v + 1]
        if first == end:
            out[v] = -np.inf
        elif np.isnan(units.held[v]):
            price = above[v]
            j = first + np.searchsorted(supply.at[first:end], price, side="right") - 1
            if j < first:
                out[v] = -np.inf
            else:
                count = supply.value[j] + supply.slope[j] * (price - supply.at[j])
                out[v] = price - units.weight * (count - units.noisy[v])
        else:
            j = first + np.searchsorted(supply.value[first:end], units.held[v], side="left") - 1
            if j < first:
                out[v] = -np.inf
            else:
                out[v] = supply.at[j] + (units.held[v] - supply.value[j]) / supply.slope[j]
    return out


def _support(h: Hierarchy, column: Column, low: list[Array], clock: Deadline) -> Array:
    """Which leaves of one type are above 0 in the optimum, shape ``(leaves,)``."""
    noisy, weights, held = column
    last = h.depth - 1
    fixed = ~np.isnan(held[last])
    supply = [_leaf_supply(noisy[last], weights[last], fixed)]
    levels: list[_Units] = []
    for level in range(last - 1, -1, -1):
        check_clock(clock)
        below = h.up(level + 1, low[level + 1])
        levels.append(_Units(*h.children[level], noisy[level], weights[level], held[level], below))
        supply.append(_merge(levels[-1], supply[-1], ~np.isnan(held[level + 1])))
    price = np.zeros(1)  # above the root and, after each round, above the next level's units
    for level in range(last):
        check_clock(clock)
        price = _pass_down(levels[last - 1 - level], supply[last - level], price)[h.parents[level]]
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
        floors = [np.array(low[:, t]) for low, _ in problem.floors]
        support = _support(h, column_of(problem, t), floors, deadline)
        column = zeros[-1][:, t]
        column[~support & np.isnan(column)] = 0.0
    found = least_squares(h, problem.noisy, list(problem.weights), zeros, deadline)
    return np.maximum(found, np.where(np.isnan(held[-1]), 0.0, held[-1]))


@ConsistentRelease.algorithm(
    "tree-nnls",
    exact=True,
    cites="supply functions of separable quadratic flows; after Hochbaum and Shanthikumar (1990)",
)
def tree_nnls(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real nonnegative counts in joint order, in O(n depth log n).

    Let f(s) be the least cost below a unit whose count is s. Its derivative is piecewise linear and
    increasing; the inverse, the *supply* at a multiplier, is the sum of the children's supplies with each
    knot shifted by the derivative of the unit's own term. Upwards, supplies are merged; downwards, each
    unit's multiplier follows from its parent's.
    """
    demand(problem, "tree-nnls", order="joint", nonnegative=True, integer=False)
    return answered(problem, lambda: nonnegative_leaves(problem, Deadline(time_limit)))
