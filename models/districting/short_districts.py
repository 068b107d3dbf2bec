"""The best plan from a list of all its districts but one: the longest is the complement of the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from forcopt.arrays import Array
from forcopt.graphs.weighted import WeightedGraph

__all__ = ["connected", "plan_of_short_districts"]

_LOOKS = 50_000_000
"""Districts to look at between two looks at the clock."""


@njit(cache=True)
def connected(start, ends, inside, size, queue):  # type: ignore[no-untyped-def]
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
def _search(  # type: ignore[no-untyped-def]
    words, costs, reduced, people, parts, low, high, total, slack, start, ends, paid, chosen, state, budget
):
    """Advance a search in depth; `state` holds the depth and the most that a plan may cost.

    ``chosen[d]`` is the next district to look at on depth d. A plan leaves its districts in the last row of
    `chosen`.
    """
    width, n = words.shape[1], len(start) - 1
    union = np.zeros((parts, width), np.uint64)
    spent, cost, weight = np.zeros(parts), np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    depth, most = state
    for d in range(depth):
        i = chosen[0, d] - 1
        for w in range(width):
            union[d + 1, w] = union[d, w] | words[i, w]
        spent[d + 1], cost[d + 1] = spent[d] + reduced[i], cost[d] + costs[i]
        weight[d + 1] = weight[d] + people[i]
    inside, queue = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    while depth >= 0 and budget > 0:
        i = chosen[0, depth]
        budget -= 1
        # The districts that are left cost at least as much as this one.
        if i == len(words) or cost[depth] + (parts - depth) * costs[i] > most:
            depth -= 1
            continue
        chosen[0, depth] += 1
        if spent[depth] + reduced[i] > slack:
            continue
        apart = True
        for w in range(width):
            if union[depth, w] & words[i, w]:
                apart = False
                break
        if not apart:
            continue
        left = total - weight[depth] - people[i]
        if left < (parts - depth - 1) * low or left > (parts - depth - 1) * high:
            continue
        if depth < parts - 2:
            for w in range(width):
                union[depth + 1, w] = union[depth, w] | words[i, w]
            spent[depth + 1], cost[depth + 1] = spent[depth] + reduced[i], cost[depth] + costs[i]
            weight[depth + 1] = weight[depth] + people[i]
            chosen[0, depth + 1] = i + 1
            depth += 1
            continue
        size = 0
        for v in range(n):
            bit = np.uint64(1) << np.uint64(v & 63)
            inside[v] = (union[depth, v >> 6] | words[i, v >> 6]) & bit == 0
            size += inside[v]
        last = 0
        for v in range(n):
            if inside[v]:
                for e in range(start[v], start[v + 1]):
                    if not inside[ends[e]]:
                        last += paid[e]
        value = cost[depth] + costs[i] + last
        if value <= most and size > 0 and connected(start, ends, inside, size, queue):
            most = value - 1
            for d in range(parts - 1):
                chosen[1, d] = chosen[0, d] - 1
    state[0], state[1] = depth, most


def plan_of_short_districts(
    graph: WeightedGraph,
    sets: Array,
    costs: Array,
    reduced: Array,
    parts: int,
    low: int,
    high: int,
    most: int,
    slack: float,
    pause: Callable[[], None] | None = None,
) -> list[Array] | None:
    """Find the cheapest plan whose districts, but the longest one, are in a list.

    Parameters
    ----------
    graph : WeightedGraph
        With n vertices.
    sets : ndarray of bool, shape (count, n)
        Connected vertex sets of admissible weights.
    costs : ndarray of int64, shape (count,)
        The costs of their boundaries.
    reduced : ndarray, shape (count,)
        Their reduced costs, which are not negative.
    parts : int
        The number of districts of a plan, at least 2.
    low, high : int
        Inclusive bounds on the weight of the longest district.
    most : int
        The greatest sum of the costs of all boundaries.
    slack : float
        The greatest sum of reduced costs of a plan.
    pause : callable, optional
        Called many times a second; it may raise an exception.

    Returns
    -------
    list of ndarray of bool, or None
        The districts, the longest one last. None: no plan within the limits exists.

    Notes
    -----
    Districts are chosen in order of their costs. All districts that follow cost as much or more, and this
    limits the cost of each. The longest district is the rest of the graph, and its boundary, weight and
    connectivity are tested. So no list of long districts is needed, and these are by far the most.

    Examples
    --------
    >>> path = WeightedGraph.of([1] * 3, [(0, 1), (1, 2)], [1, 1])
    >>> sets = np.array([[True, False, False], [False, False, True]])
    >>> plan = plan_of_short_districts(path, sets, np.ones(2, np.int64), np.zeros(2), 3, 1, 1, 4, 0.0)
    >>> np.array(plan).astype(int).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    """
    order = np.argsort(costs, kind="stable")
    sets, costs, reduced = sets[order], np.asarray(costs, np.int64)[order], np.asarray(reduced, float)[order]
    width = -(-graph.size // 64)
    bits = np.zeros((len(sets), 64 * width), np.bool_)
    bits[:, : graph.size] = sets
    words = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    start = np.cumsum([0] + [len(near) for near in graph.neighbours])
    ends = np.array([u for near in graph.neighbours for u in near], np.int64)
    paid = graph.cost_matrix[np.repeat(np.arange(graph.size), np.diff(start)), ends]
    chosen, state = np.zeros((2, parts), np.int64), np.array([0, most], np.int64)
    chosen[1] = -1
    people, room = sets @ graph.weights, slack + 1e-6
    while state[0] >= 0:
        if pause is not None:
            pause()
        _search(
            words, costs, reduced, people, parts, low, high, graph.total, room, start, ends, paid,
            chosen, state, _LOOKS,
        )  # fmt: skip
    if chosen[1, 0] < 0:
        return None
    plan = [sets[i] for i in chosen[1, : parts - 1]]
    return [*plan, ~np.any(plan, axis=0)]
