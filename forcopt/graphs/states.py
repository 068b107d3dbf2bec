"""What dynamic programmes over connected partitions share: states, their pruning, and bounds.

Such a programme decides a growing piece of a graph. A state of the piece holds, for its boundary, which
vertices are connected so far (components) and which will end in the same part (parts may hold several
components that still have to meet), the weight of each open part, and how many parts are finished: the
table of Cohen-Addad, Klein, Marx, Wheeler and Wolfram (FORC 2021), section 5, with the pair (inner
partition, inner join outer) as its key. A row of a table holds components and parts (4 bits for each
boundary vertex), the number of finished parts, the cost (if counted by cost), and the weights of the open
parts, followed by rounded weights if there is a bound; parts and components are numbered in order of first
appearance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from numba import njit

from forcopt.graphs.weighted import WeightedGraph

__all__ = [
    "BUDGET",
    "COUNT",
    "LEAST",
    "WIDEST",
    "Bound",
    "Filling",
    "Piece",
    "Programme",
    "Table",
    "arcs_into",
]

Array = np.ndarray[Any, Any]

COUNT, LEAST = 0, 1
WIDEST = 16
"""The longest boundary: a state spends four bits on each of its vertices."""
SPAN = 2 * WIDEST + 2
"""Two boundaries and a vertex."""

_NEVER = np.int64(2**60)
_LARGE = 2**60
_MOST_STATES = 30_000_000
"""A table with more states takes gigabytes; the programme gives up instead."""
BUDGET = 2_000_000
"""Transitions between two looks at the clock."""


@dataclass(frozen=True, eq=False)
class Piece:
    """What is decided after a step.

    Attributes:
        boundary: its vertices with edges to what is left.
        outside: bool, shape (n,): vertices whose weight is still to come.
        coming: the number of vertices not met yet.
        distance: for each pair of the boundary the least weight that connects them outside; 2**60 if
            nothing does.
    """

    boundary: tuple[int, ...]
    outside: Array
    coming: int
    distance: Array

    @classmethod
    def of(
        cls, graph: WeightedGraph, boundary: Sequence[int], outside: Array, coming: int, open_: Array
    ) -> Piece:
        """Make a piece; `open_` says which edges lie outside it."""
        distance = _distances(np.array(boundary, np.int64), *graph.links, open_, graph.weights)
        return cls(tuple(boundary), outside, coming, distance)


@njit(cache=True)
def _distances(boundary, starts, ends, numbers, open_, weight):  # type: ignore[no-untyped-def]
    n = len(weight)
    out = np.full((len(boundary), len(boundary)), _NEVER)
    spot = np.full(n, -1)
    for s in range(len(boundary)):
        spot[boundary[s]] = s
    for s in range(len(boundary)):
        far = np.full(n, _NEVER)
        done = np.zeros(n, np.bool_)
        far[boundary[s]] = 0
        while True:
            u = -1
            for v in range(n):
                if not done[v] and far[v] < _NEVER and (u < 0 or far[v] < far[u]):
                    u = v
            if u < 0:
                break
            done[u] = True
            if spot[u] >= 0 and spot[u] != s:
                out[s, spot[u]] = far[u]
                continue
            for a in range(starts[u], starts[u + 1]):
                v = ends[a]
                if open_[numbers[a]]:
                    far[v] = min(far[v], far[u] + (0 if spot[v] >= 0 else weight[v]))
    return out


# -- tables ------------------------------------------------------------------------------------------------


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
def _index(rows, count, width, size):  # type: ignore[no-untyped-def]
    """A hash index of distinct rows, on their first `width` numbers."""
    slots = np.full(size, -1, np.int64)
    for i in range(count):
        slots[_find(rows, slots, rows[i], width)] = i
    return slots


@njit(cache=True)
def _longer(old, size):  # type: ignore[no-untyped-def]
    new = np.zeros((size, old.shape[1]), old.dtype)
    new[: len(old)] = old
    return new


@njit(cache=True)
def _roomier(store, count):  # type: ignore[no-untyped-def]
    """The same store with room for twice as many rows."""
    rows, values, estimate, back, slots = store
    size = 2 * len(rows)
    rows = _longer(rows, size)
    slots = _index(rows, count, rows.shape[1], 4 * size)
    return rows, _longer(values, size), _longer(estimate, size), _longer(back, size), slots


@njit(cache=True)
def _fits(opened, total, new_part, lost, missing, limits, key, base):  # type: ignore[no-untyped-def]
    """Whether finished parts weigh enough, and what is left can fill the open parts and the missing ones."""
    left, low, high = limits
    need, take = missing * low, missing * high
    for p in range(opened):
        if total[p] > high or (lost[p] > 0 and total[p] < low):
            return False
        if lost[p] == 0 and new_part[p] >= 0:
            key[base + new_part[p]] = total[p]
            need += max(0, low - total[p])
            take += high - total[p]
    return need <= left <= take


@njit(cache=True)
def settle(  # type: ignore[no-untyped-def]
    comp, part, size, opened, total, rough, finished, kept, distance, coming, parts, exact, coarse, room, key,
    work,
):  # fmt: skip
    """Close what leaves the boundary, and write the state's key, unless nothing can come of it.

    `comp` and `part` label `size` vertices, of which those at `kept` stay on the boundary; `total` and
    `rough` are the weights of the `opened` parts, to be judged by `exact` and `coarse`: what is left, the
    bounds.
    """
    new_comp, new_part, home, lost, stays = work
    new_comp[:] = -1
    new_part[:] = -1
    home[:] = -1
    key[:] = 0
    parts_now, comps_now = 0, 0
    for s in range(len(kept)):
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
    for s in range(size):
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
            finished += 1
    missing = parts - finished - parts_now
    if missing < 0 or missing > coming:
        return False
    key[2] = finished
    if not _fits(opened, total, new_part, lost, missing, exact, key, 4):
        return False
    if len(key) > 4 + room and not _fits(opened, rough, new_part, lost, missing, coarse, key, 4 + room):
        return False
    # Can components of the same part still meet?
    if comps_now > parts_now:
        for c in range(comps_now):
            closest = _NEVER
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
def promising(key, cost, most, room, bound, probe):  # type: ignore[no-untyped-def]
    """Whether a state may end at a cost of at most `most`; a relaxation's table bounds what is left."""
    rows, slots, costs = bound
    if len(key) == 4 + room:
        return cost <= most
    # That table knows the state by its partition, finished parts and rounded weights.
    probe[:3] = key[:3]
    probe[4:] = key[4 + room :]
    at = slots[_find(rows, slots, probe, 4 + room)]
    return at >= 0 and cost + costs[at] <= most


@njit(cache=True)
def enter(store, count, key, mode, cost, i, j, one, two, primes):  # type: ignore[no-untyped-def]
    """Add a way to reach a state: from state i of one table and (state or choice) j; costs or counts merge.

    `one` and `two` hold the counts of what the way joins.

    Returns:
        The store, its number of rows, and the state's row.
    """
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
            back[row, 0], back[row, 1] = i, j
    else:
        for a in range(len(primes)):
            product = np.uint64(one[0][a]) * np.uint64(two[0][a]) + np.uint64(values[row, a])
            values[row, a] = np.int64(product % np.uint64(primes[a]))
        estimate[row, 0] += one[1][0] * two[1][0]
    return store, count, row


@njit(cache=True)
def remember(arcs, count, i, j, row):  # type: ignore[no-untyped-def]
    """Keep a way to reach a state."""
    if count == len(arcs):
        arcs = _longer(arcs, 2 * count)
    arcs[count, 0], arcs[count, 1], arcs[count, 2] = i, j, row
    return arcs


@dataclass(eq=False)
class Table:
    """All states of a piece.

    Attributes:
        rows: their keys.
        values: least costs, or counts as residues modulo `primes`.
        estimate: counts as floats.
        back: where a least cost comes from: the two numbers of an arc.
        arcs: if tracked, all ways into the states: a state of the first table that feeds this one; the
            choice made, or a state of the second; the state.
    """

    rows: Array
    values: Array
    estimate: Array
    back: Array
    arcs: Array


@dataclass(eq=False)
class Bound:
    """For every state of a relaxed programme, by table, the least cost of what is left.

    Attributes:
        weights, low, high: of the relaxation.
        rows, slots, costs: the states, a hash index of them, and their bounds.
        least: no partition costs less.
    """

    weights: Array
    low: int
    high: int
    rows: list[Array]
    slots: list[Array]
    costs: list[Array]
    least: int


@dataclass(eq=False)
class Filling:
    """A table as it is filled, for the kernels."""

    mode: int
    most: int
    room: int
    primes: Array
    bound: tuple[Array, Array, Array]
    exact: tuple[int, int, int]
    coarse: tuple[int, int, int]
    store: tuple[Array, ...]
    arcs: Array
    count: int = 0
    arc_count: int = 0


class Programme(ABC):
    """A dynamic programme: tables in an order, each fed by up to two earlier ones.

    Args:
        graph: with weights and costs.
        low, high: inclusive bounds on the weight of a part.
        parts: how many.
        apart, joined: pairs of vertices that must not, or must, share a part.

    Attributes:
        pieces: one for each table.
        feeds: the numbers of the tables that feed each table.
        states: how many the last run made.
    """

    pieces: list[Piece]
    feeds: list[tuple[int, ...]]

    def __init__(
        self,
        graph: WeightedGraph,
        low: int,
        high: int,
        parts: int,
        apart: Sequence[tuple[int, int]] = (),
        joined: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.graph, self.low, self.high, self.parts = graph, low, high, parts
        self.apart, self.joined = tuple(apart), tuple(joined)
        self.states = 0

    @abstractmethod
    def relaxed(self, graph: WeightedGraph, low: int, high: int) -> Self:
        """The same programme for other weights and bounds."""

    @abstractmethod
    def begin(self, t: int, fed: list[Table], weights: tuple[Array, Array]) -> Callable[[Filling, int], int]:
        """Prepare table t: the result fills it from a position on, for a while, and says how far it got.

        A negative position says that the table is complete. `weights` are exact and rounded ones.
        """

    @abstractmethod
    def ends(self, t: int, tables: list[Table], after: Array) -> list[Array]:
        """For the arcs of table t and each table that feeds it: the cost from the arc to the end."""

    @abstractmethod
    def parts_of(self, picks: dict[int, int]) -> list[list[int]]:
        """The parts that the choices in the tables make; for each table the second number of its arc."""

    @property
    def width(self) -> int:
        """The length of the longest boundary."""
        return max(len(piece.boundary) for piece in self.pieces)

    @property
    def room(self) -> int:
        """How many parts can be open at a time."""
        return max(1, min(self.parts, self.width))

    def run(
        self,
        mode: int,
        most: int | None = None,
        bound: Bound | None = None,
        track: bool = False,
        stop: Callable[[], bool] | None = None,
        digits: int = 2,
    ) -> list[Table]:
        """Fill all tables.

        Args:
            mode: COUNT or LEAST.
            most: states that cost more (with the bound on what is left) are dropped.
            bound: of a relaxation of this programme.
            track: keep all arcs, and the rows and values of all tables.
            stop: asked every moment.
            digits: residues of a count; more are taken if they do not suffice.

        Raises:
            TimeoutError: if `stop` said so.
            MemoryError: if a table would hold more than 30 million states.

        Returns:
            The tables; without `track` only the last has rows and values.
        """
        primes = _primes(digits)
        rough = np.zeros_like(self.graph.weights) if bound is None else bound.weights
        weights = (self.graph.weights, rough)
        width = 4 + self.room * (1 if bound is None else 2)
        none = np.zeros((0, 0), np.int64), np.full(1, -1), np.zeros(0, np.int64)
        tables: list[Table] = []
        self.states = 0
        for t, piece in enumerate(self.pieces):
            left = [int(w[piece.outside].sum()) for w in weights]
            filling = Filling(
                mode, _LARGE if most is None else most, self.room, primes,
                none if bound is None else (bound.rows[t], bound.slots[t], bound.costs[t]),
                (left[0], self.low, self.high),
                (left[1], 0, 0) if bound is None else (left[1], bound.low, bound.high),
                _store(width, digits if mode == COUNT else 1), np.zeros((64 if track else 0, 3), np.int32),
            )  # fmt: skip
            fed = [tables[f] for f in self.feeds[t]]
            fill = self.begin(t, fed, weights)
            at = 0
            while at >= 0:
                at = fill(filling, at)
                if filling.count > _MOST_STATES:
                    raise MemoryError(f"more than {_MOST_STATES} states in table {t + 1}")
                if stop is not None and stop():
                    raise TimeoutError("stopped by the time limit")
            rows, values, estimate, back = (column[: filling.count].copy() for column in filling.store[:4])
            table = Table(rows, values, estimate, back, filling.arcs[: filling.arc_count].copy())
            self.states += filling.count
            if mode == COUNT and table.estimate.max(initial=0.0) > 0.01 * np.prod(primes.astype(float)):
                return self.run(mode, most, bound, track, stop, 2 * digits)
            tables.append(table)
            if not track:
                for done in fed:
                    done.rows = done.values = done.estimate = np.zeros((0, 0), np.int64)
        return tables

    def relaxation(
        self,
        unit: int | None,
        most: int | None = None,
        bound: Bound | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Bound | None:
        """Bounds on the cost to the end, from the same programme with weights in multiples of `unit`.

        Weights are rounded, and the bounds on parts widened by the most that rounding can change the weight
        of a part; without a unit weights are left out altogether.

        Args:
            unit: see above.
            most: a cost; None is returned if no partition of the relaxation costs so little.
            bound: of a coarser relaxation.
            stop: asked every moment.

        Raises:
            TimeoutError: if `stop` said so.
            MemoryError: see `run`.
        """
        w = self.graph.weights
        if unit is None:
            coarse, low, high = np.zeros_like(w), 0, 0
        else:
            coarse = (w + unit // 2) // unit
            error = coarse * unit - w
            low = max(0, -(-(self.low - _most_error(-error, w, self.high)) // unit))
            high = (self.high + _most_error(error, w, self.high)) // unit
        other = self.relaxed(WeightedGraph(coarse, self.graph.edges, self.graph.costs), low, high)
        tables = other.run(LEAST, most, bound, track=True, stop=stop)
        self.states = other.states
        if len(tables[-1].rows) == 0:
            return None
        after = [np.full(len(table.rows), _NEVER) for table in tables]
        after[-1][:] = 0
        rows, slots, costs = [], [], []
        width = 4 + self.room
        for t in range(len(tables) - 1, -1, -1):
            table = tables[t]
            for number, (f, cost) in enumerate(
                zip(self.feeds[t], other.ends(t, tables, after[t]), strict=True)
            ):
                np.minimum.at(after[f], table.arcs[:, number], cost)
            useful = np.flatnonzero(table.values[:, 0] + after[t] <= (_LARGE if most is None else most))
            kept, least = np.ascontiguousarray(table.rows[useful, :width]), after[t][useful]
            if bound is not None and len(kept):  # one state may appear with several coarser weights
                kept, at = np.unique(kept, axis=0, return_inverse=True)
                least = np.full(len(kept), _NEVER)
                np.minimum.at(least, at.reshape(-1), after[t][useful])
            rows.append(kept)
            costs.append(least)
            slots.append(_index(kept, len(kept), width, _size(len(kept))))
        return Bound(coarse, low, high, rows[::-1], slots[::-1], costs[::-1], int(tables[-1].values[0, 0]))

    def cheapest(
        self, most: int | None = None, bound: Bound | None = None, stop: Callable[[], bool] | None = None
    ) -> tuple[int, list[list[int]]] | None:
        """The least cost and the parts of a partition that has it; None if there is none of at most `most`.

        Of several the first in the order of the tables is given.

        Raises:
            TimeoutError: if `stop` said so.
            MemoryError: see `run`.
        """
        tables = self.run(LEAST, most, bound, stop=stop)
        if len(tables[-1].rows) == 0:
            return None
        picks = {}
        stack = [(len(tables) - 1, 0)]
        while stack:
            t, state = stack.pop()
            came = tables[t].back[state].tolist()
            picks[t] = came[1]
            stack += zip(self.feeds[t], came, strict=False)
        return int(tables[-1].values[0, 0]), self.parts_of(picks)

    def histogram(self, most: int | None = None, bound: Bound | None = None) -> dict[int, int]:
        """The number of partitions of each cost."""
        last = self.run(COUNT, most, bound)[-1]
        return dict(sorted(zip(last.rows[:, 3].tolist(), map(whole, last.values), strict=True)))

    def ranked(
        self, tables: list[Table], into: list[tuple[Array, Array]], cost: int, rank: int
    ) -> list[list[int]]:
        """The parts of the partition of a rank, from 0, among those of a cost.

        The corrected Algorithm 2 of the paper: at each state the arcs share the ranks in their order, and an
        arc's ranks are split between the tables that feed it.

        Args:
            tables: of a tracked count.
            into: of `arcs_into` for them.
            cost, rank: of a partition that exists.
        """
        picks = {}
        stack = [(len(tables) - 1, int(np.flatnonzero(tables[-1].rows[:, 3] == cost)[0]), rank)]
        while stack:
            t, state, rank = stack.pop()
            arcs, starts = into[t]
            for *came, _ in arcs[starts[state] : starts[state + 1]].tolist():
                ways = [whole(tables[f].values[s]) for f, s in zip(self.feeds[t], came, strict=False)]
                both = int(np.prod(np.array(ways, dtype=object))) if ways else 1
                if rank < both:
                    picks[t] = came[1]
                    for f, s, own in zip(self.feeds[t], came, ways, strict=False):
                        stack.append((f, s, rank % own))
                        rank //= own
                    break
                rank -= both
        return self.parts_of(picks)


def arcs_into(tables: list[Table]) -> list[tuple[Array, Array]]:
    """For each table its arcs in order of the state that they make, and where each state's begin."""
    out = []
    for table in tables:
        order = np.argsort(table.arcs[:, 2], kind="stable")
        starts = np.searchsorted(table.arcs[order, 2], np.arange(len(table.rows) + 1))
        out.append((table.arcs[order], starts))
    return out


def whole(residues: Array) -> int:
    """The number with these residues (Chinese remainders)."""
    value, modulus = 0, 1
    for residue, prime in zip(residues.tolist(), _primes(len(residues)).tolist(), strict=True):
        step = (residue - value) * pow(modulus, -1, prime) % prime
        value, modulus = value + modulus * step, modulus * prime
    return value


@cache
def _primes(count: int) -> Array:
    """The largest primes below 2**31: counts are kept as residues, as many as their size needs."""
    found: list[int] = []
    candidate = 2**31 - 1
    divisors = np.arange(3, 46341, 2)
    while len(found) < count:
        if (candidate % divisors).all():
            found.append(candidate)
        candidate -= 2
    return np.array(found, np.int64)


def _store(width: int, digits: int) -> tuple[Array, ...]:
    """Room for a few rows of a table, with its hash index."""
    size = 64
    return (
        np.zeros((size, width), np.int64), np.zeros((size, digits), np.int64), np.zeros((size, 1)),
        np.zeros((size, 2), np.int64), np.full(4 * size, -1, np.int64),
    )  # fmt: skip


def _size(count: int) -> int:
    """Of a hash index for so many rows: a power of two."""
    return 1 << max(4, (2 * count).bit_length())


def _most_error(error: Array, weights: Array, high: int) -> int:
    """The most that errors add up to over vertices of weight `high` or less (a fractional knapsack)."""
    gains = [(int(e), int(w)) for e, w in zip(error, weights, strict=True) if e > 0]
    gains.sort(key=lambda item: item[0] / max(item[1], 1e-9), reverse=True)
    total, left = 0, high
    for gain, w in gains:
        if w > left:
            return total + -(-gain * left // w)
        total, left = total + gain, left - w
    return total
