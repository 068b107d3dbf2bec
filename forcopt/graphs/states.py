"""The states of dynamic programs over connected partitions, in compiled code.

Such a program decides a growing piece of a graph. A state of the piece holds, for its boundary, which
vertices are connected so far (components) and which will end in the same part (parts may hold several
components that still have to meet), the weight of each open part, and how many parts are finished: the
table of Cohen-Addad, Klein, Marx, Wheeler and Wolfram (FORC 2021), section 5, with the pair (inner
partition, inner join outer) as its key. A row of a table holds components and parts (4 bits for each
boundary vertex), the number of finished parts, the cost (if counted by cost) with the number of cut edges (if
limited), and the weights of the open parts, followed by rounded weights if there is a bound; parts and
components are numbered in order of first appearance. If parts have different windows of weights, the number
of finished parts stands beside the numbers of those in each class of weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.compiled import njit

COUNT, LEAST = 0, 1
"""The result of a program: the number of partitions of each cost, or the least cost."""
WIDEST = 16
"""The longest boundary: a state spends four bits on each of its vertices."""
SPAN = 2 * WIDEST + 2
"""Two boundaries and a vertex."""
NEVER = np.int64(2**60)
"""More than any weight or cost."""
FINISHED = 2**20 - 1
"""The bits of a key's third number that hold the number of finished parts; those above count by class."""


class Limits(NamedTuple):
    """The weight that is left outside a piece, and the bounds on the weight of a part."""

    left: int
    low: int
    high: int


class Demands(NamedTuple):
    """What a state must be able to become.

    Attributes
    ----------
    parts : int
        How many parts a partition has.
    room : int
        How many parts can be open at a time.
    windows : tuple of Array
        See `forcopt.graphs.dynamic_program.classes_of`.
    exact, coarse : Limits
        For the weights, and for the rounded ones of a relaxation.
    """

    parts: int
    room: int
    windows: tuple[Array, Array, Array]
    exact: Limits
    coarse: Limits


class Counting(NamedTuple):
    """The result of a program (COUNT or LEAST), and the primes of the residues of counts."""

    mode: int
    primes: Array


class Rules(NamedTuple):
    """What the kernels of a table obey.

    Attributes
    ----------
    demands, counting
        See `Demands` and `Counting`.
    most : int
        States that cost more are dropped.
    limit : int
        The largest number of edges between parts; -1 for none.
    bound : tuple of Array
        Of a relaxation: its states, a hash index of them, the least cost from each to the end.
    """

    demands: Demands
    counting: Counting
    most: int
    limit: int
    bound: tuple[Array, Array, Array]


class Boundary(NamedTuple):
    """The boundary of a piece after a step.

    Attributes
    ----------
    kept : Array
        Positions of its vertices among those that the step labels.
    distance : Array
        For each pair of them the least weight that connects them outside.
    coming : int
        The number of vertices not met yet.
    """

    kept: Array
    distance: Array
    coming: int


class Store(NamedTuple):
    """States with room for more: keys, costs or counts, the way into each, a hash index of the keys."""

    rows: Array
    values: Array
    estimate: Array
    back: Array
    slots: Array


class Draft(NamedTuple):
    """A state in the making.

    Attributes
    ----------
    comp, part : Array
        Component and part of each vertex.
    total, rough : Array
        Weight and rounded weight of each open part.
    key : Array
        Its key.
    work : Array
        Room for `settle`.
    """

    comp: Array
    part: Array
    total: Array
    rough: Array
    key: Array
    work: Array


@njit(cache=True)
def draft_of(width):  # type: ignore[no-untyped-def]
    """An empty draft of a state whose key has `width` numbers."""
    comp, part = np.zeros(SPAN, np.int64), np.zeros(SPAN, np.int64)
    total, rough = np.zeros(SPAN, np.int64), np.zeros(SPAN, np.int64)
    return Draft(comp, part, total, rough, np.zeros(width, np.int64), np.zeros((5, SPAN), np.int64))


@njit(cache=True, inline="always")
def _hash(row, width):  # type: ignore[no-untyped-def]
    h = np.uint64(1469598103934665603)
    for i in range(width):
        h ^= np.uint64(row[i])
        h *= np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@njit(cache=True)
def _find(rows, slots, key, width):  # type: ignore[no-untyped-def]
    """The slot of a key, or the empty slot where it belongs."""
    bits = np.uint64(len(slots) - 1)
    at = _hash(key, width) & bits
    while slots[at] >= 0:
        row = slots[at]
        same = True
        for i in range(width):
            if rows[row, i] != key[i]:
                same = False
                break
        if same:
            break
        at = (at + np.uint64(1)) & bits
    return at


@njit(cache=True)
def index(rows, count, width, size):  # type: ignore[no-untyped-def]
    """A hash index of distinct rows, on their first `width` numbers."""
    slots = np.full(size, -1, np.int64)
    for i in range(count):
        slots[_find(rows, slots, rows[i], width)] = i
    return slots


@njit(cache=True)
def longer(old, size):  # type: ignore[no-untyped-def]
    """The same table with room for more rows."""
    new = np.zeros((size, old.shape[1]), old.dtype)
    new[: len(old)] = old
    return new


@njit(cache=True)
def _roomier(store, count):  # type: ignore[no-untyped-def]
    """The same store with room for twice as many rows."""
    rows, values, estimate, back, slots = store
    size = 2 * len(rows)
    rows = longer(rows, size)
    slots = index(rows, count, rows.shape[1], 4 * size)
    return Store(rows, longer(values, size), longer(estimate, size), longer(back, size), slots)


@njit(cache=True)
def _fits(opened, total, new_part, lost, missing, limits, key, base):  # type: ignore[no-untyped-def]
    """Whether finished parts weigh enough, and the rest can fill the open and the missing parts."""
    left, low, high = limits
    need, take = missing * low, missing * high
    for p in range(opened):  # need and take: what open and missing parts must and can still weigh
        if total[p] > high or (lost[p] > 0 and total[p] < low):
            return False
        if lost[p] == 0 and new_part[p] >= 0:
            key[base + new_part[p]] = total[p]
            need += max(0, low - total[p])
            take += high - total[p]
    return need <= left <= take


@njit(cache=True)
def settle(draft, size, opened, finished, boundary, demands):  # type: ignore[no-untyped-def]
    """Close the parts that leave the boundary, and write the state's key, unless it cannot be completed.

    The draft labels `size` vertices, of which those that are kept stay on the boundary, and has the weights
    of the `opened` parts; `finished` is the code of the parts that were finished before.
    """
    comp, part, total, rough, key, work = draft
    kept, distance, coming = boundary
    parts, room, windows, exact, coarse = demands
    edges, marks, possible = windows
    new_comp, new_part, home, lost, stays = work
    new_comp[:] = -1
    new_part[:] = -1
    home[:] = -1
    key[:] = 0
    parts_now, comps_now = 0, 0
    for s in range(len(kept)):  # numbers rise in order of first appearance
        c, p = comp[kept[s]], part[kept[s]]
        if new_comp[c] < 0:
            new_comp[c] = comps_now
            comps_now += 1
        if new_part[p] < 0:
            new_part[p] = parts_now
            parts_now += 1
        key[0] |= new_comp[c] << (4 * s)
        key[1] |= new_part[p] << (4 * s)
    # A component that left the boundary must have been all there was of its part.
    lost[:opened] = 0
    stays[:opened] = 0
    for s in range(size):  # each component before s has counted once for its part
        c = comp[s]
        if home[c] < 0:
            home[c] = part[s]
            if new_comp[c] < 0:
                lost[part[s]] += 1
            else:
                stays[part[s]] += 1
    for p in range(opened):
        if lost[p] > 0:
            if lost[p] + stays[p] > 1:
                return False
            mark = marks[np.searchsorted(edges, total[p], side="right")]
            if mark == 0:
                return False
            finished += mark
    missing = parts - (finished & FINISHED) - parts_now
    if missing < 0 or missing > coming:
        return False
    at = np.searchsorted(possible, finished)
    if at == len(possible) or possible[at] != finished:
        return False
    key[2] = finished
    if not _fits(opened, total, new_part, lost, missing, exact, key, 4):
        return False
    if len(key) > 4 + room and not _fits(opened, rough, new_part, lost, missing, coarse, key, 4 + room):
        return False
    # Can components of the same part still meet?
    if comps_now > parts_now:
        for c in range(comps_now):
            closest = NEVER
            alone = True
            p = 0
            for s in range(len(kept)):
                if (key[0] >> (4 * s)) & 15 == c:
                    p = (key[1] >> (4 * s)) & 15
                    for x in range(len(kept)):
                        if (key[1] >> (4 * x)) & 15 == p and (key[0] >> (4 * x)) & 15 != c:
                            alone = False
                            closest = min(closest, distance[s, x])
            if not alone and key[4 + p] + closest > exact[2]:
                return False
    return True


@njit(cache=True)
def packed(cost, pairs, mode, limit):  # type: ignore[no-untyped-def]
    """The part of a key for the cost (if counted by cost) and the number of cut edges (if limited)."""
    if limit < 0:
        return cost if mode == COUNT else 0
    return cost * (limit + 1) + pairs if mode == COUNT else pairs


@njit(cache=True)
def unpacked(entry, mode, limit):  # type: ignore[no-untyped-def]
    """The cost and the number of cut edges of an entry of `packed`; 0 where it holds none."""
    if limit < 0:
        return (entry, 0) if mode == COUNT else (0, 0)
    return (entry // (limit + 1), entry % (limit + 1)) if mode == COUNT else (0, entry)


@njit(cache=True)
def promising(key, cost, most, room, bound, probe):  # type: ignore[no-untyped-def]
    """Whether a state may end at a cost of at most `most`; a relaxation's table bounds the rest."""
    rows, slots, costs = bound
    if len(key) == 4 + room:
        return cost <= most
    # In that table the key of the state is its partition, finished parts and rounded weights.
    probe[:2] = key[:2]
    probe[2] = key[2] & FINISHED
    probe[4:] = key[4 + room :]
    at = slots[_find(rows, slots, probe, 4 + room)]
    return at >= 0 and cost + costs[at] <= most


@njit(cache=True)
def enter(store, count, key, cost, way, one, two, counting):  # type: ignore[no-untyped-def]
    """Add a way to reach a state; costs or counts merge.

    Parameters
    ----------
    way
        State i of one table and (state or choice) j.
    one, two
        The counts of the two states that the way joins, as residues and as floats.

    Returns
    -------
    store : Store
        The rows with the new state.
    count : int
        The number of rows.
    row : int
        The row of the state.
    """
    mode, primes = counting
    if count == len(store[0]):
        store = _roomier(store, count)
    rows, values, estimate, back, slots = store
    slot = _find(rows, slots, key, len(key))
    row = slots[slot]
    fresh = row < 0
    if fresh:
        row = count
        count += 1
        slots[slot] = row
        rows[row] = key
    if mode == LEAST:
        if fresh or cost < values[row, 0]:
            values[row, 0] = cost
            back[row, 0], back[row, 1] = way
    else:
        for a in range(len(primes)):  # residues are below 2**31: products and sums fit 64 bits
            product = np.uint64(one[0][a]) * np.uint64(two[0][a]) + np.uint64(values[row, a])
            values[row, a] = np.int64(product % np.uint64(primes[a]))
        estimate[row, 0] += one[1][0] * two[1][0]
    return store, count, row


@njit(cache=True)
def remember(arcs, count, i, j, row):  # type: ignore[no-untyped-def]
    """Keep a way to reach a state."""
    if count == len(arcs):
        arcs = longer(arcs, 2 * count)
    arcs[count, 0], arcs[count, 1], arcs[count, 2] = i, j, row
    return arcs


def empty_store(width: int, digits: int) -> Store:
    """Room for a few rows of a table, with its hash index."""
    size = 64
    rows, values, back = (np.zeros((size, columns), np.int64) for columns in (width, digits, 2))
    return Store(rows, values, np.zeros((size, 1)), back, np.full(4 * size, -1, np.int64))


def index_size(count: int) -> int:
    """The size of a hash index for this number of rows: a power of two."""
    return 1 << max(4, (2 * count).bit_length())
