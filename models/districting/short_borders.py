"""Plans of fewest cut edges on small graphs, by lists of districts of short borders; nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.graphs.kernels import masks, members
from forcopt.graphs.weighted import WeightedGraph

_LOOKS = 100_000_000
"""The effort after which the search is left to compiled code: less than a second."""

_GROWN = 20
"""The effort of a partial district; that of a pair of sets is 1."""

_AT_ONCE = 1_000_000
"""Pairs of sets that are looked at together."""

_STEPS = 8
"""The length of the borders that are listed grows by 1 over this."""

_ONE = np.uint64(1)


def fewest_cuts(
    graph: WeightedGraph, low: int, high: int, parts: int, most: float, deadline: Deadline
) -> tuple[list[list[int]] | None, int] | None:
    """Find connected parts of admissible weights that cut the fewest edges.

    Parameters
    ----------
    graph : WeightedGraph
        With at most 64 vertices; its costs are not read.
    low, high : int
        Inclusive bounds on the weight of a part.
    parts : int
        Their number.
    most : float
        Only plans that cut at most so many edges are sought.
    deadline : Deadline
        Ends the search.

    Returns
    -------
    parts : list of list of int, or None
        The vertices of each part; None if there is no such plan.
    looks : int
        The partial districts and pairs of sets that were looked at, by their effort.

        Instead of both, None if the search would take more than about a second.

    Notes
    -----
    Every cut edge is on two borders. So if all sets with a border of at most b edges are listed, and the
    shortest border has a edges, then the list has each part of a plan that cuts at most (b + (k - 1) a) / 2
    edges. The list begins with the shortest borders, and grows until it has a plan of so few cuts.
    """
    looks, border, shortest = 0, 1, 0

    def spend(count: int) -> None:
        nonlocal looks
        looks += count
        if looks > _LOOKS or deadline.passed:
            raise TimeoutError

    try:
        while True:
            sets, borders = _short(graph, low, high, border, spend)
            shortest = borders.min(initial=border)
            total = border + (parts - 1) * shortest
            plan = _cover(sets, borders, graph.size, parts, int(min(total, 2 * most)), spend)
            if plan is not None or total >= 2 * min(most, len(graph.edges)):
                return None if plan is None else [members((s, 0)) for s in plan], looks
            border += max(1, border // _STEPS)
    except TimeoutError:
        return None


def _short(
    graph: WeightedGraph, low: int, high: int, most: int, spend: Callable[[int], None]
) -> tuple[Array, Array]:
    """List the connected sets of admissible weights with a border of at most `most` edges, and their borders.

    A set grows from its first vertex: of its least neighbour that is undecided, it gets it, or never gets it.
    """
    near = masks(graph)[:, 0]
    inside = _ONE << np.arange(graph.size, dtype=np.uint64)
    outside = inside - _ONE
    state = [inside, outside, near, graph.weights, np.bitwise_count(near & outside).astype(np.int64)]
    found = []
    while len(state[0]):
        # Each set sought is in `found`, or extends one of the partial sets.
        spend(_GROWN * len(state[0]))
        inside, outside, around, weight, border = state
        undecided = around & ~(inside | outside)
        done = (undecided == 0) & (weight >= low) & (weight <= high)
        found.append((inside[done], border[done]))
        inside, outside, around, weight, border = (part[undecided != 0] for part in state)
        bit = undecided[undecided != 0]
        bit &= ~bit + _ONE
        v = np.bitwise_count(bit - _ONE)
        more, less = border + np.bitwise_count(near[v] & inside), border + np.bitwise_count(near[v] & outside)
        left_out = (inside, outside | bit, around, weight, more)
        taken = (inside | bit, outside, around | near[v], weight + graph.weights[v], less)
        fits = (less <= most) & (taken[3] <= high)
        state = [np.concatenate([a[more <= most], b[fits]]) for a, b in zip(left_out, taken, strict=True)]
    sets, borders = zip(*found, strict=True)
    return np.concatenate(sets), np.concatenate(borders)


def _cover(
    sets: Array, borders: Array, size: int, parts: int, most: int, spend: Callable[[int], None]
) -> list[int] | None:
    """Partition all vertices into listed sets of the least sum of borders, if that is at most `most`.

    Of the ways to take some sets that leave the same vertices, only the cheapest goes on.
    """
    left, spent, layers = np.array([2**size - 1], np.uint64), np.zeros(1, np.int64), []
    for after in reversed(range(parts)):
        first, taken = left & (~left + _ONE), [np.zeros((2, 0), np.int64)]
        room = most - after * borders.min(initial=most) - spent
        for bit in np.unique(first):
            ways, holders = np.flatnonzero(first == bit), np.flatnonzero(sets & bit)
            pairs = len(ways) * len(holders)
            spend(pairs)
            for some in np.array_split(ways, 1 + pairs // _AT_ONCE):
                within = sets[holders] & ~left[some, None] == 0
                i, j = np.nonzero(within & (borders[holders] <= room[some, None]))
                i, j = some[i], holders[j]
                taken.append(np.stack([i, j])[:, (left[i] == sets[j]) == (after == 0)])
        i, j = np.concatenate(taken, axis=1)
        order = np.lexsort([spent[i] + borders[j], left[i] ^ sets[j]])
        left, at = np.unique((left[i] ^ sets[j])[order], return_index=True)
        i, j = i[order[at]], j[order[at]]
        spent = spent[i] + borders[j]
        layers.append((i, j))
    if not len(left):
        return None
    at, chosen = 0, []
    for i, j in reversed(layers):
        chosen.append(int(sets[j[at]]))
        at = i[at]
    return chosen
