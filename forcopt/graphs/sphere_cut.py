"""Dynamic programming over connected partitions along a branch decomposition.

Cohen-Addad, Klein, Marx, Wheeler and Wolfram (FORC 2021), section 5, with three repairs (closed leaves,
finished parts, joins on the union of boundaries). The pieces of `forcopt.graphs.dynamic_program` are clusters
of edges. An edge within a part is uncut: no state of a leaf breaks that, so every partition is counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.compiled import njit
from forcopt.errors import DeclarationError
from forcopt.graphs.branch_decomposition import BranchDecomposition, Cluster
from forcopt.graphs.dynamic_program import BUDGET, Filling, Piece, Program, Table
from forcopt.graphs.states import (
    FINISHED,
    LEAST,
    SPAN,
    WIDEST,
    Boundary,
    draft_of,
    enter,
    packed,
    promising,
    remember,
    settle,
    unpacked,
)
from forcopt.graphs.weighted import WeightedGraph


@njit(cache=True)
def _shared_code(rows, spots):  # type: ignore[no-untyped-def]
    """The parts of some positions of the boundary, relabelled by first appearance, in 4 bits each."""
    out = np.zeros(len(rows), np.int64)
    label = np.zeros(16, np.int64)
    for i in range(len(rows)):
        label[:] = -1
        count = 0
        for s in range(len(spots)):
            p = (rows[i, 1] >> (4 * spots[s])) & 15
            if label[p] < 0:
                label[p] = count
                count += 1
            out[i] |= label[p] << (4 * s)
    return out


@njit(cache=True)
def _root_of(link, c):  # type: ignore[no-untyped-def]
    while link[c] != c:
        c = link[c]
    return c


class _Edge(NamedTuple):
    """An edge: its ways (1 if its ends share a part), the weights of each end, its cost, if it connects."""

    ways: Array
    weight: Array
    cost: int
    connects: bool


@njit(cache=True)
def _leaf(edge, boundary, rules, table):  # type: ignore[no-untyped-def]
    """The states of one edge; `table`: its store, its arcs, and the sizes of both."""
    ways, weight, cost, connects = edge
    demands, counting, most, limit, bound = rules
    store, arcs, count, arc_count = table
    mode, room, track = counting.mode, demands.room, len(arcs) > 0
    draft, probe = draft_of(store.rows.shape[1]), np.zeros(4 + room, np.int64)
    comp, part, total, rough, key, _ = draft
    one = (np.ones(len(counting.primes), np.int64), np.ones(1))
    for same in ways:  # each way gives at most one state
        part[1] = 1 - same
        comp[1] = 0 if same and connects else 1
        total[:2] = 0
        rough[:2] = 0
        for end in range(2):
            total[part[end]] += weight[end, 0]
            rough[part[end]] += weight[end, 1]
        if not settle(draft, 2, 2 - same, 0, boundary, demands):
            continue
        paid = 0 if same else cost
        pairs = 0 if same or not connects else 1
        if limit >= 0 and pairs > limit:
            continue
        key[3] = packed(paid, pairs, mode, limit)
        if not promising(key, paid, most, room, bound, probe):
            continue
        uncut = 1 if same and connects else 0
        store, count, row = enter(store, count, key, paid, (0, uncut), one, one, counting)
        if track:
            arcs = remember(arcs, arc_count, 0, uncut, row)
            arc_count += 1
    return -1, store, arcs, count, arc_count


class _Pairs(NamedTuple):
    """Which states of two tables agree on the shared boundary.

    Attributes
    ----------
    order1, order2, begin2, end2 : Array
        States of the first; the i-th goes with ``order2[begin2[i]:end2[i]]``, the cheapest first.
    length1, length2 : int
        The lengths of the boundaries.
    shared1, shared2 : Array
        The positions of the shared vertices in both.
    place2 : Array
        The position of each vertex of the second boundary in the union of both: the first boundary, then
        the rest of the second.
    union : int
        The length of the union.
    """

    order1: Array
    order2: Array
    begin2: Array
    end2: Array
    length1: int
    length2: int
    shared1: Array
    shared2: Array
    place2: Array
    union: int


@njit(cache=True)
def _open_parts(parts, length):  # type: ignore[no-untyped-def]
    """The number of open parts of a state, from the second number of its key."""
    opened = 0
    for s in range(length):
        opened = max(opened, ((parts >> (4 * s)) & 15) + 1)
    return opened


@njit(cache=True)
def _connect(link, comp1, comp2, shared1, shared2):  # type: ignore[no-untyped-def]
    """Link the components of two states, those of the second from 16 on, that share a vertex."""
    for c in range(SPAN):
        link[c] = c
    for s in range(len(shared1)):  # components are linked that hold one of the vertices before s
        a = _root_of(link, (comp1 >> (4 * shared1[s])) & 15)
        b = _root_of(link, 16 + ((comp2 >> (4 * shared2[s])) & 15))
        if a != b:
            link[max(a, b)] = min(a, b)


@njit(cache=True)
def _assigned(way, frees, lone, free, target, opened):  # type: ignore[no-untyped-def]
    """Give each lone part one of the free parts, by the digits of `way`, or a part of its own.

    Returns
    -------
    int
        The number of open parts then; -1 if a free part would be given twice.
    """
    used = 0  # a bit for each free part that is given
    for b in lone:
        pick = way % (frees + 1)
        way //= frees + 1
        if pick == frees:
            target[b] = opened
            opened += 1
        elif used & (1 << pick) != 0:
            return -1
        else:
            used |= 1 << pick
            target[b] = free[pick]
    return opened


@njit(cache=True)
def _join(tables, pairs, boundary, rules, table, begin, budget):  # type: ignore[no-untyped-def]
    """Join pairs of states that agree on the shared boundary, those of the first from `begin` on."""
    (rows1, values1, estimate1), (rows2, values2, estimate2) = tables
    order1, order2, begin2, end2, length1, length2, shared1, shared2, place2, union = pairs
    demands, counting, most, limit, bound = rules
    parts, room, mode, high = demands.parts, demands.room, counting.mode, demands.exact.high
    store, arcs, count, arc_count = table
    track = len(arcs) > 0
    bounded = rows1.shape[1] > 4 + room
    link, home = np.zeros(SPAN, np.int64), np.zeros(SPAN, np.int64)
    target, free, lone = np.zeros(SPAN, np.int64), np.zeros(SPAN, np.int64), np.zeros(SPAN, np.int64)
    draft, probe = draft_of(rows1.shape[1]), np.zeros(4 + room, np.int64)
    comp, part, total, rough, key, _ = draft
    for x in range(begin, len(order1)):  # the table holds the joins of all first states before x
        if budget <= 0:
            return x, store, arcs, count, arc_count
        i = order1[x]
        open1 = _open_parts(rows1[i, 1], length1)
        for y in range(begin2[x], end2[x]):  # costs rise
            j = order2[y]
            budget -= 1
            finished = rows1[i, 2] + rows2[j, 2]
            (first, cut1), (second, cut2) = (
                unpacked(rows1[i, 3], mode, limit),
                unpacked(rows2[j, 3], mode, limit),
            )
            cost = values1[i, 0] + values2[j, 0] if mode == LEAST else first + second
            if cost > most:
                break
            cut = cut1 + cut2
            if (limit >= 0 and cut > limit) or finished & FINISHED > parts:
                continue
            open2 = _open_parts(rows2[j, 1], length2)
            # Parts of the second that share a vertex with the first are known there; the others are lone.
            target[:open2] = -1
            home[:open1] = 0
            for s in range(len(shared1)):
                p1 = (rows1[i, 1] >> (4 * shared1[s])) & 15
                target[(rows2[j, 1] >> (4 * shared2[s])) & 15] = p1
                home[p1] = 1
            frees, lones = 0, 0
            for p in range(open1):
                if home[p] == 0:
                    free[frees] = p
                    frees += 1
                total[p] = rows1[i, 4 + p]
            bad = False
            for p in range(open2):
                if target[p] < 0:
                    lone[lones] = p
                    lones += 1
                else:
                    total[target[p]] += rows2[j, 4 + p]
                    bad = bad or total[target[p]] > high
            if bad:
                continue
            _connect(link, rows1[i, 0], rows2[j, 0], shared1, shared2)
            # A lone part is one of the first's parts without a shared vertex, or a part of its own.
            for way in range((frees + 1) ** lones):
                opened = _assigned(way, frees, lone[:lones], free, target, open1)
                if opened < 0 or opened + (finished & FINISHED) > parts:
                    continue
                total[:opened] = 0
                rough[:opened] = 0
                for p in range(open1):
                    total[p] = rows1[i, 4 + p]
                    rough[p] = rows1[i, 4 + room + p] if bounded else 0
                for p in range(open2):
                    total[target[p]] += rows2[j, 4 + p]
                    rough[target[p]] += rows2[j, 4 + room + p] if bounded else 0
                for s in range(length1):
                    part[s] = (rows1[i, 1] >> (4 * s)) & 15
                    comp[s] = _root_of(link, (rows1[i, 0] >> (4 * s)) & 15)
                for s in range(length2):
                    if place2[s] >= length1:
                        part[place2[s]] = target[(rows2[j, 1] >> (4 * s)) & 15]
                        comp[place2[s]] = _root_of(link, 16 + ((rows2[j, 0] >> (4 * s)) & 15))
                if not settle(draft, union, opened, finished, boundary, demands):
                    continue
                key[3] = packed(cost, cut, mode, limit)
                if not promising(key, cost, most, room, bound, probe):
                    continue
                one, two = (values1[i], estimate1[i]), (values2[j], estimate2[j])
                store, count, row = enter(store, count, key, cost, (i, j), one, two, counting)
                if track:
                    arcs = remember(arcs, arc_count, i, j, row)
                    arc_count += 1
    return -1, store, arcs, count, arc_count


class SphereCut(Program):
    """The dynamic program along a branch decomposition.

    Parameters
    ----------
    decomposition : BranchDecomposition
        Of a graph with weights and costs.
    windows : sequence of tuple of int, shape (parts, 2)
        Inclusive bounds on the weight of each part.
    cannot_link, must_link : sequence of tuple of int, optional
        Pairs of vertices that must not, or must, share a part; each must be an edge of the
        decomposition.
    limit : int, optional
        The largest number of edges between parts.

    Raises
    ------
    DeclarationError
        If a boundary is longer than 16, or a pair is no edge.

    Examples
    --------
    >>> from forcopt.graphs.weighted import WeightedGraph
    >>> g = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1] * 4)
    >>> SphereCut(BranchDecomposition.of(g), [(2, 2)] * 2).histogram()
    {2: 2}
    """

    def __init__(
        self,
        decomposition: BranchDecomposition,
        windows: Sequence[tuple[int, int]],
        cannot_link: Sequence[tuple[int, int]] = (),
        must_link: Sequence[tuple[int, int]] = (),
        limit: int | None = None,
    ) -> None:
        super().__init__(decomposition.graph, windows, cannot_link, must_link, limit)
        self.decomposition = decomposition
        if decomposition.width > WIDEST:
            raise DeclarationError(f"the width is {decomposition.width}; at most {WIDEST} is possible")
        self._cannot_link = {frozenset(pair) for pair in self.cannot_link}
        self._must_link = {frozenset(pair) for pair in self.must_link}
        known = {frozenset(e) for e in decomposition.edges}
        for pair in self._cannot_link | self._must_link:
            if pair not in known:
                raise DeclarationError(f"vertices {sorted(pair)} have a link constraint but are not adjacent")
        g, edges, clusters = self.graph, decomposition.edges, decomposition.clusters
        number = {id(c): i for i, c in enumerate(clusters)}
        self.feeds = [tuple(number[id(child)] for child in c.children or ()) for c in clusters]
        # The weight of a vertex counts in its first edge.
        self.home = {v: i for i, e in reversed(list(enumerate(edges))) for v in e}
        ends = np.array(edges)
        self.pieces = []
        for c in clusters:
            inside = np.array([c.edges >> i & 1 for i in range(len(edges))], np.bool_)
            outside = np.array([not inside[self.home[v]] for v in g], np.bool_)
            coming = g.size - len(np.unique(ends[inside]))
            self.pieces.append(Piece(g, c.boundary, outside, coming, ~inside[: decomposition.real]))

    def relaxed(self, graph: WeightedGraph, low: int, high: int) -> SphereCut:
        """The same decomposition with other weights and bounds."""
        other = replace(self.decomposition, graph=graph)
        return SphereCut(other, [(low, high)] * self.parts, self.cannot_link, self.must_link)

    def begin(self, t: int, fed: list[Table], weights: tuple[Array, Array]) -> Callable[[Filling, int], int]:
        """Prepare the table of a cluster."""
        cluster, piece = self.decomposition.clusters[t], self.pieces[t]
        if cluster.children is None:
            return self._leaf(cluster, piece, weights)
        first, second = (list(child.boundary) for child in cluster.children)
        union = first + [v for v in second if v not in first]
        shared = [v for v in first if v in second]
        places = ((shared, first), (shared, second), (second, union), (piece.boundary, union))
        spots = (np.array([among.index(v) for v in which], np.int64) for which, among in places)
        shared1, shared2, place2, kept = spots
        one, two = fed
        code1, code2 = _shared_code(one.rows, shared1), _shared_code(two.rows, shared2)
        tables = tuple((table.rows, table.values, table.estimate) for table in fed)
        boundary = Boundary(kept, piece.distance, piece.coming)

        def fill(f: Filling, at: int) -> int:
            order1 = np.argsort(code1, kind="stable")
            least = f.rules.counting.mode == LEAST
            order2 = np.lexsort((two.values[:, 0] if least else two.rows[:, 3], code2))
            begin = np.searchsorted(code2[order2], code1[order1], "left")
            end = np.searchsorted(code2[order2], code1[order1], "right")
            pairs = _Pairs(
                order1, order2, begin, end, len(first), len(second), shared1, shared2, place2, len(union)
            )
            return f.advance(lambda table: _join(tables, pairs, boundary, f.rules, table, at, BUDGET))

        return fill

    def _leaf(
        self, cluster: Cluster, piece: Piece, weights: tuple[Array, Array]
    ) -> Callable[[Filling, int], int]:
        ends = self.decomposition.edges[cluster.edge]
        pair, real = frozenset(ends), cluster.edge < self.decomposition.real
        ways = [s for s in (1, 0) if pair not in (self._cannot_link if s else self._must_link)]
        weight = [[w[v] if self.home[v] == cluster.edge else 0 for w in weights] for v in ends]
        cost = int(self.graph.cost_matrix[ends]) if real else 0
        edge = _Edge(np.array(ways, np.int64), np.array(weight, np.int64), cost, real)
        kept = np.array([ends.index(v) for v in piece.boundary], np.int64)
        boundary = Boundary(kept, piece.distance, piece.coming)

        return lambda f, at: f.advance(lambda table: _leaf(edge, boundary, f.rules, table))

    def ends(self, t: int, tables: list[Table], after: Array) -> list[Array]:
        """The cost of the other child, and the successors."""
        if not self.feeds[t]:
            return []
        arcs = tables[t].arcs
        one, two = (tables[f].values[arcs[:, i], 0] for i, f in enumerate(self.feeds[t]))
        return [two + after[arcs[:, 2]], one + after[arcs[:, 2]]]

    def parts_of(self, picks: dict[int, int]) -> list[list[int]]:
        """The components that the uncut edges make."""
        clusters = self.decomposition.clusters
        leaves = (t for t, uncut in picks.items() if uncut and clusters[t].children is None)
        edges = [self.decomposition.edges[clusters[t].edge] for t in leaves]
        return WeightedGraph.of([0] * self.graph.size, edges, [0] * len(edges)).components()
