"""Dynamic programs over connected partitions: the sweep over tables, bounds, counts, partitions by rank.

The module `forcopt.graphs.states` defines the states and how tables store them. A program defines the
order in which pieces of the graph are decided, and how the table of a piece follows from smaller ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.graphs.cut_bound import most_within
from forcopt.graphs.states import (
    COUNT,
    FINISHED,
    LEAST,
    NEVER,
    Counting,
    Demands,
    Limits,
    Rules,
    Store,
    empty_store,
    index,
    index_size,
    unpacked,
)
from forcopt.graphs.tolerances import ROUNDED, SLACK
from forcopt.graphs.weighted import WeightedGraph
from forcopt.memory import memory_budget

_NO_LIMIT = int(NEVER)
_MOST_STATES = 2**31 - 1
"""32 bits number the states of a table."""
BUDGET = 2_000_000
"""Transitions between two looks at the clock."""


@dataclass(frozen=True, eq=False)
class Piece:
    """The part of the graph that is decided after a step.

    Attributes
    ----------
    graph : WeightedGraph
        The graph.
    boundary : sequence of int
        Its vertices with edges to the rest.
    outside : Array
        Bool, shape (n,): vertices whose weight is still to come.
    coming : int
        The number of vertices not met yet.
    open_ : Array
        Bool, shape (m,): the edges outside it.
    """

    graph: WeightedGraph
    boundary: Sequence[int]
    outside: Array
    coming: int
    open_: Array

    @cached_property
    def distance(self) -> Array:
        """For each pair of the boundary the least weight that connects them outside; 2**60 if nothing does.

        Paths lead along open edges, around the other boundary vertices.
        """
        graph, boundary = self.graph, list(self.boundary)
        ends = graph.edges[self.open_]
        tails, heads = np.concatenate([ends, ends[:, ::-1]]).T
        weights, starts = graph.weights.copy(), np.arange(graph.size)
        weights[boundary] = 0
        starts[boundary] = graph.size + np.arange(len(boundary))  # paths begin at copies
        count = graph.size + len(boundary)
        network = sp.csr_array((weights[heads], (starts[tails], heads)), shape=(count, count))
        far = sp.csgraph.dijkstra(network, indices=starts[boundary])[:, boundary]
        return np.where(np.isfinite(far), far, NEVER).astype(np.int64)


@dataclass(eq=False)
class Table:
    """All states of a piece.

    Attributes
    ----------
    rows : Array
        Their keys.
    values : Array
        Least costs, or counts as residues modulo `primes`.
    estimate : Array
        Counts as floats.
    back : Array
        The arc of each least cost: its two numbers.
    arcs : Array
        If tracked, all ways into the states: a state of the first table that feeds this one; the choice made,
        or a state of the second; the state.
    """

    rows: Array
    values: Array
    estimate: Array
    back: Array
    arcs: Array


@dataclass(eq=False)
class Bound:
    """For every state of a relaxed program, by table, the least cost of the rest.

    Attributes
    ----------
    weights, low, high
        Of the relaxation.
    rows, slots, costs : list[Array]
        The states, a hash index of them, and their bounds.
    least : int
        No partition costs less.
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
    """A table as it is filled: the rules of the kernels, its states, and the arcs if they are tracked."""

    rules: Rules
    store: Store
    arcs: Array
    count: int = 0
    arc_count: int = 0

    def advance(self, step: Callable[[tuple[Store, Array, int, int]], tuple[Any, ...]]) -> int:
        """Let a kernel extend the table; return where it stopped, -1 at the end."""
        table = (self.store, self.arcs, self.count, self.arc_count)
        at, self.store, self.arcs, self.count, self.arc_count = step(table)
        return int(at)


class Program(ABC):
    """A dynamic program: tables in an order, each fed by up to two earlier ones.

    Parameters
    ----------
    graph : WeightedGraph
        With weights and costs.
    windows : sequence of tuple of int, shape (parts, 2)
        Inclusive bounds on the weight of each part.
    cannot_link, must_link : sequence of tuple of int, optional
        Pairs of vertices that must not, or must, share a part.
    limit : int, optional
        The largest number of edges between parts; relaxations leave it out.

    Attributes
    ----------
    pieces : list of Piece
        One for each table.
    feeds : list of tuple of int
        The numbers of the tables that feed each table.
    states : int
        The number of states of the last run.
    classes : tuple of Array
        Of the windows, see `classes_of`.

    Raises
    ------
    DeclarationError
        If costs are too large beside a limit, or there are too many different windows.
    """

    pieces: list[Piece]
    feeds: list[tuple[int, ...]]

    def __init__(
        self,
        graph: WeightedGraph,
        windows: Sequence[tuple[int, int]],
        cannot_link: Sequence[tuple[int, int]] = (),
        must_link: Sequence[tuple[int, int]] = (),
        limit: int | None = None,
    ) -> None:
        self.limit = -1 if limit is None else min(limit, len(graph.edges))
        if (int(graph.costs.sum()) + 1) * (self.limit + 1) >= NEVER:
            raise DeclarationError("the costs are too large beside a limit on the number of cut edges")
        self.graph, self.parts, self.classes = graph, len(windows), classes_of(windows)
        self.low, self.high = min(low for low, _ in windows), max(high for _, high in windows)
        self.cannot_link, self.must_link = tuple(cannot_link), tuple(must_link)
        self.states = 0

    @abstractmethod
    def relaxed(self, graph: WeightedGraph, low: int, high: int) -> Self:
        """The same program for other weights and bounds."""

    @abstractmethod
    def begin(self, t: int, fed: list[Table], weights: tuple[Array, Array]) -> Callable[[Filling, int], int]:
        """Prepare table t: the result fills it from a position on, for a while, and returns how far it got.

        A negative position means that the table is complete. `weights` are exact and rounded ones.
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

        Parameters
        ----------
        mode : int
            COUNT or LEAST.
        most : int, optional
            States that cost more (with the bound on the remaining cost) are dropped.
        bound : Bound, optional
            Of a relaxation of this program.
        track : bool, default False
            Keep all arcs, and the rows and values of all tables.
        stop : Callable[[], bool], optional
            Asked every moment.
        digits : int, default 2
            Residues of a count; more are taken if they do not suffice.

        Returns
        -------
        list[Table]
            The tables; without `track` only the last has rows and values.

        Raises
        ------
        TimeoutError
            If `stop` returns True.
        MemoryError
            If the tables exceed the memory limit of the run.
        """
        primes = largest_primes(digits)
        weights = (self.graph.weights, np.zeros_like(self.graph.weights) if bound is None else bound.weights)
        width = 4 + self.room * (1 if bound is None else 2)
        none = np.zeros((0, 0), np.int64), np.full(1, -1), np.zeros(0, np.int64)
        tables: list[Table] = []
        self.states, memory = 0, memory_budget()
        for t, piece in enumerate(self.pieces):
            left = [int(w[piece.outside].sum()) for w in weights]
            exact = Limits(left[0], self.low, self.high)
            coarse = Limits(left[1], 0, 0) if bound is None else Limits(left[1], bound.low, bound.high)
            rules = Rules(
                Demands(self.parts, self.room, self.classes, exact, coarse),
                Counting(mode, primes),
                most=_NO_LIMIT if most is None else most,
                limit=self.limit,
                bound=none if bound is None else (bound.rows[t], bound.slots[t], bound.costs[t]),
            )
            arcs = np.zeros((64 if track else 0, 3), np.int32)
            filling = Filling(rules, empty_store(width, digits if mode == COUNT else 1), arcs)
            fed = [tables[f] for f in self.feeds[t]]
            fill = self.begin(t, fed, weights)
            at = 0
            while at >= 0:
                at = fill(filling, at)
                if filling.count > _MOST_STATES:
                    raise MemoryError(f"more than {_MOST_STATES} states in table {t + 1}")
                # The columns of a table are doubled when they are full, and copied when it is complete.
                size = sum(column.nbytes for column in filling.store) + filling.arcs.nbytes
                memory.reserve(2 * size if at >= 0 and 2 * filling.count > len(filling.store[0]) else size)
                if stop is not None and stop():
                    raise TimeoutError("stopped")
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
        """Bounds on the cost to the end, from the same program with weights in multiples of `unit`.

        Weights are rounded, and the bounds on parts widened by the most that rounding can change the weight
        of a part; without a unit weights are left out altogether.

        Parameters
        ----------
        unit : int
            See above.
        most : int, optional
            A cost; None is returned if no partition of the relaxation costs so little.
        bound : Bound, optional
            Of a coarser relaxation.
        stop : Callable[[], bool], optional
            Asked every moment.

        Raises
        ------
        TimeoutError
            If `stop` returns True.
        MemoryError
            See `run`.
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
        after = [np.full(len(table.rows), NEVER) for table in tables]
        after[-1][:] = 0
        rows, slots, costs = [], [], []
        width = 4 + self.room
        for t in range(len(tables) - 1, -1, -1):
            table = tables[t]
            for number, (f, cost) in enumerate(
                zip(self.feeds[t], other.ends(t, tables, after[t]), strict=True)
            ):
                np.minimum.at(after[f], table.arcs[:, number], cost)
            useful = np.flatnonzero(table.values[:, 0] + after[t] <= (_NO_LIMIT if most is None else most))
            kept, least = np.ascontiguousarray(table.rows[useful, :width]), after[t][useful]
            if bound is not None and len(kept):  # one state may appear with several coarser weights
                kept, at = np.unique(kept, axis=0, return_inverse=True)
                least = np.full(len(kept), NEVER)
                np.minimum.at(least, at.reshape(-1), after[t][useful])
            rows.append(kept)
            costs.append(least)
            slots.append(index(kept, len(kept), width, index_size(len(kept))))
        return Bound(coarse, low, high, rows[::-1], slots[::-1], costs[::-1], int(tables[-1].values[0, 0]))

    def cheapest(
        self, most: int | None = None, bound: Bound | None = None, stop: Callable[[], bool] | None = None
    ) -> tuple[int, list[list[int]]] | None:
        """The least cost and a partition that attains it; None if every partition costs more than `most`.

        Of several the first in the order of the tables is given.

        Raises
        ------
        TimeoutError
            If `stop` returns True.
        MemoryError
            See `run`.
        """
        tables = self.run(LEAST, most, bound, stop=stop)
        if len(tables[-1].rows) == 0:
            return None
        picks = {}
        best = int(np.argmin(tables[-1].values[:, 0]))  # states differ in the number of cut edges
        stack = [(len(tables) - 1, best)]
        while stack:
            t, state = stack.pop()
            came = tables[t].back[state].tolist()
            picks[t] = came[1]
            stack += zip(self.feeds[t], came, strict=False)
        return int(tables[-1].values[best, 0]), self.parts_of(picks)

    def histogram(
        self, most: int | None = None, bound: Bound | None = None, stop: Callable[[], bool] | None = None
    ) -> dict[int, int]:
        """The number of partitions of each cost; see `run` for the parameters and the errors."""
        last = self.run(COUNT, most, bound, stop=stop)[-1]
        found: dict[int, int] = {}
        for entry, count in zip(last.rows[:, 3].tolist(), map(whole, last.values), strict=True):
            cost = int(unpacked(entry, COUNT, self.limit)[0])
            found[cost] = found.get(cost, 0) + count
        return dict(sorted(found.items()))

    def ranked(
        self, tables: list[Table], into: list[tuple[Array, Array]], cost: int, rank: int
    ) -> list[list[int]]:
        """The parts of the partition of a rank, from 0, among those of a cost.

        The corrected Algorithm 2 of the paper: at each state the arcs share the ranks in their order, and an
        arc's ranks are split between the tables that feed it.

        Parameters
        ----------
        tables : list[Table]
            Of a tracked count.
        into : list[tuple[Array, Array]]
            Of `arcs_into` for them.
        cost, rank : int
            Of a partition that exists.
        """
        picks = {}
        last, state = tables[-1], -1
        for state, entry in enumerate(last.rows[:, 3].tolist()):
            if unpacked(entry, COUNT, self.limit)[0] == cost:
                count = whole(last.values[state])
                if rank < count:
                    break
                rank -= count
        stack = [(len(tables) - 1, state, rank)]
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


def classes_of(windows: Sequence[tuple[int, int]]) -> tuple[Array, Array, Array]:
    """Divide weights into classes that lie in the same windows, for parts with different windows.

    A set of finished parts can be completed only if each of them can take a window of its own. The windows
    of a part follow from the class of its weight, so the number of finished parts in each class decides.

    Parameters
    ----------
    windows : sequence of tuple of int, shape (parts, 2)
        Inclusive bounds on the weight of each part.

    Returns
    -------
    edges : ndarray of int64
        The least weight of each class but the first, in increasing order.
    marks : ndarray of int64, shape (len(edges) + 1,)
        What a finished part of each class adds to a code: 1 in the low bits (see `FINISHED`), and 1 in
        the bits of its class, except for the first class; 0 outside all windows.
    possible : ndarray of int64
        The codes of all sets of finished parts whose parts can take different windows, in increasing order.

    Raises
    ------
    DeclarationError
        If the codes do not fit in 62 bits.

    Examples
    --------
    >>> edges, marks, possible = classes_of([(1, 3), (3, 5)])
    >>> edges.tolist(), (marks & FINISHED).tolist(), (marks >> 20).tolist()
    ([1, 3, 4, 6], [0, 1, 1, 1, 0], [0, 0, 1, 4, 0])
    >>> len(possible)  # none; one of a class; two of different classes or of the middle one
    8
    """
    edges = sorted({low for low, _ in windows} | {high + 1 for _, high in windows})
    spans = list(pairwise(edges))
    covered = [span for span in spans if any(low <= span[0] and span[1] <= high + 1 for low, high in windows)]
    step = len(windows).bit_length()
    if FINISHED.bit_length() + step * (len(covered) - 1) > 62 or len(windows) > FINISHED:
        raise DeclarationError(f"{len(set(windows))} different windows of {len(windows)} parts are too many")
    mark = dict.fromkeys(covered[:1], 1)  # the other classes' numbers give that of the first
    mark |= {span: 1 + (FINISHED + 1 << step * i) for i, span in enumerate(covered[1:])}
    codes = {0}
    for low, high in windows:
        own = [m for span, m in mark.items() if low <= span[0] and span[1] <= high + 1]
        codes |= {code + m for code in codes for m in own}
    marks = [0, *(mark.get(span, 0) for span in spans), 0]
    return np.array(edges, np.int64), np.array(marks, np.int64), np.array(sorted(codes), np.int64)


def arcs_into(tables: list[Table]) -> list[tuple[Array, Array]]:
    """For each table its arcs in order of the state that they make, and where each state's begin."""
    out = []
    for table in tables:
        order = np.argsort(table.arcs[:, 2], kind="stable")
        out.append((table.arcs[order], np.searchsorted(table.arcs[order, 2], np.arange(len(table.rows) + 1))))
    return out


def whole(residues: Array) -> int:
    """The number with these residues (Chinese remainders)."""
    value, modulus = 0, 1
    for residue, prime in zip(residues.tolist(), largest_primes(len(residues)).tolist(), strict=True):
        step = (residue - value) * pow(modulus, -1, prime) % prime
        value, modulus = value + modulus * step, modulus * prime
    return value


@cache
def largest_primes(count: int) -> Array:
    """The largest primes below 2**31: counts are kept as residues, as many as their size needs."""
    found: list[int] = []
    candidate = 2**31 - 1
    divisors = np.arange(3, 46341, 2)
    while len(found) < count:
        if (candidate % divisors).all():
            found.append(candidate)
        candidate -= 2
    return np.array(found, np.int64)


def _most_error(error: Array, weights: Array, high: int) -> int:
    """The most that errors, which are whole, add up to over vertices of weight `high` or less."""
    return int(most_within(error, weights, high) * (1 + ROUNDED) + SLACK)
