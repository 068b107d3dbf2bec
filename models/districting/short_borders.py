"""Plans of fewest cut edges on small graphs, by lists of districts of short borders; nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Trace
from forcopt.graphs.kernels import masks, members
from forcopt.graphs.weighted import WeightedGraph, spectral_order
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome

_WORD = 64
"""Sets of at most so many vertices are single words."""

_LOOKS = 100_000_000
"""The effort after which the search is left to compiled code: less than a second."""

_GROWN = 20
"""The effort of a partial district; that of a pair of sets is 1."""

_AT_ONCE = 1_000_000
"""Pairs of sets that are looked at together."""

_STEPS = 8
"""The length of the borders that are listed grows by 1 over this."""

_ONE = np.uint64(1)

_Spend = Callable[[int], None]
"""Adds to the effort, and ends the search where it is too great."""


def problem_order(problem: Districting) -> list[int]:
    """The order in which nodes are covered; each graph's is computed once."""
    return list(problem.once("order of a cover", lambda: spectral_order(problem.arrays)))


def fewest_cuts(problem: Districting, trace: Trace, start: Plan | None = None) -> Outcome | None:
    """Find a plan of fewest cut edges, and prove it, where this takes numpy less than about a second.

    Parameters
    ----------
    problem : Districting
        With equal seats and without rules; else nothing is sought, as on more than 64 nodes, and with costs
        other than 1.
    trace : Trace
        Gets the plan; its deadline ends the search.
    start : Plan, optional
        Only plans of fewer cut edges are sought.

    Returns
    -------
    Outcome or None
        The plan, or the start if none is better. None if the problem takes longer.

    Notes
    -----
    Every cut edge is on two borders. So if all sets with a border of at most b edges are listed, and the
    shortest border has a edges, then the list has each district of a plan that cuts at most
    (b + (k - 1) a) / 2 edges. The list begins with the shortest borders, and grows until it has such a plan.
    """
    g, k, looks, border = problem.arrays, problem.districts, 0, 1
    ruled = problem.rules or problem.side_constraints or problem.unequal_seats
    if problem.objective != "cut" or ruled or g.size > _WORD or (g.costs != 1).any():
        return None
    most = 2 * (len(g.edges) if start is None else g.cut_cost(start.labels) - 1)
    order = problem_order(problem)

    def spend(count: int) -> None:
        nonlocal looks
        looks += count
        trace.check()
        if looks > _LOOKS:
            raise TimeoutError

    total, found = -1, None
    try:
        while found is None and total < most:
            # No plan has borders of at most `total` and at most `most` edges in all.
            sets, borders = _listed(g.reordered(order), problem.population_bounds, border, spend)
            total = border + (k - 1) * int(borders.min(initial=border))
            found = _cover(sets, borders, g.size, k, min(total, most), spend)
            border += max(1, border // _STEPS)
    except (TimeoutError, MemoryError):
        return None
    if found is not None:
        start = Plan.of(problem, [[order[v] for v in members((s, 0))] for s in found])
        trace.add(start.cost, -np.inf)
    reason = "" if start else "no exact cover by connected districts exists"
    return Outcome.infeasible(reason) or Outcome(start, iterations=looks, trace=trace.steps)


def _listed(graph: WeightedGraph, bounds: tuple[int, int], most: int, spend: _Spend) -> tuple[Array, Array]:
    """List the connected sets of admissible weights with a border of at most `most` edges, and their borders.

    A set grows from its first vertex: it gets its least undecided neighbour now, or never.
    """
    near, start = masks(graph.neighbours)[:, 0], _ONE << np.arange(graph.size, dtype=np.uint64)
    border = np.bitwise_count(near & (start - _ONE)).astype(np.int64)
    state: tuple[Array, ...] = (start, start - _ONE, near, graph.weights, border)
    found = []
    while len(state[0]):
        # Each set that is sought is in `found`, or extends one of the partial sets.
        spend(_GROWN * len(state[0]))
        inside, outside, around, weight, border = state
        undecided, fits = around & ~(inside | outside), (weight <= bounds[1]) & (border <= most)
        done = fits & (undecided == 0) & (weight >= bounds[0])
        found.append((inside[done], border[done]))
        grows = [part[fits & (undecided != 0)] for part in (*state, undecided & (~undecided + _ONE))]
        inside, outside, around, weight, border, bit = grows
        v = np.bitwise_count(bit - _ONE)
        more, fewer = (border + np.bitwise_count(near[v] & side) for side in (inside, outside))
        without = inside, outside | bit, around, weight, more
        with_it = inside | bit, outside, around | near[v], weight + graph.weights[v], fewer
        state = tuple(np.concatenate(both) for both in zip(without, with_it, strict=True))
    sets, borders = map(np.concatenate, zip(*found, strict=True))
    return sets, borders


def _cover(sets: Array, borders: Array, size: int, parts: int, most: int, spend: _Spend) -> list[int] | None:
    """Partition all vertices into listed sets of the least sum of borders, if that is at most `most`.

    Of the ways to take some sets that leave the same vertices, only the cheapest goes on.
    """
    left, spent, taken = np.array([2**size - 1], np.uint64), np.zeros(1, np.int64), []
    for after in reversed(range(parts)):
        first, found = left & (~left + _ONE), [np.zeros((2, 0), np.int64)]
        room = most - after * borders.min(initial=most) - spent
        for bit in np.unique(first):
            ways, holders = np.flatnonzero(first == bit), np.flatnonzero(sets & bit)
            spend(len(ways) * len(holders))
            for some in np.array_split(ways, 1 + len(ways) * len(holders) // _AT_ONCE):
                within = sets[holders] & ~left[some, None] == 0
                i, j = np.nonzero(within & (borders[holders] <= room[some, None]))
                i, j = some[i], holders[j]
                found.append(np.stack([i, j])[:, (left[i] == sets[j]) == (after == 0)])
        i, j = np.concatenate(found, axis=1)
        order = np.lexsort([spent[i] + borders[j], left[i] ^ sets[j]])
        left, at = np.unique((left[i] ^ sets[j])[order], return_index=True)
        i, j = i[order[at]], j[order[at]]
        spent = spent[i] + borders[j]
        taken.append((i, sets[j]))
    way, plan = 0, []
    for i, chosen in reversed(taken) if len(left) else ():
        plan.append(int(chosen[way]))
        way = i[way]
    return plan or None
