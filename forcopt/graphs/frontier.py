"""Dynamic programming over connected partitions, vertex by vertex along a path decomposition.

A state after the first t vertices holds, for the frontier (processed vertices with neighbours still to come),
which of them are connected so far (components) and which are meant to end in the same part (parts may hold
several components that still have to meet), the weight of each open part, and how many parts are finished.
This is the table of Cohen-Addad et al. (FORC 2021) with the pair (inner partition, inner join outer) as its
key, on a path instead of a branch decomposition: every join adds one vertex, so no two tables are ever
multiplied.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from forcopt.errors import DeclarationError
from forcopt.graphs.orders import frontier_order
from forcopt.graphs.weighted import WeightedGraph

__all__ = ["COUNT", "LEAST", "WIDEST", "Bound", "Layer", "Sweep", "Table", "number"]

Array = np.ndarray[Any, Any]

WIDEST = 16
"""The longest frontier: a state spends four bits on each of its vertices."""

_NEVER = np.int64(2**60)
_WORD = np.int64(2**62)
_LARGE = 2**60
_MOST_STATES = 30_000_000
"""A table with more states takes gigabytes; the sweep gives up instead."""
COUNT, LEAST = 0, 1


@dataclass(frozen=True, eq=False)
class Layer:
    """What the step of one vertex does to the frontier.

    Attributes:
        vertex: which is processed.
        near: positions of its neighbours in the frontier before.
        costs: of the edges to them.
        apart, joined: positions in the frontier of vertices that must not share its part, or must.
        kept: positions, in the frontier before plus the vertex itself, of the frontier after.
        distance: for each pair of the frontier after, the least weight of unprocessed vertices that connects
            them; 2**60 if none can.
        left: total weight of unprocessed vertices.
        coming: their number.
    """

    vertex: int
    near: Array
    costs: Array
    apart: Array
    joined: Array
    kept: Array
    distance: Array
    left: int
    coming: int


def layers(
    graph: WeightedGraph,
    order: Sequence[int],
    apart: Sequence[tuple[int, int]] = (),
    joined: Sequence[tuple[int, int]] = (),
) -> list[Layer]:
    """Plan the steps along an order of the vertices.

    Raises:
        DeclarationError: if a frontier is longer than 16.
    """
    when = {v: t for t, v in enumerate(order)}
    links: list[set[int]] = [set(a) for a in graph.neighbours]
    for u, v in [*apart, *joined]:
        links[u].add(v)
        links[v].add(u)
    last = [max((when[u] for u in links[v]), default=-1) for v in graph]
    frontier: list[int] = []
    steps = []
    left = graph.total
    for t, v in enumerate(order):
        left -= int(graph.weights[v])
        at = {u: i for i, u in enumerate(frontier)}
        near = sorted(at[u] for u in graph.neighbours[v] if u in at)
        wide = [*frontier, v]
        kept = [i for i, u in enumerate(wide) if last[u] > t]
        if len(kept) > WIDEST:
            raise DeclarationError(
                f"the frontier grows to {len(kept)} vertices; at most {WIDEST} are possible"
            )
        following = [wide[i] for i in kept]
        steps.append(
            Layer(
                v,
                np.array(near, np.int64),
                np.array([graph.cost_matrix[v, frontier[i]] for i in near], np.int64),
                _partners(apart, v, at),
                _partners(joined, v, at),
                np.array(kept, np.int64),
                _distances(graph, following, set(order[t + 1 :])),
                left,
                graph.size - t - 1,
            )
        )
        frontier = following
    return steps


def _partners(pairs: Sequence[tuple[int, int]], v: int, at: dict[int, int]) -> Array:
    """The positions in the frontier of what is paired with v."""
    others = {b for a, b in pairs if a == v} | {a for a, b in pairs if b == v}
    return np.array(sorted(at[u] for u in others if u in at), np.int64)


def _distances(graph: WeightedGraph, frontier: list[int], coming: set[int]) -> Array:
    out = np.full((len(frontier), len(frontier)), _NEVER)
    for i, source in enumerate(frontier):
        best: dict[int, int] = {}
        queue = [(int(graph.weights[u]), u) for u in graph.neighbours[source] if u in coming]
        heapq.heapify(queue)
        while queue:
            far, u = heapq.heappop(queue)
            if u in best:
                continue
            best[u] = far
            for x in graph.neighbours[u]:
                if x in coming and x not in best:
                    heapq.heappush(queue, (far + int(graph.weights[x]), x))
        for j, target in enumerate(frontier):
            if j != i:
                out[i, j] = min((best[u] for u in graph.neighbours[target] if u in best), default=_NEVER)
    return out


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
def _index(rows, width):  # type: ignore[no-untyped-def]
    """A hash index of distinct rows, on their first `width` numbers."""
    size = 16
    while size < 2 * len(rows):
        size *= 2
    slots = np.full(size, -1, np.int64)
    for i in range(len(rows)):
        slots[_find(rows, slots, rows[i], width)] = i
    return slots


@njit(cache=True)
def _step(  # type: ignore[no-untyped-def]
    rows,
    values,
    mode,
    track,
    length,
    weight,
    near,
    costs,
    apart,
    joined,
    kept,
    distance,
    left,
    coming,
    low,
    high,
    parts,
    most,
    bound_rows,
    bound_slots,
    bounds,
    coarse,
    coarse_left,
    coarse_low,
    coarse_high,
):
    """Process one vertex in every state.

    A row holds the components of the frontier (4 bits each), its parts (4 bits each), the number of finished
    parts, the cost (if counted by cost), the weights of the open parts and, with a bound, their coarse
    weights. Values are least costs, or counts as digits in base 2**62.
    """
    bounded = len(bound_slots) > 0
    width = rows.shape[1]
    digits = values.shape[1]
    room = (width - 4) // 2 if bounded else width - 4
    capacity = max(64, len(rows))
    out = np.zeros((capacity, width), np.int64)
    out_values = np.zeros((capacity, digits), np.int64)
    parent = np.zeros(capacity if mode == LEAST else 0, np.int64)
    choice = np.zeros(capacity if mode == LEAST else 0, np.int8)
    arc_capacity = capacity if track else 0
    arcs = np.zeros((arc_capacity, 3), np.int32)
    arc_costs = np.zeros(arc_capacity, np.int64)
    arc_count = 0
    size = 256
    while size < 2 * capacity:
        size *= 2
    slots = np.full(size, -1, np.int64)
    count = 0
    overflow = np.int64(0)
    comp, part = np.zeros(WIDEST + 2, np.int64), np.zeros(WIDEST + 2, np.int64)
    alias, home = np.zeros(WIDEST + 2, np.int64), np.zeros(WIDEST + 2, np.int64)
    new_comp, new_part = np.zeros(WIDEST + 2, np.int64), np.zeros(WIDEST + 2, np.int64)
    lost, stays = np.zeros(WIDEST + 2, np.int64), np.zeros(WIDEST + 2, np.int64)
    w, cw = np.zeros(WIDEST + 2, np.int64), np.zeros(WIDEST + 2, np.int64)
    key = np.zeros(width, np.int64)
    probe = np.zeros(4 + room, np.int64)
    for i in range(len(rows)):
        if count > _MOST_STATES:
            break
        open_ = 0
        for s in range(length):
            comp[s] = (rows[i, 0] >> (4 * s)) & 15
            part[s] = (rows[i, 1] >> (4 * s)) & 15
            open_ = max(open_, part[s] + 1)
        for d in range(open_ + 1):
            finished = rows[i, 2]
            if d == open_:
                if open_ + finished >= parts:
                    break
                total, coarse_total = weight, coarse
            else:
                total = rows[i, 4 + d] + weight
                coarse_total = rows[i, 4 + room + d] + coarse if bounded else coarse
            if total > high or coarse_total > coarse_high:
                continue
            bad = False
            for a in range(len(apart)):
                bad = bad or part[apart[a]] == d
            for a in range(len(joined)):
                bad = bad or part[joined[a]] != d
            if bad:
                continue
            # The vertex merges its neighbours' components of the same part; other neighbours are cut off.
            for c in range(WIDEST + 2):
                alias[c], home[c], new_comp[c], new_part[c] = c, -1, -1, -1
            own = WIDEST
            cost = 0
            for a in range(len(near)):
                if part[near[a]] == d:
                    alias[comp[near[a]]] = own
                else:
                    cost += costs[a]
            comp[length], part[length] = own, d
            # What the frontier keeps, relabelled in order of first appearance.
            parts_now, comps_now = 0, 0
            key[:] = 0
            for s in range(len(kept)):
                c, p = alias[comp[kept[s]]], part[kept[s]]
                if new_comp[c] < 0:
                    new_comp[c] = comps_now
                    comps_now += 1
                if new_part[p] < 0:
                    new_part[p] = parts_now
                    parts_now += 1
                key[0] |= new_comp[c] << (4 * s)
                key[1] |= new_part[p] << (4 * s)
            # A component that left the frontier must have been all there was of its part.
            for p in range(open_ + 1):
                lost[p], stays[p] = 0, 0
            for s in range(length + 1):
                c = alias[comp[s]]
                if home[c] < 0:
                    home[c] = part[s]
                    if new_comp[c] < 0:
                        lost[part[s]] += 1
                    else:
                        stays[part[s]] += 1
            for p in range(open_ + 1):
                if lost[p] > 0:
                    reached = total if p == d else rows[i, 4 + p]
                    if lost[p] + stays[p] > 1 or reached < low:
                        bad = True
                        break
                    finished += 1
                    if bounded:
                        reached = coarse_total if p == d else rows[i, 4 + room + p]
                        bad = bad or reached < coarse_low
            if bad:
                continue
            # Can what is left fill the open parts and the missing ones?
            missing = parts - finished - parts_now
            if missing < 0 or missing > coming:
                continue
            need, take = missing * low, missing * high
            coarse_need, coarse_take = missing * coarse_low, missing * coarse_high
            for p in range(open_ + 1):
                if new_part[p] >= 0:
                    reached = total if p == d else rows[i, 4 + p]
                    w[new_part[p]] = reached
                    need += max(0, low - reached)
                    take += high - reached
                    if bounded:
                        reached = coarse_total if p == d else rows[i, 4 + room + p]
                        cw[new_part[p]] = reached
                        coarse_need += max(0, coarse_low - reached)
                        coarse_take += coarse_high - reached
            if need > left or take < left:
                continue
            if bounded and (coarse_need > coarse_left or coarse_take < coarse_left):
                continue
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
                    if not alone and w[p] + closest > high:
                        bad = True
                        break
                if bad:
                    continue
            step_cost = cost
            cost += values[i, 0] if mode == LEAST else rows[i, 3]
            key[2] = finished
            for p in range(parts_now):
                key[4 + p] = w[p]
            if bounded:
                # The bound's table knows the state by its partition, finished parts and coarse weights.
                probe[:] = 0
                probe[0], probe[1], probe[2] = key[0], key[1], finished
                for p in range(parts_now):
                    probe[4 + p] = cw[p]
                    key[4 + room + p] = cw[p]
                at = bound_slots[_find(bound_rows, bound_slots, probe, 4 + room)]
                if at < 0 or cost + bounds[at] > most:
                    continue
            elif cost > most:
                continue
            if mode == COUNT:
                key[3] = cost
            slot = _find(out, slots, key, width)
            row = slots[slot]
            if row < 0:
                if count == capacity:
                    capacity *= 2
                    out = _longer2(out, capacity)
                    out_values = _longer2(out_values, capacity)
                    if mode == LEAST:
                        parent = _longer(parent, capacity)
                        choice = _longer(choice, capacity)
                row = count
                count += 1
                slots[slot] = row
                out[row] = key
                if mode == LEAST:
                    out_values[row, 0] = cost
                    parent[row], choice[row] = i, d
                else:
                    out_values[row] = values[i]
                if 2 * count > size:
                    size *= 2
                    slots = np.full(size, -1, np.int64)
                    for x in range(count):
                        slots[_find(out, slots, out[x], width)] = x
            elif mode == LEAST:
                if cost < out_values[row, 0]:
                    out_values[row, 0] = cost
                    parent[row], choice[row] = i, d
            else:
                carry = np.int64(0)
                for x in range(digits):
                    figure = out_values[row, x] + values[i, x] + carry
                    carry = np.int64(figure >= _WORD)
                    out_values[row, x] = figure - carry * _WORD
                overflow |= carry
            if track:
                if arc_count == arc_capacity:
                    arc_capacity *= 2
                    arcs = _longer2(arcs, arc_capacity)
                    arc_costs = _longer(arc_costs, arc_capacity)
                arcs[arc_count, 0], arcs[arc_count, 1], arcs[arc_count, 2] = i, d, row
                arc_costs[arc_count] = step_cost
                arc_count += 1
    return (
        out[:count].copy(), out_values[:count].copy(), parent[:count].copy(), choice[:count].copy(),
        arcs[:arc_count].copy(), arc_costs[:arc_count].copy(), overflow,
    )  # fmt: skip


@njit(cache=True)
def _longer(old, size):  # type: ignore[no-untyped-def]
    new = np.zeros(size, old.dtype)
    new[: len(old)] = old
    return new


@njit(cache=True)
def _longer2(old, size):  # type: ignore[no-untyped-def]
    new = np.zeros((size, old.shape[1]), old.dtype)
    new[: len(old)] = old
    return new


@njit(cache=True)
def _cheapest_end(count, arcs, arc_costs, after):  # type: ignore[no-untyped-def]
    """The least cost from each state to the end, given that of the states after it."""
    best = np.full(count, _NEVER)
    for a in range(len(arcs)):
        best[arcs[a, 0]] = min(best[arcs[a, 0]], arc_costs[a] + after[arcs[a, 2]])
    return best


@dataclass(eq=False)
class Table:
    """All states after some vertices.

    Attributes:
        rows: their keys.
        values: least costs, or counts as digits in base 2**62, the lowest first.
        parent, choice: where a least cost comes from (a state before, and the part that the vertex joined).
        arcs, arc_costs: if tracked, all steps into the states: state before, part joined, state; what they
            cost.
    """

    rows: Array
    values: Array
    parent: Array
    choice: Array
    arcs: Array
    arc_costs: Array


@dataclass(eq=False)
class Bound:
    """For every state of a relaxed sweep, by layer, the least cost of what is left.

    Attributes:
        weights, low, high: of the relaxation.
        rows, slots, costs: the states, a hash index of them, and their bounds.
    """

    weights: Array
    low: int
    high: int
    rows: list[Array]
    slots: list[Array]
    costs: list[Array]
    least: int


class Sweep:
    """The dynamic programme along an order of the vertices.

    Args:
        graph: with weights and costs.
        low, high: inclusive bounds on the weight of a part.
        parts: how many.
        order: of the vertices; a short-frontier order by default.
        apart, joined: pairs of vertices that must not, or must, share a part.

    >>> g = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1] * 4)
    >>> sweep = Sweep(g, 2, 2, 2)
    >>> sweep.histogram()
    {2: 2}
    """

    def __init__(
        self,
        graph: WeightedGraph,
        low: int,
        high: int,
        parts: int,
        order: Sequence[int] | None = None,
        apart: Sequence[tuple[int, int]] = (),
        joined: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.graph, self.low, self.high, self.parts = graph, low, high, parts
        self.order = frontier_order(graph) if order is None else list(order)
        self.apart, self.joined = tuple(apart), tuple(joined)
        self.layers = layers(graph, self.order, apart, joined)
        self.states = 0

    @property
    def width(self) -> int:
        """The length of the longest frontier."""
        return max(len(layer.kept) for layer in self.layers)

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
        digits: int = 1,
        stop: Callable[[], bool] | None = None,
    ) -> list[Table]:
        """Process all vertices.

        Args:
            mode: COUNT or LEAST.
            most: states that cost more (with the bound on what is left) are dropped.
            bound: of a relaxation along the same order.
            track: keep all steps, and the rows and values of all tables.
            digits: of a count, in base 2**62; more are taken if they overflow.
            stop: asked after each vertex; the tables so far are returned if it says so.

        Raises:
            MemoryError: if a table would hold more than 30 million states.

        Returns:
            A table for each vertex; without `track` only the last has rows and values.
        """
        worst = _LARGE if most is None else most
        width = 4 + self.room * (1 if bound is None else 2)
        first = np.zeros((1, digits), np.int64)
        first[0, 0] = 1 if mode == COUNT else 0
        none = np.zeros(0, np.int64)
        rows, values = np.zeros((1, width), np.int64), first
        tables: list[Table] = []
        coarse_left = 0 if bound is None else int(bound.weights.sum())
        length = 0
        self.states = 0
        for t, layer in enumerate(self.layers):
            relaxed: tuple[Any, ...] = (np.zeros((0, 0), np.int64), none, none, 0, 0, 0, 0)
            if bound is not None:
                coarse = int(bound.weights[layer.vertex])
                coarse_left -= coarse
                relaxed = (
                    bound.rows[t], bound.slots[t], bound.costs[t], coarse, coarse_left, bound.low, bound.high
                )  # fmt: skip
            *parts_of_table, overflow = _step(
                rows, values, mode, track, length, int(self.graph.weights[layer.vertex]),
                layer.near, layer.costs, layer.apart, layer.joined, layer.kept, layer.distance,
                layer.left, layer.coming,
                self.low, self.high, self.parts, worst, *relaxed,
            )  # fmt: skip
            if overflow:
                return self.run(mode, most, bound, track, digits + 1, stop)
            table = Table(*parts_of_table)
            if len(table.rows) > _MOST_STATES:
                raise MemoryError(f"more than {_MOST_STATES} states after {t + 1} vertices")
            rows, values, length = table.rows, table.values, len(layer.kept)
            self.states += len(rows)
            tables.append(table)
            if not track and t:
                tables[-2].rows = tables[-2].values = np.zeros((0, 0), np.int64)
            if stop is not None and stop():
                break
        return tables

    def relaxation(
        self,
        unit: int | None,
        most: int | None = None,
        bound: Bound | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Bound | None:
        """Bounds on the cost to the end, from the same sweep with weights in multiples of `unit`.

        Weights are rounded, and the bounds on parts widened by the most that rounding can change the weight
        of a part; without a unit weights are left out altogether.

        Args:
            unit: see above.
            most: a cost; None is returned if no plan of the relaxation costs so little.
            bound: of a coarser relaxation.
            stop: asked after each vertex.

        Raises:
            TimeoutError: if `stop` said so.
        """
        w = self.graph.weights
        if unit is None:
            coarse, low, high = np.zeros_like(w), 0, 0
        else:
            coarse = (w + unit // 2) // unit
            error = coarse * unit - w
            low = max(0, -(-(self.low - _most_error(-error, w, self.high)) // unit))
            high = (self.high + _most_error(error, w, self.high)) // unit
        relaxed = WeightedGraph(coarse, self.graph.edges, self.graph.costs)
        sweep = Sweep(relaxed, low, high, self.parts, self.order, self.apart, self.joined)
        tables = sweep.run(LEAST, most, bound, track=True, stop=stop)
        self.states = sweep.states
        if len(tables) < len(self.layers):
            raise TimeoutError
        after = np.zeros(len(tables[-1].rows), np.int64)
        if len(after) == 0:
            return None
        rows, slots, costs = [], [], []
        width = 4 + self.room
        for t in range(len(tables) - 1, -1, -1):
            table = tables[t]
            useful = np.flatnonzero(table.values[:, 0] + after <= (_LARGE if most is None else most))
            rows.append(np.ascontiguousarray(table.rows[useful, :width]))
            if bound is not None:  # one state may appear with several coarser weights
                rows[-1], at = np.unique(rows[-1], axis=0, return_inverse=True)
                least = np.full(len(rows[-1]), _NEVER)
                np.minimum.at(least, at.reshape(-1), after[useful])
                costs.append(least)
            else:
                costs.append(after[useful])
            slots.append(_index(rows[-1], width))
            before = len(tables[t - 1].rows) if t else 1
            after = _cheapest_end(before, table.arcs, table.arc_costs, after)
        return Bound(coarse, low, high, rows[::-1], slots[::-1], costs[::-1], int(after[0]))

    def cheapest(
        self, most: int | None = None, bound: Bound | None = None, stop: Callable[[], bool] | None = None
    ) -> tuple[int, list[list[int]]] | None:
        """The least cost and the parts of a partition that has it; None if there is none of at most `most`.

        Of several the first in the order of the tables is given.

        Raises:
            TimeoutError: if `stop` said so.
        """
        tables = self.run(LEAST, most, bound, stop=stop)
        if len(tables) < len(self.layers):
            raise TimeoutError
        if len(tables[-1].rows) == 0:
            return None
        state, picks = 0, []
        for table in reversed(tables):
            picks.append(int(table.choice[state]))
            state = int(table.parent[state])
        return int(tables[-1].values[0, 0]), self.parts_of(picks[::-1])

    def histogram(self, most: int | None = None, bound: Bound | None = None) -> dict[int, int]:
        """The number of partitions of each cost."""
        last = self.run(COUNT, most, bound)[-1]
        counts = zip(last.rows[:, 3].tolist(), map(number, last.values), strict=True)
        return dict(sorted(counts))

    def parts_of(self, picks: Sequence[int]) -> list[list[int]]:
        """The parts that the choices of a path through the tables make."""
        frontier: list[int] = []
        label: dict[int, int] = {}
        made = 0
        for layer, d in zip(self.layers, picks, strict=True):
            open_ = list(dict.fromkeys(label[u] for u in frontier))
            if d == len(open_):
                label[layer.vertex] = made
                made += 1
            else:
                label[layer.vertex] = open_[d]
            wide = [*frontier, layer.vertex]
            frontier = [wide[i] for i in layer.kept]
        parts: list[list[int]] = [[] for _ in range(made)]
        for v, d in sorted(label.items()):
            parts[d].append(v)
        return parts


def number(digits: Array) -> int:
    """Read a count from its digits in base 2**62."""
    return sum(int(d) << (62 * i) for i, d in enumerate(digits))


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
