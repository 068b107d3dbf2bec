"""All bonds of small reduced cost, by a search in depth along the cycles of the planar dual, in integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
from numba import njit
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.graphs.weighted import WeightedGraph

__all__ = ["BondList", "greatest"]

_STEPS = 3_000_000
"""Darts to look at between two looks at the clock."""

_BATCH = 2_000
"""Bonds to find between two looks at the clock."""

_HUB = 20
"""A face of more darts is deleted first."""

_NEVER = 2**62
"""The length of a walk that does not exist."""

_BUCKETS = 250
"""The total weight is divided into about this number of intervals."""


@njit(cache=True)
def _relax(  # type: ignore[no-untyped-def]
    first, darts, face, length, shift, exact, odd, alive, near, table, low, high, changed
):  # fmt: skip
    """Sweep over the faces, in the order `near` from the start on, whose rows have changed."""
    start, sides, top = near[0], table.shape[1], table.shape[2] - 1
    both = np.empty((sides, top + 2), np.int64)
    for h in near:
        if not changed[h]:
            continue
        changed[h] = False
        begin, end = max(low[h] - 1, 0), high[h]
        for p in range(sides):
            for i in range(begin, min(end, top - 1) + 1):
                both[p, i] = min(table[h, p, i], table[h, p, i + 1])
            if end == top:
                both[p, top] = table[h, p, top]
        for a in range(first[h], first[h + 1]):
            d = darts[a] ^ 1  # leads to h
            g = face[d]
            if not alive[g] or g == start:
                continue
            move, paid = shift[d], length[d]
            least, most = max(begin - move, 0), min(end - move, top)
            if least > most:
                continue
            lower = False
            for p in range(sides):
                old, new = table[g, p ^ odd[d], least : most + 1], both[p, least + move : most + move + 1]
                if exact[d]:
                    new = table[h, p, least + move : most + move + 1]
                for i in range(len(new)):
                    value = new[i] + paid
                    lower |= value < old[i]
                    old[i] = min(old[i], value)
            if lower:
                changed[g] = True
                low[g], high[g] = min(low[g], least), max(high[g], most)


@njit(cache=True)
def _fits(table, h, side, windows, sides, limits, total, spent, half, width):  # type: ignore[no-untyped-def]
    """Whether a walk from h back to the start may close a path within a limit."""
    top = table.shape[2] - 1
    for w in range(len(windows)):
        if side ^ sides[w] >= table.shape[1]:
            continue
        begin = (windows[w, 0] - total) // width + half
        end = (windows[w, 1] - total) // width + half
        for j in range(max(begin, 0), min(end, top) + 1):
            if spent + table[h, side ^ sides[w], j] <= limits[w]:
                return True
    return False


@njit(cache=True)
def _deepen(  # type: ignore[no-untyped-def]
    first, darts, face, gain, length, odd, alive, start, table, windows, sides, limits, half, width,
    order, parent, above, crossed, used, via, place, total, spent, side, now, sets, hops, longest, budget,
):  # fmt: skip
    """Go on with the search until `sets` is full or the budget is used; give the number of sets found.

    `now` holds the depth, -1 at the end. Face ``at`` of depth i is reached by the dart ``via[i]``.
    """
    depth, count = now[0], 0
    while depth >= 0 and budget > 0 and count < len(sets):
        g = start if depth == 0 else face[via[depth] ^ 1]
        if place[depth] == first[g + 1]:
            if depth > 0:
                used[g] = False
            depth -= 1
            continue
        d = darts[place[depth]]
        place[depth] += 1
        budget -= 1
        h = face[d ^ 1]
        t, c, p = total[depth] + gain[d], spent[depth] + length[d], side[depth] ^ odd[d]
        if h == start:  # there and back by one edge, the sum is 0, in no window
            for w in range(len(windows)):
                if windows[w, 0] <= t <= windows[w, 1] and p == sides[w] and c <= limits[w]:
                    via[depth + 1] = d
                    for i in range(1, depth + 2):
                        crossed[via[i] >> 1] = True
                    inside = sets[count]
                    inside[order[0]] = t < 0
                    for x in range(1, len(order)):
                        v = order[x]
                        inside[v] = inside[parent[v]] != crossed[above[v]]
                    for i in range(1, depth + 2):
                        crossed[via[i] >> 1] = False
                    count += 1
                    break
            continue
        if used[h] or not alive[h] or depth + 1 + hops[h] > longest:
            continue
        if not _fits(table, h, p, windows, sides, limits, t, c, half, width):
            continue
        depth += 1
        used[h], via[depth], place[depth] = True, d, first[h]
        total[depth], spent[depth], side[depth] = t, c, p
    now[0] = depth
    return count


def greatest(values: Array, weights: Array, limit: int) -> int:
    """Bound the sum of the values of a set of at most a weight: the fractional knapsack, in integers.

    Parameters
    ----------
    values, weights : ndarray of int64, shape (n,)
        One for each element; weights are not negative.
    limit : int
        The greatest weight.

    Returns
    -------
    int
        No set has a greater sum.
    """
    bound = 0
    pairs = [(int(v), int(w)) for v, w in zip(values, weights, strict=True) if v > 0]
    # Elements without weight first: they are in the best set, whatever the limit.
    for v, w in sorted(pairs, key=lambda pair: (pair[1] > 0, -Fraction(pair[0], max(pair[1], 1)))):
        if w > max(limit, 0):  # below 0 there is no set
            return bound - (-v * max(limit, 0) // w)
        bound, limit = bound + v, limit - w
    return bound


class BondList:
    """The vertex sets X of a connected plane graph such that X and its complement are connected.

    Parameters
    ----------
    graph : WeightedGraph
        Connected and planar, with n vertices and m edges.
    scale : int
        The value of a cost of 1, positive.
    prices : sequence of int
        One for each vertex.

    Raises
    ------
    DeclarationError
        If the graph is disconnected or not planar, or the numbers could overflow.

    Notes
    -----
    The value of X is ``scale * cost(X) - prices(X)``, where ``cost(X)`` adds the costs of the edges between
    X and its complement. `within` lists all X with a weight in a window and at most a value. All numbers are
    integers.

    **Faces.** An embedding is a cyclic order of the edges at each vertex. Its faces are the orbits of a
    permutation of the 2 m darts, the directed edges. It is plane if and only if n - m + faces = 2, which is
    tested. So nothing depends on the code that finds the embedding.

    **Bonds are cycles.** The edges between X and its complement form a bond, and the bonds are the simple
    cycles of the dual graph (Whitney). Dart (u, v) has a face; it crosses the edge to the face of (v, u). If
    a simple closed walk crosses the darts d_1, ..., d_c, their tails are all in one side X, their heads
    in the other.

    **Sums.** Every vertex sends its weight along a spanning tree to a root. Let f(u, v) = -f(v, u) be the
    flow on an edge. The flow out of X is w(X) if the root is outside, and w(X) - W otherwise, with the
    total W. So ``f(d_1) + ... + f(d_c)`` tells both the weight and the side of the root, if 0 < w(X) < W.
    Prices are added alike. A potential on the faces changes f(d) by the difference of its ends, and changes
    no sum of a closed walk; it is chosen such that f = 0 on a tree of shortest paths from the start face,
    so that partial sums are small. The root lies on the start face: walks that meet this face only at their
    ends do not encircle the root, which would add the total each time.

    **Search.** The faces are start faces in turn. From each, all simple closed walks on the faces left are
    searched in depth. The face is then deleted. So each directed cycle is found once, at the first of
    its faces. If deleted faces leave no window for a cycle on a part of the other faces, the part is dropped.
    Indeed, an edge that does not lie between two faces of the part is crossed by no cycle on it. Let a vertex
    set be connected by such edges, and have the weight h. Then each cycle on the part has it on one
    side. So it lies in X, and w(X) >= h, or in the complement, and w(X) <= W - h.

    **Bounds.** ``table[g, j]`` is at most the length of each rest of a cycle, from face g to the start,
    whose sum s lies in bucket j, ``j b <= s < (j + 1) b``. Let d be the first dart of the rest, to face
    g'. Then s - f(d) lies in one of two neighbouring buckets, in one if b divides f(d), as on the tree. So
    the least of these entries of g', plus the length of d, is a bound. Bellman and Ford's sweeps cover
    all walks with as many darts as a cycle may have; walks meet the start only at their ends. A path is not
    extended if its length, plus the bound for the sums that lead into a window, exceeds the limit.

    Let r be the greatest absolute sum of a walk from the start, without return, of at most half of these
    darts. A rest of a cycle, or its beginning, has at most half the darts, so the sum of the rest is at most
    r, or differs by at most r from a sum in a window. Buckets for these sums suffice.

    **A vertex inside.** A simple cycle separates a vertex from the root if and only if it crosses the path
    between them in the spanning tree an odd number of times. If all sets have the vertex, cycles that leave
    the root outside must do so, and others must not. Tables then have a row for each parity.

    **Prices in proportion to weight.** In a narrow window they are nearly constant: with an integer rate a,
    the part ``a w(X)`` of the prices is at most its greatest value in the window, and only the rest enters
    lengths. So an error in the sums does not gain prices.

    Examples
    --------
    >>> path = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3)], [1, 2, 1])
    >>> bonds = BondList(path, 10, np.array([3, 0, 0, 0]))
    >>> [s.astype(int).tolist() for batch in bonds.within(1, 2, 10) for s in batch]
    [[1, 0, 0, 0], [0, 0, 0, 1]]
    """

    def __init__(self, graph: WeightedGraph, scale: int, prices: Sequence[int] | Array) -> None:
        n, m, self.graph, self.scale = graph.size, len(graph.edges), graph, scale
        every = [int(price) for price in prices]
        rate = sum(every) // max(graph.total, 1)
        size = scale * int(graph.costs.sum()) + sum(map(abs, every)) + 2 * abs(rate) * graph.total
        if max(size, graph.total) * 8 * n**2 >= 2**60:  # planar graphs have fewer than 2 n faces
            raise DeclarationError("the populations, prices or costs are too large for 64-bit integers")
        self.prices, self.rate = np.array(every, np.int64), rate
        g: nx.Graph[int] = nx.Graph()
        g.add_nodes_from(range(n))
        g.add_edges_from(graph.edges.tolist())
        if not nx.is_connected(g):
            raise DeclarationError("the graph is disconnected")
        planar, embedding = nx.check_planarity(g)
        if not planar:
            raise DeclarationError("the graph is not planar")
        dart: dict[tuple[int, int], int] = {}
        for e, (u, v) in enumerate(graph.edges.tolist()):
            dart[u, v], dart[v, u] = 2 * e, 2 * e + 1
        face, faces = np.full(2 * m, -1, np.int64), 0
        for ends, d in dart.items():
            if face[d] >= 0:
                continue
            while face[dart[ends]] < 0:
                face[dart[ends]] = faces
                ends = embedding.next_face_half_edge(*ends)
            faces += 1
        if m and n - m + faces != 2:
            raise DeclarationError("the embedding found is not plane")
        self.faces, self.face, self.dart = max(faces, 1), face, dart
        self.darts = np.argsort(face, kind="stable")
        self.first = np.searchsorted(face[self.darts], np.arange(self.faces + 1))
        self.tail = np.ravel(graph.edges)
        self.rest = self.prices - self.rate * graph.weights
        self.costs = np.repeat(graph.costs, 2)

    def _tree(self, root: int) -> tuple[Array, Array, Array]:
        """A tree of shortest paths to a root: the vertices from it on, their parents, the darts there."""
        parent, above = np.full(self.graph.size, -1, np.int64), np.full(self.graph.size, -1, np.int64)
        order = [root]
        for v in order:
            for u in self.graph.neighbours[v]:
                if u != root and parent[u] < 0:
                    parent[u], above[u] = v, self.dart[u, v]
                    order.append(u)
        return np.array(order), parent, above

    def _flow(self, values: Array, tree: tuple[Array, Array, Array]) -> Array:
        """The flow of values to the root of a tree on each dart."""
        (order, parent, above), sums = tree, values.tolist()
        flow = np.zeros(len(self.face), np.int64)
        for v in order[:0:-1].tolist():
            flow[above[v]], flow[above[v] ^ 1] = sums[v], -sums[v]
            sums[parent[v]] += sums[v]
        return flow

    def within(
        self,
        low: int,
        high: int,
        limit: int,
        pause: Callable[[], None] | None = None,
        most: int | None = None,
        inside: int | None = None,
    ) -> Iterator[Array]:
        """Give the sets X with a weight in a window and at most a value; each once over all batches.

        Parameters
        ----------
        low, high : int
            Inclusive bounds on the weight.
        limit : int
            The greatest value.
        pause : callable, optional
            Called many times a second; it may raise an exception.
        most : int, optional
            The greatest cost; sets of a greater one may be left out.
        inside : int, optional
            A vertex that all sets have; a set is any one by default.

        Yields
        ------
        ndarray of bool, shape (count, n)
            The sets.
        """
        n, size = self.graph.size, self.faces + 2
        sets, crossed = np.zeros((_BATCH, n), np.bool_), np.zeros(len(self.costs) // 2, np.bool_)
        for search in self._searches(low, high, limit, pause, most, inside):
            (
                start,
                alive,
                (order, parent, above),
                gain,
                length,
                odd,
                table,
                half,
                width,
                windows,
                sides,
                room,
                hops,
                longest,
            ) = search[:-1]
            used, now = np.zeros(self.faces, np.bool_), np.zeros(1, np.int64)
            via, place, total, spent, side = (np.zeros(size, np.int64) for _ in range(5))
            place[0] = self.first[start]
            while now[0] >= 0:
                if pause is not None:
                    pause()
                count = _deepen(
                    self.first, self.darts, self.face, gain, length, odd, alive, start, table, windows,
                    sides, room, half, width, order, parent, above >> 1, crossed, used, via, place, total,
                    spent, side, now, sets, hops, longest, _STEPS,
                )  # fmt: skip
                found = sets[:count]
                yield found[self.values(found) <= limit]

    def least(
        self,
        low: int,
        high: int,
        limit: int,
        pause: Callable[[], None] | None = None,
        most: int | None = None,
        inside: int | None = None,
    ) -> int:
        """Bound the values of the sets with a weight in a window from below, by the tables alone.

        Parameters
        ----------
        low, high, limit, pause, most, inside
            See `within`.

        Returns
        -------
        int
            No set has a smaller value, at most ``limit + 1``.
        """
        best = limit + 1
        for *_, room, _, _, least in self._searches(low, high, limit, pause, most, inside):
            best = min(best, limit + int((least - room).min()))
        return best

    def _searches(
        self,
        low: int,
        high: int,
        limit: int,
        pause: Callable[[], None] | None,
        most: int | None,
        inside: int | None,
    ) -> Iterator[tuple[Any, ...]]:
        """Give the start faces from which a cycle may be within the limit, and the table of each."""
        total, rest = self.graph.total, int(self.rest.sum())
        low, high = max(low, 1), min(high, total - 1)
        cost = limit + greatest(self.prices, self.graph.weights, high)  # at least that of the bond
        cost = cost if most is None else min(cost, self.scale * most)
        if low > high or cost < 0 or not len(self.face):
            return
        least_cost = self.scale * int(self.graph.costs.min())
        longest = self.faces if least_cost == 0 else min(self.faces, cost // least_cost)
        # Of the sums if the root is outside, and inside; `room` bounds the lengths.
        rated = limit + max(self.rate * low, self.rate * high)
        windows = np.array([(low, high), (low - total, high - total)], np.int64)
        room = np.array([rated, rated + rest], np.int64)
        for start, part in self._starts(low, high):
            hops = self._hops(start, part)
            alive = (hops >= 0) & (2 * hops <= longest)
            near = np.argsort(hops, kind="stable")
            near = near[alive[near]]
            tree = self._tree(int(self.tail[self.darts[self.first[start]]]))
            gain = self._from_tree(self._flow(self.graph.weights, tree), hops)
            length = self._from_tree(self.scale * self.costs - self._flow(self.rest, tree), hops)
            # If X has a vertex, X separates it from the root in the first window, and not in the second.
            odd, sides = np.zeros(len(gain), np.int64), np.zeros(2, np.int64)
            if inside is not None:
                one = np.zeros(self.graph.size, np.int64)
                one[inside], sides[0] = 1, 1
                odd = np.abs(self._flow(one, tree))
            table, half, width, least = self._table(
                near, alive, gain, length, odd, windows, sides, longest, pause
            )
            if (least <= room).any():
                yield (
                    start, alive, tree, gain, length, odd, table, half, width, windows, sides, room, hops,
                    longest, least,
                )  # fmt: skip

    def values(self, sets: Array) -> Array:
        """The values of sets, shape (count,)."""
        u, v = self.graph.edges.T
        cost = (sets[:, u] != sets[:, v]) @ self.graph.costs
        return np.asarray(self.scale * cost - sets @ self.prices)

    def _hops(self, start: int, part: Array) -> Array:
        """The number of darts on a shortest path from the start to each face of a part; -1 out of reach."""
        hops = np.full(self.faces, -1, np.int64)
        hops[start] = 0
        queue = [start]
        for g in queue:
            for d in self.darts[self.first[g] : self.first[g + 1]].tolist():
                h = int(self.face[d ^ 1])
                if part[h] and hops[h] < 0:
                    hops[h] = hops[g] + 1
                    queue.append(h)
        return hops

    def _from_tree(self, flow: Array, hops: Array) -> Array:
        """Change a flow by a potential to 0 on a tree of shortest paths; see the class."""
        level, done = np.zeros(self.faces, np.int64), hops <= 0
        for g in np.argsort(hops, kind="stable").tolist():
            if hops[g] < 0:
                continue
            for d in self.darts[self.first[g] : self.first[g + 1]].tolist():
                h = int(self.face[d ^ 1])
                if not done[h] and hops[h] == hops[g] + 1:
                    level[h], done[h] = level[g] + flow[d], True
        return np.asarray(flow + level[self.face] - level[self.face[np.arange(len(flow)) ^ 1]])

    def _starts(self, low: int, high: int) -> Iterator[tuple[int, Array]]:
        """Give each start face with the faces that are left in its part."""
        degree, total = np.diff(self.first), self.graph.total
        stack = [np.ones(self.faces, np.bool_)]
        while stack:
            left = stack.pop()
            while left.any():
                hops = self._hops(int(np.argmax(left)), left)
                part = hops >= 0
                left &= ~part
                heavy = self._heaviest(part)
                if heavy > high and heavy > total - low:
                    continue
                hub = int(np.argmax(np.where(part, degree, -1)))
                if degree[hub] > _HUB:
                    chosen = [hub]
                else:  # a level of a search in breadth from a far face
                    hops = self._hops(int(np.argmax(hops)), part)
                    chosen = np.flatnonzero(hops == np.median(hops[part]).astype(int)).tolist()
                part = part.copy()
                for start in chosen:
                    yield start, part
                    part = part.copy()
                    part[start] = False
                stack.append(part)

    def _heaviest(self, part: Array) -> int:
        """The greatest weight of a vertex set that no cycle on a part of the faces separates."""
        n, inside = self.graph.size, part[self.face.reshape(-1, 2)].all(axis=1)
        u, v = self.graph.edges[~inside].T
        of = connected_components(csr_array((np.ones(len(u)), (u, v)), shape=(n, n)), directed=False)[1]
        sums = np.zeros(n, np.int64)
        np.add.at(sums, of, self.graph.weights)
        return int(sums.max())

    def _table(
        self,
        near: Array,
        alive: Array,
        gain: Array,
        length: Array,
        odd: Array,
        windows: Array,
        sides: Array,
        longest: int,
        pause: Callable[[], None] | None,
    ) -> tuple[Array, int, int, Array]:
        """The table of bounds, the bucket that begins at 0, the width, and bounds on cycles by window."""
        start = int(near[0])
        tail, head = self.face, self.face[np.arange(len(gain)) ^ 1]
        good = alive[tail] & alive[head] & (head != start)
        tail, head, moves, reach = tail[good], head[good], gain[good], 0
        for sign in (1, -1):
            far = np.full(self.faces, -_NEVER)
            far[start] = 0
            for _ in range(longest // 2 + 1):
                more = far.copy()
                np.maximum.at(more, head, far[tail] + sign * moves)
                far = more
            reach = max(reach, int(far.max()))
        width = max(1, self.graph.total // _BUCKETS)
        half = (reach + int(np.abs(windows).max())) // width + 2
        table = np.full((self.faces, 1 + int(sides.max()), 2 * half + 1), _NEVER, np.int64)
        table[start, 0, half] = 0
        shift, exact = -gain // width, gain % width == 0
        low, high = np.full(self.faces, 2 * half + 1), np.full(self.faces, -1)
        low[start] = high[start] = half
        changed = np.zeros(self.faces, np.bool_)
        changed[start] = True
        for _ in range(longest):
            if not changed.any():
                break
            if pause is not None:
                pause()
            _relax(
                self.first, self.darts, self.face, length, shift, exact, odd, alive, near, table, low,
                high, changed,
            )  # fmt: skip
        closing = np.full(table.shape[1:], _NEVER, np.int64)
        for d in self.darts[self.first[start] : self.first[start + 1]].tolist():
            h, move = int(self.face[d ^ 1]), int(shift[d])
            if not alive[h]:
                continue
            for p, row in enumerate(table[h]):
                row = row if exact[d] else np.minimum(row, np.append(row[1:], _NEVER))
                begin, end = max(0, -move), min(len(row), len(row) - move)
                old = closing[p ^ odd[d], begin:end]
                np.minimum(old, row[begin + move : end + move] + length[d], out=old)
        least = [
            int(closing[side, a // width + half : b // width + half + 1].min())
            for side, (a, b) in zip(sides.tolist(), windows.tolist(), strict=True)
        ]
        return table, half, width, np.array(least)
