"""The cheapest plan from a list of all its districts, or all but one: depth-first search by reduced costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.compiled import njit, trailing_zeros
from forcopt.graphs.weighted import WeightedGraph
from forcopt.memory import memory_budget
from forcopt.models.districting.tolerances import ROUNDING

_LOOKS = 20_000_000
"""Districts to look at between two looks at the clock."""

_FEW = 4
"""Plans of up to this number of districts are searched in the order of reduced costs."""

_ROWS = 4096
"""Sets whose boundaries are looked for at a time."""

_PAIRS = 2**30
"""If more pairs of sets would be compared, the search branches on vertices instead."""

_ONE = np.uint64(1)


class _Listed(NamedTuple):
    """The districts of the list, by reduced cost."""

    words: Array
    """Their vertices as bits."""
    costs: Array
    reduced: Array
    people: Array
    boundary: Array
    """The edges of their boundaries as bits, for the search by order."""


class _Rest(NamedTuple):
    """By what the rest of the graph is a district."""

    weight: Array
    first: Array
    """Where the neighbours of each vertex begin in `ends`."""
    ends: Array
    paid: Array
    """The costs of the edges to them."""
    low: int
    high: int
    costs: Array
    """The costs of the edges by their numbers."""
    links: Array
    """Rows of two vertices, and 1 if a district with one of them holds the other, 0 if it must not."""
    inside: Array
    queue: Array


class _Depths(NamedTuple):
    """A branch: what holds after d districts are taken from the list."""

    free: Array
    """The vertices, as bits, that are neither in these districts nor kept."""
    kept: Array
    """The vertices of the district that is not in the list."""
    load: Array
    """Their weight; -1 if every district is from the list."""
    spent: Array
    """The sum of the reduced costs."""
    cost: Array
    vertex: Array
    """The vertex on which the search branches."""
    listed: Array
    """The sets of free vertices that may follow; those with the vertex first, both by reduced cost."""
    turn: Array
    """The position of the next set with the vertex."""
    stop: Array
    """Where the sets with the vertex end."""
    end: Array
    """Where all sets end."""
    taken: Array
    best: Array
    """The sets of the best plan."""
    holders: Array
    """Scratch: how many sets hold each vertex."""


class _State(NamedTuple):
    """Where a search stands."""

    depth: int
    most: int
    """The greatest cost of a plan that is sought."""
    room: float
    """The greatest sum of its reduced costs."""


@njit(cache=True)
def _has(words, v):  # type: ignore[no-untyped-def]
    """Whether a set has a vertex."""
    return bool(words[v >> 6] >> np.uint64(v & 63) & _ONE)


@njit(cache=True)
def _connected(rest, size):  # type: ignore[no-untyped-def]
    """Whether the `size` vertices inside are connected; they are taken out of `inside`."""
    inside, queue = rest.inside, rest.queue
    for v in range(len(inside)):
        if inside[v]:
            queue[0], inside[v] = v, False
            break
    head, tail = 0, 1
    while head < tail:
        # The queue holds the vertices met so far; those before `head` have no neighbour inside.
        for e in range(rest.first[queue[head]], rest.first[queue[head] + 1]):
            if inside[rest.ends[e]]:
                queue[tail], inside[rest.ends[e]] = rest.ends[e], False
                tail += 1
        head += 1
    return tail == size


@njit(cache=True)
def _rest_cost(rest, left):  # type: ignore[no-untyped-def]
    """The cost of the boundary of the vertices that are left; -1 if they are no district."""
    size, people, cost, inside = 0, 0, 0, rest.inside
    for v in range(len(rest.weight)):
        inside[v] = _has(left, v)
        if inside[v]:
            size += 1
            people += rest.weight[v]
    if size == 0 or people < rest.low or people > rest.high:
        return -1
    for a, b, together in rest.links:
        if (inside[a] == inside[b]) != (together == 1) and (together == 1 or inside[a]):
            return -1
    for v in range(len(rest.weight)):
        if inside[v]:
            for e in range(rest.first[v], rest.first[v + 1]):
                if not inside[rest.ends[e]]:
                    cost += rest.paid[e]
    return cost if _connected(rest, size) else -1


@njit(cache=True)
def _branch(words, depths, d, begin):  # type: ignore[no-untyped-def]
    """Branch on the free vertex that the fewest sets from a position on hold; move these to the front."""
    listed, free, count, end = depths.listed[d], depths.free[d], depths.holders, depths.end[d]
    count[:] = 0
    for x in range(begin, end):
        for w in range(words.shape[1]):
            word = words[listed[x], w]
            while word:
                count[64 * w + trailing_zeros(word)] += 1
                word &= word - _ONE
    v, fewest = -1, end - begin + 1
    for w in range(words.shape[1]):
        word = free[w]
        while word:
            u = 64 * w + trailing_zeros(word)
            word &= word - _ONE
            if count[u] < fewest:
                v, fewest = u, count[u]
    first, second = begin, begin + max(fewest, 0)
    for j in listed[begin:end].copy():
        # The sets before j are in order: those with v up to `first`, the others up to `second`.
        if _has(words[j], v):
            listed[first] = j
            first += 1
        else:
            listed[second] = j
            second += 1
    depths.vertex[d], depths.turn[d], depths.stop[d] = v, begin, begin + fewest


@njit(cache=True)
def _keep(listed, rest, depths, d, above, room):  # type: ignore[no-untyped-def]
    """Give the vertex of a depth to the district that is not in the list, and branch anew.

    Give the number of sets looked at; -1 if that district cannot have the vertex.
    """
    v = depths.vertex[d]
    if depths.load[d] < 0:
        depths.load[d] = 0
        depths.spent[d] += above
    depths.load[d] += rest.weight[v]
    if depths.spent[d] > room or depths.load[d] > rest.high:
        return -1
    depths.free[d, v >> 6] &= ~(_ONE << np.uint64(v & 63))
    depths.kept[d, v >> 6] |= _ONE << np.uint64(v & 63)
    if not depths.free[d].any():
        return -1
    begin = depths.stop[d]
    _branch(listed.words, depths, d, begin)
    return depths.end[d] - begin


@njit(cache=True)
def _take(listed, depths, d):  # type: ignore[no-untyped-def]
    """Take the next set of a depth; write the vertices, sums and costs of the depth after it."""
    i = depths.listed[d, depths.turn[d]]
    depths.turn[d] += 1
    depths.taken[d] = i
    depths.spent[d + 1] = depths.spent[d] + listed.reduced[i]
    depths.cost[d + 1] = depths.cost[d] + listed.costs[i]
    depths.load[d + 1] = depths.load[d]
    for w in range(listed.words.shape[1]):
        depths.free[d + 1, w] = depths.free[d, w] & ~listed.words[i, w]
        depths.kept[d + 1, w] = depths.kept[d, w]


@njit(cache=True)
def _list_next(listed, depths, d, room):  # type: ignore[no-untyped-def]
    """List the sets of free vertices that may follow on depth d, from those of the depth before."""
    size, words = 0, listed.words
    for x in range(depths.stop[d - 1], depths.end[d - 1]):
        j = depths.listed[d - 1, x]
        if depths.spent[d] + listed.reduced[j] > room:
            break
        apart = True
        for w in range(words.shape[1]):
            if words[j, w] & ~depths.free[d, w]:
                apart = False
                break
        if apart:
            depths.listed[d, size] = j
            size += 1
    depths.end[d] = size


@njit(cache=True)
def _search(listed, rest, depths, above, state, budget):  # type: ignore[no-untyped-def]
    """Advance a search in depth by looking at about `budget` sets.

    Districts that are not in the list have a reduced cost above `above`. A plan leaves its sets in
    ``depths.best``, and lowers the cost and the room of the plans sought.
    """
    depth, most, room = state
    last_depth = len(depths.taken)
    while depth >= 0 and budget > 0:
        # Plans that cost `most` or less and are not found yet extend the branch, or one that follows it.
        turn = depths.turn[depth]
        if turn == depths.stop[depth] or (
            depths.spent[depth] + listed.reduced[depths.listed[depth, turn]] > room
        ):
            # All sets with the vertex are done: now the district that is not in the list keeps it.
            looked = _keep(listed, rest, depths, depth, above, room)
            if looked < 0:
                depth -= 1
            else:
                budget -= looked
            continue
        _take(listed, depths, depth)
        depth += 1
        free = not depths.free[depth].any()
        empty = free and not depths.kept[depth].any()
        if depth == last_depth or empty:
            if not empty:
                last = _rest_cost(rest, depths.free[depth] | depths.kept[depth])
                if last >= 0 and depths.cost[depth] + last <= most:
                    room -= most - depths.cost[depth] - last + 1
                    most = depths.cost[depth] + last - 1
                    depths.best[:] = depths.taken
            depth -= 1
            continue
        budget -= depths.end[depth - 1]
        _list_next(listed, depths, depth, room)
        if free:
            depth -= 1
            continue
        _branch(listed.words, depths, depth, 0)
    return _State(depth, most, room)


@njit(cache=True)
def _apart(words, rows):  # type: ignore[no-untyped-def]
    """For each of the first sets the later sets that are disjoint from it, as bits."""
    after = np.zeros((rows, (len(words) + 63) >> 6), np.uint64)
    for i in range(rows):
        for j in range(i + 1, len(words)):
            apart = True
            for w in range(words.shape[1]):
                if words[i, w] & words[j, w]:
                    apart = False
                    break
            if apart:
                after[i, j >> 6] |= _ONE << np.uint64(j & 63)
    return after


@njit(cache=True)
def _next_bit(bits, j):  # type: ignore[no-untyped-def]
    """The first element of a set from j on; -1 if there is none."""
    w = j >> 6
    if w >= len(bits):
        return -1
    word = bits[w] >> np.uint64(j & 63)
    if word:
        return j + trailing_zeros(word)
    for later in range(w + 1, len(bits)):
        if bits[later]:
            return 64 * later + trailing_zeros(bits[later])
    return -1


@njit(cache=True)
def _sum_of(bits, values, most):  # type: ignore[no-untyped-def]
    """The sum of the values of a set's elements, or of some if that is above `most`."""
    out = 0
    for w in range(len(bits)):
        word = bits[w]
        while word:
            out += values[64 * w + trailing_zeros(word)]
            word &= word - _ONE
        if out > most:
            break
    return out


@njit(cache=True)
def _search_from(listed, after, rest, best, state):  # type: ignore[no-untyped-def]
    """The search for plans whose first set is ``state.depth``; the others follow by reduced costs.

    The last district is the rest of the graph; its reduced cost is the largest. Return the
    state; its depth is the number of sets looked at. A plan leaves its sets in `best`.
    """
    first, most, room = state
    words, last_depth, looked, total = listed.words, len(best), 0, rest.weight.sum()
    near, taken = np.zeros((last_depth + 1, after.shape[1]), np.uint64), np.zeros(last_depth, np.int64)
    union, turn = np.zeros((last_depth + 1, words.shape[1]), np.uint64), np.zeros(last_depth + 1, np.int64)
    spent, cost = np.zeros(last_depth + 1), np.zeros(last_depth + 1, np.int64)
    load = np.zeros(last_depth + 1, np.int64)
    crossed = np.zeros((last_depth + 1, listed.boundary.shape[1]), np.uint64)
    near[0, first >> 6], depth = _ONE << np.uint64(first & 63), 0
    while depth >= 0:
        j = _next_bit(near[depth], turn[depth])
        looked += 1
        if j < 0 or spent[depth] + (last_depth + 1 - depth) * listed.reduced[j] > room:
            depth -= 1
            continue
        turn[depth], taken[depth] = j + 1, j
        depth += 1
        spent[depth], cost[depth] = spent[depth - 1] + listed.reduced[j], cost[depth - 1] + listed.costs[j]
        load[depth], turn[depth] = load[depth - 1] + listed.people[j], j + 1
        union[depth] = union[depth - 1] | words[j]
        crossed[depth] = crossed[depth - 1] ^ listed.boundary[j]
        if depth < last_depth:
            near[depth] = near[depth - 1] & after[j] if depth > 1 else after[j]
            looked += after.shape[1] >> 2
            continue
        if rest.low <= total - load[depth] <= rest.high:
            last = _sum_of(crossed[depth], rest.costs, most - cost[depth])
            if cost[depth] + last <= most and _rest_cost(rest, ~union[depth]) >= 0:
                room -= most - cost[depth] - last + 1
                most = cost[depth] + last - 1
                best[:] = taken
        depth -= 1
    return _State(looked, most, room)


def _least_by_order(
    listed: _Listed, rest: _Rest, best: Array, state: _State, looks: float, pause: Callable[[], None] | None
) -> None:
    """Search for plans of few districts from each set that may be the first; see `cheapest_cover`."""
    after = _apart(listed.words, np.searchsorted(listed.reduced, state.room / 3, side="right"))
    for i in range(int(np.searchsorted(listed.reduced, state.room / (len(best) + 1), side="right"))):
        if pause is not None:
            pause()
        if looks <= 0:
            raise OverflowError("the search for an exact cover takes too long")
        found = _State(*_search_from(listed, after, rest, best, state._replace(depth=i)))
        looks, state = looks - found.depth, found


def _words(sets: Array) -> Array:
    """Sets of a multiple of 64 vertices or edges as words of bits."""
    return np.packbits(sets, axis=1, bitorder="little").view("<u8").astype(np.uint64)


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

    Up to four districts are taken in the order of their reduced costs instead, and the rest is the dearest:
    the first of k costs at most 1 / k of the slack, so that there are few.

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
    bits = np.zeros((len(sets) + 1, 64 * width), np.bool_)
    bits[:-1, :n], bits[-1, :n] = sets, True
    words = _words(bits)
    state, count = _State(0, most, slack + ROUNDING), -(-len(graph.edges) // 64)
    compared = len(sets) * int(np.searchsorted(reduced, state.room / 3, side="right"))
    by_order = parts <= _FEW and compared <= _PAIRS
    each = 144 * width + 8 * by_order * count + 4 * parts
    memory_budget().reserve(len(sets) * each + by_order * compared / 8)
    boundary = np.zeros((len(sets), by_order * count), np.uint64)
    for i in range(0, len(sets) * by_order, _ROWS):
        some, crossed = sets[i : i + _ROWS], np.zeros((_ROWS, 64 * count), np.bool_)
        crossed[: len(some), : len(graph.edges)] = some[:, graph.edges[:, 0]] != some[:, graph.edges[:, 1]]
        boundary[i : i + _ROWS] = _words(crossed[: len(some)])
    listed = _Listed(words[:-1], costs, reduced, sets @ graph.weights, boundary)
    first, ends, numbers = graph.links
    pairs = np.array([(a, b, int(together)) for a, b, together in links], np.int64).reshape(-1, 3)
    scratch = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    paid = graph.costs[numbers], low, high, graph.costs
    rest = _Rest(graph.weights, first, ends, *paid, pairs, *scratch)
    free, kept = np.zeros((2, parts, width), np.uint64)
    cost, vertex, turn, stop, end = np.zeros((5, parts), np.int64)
    chosen, (taken, best) = np.empty((parts, len(sets)), np.int32), np.full((2, parts - 1), -1)
    load, spent, counts = np.full(parts, -1), np.zeros(parts), np.empty(64 * width, np.int64)
    depths = _Depths(free, kept, load, spent, cost, vertex, chosen, turn, stop, end, taken, best, counts)
    depths.free[0], depths.listed[0], depths.end[0] = words[-1], np.arange(len(sets)), len(sets)
    if by_order:
        _least_by_order(listed, rest, best, state, looks, pause)
        state = state._replace(depth=-1)
    else:
        _branch(listed.words, depths, 0, 0)
    while state.depth >= 0:
        if pause is not None:
            pause()
        if looks <= 0:
            raise OverflowError("the search for an exact cover takes too long")
        state = _State(*_search(listed, rest, depths, above - ROUNDING, state, _LOOKS))
        looks -= _LOOKS
    if depths.best[0] < 0:
        return None
    plan = [sets[i] for i in depths.best]
    return [*plan, ~np.any(plan, axis=0)]
