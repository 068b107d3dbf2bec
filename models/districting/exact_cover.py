"""The cheapest exact cover by sets of a list: depth-first search, limited by reduced costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import trailing_zeros

from forcopt.arrays import Array

__all__ = ["cheapest_cover"]

_LOOKS = 20_000_000
"""Districts to look at between two looks at the clock."""


@njit(cache=True)
def _search(words, costs, reduced, everything, listed, ends, turn, stop, taken, best, state, room, budget):  # type: ignore[no-untyped-def]
    """Advance a search in depth.

    Row d of `listed` holds ``ends[d]`` sets that are disjoint from the first d sets of `taken`. The first
    ``stop[d]`` of them hold the vertex of depth d, and ``turn[d]`` is the next of these to take. Both these
    sets and the others are in order of their reduced costs. `state` holds the depth and the greatest cost of
    a cover; a cover leaves its sets in `best`.

    Returns
    -------
    float
        The greatest sum of reduced costs of a cover.
    """
    parts, width = len(taken), words.shape[1]
    depth, most = state
    spent, cost = np.zeros(parts + 1), np.zeros(parts + 1, np.int64)
    free = np.empty((parts + 1, width), np.uint64)
    free[0] = everything
    count = np.empty(64 * width, np.int64)
    for d in range(parts):
        if d < depth:
            i = taken[d]
            spent[d + 1], cost[d + 1] = spent[d] + reduced[i], cost[d] + costs[i]
            free[d + 1] = free[d] & ~words[i]
    while depth >= 0 and budget > 0:
        if turn[depth] == stop[depth] or spent[depth] + reduced[listed[depth, turn[depth]]] > room:
            depth -= 1
            continue
        i = listed[depth, turn[depth]]
        turn[depth] += 1
        taken[depth] = i
        depth += 1
        spent[depth], cost[depth] = spent[depth - 1] + reduced[i], cost[depth - 1] + costs[i]
        empty = True
        for w in range(width):
            free[depth, w] = free[depth - 1, w] & ~words[i, w]
            empty = empty and free[depth, w] == 0
        if depth == parts or empty:
            if depth == parts and empty and cost[depth] <= most:
                room -= most - cost[depth] + 1
                most = cost[depth] - 1
                best[:] = taken
            depth -= 1
            continue
        # The sets that are left, and the vertex that the fewest of them hold.
        count[:] = 0
        size, before = 0, ends[depth - 1]
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
                for w in range(width):
                    word = words[j, w]
                    while word:
                        count[64 * w + trailing_zeros(word)] += 1
                        word &= word - np.uint64(1)
        fewest, v = size + 1, 0
        for w in range(width):
            word = free[depth, w]
            while word:
                u = 64 * w + trailing_zeros(word)
                word &= word - np.uint64(1)
                if count[u] < fewest:
                    fewest, v = count[u], u
        # These sets come first.
        rest = listed[depth, :size].copy()
        first, second = 0, fewest
        for j in rest:
            if words[j, v >> 6] >> np.uint64(v & 63) & np.uint64(1):
                listed[depth, first] = j
                first += 1
            else:
                listed[depth, second] = j
                second += 1
        ends[depth], stop[depth], turn[depth] = size, fewest, 0
    state[0], state[1] = depth, most
    return room


def cheapest_cover(
    sets: Array,
    costs: Array,
    reduced: Array,
    parts: int,
    most: int,
    slack: float,
    looks: float = np.inf,
    pause: Callable[[], None] | None = None,
) -> Array | None:
    """Find the cheapest partition of the vertices into a number of sets of a list.

    Parameters
    ----------
    sets : ndarray of bool, shape (count, n)
        The list.
    costs : ndarray of int64, shape (count,)
        Their costs.
    reduced : ndarray, shape (count,)
        Their reduced costs, which are not negative: in a partition, their sum differs from that of the costs
        by a constant.
    parts : int
        The number of sets of a partition, at least 1.
    most : int
        The greatest cost of a partition.
    slack : float
        The sum of reduced costs of a partition of that cost.
    looks : float, optional
        The greatest number of sets to look at.
    pause : callable, optional
        Called many times a second; it may raise an exception.

    Returns
    -------
    ndarray of int64, or None
        The positions of the sets of the partition. None: no partition costs `most` or less.

    Raises
    ------
    OverflowError
        If the search looked at more sets than `looks`.

    Notes
    -----
    Each branch covers the vertex that the fewest sets hold which are disjoint from those taken before, and
    leaves out sets whose reduced cost exceeds the rest of the slack. The slack is the gap between a plan and
    the linear bound, so that few sets are left after the first.

    References
    ----------
    .. [1] Knuth, Dancing links, Millennial Perspectives in Computer Science 2000.

    Examples
    --------
    >>> sets = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0]], bool)
    >>> cheapest_cover(sets, np.array([2, 3, 2, 2]), np.array([0.0, 1, 0, 0]), 2, 5, 1.0).tolist()
    [2, 3]
    """
    count, n = sets.shape
    order = np.argsort(reduced, kind="stable")
    width = -(-n // 64)
    bits = np.zeros((count + 1, 64 * width), np.bool_)
    bits[:count, :n], bits[count, :n] = sets[order], True
    words = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    taken, best = np.zeros(parts, np.int64), np.full(parts, -1)
    listed = np.empty((parts, count), np.int32)
    ends, turn, stop = np.zeros((3, parts), np.int64)
    held = sets.sum(axis=0)
    vertex = int(np.argmin(held))
    listed[0] = np.argsort(~bits[:count, vertex], kind="stable")
    ends[0], stop[0] = count, held[vertex]
    state, room = np.array([0, most], np.int64), slack + 1e-6
    costs, reduced = np.asarray(costs, np.int64)[order], np.asarray(reduced, float)[order]
    while state[0] >= 0:
        if pause is not None:
            pause()
        if looks <= 0:
            raise OverflowError("the search for an exact cover takes too long")
        room = _search(
            words[:count], costs, reduced, words[count], listed, ends, turn, stop, taken, best, state, room,
            _LOOKS,
        )  # fmt: skip
        looks -= _LOOKS
    return None if best[0] < 0 else order[best]
