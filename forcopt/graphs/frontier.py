"""Dynamic programming over connected partitions, vertex by vertex along a path decomposition.

The states of `forcopt.graphs.states` on a path instead of a branch decomposition: the boundary is the
frontier (processed vertices with neighbours still to come), and every step adds one vertex, so no two
tables are ever multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.compiled import njit
from forcopt.errors import DeclarationError
from forcopt.graphs.dynamic_program import BUDGET, Filling, Piece, Program, Table
from forcopt.graphs.states import (
    COUNT,
    FINISHED,
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
from forcopt.graphs.weighted import WeightedGraph, frontier_order


class _Layer(NamedTuple):
    """The effect of the step of one vertex on the frontier.

    Attributes
    ----------
    vertex : int
        The vertex of the step.
    kept : ndarray
        Positions, in the frontier before plus the vertex itself, of the frontier after.
    near, costs : ndarray
        Positions of its neighbours in the frontier before, and the costs of the edges to them.
    cannot_link, must_link : ndarray
        Positions in the frontier of vertices that must not, or must, share its part.
    """

    vertex: int
    kept: Array
    near: Array
    costs: Array
    cannot_link: Array
    must_link: Array


@njit(cache=True)
def _step(fed, vertex, boundary, rules, table, begin, budget):  # type: ignore[no-untyped-def]
    """Process one vertex in states from `begin` on; `table`: its store, its arcs, and the sizes of both."""
    rows, values, estimate = fed
    length, weight, (near, costs, cannot_link, must_link) = vertex  # see `_Layer`
    demands, counting, most, limit, bound = rules
    parts, room, mode, high = demands.parts, demands.room, counting.mode, demands.exact.high
    store, arcs, count, arc_count = table
    track = len(arcs) > 0
    bounded = rows.shape[1] > 4 + room
    comp = np.zeros(WIDEST + 1, np.int64)
    draft = draft_of(rows.shape[1])
    merged, part, total, rough, key, _ = draft
    probe = np.zeros(4 + room, np.int64)
    one = (np.ones(len(counting.primes), np.int64), np.ones(1))
    for i in range(begin, len(rows)):  # the table holds the successors of all states before i
        if budget <= 0:
            return i, store, arcs, count, arc_count
        opened = 0
        for s in range(length):
            comp[s] = (rows[i, 0] >> (4 * s)) & 15
            part[s] = (rows[i, 1] >> (4 * s)) & 15
            opened = max(opened, part[s] + 1)
        for p in range(opened):
            total[p] = rows[i, 4 + p]
            rough[p] = rows[i, 4 + room + p] if bounded else 0
        total[opened], rough[opened] = 0, 0
        for d in range(opened + 1):  # an open part, or a new one; the weights are those of state i
            if d == opened and opened + (rows[i, 2] & FINISHED) >= parts:
                break
            if total[d] + weight[0] > high:
                continue
            bad = False
            for a in cannot_link:
                bad = bad or part[a] == d
            for a in must_link:
                bad = bad or part[a] != d
            if bad:
                continue
            budget -= 1
            # The vertex merges its neighbours' components of the same part; other neighbours are cut off.
            merged[: length + 1] = comp[: length + 1]
            merged[length], part[length] = WIDEST, d
            cost, pairs = 0, 0
            for a in range(len(near)):
                if part[near[a]] != d:
                    cost += costs[a]
                    pairs += 1
                elif merged[near[a]] != WIDEST:
                    old = merged[near[a]]
                    for s in range(length):
                        if merged[s] == old:
                            merged[s] = WIDEST
            total[d] += weight[0]
            rough[d] += weight[1]
            good = settle(draft, length + 1, max(opened, d + 1), rows[i, 2], boundary, demands)
            total[d] -= weight[0]
            rough[d] -= weight[1]
            if not good:
                continue
            before, cut = unpacked(rows[i, 3], mode, limit)
            cost += before if mode == COUNT else values[i, 0]
            pairs += cut
            if limit >= 0 and pairs > limit:
                continue
            key[3] = packed(cost, pairs, mode, limit)
            if not promising(key, cost, most, room, bound, probe):
                continue
            own = (values[i], estimate[i])
            store, count, row = enter(store, count, key, cost, (i, d), own, one, counting)
            if track:
                arcs = remember(arcs, arc_count, i, d, row)
                arc_count += 1
    return -1, store, arcs, count, arc_count


class Sweep(Program):
    """The dynamic program along an order of the vertices.

    Parameters
    ----------
    graph : WeightedGraph
        With weights and costs.
    windows : sequence of tuple of int, shape (parts, 2)
        Inclusive bounds on the weight of each part.
    order : sequence of int, optional
        Of the vertices; a short-frontier order by default.
    cannot_link, must_link : sequence of tuple of int, optional
        Pairs of vertices that must not, or must, share a part.
    limit : int, optional
        The largest number of edges between parts.

    Raises
    ------
    DeclarationError
        If a frontier is longer than 16.

    Examples
    --------
    >>> g = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1] * 4)
    >>> Sweep(g, [(2, 2)] * 2).histogram()
    {2: 2}
    """

    def __init__(
        self,
        graph: WeightedGraph,
        windows: Sequence[tuple[int, int]],
        order: Sequence[int] | None = None,
        cannot_link: Sequence[tuple[int, int]] = (),
        must_link: Sequence[tuple[int, int]] = (),
        limit: int | None = None,
    ) -> None:
        super().__init__(graph, windows, cannot_link, must_link, limit)
        self.order = frontier_order(graph, longest=WIDEST) if order is None else list(order)
        self.feeds = [(t - 1,) if t else () for t in range(graph.size)]
        self.pieces, self.layers = [], []
        when = {v: t for t, v in enumerate(self.order)}
        links: list[set[int]] = [set(a) for a in graph.neighbours]
        for u, v in [*self.cannot_link, *self.must_link]:
            links[u].add(v)
            links[v].add(u)
        last = [max((when[u] for u in links[v]), default=-1) for v in graph]
        frontier: list[int] = []
        outside = np.ones(graph.size, np.bool_)
        for t, v in enumerate(self.order):
            outside[v] = False
            at = {u: i for i, u in enumerate(frontier)}
            near = sorted(at[u] for u in graph.neighbours[v] if u in at)
            wide = [*frontier, v]
            kept = [i for i, u in enumerate(wide) if last[u] > t]
            if len(kept) > WIDEST:
                raise DeclarationError(f"the frontier grows to {len(kept)} vertices; {WIDEST} are possible")
            costs = [graph.cost_matrix[v, frontier[i]] for i in near]
            pairs = [_partners(group, v, at) for group in (self.cannot_link, self.must_link)]
            self.layers.append(_Layer(v, *(np.array(a, np.int64) for a in (kept, near, costs, *pairs))))
            frontier = [wide[i] for i in kept]
            open_ = outside[graph.edges[:, 0]] | outside[graph.edges[:, 1]]
            self.pieces.append(Piece(graph, frontier, outside.copy(), graph.size - t - 1, open_))

    def relaxed(self, graph: WeightedGraph, low: int, high: int) -> Sweep:
        """The same order with other weights and bounds."""
        return Sweep(graph, [(low, high)] * self.parts, self.order, self.cannot_link, self.must_link)

    def begin(self, t: int, fed: list[Table], weights: tuple[Array, Array]) -> Callable[[Filling, int], int]:
        """Prepare the step of the t-th vertex."""
        layer, piece = self.layers[t], self.pieces[t]
        length = len(self.pieces[t - 1].boundary) if t else 0
        vertex = (length, (int(weights[0][layer.vertex]), int(weights[1][layer.vertex])), tuple(layer[2:]))
        boundary = Boundary(layer.kept, piece.distance, piece.coming)

        def fill(f: Filling, at: int) -> int:
            if fed:
                states = (fed[0].rows, fed[0].values, fed[0].estimate)
            else:  # no vertex is decided yet
                values = np.ones_like(f.store.values[:1]) * (f.rules.counting.mode == COUNT)
                states = (np.zeros_like(f.store.rows[:1]), values, np.ones((1, 1)))
            return f.advance(lambda table: _step(states, vertex, boundary, f.rules, table, at, BUDGET))

        return fill

    def ends(self, t: int, tables: list[Table], after: Array) -> list[Array]:
        """The cut edges of a step, and its successors."""
        if t == 0:
            return []
        arcs, layer = tables[t].arcs, self.layers[t]
        parts = tables[t - 1].rows[arcs[:, 0], 1]
        cost = after[arcs[:, 2]]
        for spot, paid in zip(layer.near.tolist(), layer.costs.tolist(), strict=True):
            cost = cost + paid * ((parts >> (4 * spot)) & 15 != arcs[:, 1])
        return [cost]

    def parts_of(self, picks: dict[int, int]) -> list[list[int]]:
        """The parts that the vertices join, one after the other."""
        label: dict[int, int] = {}
        frontier: Sequence[int] = ()
        made = 0
        for t, (layer, piece) in enumerate(zip(self.layers, self.pieces, strict=True)):
            open_ = list(dict.fromkeys(label[u] for u in frontier))
            if picks[t] == len(open_):
                label[layer.vertex] = made
                made += 1
            else:
                label[layer.vertex] = open_[picks[t]]
            frontier = piece.boundary
        parts: list[list[int]] = [[] for _ in range(made)]
        for v, d in sorted(label.items()):
            parts[d].append(v)
        return parts


def _partners(pairs: Sequence[tuple[int, int]], v: int, at: dict[int, int]) -> list[int]:
    """The positions in the frontier of vertices that are paired with v."""
    others = {b for a, b in pairs if a == v} | {a for a, b in pairs if b == v}
    return sorted(at[u] for u in others if u in at)
