"""The cheapest plan from a list of all its districts, or all but one: depth-first search by reduced costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import trailing_zeros

from forcopt.arrays import Array
from forcopt.graphs.weighted import WeightedGraph
from forcopt.memory import memory_budget

__all__ = ["cheapest_cover"]

_LOOKS = 20_000_000
"""Districts to look at between two looks at the clock."""


@njit(cache=True)
def _connected(start, ends, inside, size, queue):  # type: ignore[no-untyped-def]
    """Whether the `size` vertices inside are connected; they are taken out of `inside`."""
    for v in range(len(inside)):
        if inside[v]:
            queue[0], inside[v] = v, False
            break
    head, tail = 0, 1
    while head < tail:
        for e in range(start[queue[head]], start[queue[head] + 1]):
            if inside[ends[e]]:
                queue[tail], inside[ends[e]] = ends[e], False
                tail += 1
        head += 1
    return tail == size


@njit(cache=True)
def _rest_cost(free, weight, start, ends, paid, low, high, links, inside, queue):  # type: ignore[no-untyped-def]
    """The cost of the boundary of the vertices that are left; -1 if they are no district."""
    size, people, cost = 0, 0, 0
    for v in range(len(weight)):
        inside[v] = bool(free[v >> 6] >> np.uint64(v & 63) & np.uint64(1))
        if inside[v]:
            size += 1
            people += weight[v]
    if size == 0 or people < low or people > high:
        return -1
    for a, b, together in links:
        if (inside[a] == inside[b]) != (together == 1) and (together == 1 or inside[a]):
            return -1
    for v in range(len(weight)):
        if inside[v]:
            for e in range(start[v], start[v + 1]):
                if not inside[ends[e]]:
                    cost += paid[e]
    return cost if _connected(start, ends, inside, size, queue) else -1


@njit(cache=True)
def _next_vertex(words, listed, begin, end, free, count):  # type: ignore[no-untyped-def]
    """Move the sets with the vertex that the fewest hold to the front; the vertex, and how many hold it."""
    count[:] = 0
    for x in range(begin, end):
        for w in range(words.shape[1]):
            word = words[listed[x], w]
            while word:
                count[64 * w + trailing_zeros(word)] += 1
                word &= word - np.uint64(1)
    v, fewest = -1, end - begin + 1
    for w in range(words.shape[1]):
        word = free[w]
        while word:
            u = 64 * w + trailing_zeros(word)
            word &= word - np.uint64(1)
            if count[u] < fewest:
                v, fewest = u, count[u]
    rest = listed[begin:end].copy()
    first, second = begin, begin + max(fewest, 0)
    for j in rest:
        if words[j, v >> 6] >> np.uint64(v & 63) & np.uint64(1):
            listed[first] = j
            first += 1
        else:
            listed[second] = j
            second += 1
    return v, fewest


@njit(cache=True)
def _search(  # type: ignore[no-untyped-def]
    words, costs, reduced, weight, start, ends, paid, low, high, links, above,
    free, kept, load, vertex, listed, stop, turn, end, spent, cost, taken, best, state, room, budget,
):  # fmt: skip
    """Advance a search in depth; `state` holds the depth and the greatest cost of a plan.

    On depth d, d districts are taken. ``free[d]`` holds the vertices that are neither in these nor kept, and
    ``kept[d]`` those of the district that is not in the list, which weigh ``load[d]``. The positions of
    ``listed[d]`` from ``turn[d]`` to ``stop[d]`` hold the sets with the vertex of this depth that are still
    to be tried, those up to ``end[d]`` the other sets of free vertices; both are in order of their reduced
    costs. A plan leaves the sets taken in `best`.

    Returns
    -------
    float
        The greatest sum of reduced costs of a plan.
    """
    parts, width = len(taken) + 1, words.shape[1]
    depth, most = state
    count = np.empty(64 * width, np.int64)
    inside, queue = np.zeros(len(weight), np.bool_), np.zeros(len(weight), np.int64)
    while depth >= 0 and budget > 0:
        if turn[depth] == stop[depth] or spent[depth] + reduced[listed[depth, turn[depth]]] > room:
            # All sets with the vertex are done: now the district that is not in the list keeps it.
            v = vertex[depth]
            if load[depth] < 0:
                load[depth] = 0
                spent[depth] += above
            load[depth] += weight[v]
            if spent[depth] > room or load[depth] > high:
                depth -= 1
                continue
            free[depth, v >> 6] &= ~(np.uint64(1) << np.uint64(v & 63))
            kept[depth, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
            empty = True
            for w in range(width):
                empty = empty and free[depth, w] == 0
            if empty:
                depth -= 1
                continue
            begin = stop[depth]
            budget -= end[depth] - begin
            vertex[depth], some = _next_vertex(words, listed[depth], begin, end[depth], free[depth], count)
            turn[depth], stop[depth] = begin, begin + some
            continue
        i = listed[depth, turn[depth]]
        turn[depth] += 1
        taken[depth] = i
        depth += 1
        spent[depth], cost[depth] = spent[depth - 1] + reduced[i], cost[depth - 1] + costs[i]
        load[depth] = load[depth - 1]
        empty = True
        for w in range(width):
            free[depth, w] = free[depth - 1, w] & ~words[i, w]
            kept[depth, w] = kept[depth - 1, w]
            empty = empty and free[depth, w] == 0 and kept[depth, w] == 0
        if depth == parts - 1 or empty:
            if not empty:
                last = _rest_cost(
                    free[depth] | kept[depth], weight, start, ends, paid, low, high, links, inside, queue
                )
                if last >= 0 and cost[depth] + last <= most:
                    room -= most - cost[depth] - last + 1
                    most = cost[depth] + last - 1
                    best[:] = taken
            depth -= 1
            continue
        size, before = 0, end[depth - 1]
        budget -= before
        for x in range(stop[depth - 1], before):
            j = listed[depth - 1, x]
            if spent[depth] + reduced[j] > room:
                break
            apart = True
            for w in range(width):
                if words[j, w] & ~free[depth, w]:
                    apart = False
                    break
            if apart:
                listed[depth, size] = j
                size += 1
        empty = True
        for w in range(width):
            empty = empty and free[depth, w] == 0
        if empty:
            depth -= 1
            continue
        vertex[depth], stop[depth] = _next_vertex(words, listed[depth], 0, size, free[depth], count)
        turn[depth], end[depth] = 0, size
    state[0], state[1] = depth, most
    return room


def cheapest_cover(
    graph: WeightedGraph,
    sets: Array,
    costs: Array,
    reduced: Array,
    parts: int,
    low: int,
    high: int,
    most: int,
    slack: float,
    *,
    above: float = np.inf,
    links: Sequence[tuple[int, int, bool]] = (),
    looks: float = np.inf,
    pause: Callable[[], None] | None = None,
) -> list[Array] | None:
    """Find the cheapest plan whose districts, but at most one, are in a list.

    Parameters
    ----------
    graph : WeightedGraph
        With n vertices.
    sets : ndarray of bool, shape (count, n)
        Connected vertex sets of admissible weights.
    costs : ndarray of int64, shape (count,)
        The costs of their boundaries.
    reduced : ndarray, shape (count,)
        Their reduced costs, which are not negative: over a plan, their sum differs from that of the costs
        by a constant.
    parts : int
        The number of districts of a plan, at least 2.
    low, high : int
        Inclusive bounds on the weight of a district.
    most : int
        The greatest sum of the costs of all boundaries.
    slack : float
        The sum of reduced costs of a plan of that cost.
    above : float, optional
        The list holds all districts of a reduced cost of at most this; at least half the slack. By default it
        holds all districts of a plan.
    links : sequence of tuple, optional
        Pairs of vertices, and whether a district with one of them holds the other, or must not hold it.
    looks : float, optional
        The greatest number of sets to look at.
    pause : callable, optional
        Called many times a second; it may raise an exception.

    Returns
    -------
    list of ndarray of bool, or None
        The districts. None: no plan within the limits exists.

    Raises
    ------
    OverflowError
        If the search looked at more sets than `looks`.
    MemoryError
        If the list exceeds the memory limit of the run.

    Notes
    -----
    Two districts of reduced costs above half the slack exceed it together. So a list up to half the slack
    lacks at most one district of a plan, and this is the rest of the graph: lists grow exponentially with
    the reduced cost, and the search needs only about the square root of their number.

    Each branch takes the vertex that the fewest sets of free vertices hold. One of these sets is a
    district, or the vertex belongs to the district that is not in the list, which leaves the other districts
    only half the slack. The last district is always tested as the rest of the graph.

    References
    ----------
    .. [1] Knuth, Dancing links, Millennial Perspectives in Computer Science 2000.

    Examples
    --------
    >>> path = WeightedGraph.of([1] * 3, [(0, 1), (1, 2)], [1, 1])
    >>> sets = np.array([[True, False, False], [False, False, True]])
    >>> ones, zeros = np.ones(2, np.int64), np.zeros(2)
    >>> plan = cheapest_cover(path, sets, ones, zeros, 3, 1, 1, 4, 0.0, above=0.0)
    >>> np.array(plan).astype(int).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    """
    n, order = graph.size, np.argsort(reduced, kind="stable")
    sets, costs = sets[order], np.asarray(costs, np.int64)[order]
    reduced = np.asarray(reduced, float)[order]
    width = -(-n // 64)
    memory_budget().reserve(len(sets) * (144 * width + 4 * parts))
    bits = np.zeros((len(sets) + 1, 64 * width), np.bool_)
    bits[:-1, :n], bits[-1, :n] = sets, True
    words = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    start, ends, numbers = graph.links
    paid = graph.costs[numbers]
    pairs = np.array([(a, b, int(together)) for a, b, together in links], np.int64).reshape(-1, 3)
    free, kept = np.zeros((2, parts, width), np.uint64)
    free[0] = words[-1]
    load = np.full(parts, -1)
    listed = np.empty((parts, len(sets)), np.int32)
    listed[0] = np.arange(len(sets))
    vertex, stop, turn, end, cost = np.zeros((5, parts), np.int64)
    end[0] = len(sets)
    count = np.empty(64 * width, np.int64)
    vertex[0], stop[0] = _next_vertex(words[:-1], listed[0], 0, len(sets), free[0], count)
    taken, best = np.zeros(parts - 1, np.int64), np.full(parts - 1, -1)
    state, room = np.array([0, most], np.int64), slack + 1e-6
    spent = np.zeros(parts)
    while state[0] >= 0:
        if pause is not None:
            pause()
        if looks <= 0:
            raise OverflowError("the search for an exact cover takes too long")
        room = _search(
            words[:-1], costs, reduced, graph.weights, start, ends, paid, low, high, pairs, above - 1e-6,
            free, kept, load, vertex, listed, stop, turn, end, spent, cost, taken, best, state, room, _LOOKS,
        )  # fmt: skip
        looks -= _LOOKS
    if best[0] < 0:
        return None
    plan = [sets[i] for i in best]
    return [*plan, ~np.any(plan, axis=0)]
