"""Dynamic programming over connected partitions along a branch decomposition.

The table of Cohen-Addad, Klein, Marx, Wheeler and Wolfram (FORC 2021), section 5, with three
repairs (closed leaves, finished parts, joins on the union of boundaries). A state of a cluster of
edges holds, for its boundary, which vertices its uncut edges connect (components, the paper's inner
partition) and which will end in the same part (the join of inner and outer partition), the weight of each
open part, and how many parts are finished; by cost, if counted. An edge within a part is uncut: no state of
a leaf breaks that, so every partition is counted once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from forcopt.errors import DeclarationError
from forcopt.graphs.branch_decomposition import BranchDecomposition, Cluster
from forcopt.graphs.frontier import COUNT, LEAST, WIDEST, _find, _longer, _longer2

__all__ = ["ClusterTable", "SphereCut", "arcs_into"]

Array = np.ndarray[Any, Any]

_NEVER = np.int64(2**60)
_LARGE = 2**60
_MOST = 2 * WIDEST + 2
_PRIMES = (2147483647, 2147483629, 2147483587, 2147483579, 2147483563, 2147483549, 2147483543, 2147483497)
"""Counts are kept as residues.

Their product exceeds every count (a float estimate says how many it takes).
"""


@dataclass(eq=False)
class ClusterTable:
    """All states of a cluster.

    Attributes:
        rows: their keys: components, parts, finished parts, cost (if counted by cost), weights of open parts.
        values: least costs, or counts as residues.
        estimate: counts as floats.
        pairs: for least costs, the states of the two children that a state comes from.
        arcs: if tracked, all pairs of states of the children with the state they make.
    """

    rows: Array
    values: Array
    estimate: Array
    pairs: Array
    arcs: Array


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


@njit(cache=True)
def _join(  # type: ignore[no-untyped-def]
    rows1,
    rows2,
    values1,
    values2,
    estimate1,
    estimate2,
    mode,
    track,
    order1,
    order2,
    begin2,
    end2,
    length1,
    length2,
    shared1,
    shared2,
    place2,
    kept,
    distance,
    left,
    coming,
    low,
    high,
    parts,
    most,
    primes,
):
    """Join all pairs of states that agree on the shared boundary.

    `place2[s]` is the position of the second boundary's vertex s in the union of both (the first boundary,
    then what only the second has); `kept` the positions in the union of the new boundary. `order1` lists
    states of the first; its i-th entry goes with ``order2[begin2[i]:end2[i]]``.
    """
    width = rows1.shape[1]
    digits = values1.shape[1]
    union = length1
    for s in range(length2):
        union = max(union, place2[s] + 1)
    capacity = 256
    out = np.zeros((capacity, width), np.int64)
    out_values = np.zeros((capacity, digits), np.int64)
    out_estimate = np.zeros(capacity)
    pairs = np.zeros((capacity if mode == LEAST else 0, 2), np.int64)
    arc_capacity = capacity if track else 0
    arcs = np.zeros((arc_capacity, 3), np.int64)
    arc_count = 0
    size = 1024
    slots = np.full(size, -1, np.int64)
    count = 0
    comp, part = np.zeros(_MOST, np.int64), np.zeros(_MOST, np.int64)
    link, home = np.zeros(_MOST, np.int64), np.zeros(_MOST, np.int64)
    target, free = np.zeros(_MOST, np.int64), np.zeros(_MOST, np.int64)
    lone = np.zeros(_MOST, np.int64)
    new_comp, new_part = np.zeros(_MOST, np.int64), np.zeros(_MOST, np.int64)
    lost, stays = np.zeros(_MOST, np.int64), np.zeros(_MOST, np.int64)
    total, w = np.zeros(_MOST, np.int64), np.zeros(_MOST, np.int64)
    key = np.zeros(width, np.int64)
    for x in range(len(order1)):
        i = order1[x]
        open1 = 0
        for s in range(length1):
            open1 = max(open1, ((rows1[i, 1] >> (4 * s)) & 15) + 1)
        for y in range(begin2[x], end2[x]):
            j = order2[y]
            finished_before = rows1[i, 2] + rows2[j, 2]
            cost = values1[i, 0] + values2[j, 0] if mode == LEAST else rows1[i, 3] + rows2[j, 3]
            if cost > most or finished_before > parts:
                continue
            open2 = 0
            for s in range(length2):
                open2 = max(open2, ((rows2[j, 1] >> (4 * s)) & 15) + 1)
            # Parts of the second that share a vertex with the first are known there; the others are lone.
            target[:] = -1
            home[:] = 0
            bad = False
            for s in range(len(shared1)):
                p1 = (rows1[i, 1] >> (4 * shared1[s])) & 15
                p2 = (rows2[j, 1] >> (4 * shared2[s])) & 15
                target[p2] = p1
                home[p1] = 1
            frees, lones = 0, 0
            for p in range(open1):
                if home[p] == 0:
                    free[frees] = p
                    frees += 1
                total[p] = rows1[i, 4 + p]
            for p in range(open2):
                if target[p] < 0:
                    lone[lones] = p
                    lones += 1
                else:
                    total[target[p]] += rows2[j, 4 + p]
                    if total[target[p]] > high:
                        bad = True
            if bad:
                continue
            # What the union of both connects.
            for s in range(length1):
                comp[s] = (rows1[i, 0] >> (4 * s)) & 15
            for c in range(_MOST):
                link[c] = c
            for s in range(len(shared1)):
                a = _root_of(link, comp[shared1[s]])
                b = _root_of(link, 16 + ((rows2[j, 0] >> (4 * shared2[s])) & 15))
                if a != b:
                    link[max(a, b)] = min(a, b)
            # A lone part is one of the first's parts without a shared vertex, or a part of its own.
            ways = (frees + 1) ** lones
            for way in range(ways):
                rest = way
                bad = False
                used = 0
                open_ = open1
                for b in lone[:lones]:
                    pick = rest % (frees + 1)
                    rest //= frees + 1
                    if pick == frees:
                        target[b] = open_
                        total[open_] = rows2[j, 4 + b]
                        open_ += 1
                    else:
                        if used & (1 << pick):
                            bad = True
                            break
                        used |= 1 << pick
                        target[b] = free[pick]
                        total[free[pick]] = rows1[i, 4 + free[pick]] + rows2[j, 4 + b]
                        if total[free[pick]] > high:
                            bad = True
                            break
                for a in range(frees):
                    if not used & (1 << a):
                        total[free[a]] = rows1[i, 4 + free[a]]
                if bad or open_ + finished_before > parts:
                    continue
                for s in range(length1):
                    part[s] = (rows1[i, 1] >> (4 * s)) & 15
                    comp[s] = _root_of(link, (rows1[i, 0] >> (4 * s)) & 15)
                for s in range(length2):
                    if place2[s] >= length1:
                        part[place2[s]] = target[(rows2[j, 1] >> (4 * s)) & 15]
                        comp[place2[s]] = _root_of(link, 16 + ((rows2[j, 0] >> (4 * s)) & 15))
                # The new boundary, relabelled in order of first appearance.
                for c in range(_MOST):
                    new_comp[c], new_part[c], home[c] = -1, -1, -1
                parts_now, comps_now = 0, 0
                key[:] = 0
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
                for p in range(open_):
                    lost[p], stays[p] = 0, 0
                for s in range(union):
                    c = comp[s]
                    if home[c] < 0:
                        home[c] = part[s]
                        if new_comp[c] < 0:
                            lost[part[s]] += 1
                        else:
                            stays[part[s]] += 1
                finished = finished_before
                for p in range(open_):
                    if lost[p] > 0:
                        if lost[p] + stays[p] > 1 or total[p] < low:
                            bad = True
                            break
                        finished += 1
                if bad:
                    continue
                missing = parts - finished - parts_now
                if missing < 0 or missing > coming:
                    continue
                need, take = missing * low, missing * high
                for p in range(open_):
                    if new_part[p] >= 0:
                        w[new_part[p]] = total[p]
                        need += max(0, low - total[p])
                        take += high - total[p]
                if need > left or take < left:
                    continue
                if comps_now > parts_now:
                    for c in range(comps_now):
                        closest = _NEVER
                        alone = True
                        p = 0
                        for s in range(len(kept)):
                            if (key[0] >> (4 * s)) & 15 == c:
                                p = (key[1] >> (4 * s)) & 15
                                for t in range(len(kept)):
                                    if (key[1] >> (4 * t)) & 15 == p and (key[0] >> (4 * t)) & 15 != c:
                                        alone = False
                                        closest = min(closest, distance[s, t])
                        if not alone and (closest == _NEVER or w[p] + closest > high):
                            bad = True
                            break
                    if bad:
                        continue
                key[2] = finished
                if mode == COUNT:
                    key[3] = cost
                for p in range(parts_now):
                    key[4 + p] = w[p]
                slot = _find(out, slots, key, width)
                row = slots[slot]
                fresh = row < 0
                if fresh:
                    if count == capacity:
                        capacity *= 2
                        out = _longer2(out, capacity)
                        out_values = _longer2(out_values, capacity)
                        out_estimate = _longer(out_estimate, capacity)
                        if mode == LEAST:
                            pairs = _longer2(pairs, capacity)
                    row = count
                    count += 1
                    slots[slot] = row
                    out[row] = key
                    if 2 * count > size:
                        size *= 2
                        slots = np.full(size, -1, np.int64)
                        for s in range(count):
                            slots[_find(out, slots, out[s], width)] = s
                if mode == LEAST:
                    if fresh or cost < out_values[row, 0]:
                        out_values[row, 0] = cost
                        pairs[row, 0], pairs[row, 1] = i, j
                else:
                    for a in range(digits):
                        product = np.uint64(values1[i, a]) * np.uint64(values2[j, a]) + np.uint64(
                            out_values[row, a]
                        )
                        out_values[row, a] = np.int64(product % np.uint64(primes[a]))
                    out_estimate[row] += estimate1[i] * estimate2[j]
                if track:
                    if arc_count == arc_capacity:
                        arc_capacity *= 2
                        arcs = _longer2(arcs, arc_capacity)
                    arcs[arc_count, 0], arcs[arc_count, 1], arcs[arc_count, 2] = i, j, row
                    arc_count += 1
    return (
        out[:count].copy(), out_values[:count].copy(), out_estimate[:count].copy(), pairs[:count].copy(),
        arcs[:arc_count].copy(),
    )  # fmt: skip


class SphereCut:
    """The dynamic programme along a branch decomposition.

    Args:
        decomposition: of a graph with weights and costs.
        low, high: inclusive bounds on the weight of a part.
        parts: how many.
        apart, joined: pairs of vertices that must not, or must, share a part; each must be an edge.

    Raises:
        DeclarationError: if a boundary is longer than 16, or a pair is no edge.

    >>> from forcopt.graphs.weighted import WeightedGraph
    >>> g = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1] * 4)
    >>> SphereCut(BranchDecomposition.of(g), 2, 2, 2).histogram()
    {2: 2}
    """

    def __init__(
        self,
        decomposition: BranchDecomposition,
        low: int,
        high: int,
        parts: int,
        apart: Any = (),
        joined: Any = (),
    ) -> None:
        self.decomposition, self.low, self.high, self.parts = decomposition, low, high, parts
        if decomposition.width > WIDEST:
            raise DeclarationError(f"the width is {decomposition.width}; at most {WIDEST} is possible")
        known = {frozenset(e) for e in decomposition.edges}
        self.apart = {frozenset(pair) for pair in apart}
        self.joined = {frozenset(pair) for pair in joined}
        for pair in self.apart | self.joined:
            if pair not in known:
                raise DeclarationError(f"vertices {sorted(pair)} are kept together or apart but not adjacent")
        self.states = 0
        g, edges = decomposition.graph, decomposition.edges
        # The weight of a vertex counts in its first edge.
        self.home = {v: i for i, e in reversed(list(enumerate(edges))) for v in e}
        self.near: list[list[tuple[int, int]]] = [[] for _ in range(g.size)]
        for i, (u, v) in enumerate(edges):
            if i < decomposition.real:
                self.near[u].append((i, v))
                self.near[v].append((i, u))

    @property
    def room(self) -> int:
        """How many parts can be open at a time."""
        return max(1, min(self.parts, self.decomposition.width))

    def _outside(self, cluster: Cluster) -> tuple[Array, int, int]:
        """What edges outside can do.

        Least weights that connect boundary vertices, weight to come, vertices to come.
        """
        g = self.decomposition.graph
        boundary = cluster.boundary
        inside = {v for i, e in enumerate(self.decomposition.edges) if cluster.edges >> i & 1 for v in e}
        distance = np.full((len(boundary), len(boundary)), _NEVER)
        at = {v: i for i, v in enumerate(boundary)}
        for source in boundary:
            best: dict[int, int] = {}
            queue = [(0, source)]
            while queue:
                far, u = min(queue)
                queue.remove((far, u))
                if u in best:
                    continue
                best[u] = far
                if u in at and u != source:
                    distance[at[source], at[u]] = far
                    continue
                for i, v in self.near[u]:
                    if not cluster.edges >> i & 1 and v not in best:
                        queue.append((far + (0 if v in at else int(g.weights[v])), v))
        left = sum(int(g.weights[v]) for v in g if not cluster.edges >> self.home[v] & 1)
        return distance, left, g.size - len(inside)

    def _leaf(self, cluster: Cluster, mode: int, digits: int) -> ClusterTable:
        g, d = self.decomposition.graph, self.decomposition
        ends = d.edges[cluster.edge]
        u, v = ends
        weight = {x: int(g.weights[x]) if self.home[x] == cluster.edge else 0 for x in ends}
        cost = int(g.cost_matrix[u, v]) if cluster.edge < d.real else 0
        rows, values = [], []
        for same in (True, False):
            if frozenset(ends) in (self.apart if same else self.joined):
                continue
            connected = same and cluster.edge < d.real
            groups = [[u, v]] if same else [[u], [v]]
            key = [0] * (4 + self.room)
            opened, finished, good = 0, 0, True
            part: dict[int, int] = {}
            for group in groups:
                people = sum(weight[x] for x in group)
                staying = [x for x in group if x in cluster.boundary]
                if people > self.high:
                    good = False
                elif staying:
                    # A phantom connects nothing, so an end that leaves the boundary must not be missed.
                    good = good and (connected or len(staying) == len(group))
                    if opened >= self.parts:
                        good = False
                        break
                    key[4 + opened] = people
                    part.update(dict.fromkeys(staying, opened))
                    opened += 1
                else:
                    good = good and people >= self.low and (connected or len(group) == 1)
                    finished += 1
            if not good or opened + finished > self.parts:
                continue
            relabel: dict[int, int] = {}
            for s, x in enumerate(cluster.boundary):
                p = relabel.setdefault(part[x], len(relabel))
                key[1] |= p << (4 * s)
                key[0] |= (p if connected or not same else s) << (4 * s)
            weights = [key[4 + p] for p in relabel]
            key[4 : 4 + len(weights)] = weights
            key[2] = finished
            paid = 0 if same else cost
            if mode == COUNT:
                key[3] = paid
            rows.append(key)
            values.append([1] * digits if mode == COUNT else [paid])
        return ClusterTable(
            np.array(rows, np.int64).reshape(-1, 4 + self.room),
            np.array(values, np.int64).reshape(-1, digits if mode == COUNT else 1),
            np.ones(len(rows)),
            np.zeros((0, 2), np.int64),
            np.zeros((0, 3), np.int64),
        )

    def run(
        self,
        mode: int,
        most: int | None = None,
        track: bool = False,
        digits: int = 2,
        stop: Callable[[], bool] | None = None,
    ) -> list[ClusterTable]:
        """Fill the tables of all clusters, children first.

        Args:
            mode: COUNT or LEAST.
            most: states that cost more are dropped.
            track: keep all pairs of states, and the tables of all clusters.
            digits: residues of a count; more are taken if they do not suffice.
            stop: asked after each cluster; the tables so far are returned if it says so.

        Returns:
            A table for each cluster, in the order of ``decomposition.clusters``; the root's is the last.
        """
        clusters = self.decomposition.clusters
        number = {id(c): i for i, c in enumerate(clusters)}
        tables: list[ClusterTable] = []
        worst = _LARGE if most is None else most
        primes = np.array(_PRIMES[:digits], np.int64)
        self.states = 0
        for cluster in clusters:
            if cluster.children is None:
                tables.append(self._leaf(cluster, mode, digits))
                continue
            first, second = cluster.children
            one, two = tables[number[id(first)]], tables[number[id(second)]]
            table = self._joined(cluster, first, second, one, two, mode, track, worst, primes)
            self.states += len(table.rows)
            if len(table.estimate) and table.estimate.max() > 0.01 * float(np.prod(primes.astype(float))):
                return self.run(mode, most, track, digits + 1, stop)
            tables.append(table)
            if not track:
                for done in (one, two):
                    done.values = done.estimate = np.zeros(0)
                    if mode == COUNT:
                        done.rows = np.zeros((0, 0), np.int64)
            if stop is not None and stop():
                break
        return tables

    def _joined(
        self,
        cluster: Cluster,
        first: Cluster,
        second: Cluster,
        one: ClusterTable,
        two: ClusterTable,
        mode: int,
        track: bool,
        worst: int,
        primes: Array,
    ) -> ClusterTable:
        union = list(first.boundary) + [v for v in second.boundary if v not in first.boundary]
        at = {v: i for i, v in enumerate(union)}
        shared = [v for v in first.boundary if v in second.boundary]
        shared1 = np.array([first.boundary.index(v) for v in shared], np.int64)
        shared2 = np.array([second.boundary.index(v) for v in shared], np.int64)
        code1, code2 = _shared_code(one.rows, shared1), _shared_code(two.rows, shared2)
        order1, order2 = np.argsort(code1, kind="stable"), np.argsort(code2, kind="stable")
        begin = np.searchsorted(code2[order2], code1[order1], "left")
        end = np.searchsorted(code2[order2], code1[order1], "right")
        distance, left, coming = self._outside(cluster)
        made = _join(
            one.rows, two.rows, one.values, two.values, one.estimate, two.estimate, mode, track,
            order1, order2, begin, end, len(first.boundary), len(second.boundary), shared1, shared2,
            np.array([at[v] for v in second.boundary], np.int64),
            np.array([at[v] for v in cluster.boundary], np.int64),
            distance, left, coming, self.low, self.high, self.parts, worst, primes,
        )  # fmt: skip
        return ClusterTable(*made)

    def histogram(self, most: int | None = None) -> dict[int, int]:
        """The number of partitions of each cost."""
        last = self.run(COUNT, most)[-1]
        return dict(sorted(zip(last.rows[:, 3].tolist(), map(whole, last.values), strict=True)))

    def ranked(
        self, tables: list[ClusterTable], into: list[tuple[Array, Array]], cost: int, rank: int
    ) -> list[list[int]]:
        """The parts of the partition of a rank, from 0, among those of a cost.

        Args:
            tables: of a tracked count.
            into: of `arcs_into` for them.
            cost, rank: of a partition that exists.
        """
        clusters = self.decomposition.clusters
        number = {id(c): i for i, c in enumerate(clusters)}
        state = int(np.flatnonzero(tables[-1].rows[:, 3] == cost)[0])
        uncut = []
        stack = [(len(clusters) - 1, state, rank)]
        while stack:
            i, state, rank = stack.pop()
            children = clusters[i].children
            if children is None:
                if self.leaf_is_uncut(clusters[i], tables[i], state):
                    uncut.append(self.decomposition.edges[clusters[i].edge])
                continue
            first, second = (number[id(child)] for child in children)
            arcs, starts = into[i]
            for one, two, _ in arcs[starts[state] : starts[state + 1]].tolist():
                ways = whole(tables[second].values[two])
                both = whole(tables[first].values[one]) * ways
                if rank < both:
                    stack += [(first, one, rank // ways), (second, two, rank % ways)]
                    break
                rank -= both
        return self.parts_of(uncut)

    def cheapest(
        self, most: int | None = None, stop: Callable[[], bool] | None = None
    ) -> tuple[int, list[list[int]]] | None:
        """The least cost and the parts of a partition that has it; None if there is none of at most `most`.

        Raises:
            TimeoutError: if `stop` said so.
        """
        tables = self.run(LEAST, most, stop=stop)
        clusters = self.decomposition.clusters
        if len(tables) < len(clusters):
            raise TimeoutError
        if len(tables[-1].rows) == 0:
            return None
        number = {id(c): i for i, c in enumerate(clusters)}
        uncut = []
        stack = [(len(clusters) - 1, 0)]
        while stack:
            i, state = stack.pop()
            children = clusters[i].children
            if children is None:
                edge = clusters[i].edge
                if self.leaf_is_uncut(clusters[i], tables[i], state):
                    uncut.append(self.decomposition.edges[edge])
                continue
            for child, chosen in zip(children, tables[i].pairs[state].tolist(), strict=True):
                stack.append((number[id(child)], chosen))
        cost = int(tables[-1].values[0, 0])
        return cost, self.parts_of(uncut)

    def leaf_is_uncut(self, cluster: Cluster, table: ClusterTable, state: int) -> bool:
        """Whether a state of a leaf holds its edge uncut (a phantom never connects)."""
        if cluster.edge >= self.decomposition.real:
            return False
        if len(cluster.boundary) == 2:
            key = int(table.rows[state, 1])
            return (key & 15) == (key >> 4 & 15)
        # An end that left the boundary is finished by itself if the edge is cut.
        return int(table.rows[state, 2]) == (1 if len(cluster.boundary) == 0 else 0)

    def parts_of(self, uncut: list[tuple[int, int]]) -> list[list[int]]:
        """The components that uncut edges make."""
        g = self.decomposition.graph
        label = list(range(g.size))

        def find(v: int) -> int:
            while label[v] != v:
                v = label[v]
            return v

        for u, v in uncut:
            label[max(find(u), find(v))] = min(find(u), find(v))
        parts: dict[int, list[int]] = {}
        for v in g:
            parts.setdefault(find(v), []).append(v)
        return list(parts.values())


def arcs_into(tables: list[ClusterTable]) -> list[tuple[Array, Array]]:
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
    for residue, prime in zip(residues.tolist(), _PRIMES, strict=False):
        step = (residue - value) * pow(modulus, -1, prime) % prime
        value, modulus = value + modulus * step, modulus * prime
    return value
