"""The best plan from a list of all its districts but one: the last is the complement of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.compiled import njit, trailing_zeros
from forcopt.graphs.weighted import WeightedGraph
from forcopt.memory import memory_budget
from forcopt.models.districting.tolerances import ROUNDING

_LOOKS = 300_000
"""Partial plans to look at between two looks at the clock."""

_ROWS = 200
"""Districts to compare with all others between two looks at the clock."""

_ONE = np.uint64(1)


@njit(cache=True)
def _can_split(inside, start, ends, weights, parts, low, high, queue):  # type: ignore[no-untyped-def]
    """Whether the weights of the components allow `parts` districts; empties `inside`."""
    fewest, most = 0, 0
    for v in range(len(inside)):
        if not inside[v]:
            continue
        queue[0], inside[v] = v, False
        head, tail, weight = 0, 1, 0
        while head < tail:
            u = queue[head]
            head += 1
            weight += weights[u]
            for e in range(start[u], start[u + 1]):
                if inside[ends[e]]:
                    queue[tail], inside[ends[e]] = ends[e], False
                    tail += 1
        least = max(1, (weight + high - 1) // high if high > 0 else 1)
        largest = weight // low if low > 0 else parts
        if least > largest:
            return False
        fewest, most = fewest + least, most + largest
    return fewest <= parts <= most


@njit(cache=True)
def _apart(words, first, rows, after):  # type: ignore[no-untyped-def]
    """Set bit j of row i, for i from `first` on, if district j follows district i and is disjoint from it."""
    for i in range(first, min(first + rows, len(after))):
        after[i] = 0
        for j in range(i + 1, len(words)):
            apart = True
            for w in range(words.shape[1]):
                if words[i, w] & words[j, w]:
                    apart = False
                    break
            if apart:
                after[i, j >> 6] |= _ONE << np.uint64(j & 63)


@njit(cache=True)
def _disjoint(words, i, w, near, out):  # type: ignore[no-untyped-def]
    """Keep the districts of word w of a set that are disjoint from district i; the number looked at."""
    bits, kept, looked = near[w], np.uint64(0), 0
    while bits != 0:
        j = trailing_zeros(bits)
        apart = True
        for v in range(words.shape[1]):
            if words[i, v] & words[(w << 6) + j, v]:
                apart = False
                break
        if apart:
            kept |= _ONE << np.uint64(j)
        bits &= bits - _ONE
        looked += 1
    out[w] = kept
    return looked


class _Listed(NamedTuple):
    """The districts of the list, by reduced cost."""

    words: Array
    """Their vertices as bits."""
    boundary: Array
    """The edges of their boundaries as bits."""
    costs: Array
    reduced: Array
    people: Array
    after: Array
    """``[i]``: the districts after district i that are disjoint from it, as bits; for the first rows only."""


class _Graph(NamedTuple):
    """The graph, and the bounds on districts."""

    start: Array
    """Where the neighbours of each vertex begin in `ends`."""
    ends: Array
    weights: Array
    paid: Array
    """The cost of each edge."""
    total: int
    everything: Array
    """All vertices, as bits."""
    parts: int
    low: int
    high: int


class _Branch(NamedTuple):
    """The districts chosen, and those that may follow the first d of them."""

    near: Array
    """The latter, as bits."""
    place: Array
    """The number of the next one to try: those before it are done."""
    best: Array
    """The districts of the best plan."""


class _State(NamedTuple):
    """Where a search stands."""

    depth: int
    most: int
    """The greatest cost of the boundaries of a plan that is sought."""
    room: float
    """The greatest sum of its reduced costs."""


@njit(cache=True)
def _search(listed, graph, branch, state, budget):  # type: ignore[no-untyped-def]
    """Advance a search in depth; a plan leaves its districts in ``branch.best``, and lowers cost and room."""
    depth, most, room = state
    words, reduced, costs, near, place = listed.words, listed.reduced, listed.costs, branch.near, branch.place
    width, parts, edges = words.shape[1], graph.parts, listed.boundary.shape[1]
    union, crossed = np.zeros((parts, width), np.uint64), np.zeros((parts, edges), np.uint64)
    spent, cost, weight = np.zeros(parts), np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    for d in range(depth):
        i = place[d] - 1
        union[d + 1], crossed[d + 1] = union[d] | words[i], crossed[d] ^ listed.boundary[i]
        spent[d + 1], cost[d + 1] = spent[d] + reduced[i], cost[d] + costs[i]
        weight[d + 1] = weight[d] + listed.people[i]
    inside, queue = np.zeros(len(graph.weights), np.bool_), np.zeros(len(graph.weights), np.int64)
    while depth >= 0 and budget > 0:
        # Plans sought that are not found yet extend the first `depth` districts by one from the place on.
        budget -= 1
        left, word = parts - depth, place[depth] >> 6
        bits = np.uint64(0)
        if word < near.shape[1]:
            bits = near[depth, word] & (~np.uint64(0) << np.uint64(place[depth] & 63))
            while bits == 0 and word + 1 < near.shape[1]:
                word += 1
                bits = near[depth, word]
        i = (word << 6) + trailing_zeros(bits)
        # The reduced costs of the districts that follow are at least as large.
        if bits == 0 or spent[depth] + left * reduced[i] > room:
            depth -= 1
            continue
        place[depth] = i + 1
        rest = graph.total - weight[depth] - listed.people[i]
        if rest < (left - 1) * graph.low or rest > (left - 1) * graph.high:
            continue
        if left > 2:
            some = False
            for w in range(i >> 6, near.shape[1]):
                if i < len(listed.after):
                    near[depth + 1, w] = near[depth, w] & listed.after[i, w]
                else:
                    budget -= _disjoint(words, i, w, near[depth], near[depth + 1])
                some |= near[depth + 1, w] != 0
            budget -= near.shape[1] >> 4
            if not some:
                continue
        # The boundaries of the districts that are left cost at least as much as that of the rest.
        value = cost[depth] + costs[i]
        for w in range(edges):
            crossed[depth + 1, w] = bits = crossed[depth, w] ^ listed.boundary[i, w]
            while bits != 0:
                value += graph.paid[(w << 6) + trailing_zeros(bits)]
                bits &= bits - _ONE
        if value > most:
            continue
        empty = True
        for w in range(width):
            union[depth + 1, w] = union[depth, w] | words[i, w]
            bits = graph.everything[w] & ~union[depth + 1, w]
            while bits != 0:
                inside[(w << 6) + trailing_zeros(bits)], empty = True, False
                bits &= bits - _ONE
        if empty or not _can_split(
            inside, graph.start, graph.ends, graph.weights, left - 1, graph.low, graph.high, queue
        ):
            inside[:] = False
            continue
        if left > 2:
            depth += 1
            place[depth] = i + 1
            spent[depth], cost[depth] = spent[depth - 1] + reduced[i], cost[depth - 1] + costs[i]
            weight[depth] = weight[depth - 1] + listed.people[i]
            continue
        room -= most - value + 1
        most = value - 1
        for d in range(depth + 1):
            branch.best[d] = place[d] - 1
    return _State(depth, most, room)


def _as_words(sets: Array) -> Array:
    """Sets of numbers, by row, in words of 64 bits."""
    rows, size = sets.shape
    padded = np.zeros((rows, 64 * -(-size // 64)), np.bool_)
    padded[:, :size] = sets
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def plan_of_all_but_one(
    graph: WeightedGraph,
    bits: Array,
    costs: Array,
    reduced: Array,
    parts: int,
    low: int,
    high: int,
    most: int,
    slack: float,
    pause: Callable[[], None] | None = None,
) -> list[Array] | None:
    """Find the cheapest plan whose districts, but the one of the greatest reduced cost, are in a list.

    Parameters
    ----------
    graph : WeightedGraph
        With n vertices.
    bits : ndarray of uint8, shape (count, (n + 7) // 8)
        Connected vertex sets of admissible weights, in the format of ``numpy.packbits(sets, axis=1)``.
    costs : ndarray of int64, shape (count,)
        The costs of their boundaries.
    reduced : ndarray, shape (count,)
        Their reduced costs, which are not negative.
    parts : int
        The number of districts of a plan, at least 2.
    low, high : int
        Inclusive bounds on the weight of the district that may be missing.
    most : int
        The greatest sum of the costs of all boundaries.
    slack : float
        The greatest sum of reduced costs of a plan.
    pause : callable, optional
        Called many times a second; it may raise an exception.

    Returns
    -------
    list of ndarray of bool, or None
        The districts, the complement of the others last. None: no plan within the limits exists.

    Raises
    ------
    MemoryError
        If the list exceeds the memory limit of the run.

    Notes
    -----
    Districts are chosen in order of their reduced costs r. Let d of the k districts of a plan be chosen, with
    the sum s. All districts that follow have at least the reduced cost r of the next one, so
    ``s + (k - d) r <= slack``. In particular, all districts but the last have reduced costs of
    at most ``slack / 2``. So a list up to half the slack suffices, and the other half would hold by far the
    most. The last district is the rest of the graph; its boundary, weight and connectivity are tested.

    A partial plan is dropped if the weights of the components of the rest do not allow the districts that are
    left, or if the rest's boundary costs too much; this consists of the edges on an odd number of boundaries
    of chosen districts. Sets of districts that are disjoint from a chosen one are intersected word by word.
    They are kept for as many districts as fit in memory, from the smallest reduced cost on, and found anew
    for others.

    Examples
    --------
    >>> path = WeightedGraph.of([1] * 3, [(0, 1), (1, 2)], [1, 1])
    >>> bits = np.packbits(np.array([[True, False, False], [False, False, True]]), axis=1)
    >>> plan = plan_of_all_but_one(path, bits, np.ones(2, np.int64), np.zeros(2), 3, 1, 1, 4, 0.0)
    >>> np.array(plan).astype(int).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    """
    order = np.argsort(reduced, kind="stable")
    bits, costs, reduced = bits[order], np.asarray(costs, np.int64)[order], np.asarray(reduced, float)[order]
    count, n = len(bits), graph.size
    people = np.zeros(count, np.int64)
    starts, ends, _ = graph.links
    u, v = graph.edges.T
    room, wide = slack + ROUNDING, -(-count // 64)
    # Only the last two districts of a plan may have more than a third of the slack.
    rows = int((3 * reduced <= room).sum()) if parts > 2 else 0
    memory = memory_budget()
    memory.reserve(16 * count * (-(-n // 64) - (-len(u) // 64)))
    rows = int(min(rows, memory.left / (16 * wide + 1)))  # those of other districts are made as needed
    words, cuts = (np.zeros((count, -(-size // 64)), np.uint64) for size in (n, len(u)))
    for first in range(0, count, 10_000):
        some = slice(first, first + 10_000)
        sets = np.unpackbits(bits[some], axis=1, count=n)
        people[some] = sets @ graph.weights
        words[some], cuts[some] = _as_words(sets), _as_words(sets[:, u] != sets[:, v])
    after = np.zeros((rows, wide), np.uint64)
    for first in range(0, len(after), _ROWS):
        if pause is not None:
            pause()
        _apart(words, first, _ROWS, after)
    listed = _Listed(words, cuts, costs, reduced, people, after)
    everything = _as_words(np.ones((1, n), np.bool_))[0]
    given = _Graph(starts, ends, graph.weights, graph.costs, graph.total, everything, parts, low, high)
    near = np.zeros((parts - 1, after.shape[1]), np.uint64)
    near[0] = _as_words(np.ones((1, count), np.bool_))
    branch = _Branch(near, np.zeros(parts, np.int64), np.full(parts - 1, -1))
    state = _State(0, most, room)
    while state.depth >= 0:
        if pause is not None:
            pause()
        state = _State(*_search(listed, given, branch, state, _LOOKS))
    if branch.best[0] < 0:
        return None
    plan = [np.unpackbits(bits[i], count=n).astype(np.bool_) for i in branch.best]
    return [*plan, ~np.any(plan, axis=0)]
