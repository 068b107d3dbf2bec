"""All districts of small reduced cost, as bonds of the planar dual or several of them, in integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from forcopt.arrays import Array
from forcopt.compiled import njit
from forcopt.errors import DeclarationError
from forcopt.graphs.weighted import WeightedGraph

Pause = Callable[[], None] | None
"""Called many times a second."""

Maybe = int | None

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


class _Dual(NamedTuple):
    """The faces within reach of a start face, and their darts."""

    first: Array
    """Where the darts of each face begin in `darts`."""
    darts: Array
    face: Array
    """The face of each dart."""
    gain: Array
    """What each dart adds to the sum that tells the weight."""
    length: Array
    """What it adds to the value."""
    odd: Array
    """1 if it crosses the tree's path to the vertex inside."""
    start: int
    alive: Array
    hops: Array
    """The number of darts on a shortest path from the start to each face."""
    longest: int
    """The greatest number of darts of a cycle."""


class _Tree(NamedTuple):
    """A tree of shortest paths to a root."""

    order: Array
    """The vertices from the root on."""
    parent: Array
    above: Array
    """The dart from each vertex to its parent."""


class _Goals(NamedTuple):
    """The closed walks sought, with the root outside (0) and inside (1)."""

    windows: Array
    """Inclusive bounds on their sums."""
    sides: Array
    """Their parity."""
    room: Array
    """Their greatest lengths."""


class _Table(NamedTuple):
    """Bounds on the rests of cycles from each face to the start, by parity and sum."""

    bounds: Array
    middle: int
    """The bucket that begins at 0."""
    width: int
    """Of a bucket."""
    shift: Array
    """By how many buckets each dart moves a sum, rounded down."""
    exact: Array
    """Whether the shift is exact."""


class _Reach(NamedTuple):
    """The faces whose bounds have changed, and the buckets that have any."""

    low: Array
    high: Array
    changed: Array


class _Walk(NamedTuple):
    """A walk from the start face; entry i is of its first i darts."""

    via: Array
    """Its last dart."""
    place: Array
    """The position of the dart to try next."""
    total: Array
    spent: Array
    side: Array
    used: Array
    """The faces on the walk."""
    crossed: Array
    """Scratch: the edges that a cycle crosses."""


@njit(cache=True)
def _relax(dual, table, reach, near):  # type: ignore[no-untyped-def]
    """Sweep over the faces, in the order `near` from the start on, whose bounds have changed."""
    bounds = table.bounds
    sides, top = bounds.shape[1], bounds.shape[2] - 1
    both = np.empty((sides, top + 2), np.int64)
    for h in near:
        # Each bound is the length of a walk to the start, and is at most those of faces swept before.
        if not reach.changed[h]:
            continue
        reach.changed[h] = False
        begin, end = max(reach.low[h] - 1, 0), reach.high[h]
        for p in range(sides):
            for i in range(begin, min(end, top - 1) + 1):
                both[p, i] = min(bounds[h, p, i], bounds[h, p, i + 1])
            if end == top:
                both[p, top] = bounds[h, p, top]
        for a in range(dual.first[h], dual.first[h + 1]):
            d = dual.darts[a] ^ 1  # leads to h
            g = dual.face[d]
            if not dual.alive[g] or g == dual.start:
                continue
            move, paid = table.shift[d], dual.length[d]
            least, most = max(begin - move, 0), min(end - move, top)
            if least > most:
                continue
            lower = False
            for p in range(sides):
                old = bounds[g, p ^ dual.odd[d], least : most + 1]
                new = both[p, least + move : most + move + 1]
                if table.exact[d]:
                    new = bounds[h, p, least + move : most + move + 1]
                for i in range(len(new)):
                    value = new[i] + paid
                    lower |= value < old[i]
                    old[i] = min(old[i], value)
            if lower:
                reach.changed[g] = True
                reach.low[g], reach.high[g] = min(reach.low[g], least), max(reach.high[g], most)


@njit(cache=True)
def _fits(table, goals, h, side, total, spent):  # type: ignore[no-untyped-def]
    """Whether a walk from h back to the start may close a path within a limit."""
    top = table.bounds.shape[2] - 1
    for w in range(len(goals.windows)):
        if side ^ goals.sides[w] >= table.bounds.shape[1]:
            continue
        begin = (goals.windows[w, 0] - total) // table.width + table.middle
        end = (goals.windows[w, 1] - total) // table.width + table.middle
        for j in range(max(begin, 0), min(end, top) + 1):
            if spent + table.bounds[h, side ^ goals.sides[w], j] <= goals.room[w]:
                return True
    return False


@njit(cache=True)
def _is_sought(goals, total, spent, side):  # type: ignore[no-untyped-def]
    """Whether a closed walk is sought."""
    for w in range(len(goals.windows)):
        within = goals.windows[w, 0] <= total <= goals.windows[w, 1]
        if within and side == goals.sides[w] and spent <= goals.room[w]:
            return True
    return False


@njit(cache=True)
def _write_inside(tree, walk, darts, root_inside, inside):  # type: ignore[no-untyped-def]
    """Write the vertices inside the closed walk of a number of darts."""
    for i in range(1, darts + 1):
        walk.crossed[walk.via[i] >> 1] = True
    inside[tree.order[0]] = root_inside
    for x in range(1, len(tree.order)):
        # The vertices before x are on their side; an edge of the tree changes it if the walk crosses it.
        v = tree.order[x]
        inside[v] = inside[tree.parent[v]] != walk.crossed[tree.above[v] >> 1]
    for i in range(1, darts + 1):
        walk.crossed[walk.via[i] >> 1] = False


@njit(cache=True)
def _deepen(dual, tree, goals, table, walk, depth, sets, budget):  # type: ignore[no-untyped-def]
    """Go on with the search until `sets` is full or the budget is used.

    Give the depth, -1 at the end, and the number of sets found.
    """
    count = 0
    while depth >= 0 and budget > 0 and count < len(sets):
        # All cycles sought whose beginning comes before the walk are found; `used` holds the walk's faces.
        g = dual.start if depth == 0 else dual.face[walk.via[depth] ^ 1]
        if walk.place[depth] == dual.first[g + 1]:
            if depth > 0:
                walk.used[g] = False
            depth -= 1
            continue
        d = dual.darts[walk.place[depth]]
        walk.place[depth] += 1
        budget -= 1
        h = dual.face[d ^ 1]
        total, spent = walk.total[depth] + dual.gain[d], walk.spent[depth] + dual.length[d]
        side = walk.side[depth] ^ dual.odd[d]
        if h == dual.start:  # there and back by one edge, the sum is 0, in no window
            if _is_sought(goals, total, spent, side):
                walk.via[depth + 1] = d
                _write_inside(tree, walk, depth + 1, total < 0, sets[count])
                count += 1
            continue
        if walk.used[h] or not dual.alive[h] or depth + 1 + dual.hops[h] > dual.longest:
            continue
        if not _fits(table, goals, h, side, total, spent):
            continue
        depth += 1
        walk.used[h], walk.via[depth], walk.place[depth] = True, d, dual.first[h]
        walk.total[depth], walk.spent[depth], walk.side[depth] = total, spent, side
    return depth, count


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

    def _tree(self, root: int) -> _Tree:
        """A tree of shortest paths to a root."""
        parent, above = np.full(self.graph.size, -1, np.int64), np.full(self.graph.size, -1, np.int64)
        order = [root]
        for v in order:
            for u in self.graph.neighbours[v]:
                if u != root and parent[u] < 0:
                    parent[u], above[u] = v, self.dart[u, v]
                    order.append(u)
        return _Tree(np.array(order), parent, above)

    def _flow(self, values: Array, tree: _Tree) -> Array:
        """The flow of values to the root of a tree on each dart."""
        sums = values.tolist()
        flow = np.zeros(len(self.face), np.int64)
        for v in tree.order[:0:-1].tolist():
            d = tree.above[v]
            flow[d], flow[d ^ 1] = sums[v], -sums[v]
            sums[tree.parent[v]] += sums[v]
        return flow

    def within(
        self, low: int, high: int, limit: int, pause: Pause = None, most: Maybe = None, inside: Maybe = None
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
        n, size, edges = self.graph.size, self.faces + 2, len(self.costs) // 2
        sets = np.zeros((_BATCH, n), np.bool_)
        for dual, tree, goals, table, _ in self._searches(low, high, limit, pause, most, inside):
            marks = (np.zeros(count, np.bool_) for count in (self.faces, edges))
            walk = _Walk(*np.zeros((5, size), np.int64), *marks)
            walk.place[0] = self.first[dual.start]
            depth = 0
            while depth >= 0:
                if pause is not None:
                    pause()
                depth, count = _deepen(dual, tree, goals, table, walk, depth, sets, _STEPS)
                found = sets[:count]
                yield found[self.values(found) <= limit]

    def least(
        self, low: int, high: int, limit: int, pause: Pause = None, most: Maybe = None, inside: Maybe = None
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
        for *_, goals, _, least in self._searches(low, high, limit, pause, most, inside):
            best = min(best, limit + int((least - goals.room).min()))
        return best

    def _searches(
        self, low: int, high: int, limit: int, pause: Pause, most: Maybe, inside: Maybe
    ) -> Iterator[tuple[_Dual, _Tree, _Goals, _Table, Array]]:
        """Give the start faces from which a cycle may be within the limit, and a bound for each goal."""
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
            faces = self.first, self.darts, self.face
            dual = _Dual(*faces, gain, length, odd, start, alive, hops, longest)
            goals = _Goals(windows, sides, room)
            table, least = self._table(dual, goals, near, pause)
            if (least <= room).any():
                yield dual, tree, goals, table, least

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
        return int(np.bincount(of, self.graph.weights).max())

    def _table(self, dual: _Dual, goals: _Goals, near: Array, pause: Pause) -> tuple[_Table, Array]:
        """The table of a start face, and a bound on the lengths of the cycles of each goal."""
        start, gain, windows, sides = dual.start, dual.gain, goals.windows, goals.sides
        tail, head = self.face, self.face[np.arange(len(gain)) ^ 1]
        good = dual.alive[tail] & dual.alive[head] & (head != start)
        tail, head, moves, reach = tail[good], head[good], gain[good], 0
        for sign in (1, -1):
            far = np.full(self.faces, -_NEVER)
            far[start] = 0
            for _ in range(dual.longest // 2 + 1):
                more = far.copy()
                np.maximum.at(more, head, far[tail] + sign * moves)
                far = more
            reach = max(reach, int(far.max()))
        width = max(1, self.graph.total // _BUCKETS)
        middle = (reach + int(np.abs(windows).max())) // width + 2
        bounds = np.full((self.faces, 1 + int(sides.max()), 2 * middle + 1), _NEVER, np.int64)
        bounds[start, 0, middle] = 0
        table = _Table(bounds, middle, width, -gain // width, gain % width == 0)
        ends = np.full(self.faces, 2 * middle + 1), np.full(self.faces, -1)
        changed = _Reach(*ends, np.zeros(self.faces, np.bool_))
        changed.low[start] = changed.high[start] = middle
        changed.changed[start] = True
        for _ in range(dual.longest):
            if not changed.changed.any():
                break
            if pause is not None:
                pause()
            _relax(dual, table, changed, near)
        closing = np.full(bounds.shape[1:], _NEVER, np.int64)
        for d in self.darts[self.first[start] : self.first[start + 1]].tolist():
            h, move = int(self.face[d ^ 1]), int(table.shift[d])
            if not dual.alive[h]:
                continue
            for p, row in enumerate(bounds[h]):
                row = row if table.exact[d] else np.minimum(row, np.append(row[1:], _NEVER))
                begin, end = max(0, -move), min(len(row), len(row) - move)
                old = closing[p ^ dual.odd[d], begin:end]
                np.minimum(old, row[begin + move : end + move] + dual.length[d], out=old)
        least = [
            int(closing[side, a // width + middle : b // width + middle + 1].min())
            for side, (a, b) in zip(sides.tolist(), windows.tolist(), strict=True)
        ]
        return table, np.array(least)


_MOST = 100_000
"""Components of complements that are combined."""

_TENTHS = (1, 2, 4)
"""The share of a boundary's cost that a minimum cut charges."""

_RATES = 8
"""Rates of the weight that are tried for each share, and again around the best one."""


def greatest_cost(bonds: BondList, limit: int, heaviest: int, pause: Pause = None) -> int:
    """Bound the cost of the sets of at most a value and at most a weight.

    Parameters
    ----------
    bonds : BondList
        Its graph, scale and prices count.
    limit : int
        The greatest value ``scale * cost(S) - prices(S)``.
    heaviest : int
        The greatest weight.
    pause : callable, optional
        Called before each minimum cut; it may raise an exception.

    Returns
    -------
    int
        No such set S costs more.

    Notes
    -----
    For a share t in [0, 1) and a rate y >= 0,
    ``(1 - t) scale * cost(S) <= limit + y heaviest + prices(S) - t scale * cost(S) - y w(S)``.
    The greatest value of the last three terms over all sets is a minimum cut [1]_. For t = 0, the best
    rate gives the fractional knapsack.

    References
    ----------
    .. [1] Picard, Maximal closure of a graph and applications to combinatorial problems, Management Science
       1976.

    Examples
    --------
    >>> from forcopt.graphs.weighted import WeightedGraph
    >>> path = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3)], [1, 1, 1])
    >>> greatest_cost(BondList(path, 10, [10, 0, 10, 0]), 0, 2)  # {0} and {2, 3} attain 1
    1
    """
    graph, unit = bonds.graph, 10 * bonds.scale
    best = (limit + greatest(bonds.prices, graph.weights, heaviest)) // bonds.scale
    rates = sorted(10 * int(p) // int(w) for p, w in zip(bonds.prices, graph.weights, strict=True) if w)
    if not rates:
        return best

    def bound(tenths: int, rate: int) -> int:
        if pause is not None:
            pause()
        flow, most = nx.DiGraph(), 0
        for v, (price, weight) in enumerate(zip(bonds.prices.tolist(), graph.weights.tolist(), strict=True)):
            gain = 10 * price - rate * weight
            most += max(gain, 0)
            flow.add_edge("in", v, capacity=max(gain, 0))
            flow.add_edge(v, "out", capacity=max(-gain, 0))
        for (u, v), cost in zip(graph.edges.tolist(), graph.costs.tolist(), strict=True):
            flow.add_edge(u, v, capacity=tenths * bonds.scale * cost)
            flow.add_edge(v, u, capacity=tenths * bonds.scale * cost)
        most -= int(nx.minimum_cut_value(flow, "in", "out"))
        return (10 * limit + rate * heaviest + most) // (unit - tenths * bonds.scale)

    for tenths in _TENTHS:
        first, last = 0, max(rates[19 * len(rates) // 20], 1)
        for _ in range(2):
            tried = [first + (last - first) * i // _RATES for i in range(_RATES + 1)]
            bounds = [bound(tenths, rate) for rate in tried]
            best, i = min(best, *bounds), int(np.argmin(bounds))
            first, last = tried[max(i - 1, 0)], tried[min(i + 1, _RATES)]
    return best


@dataclass(frozen=True)
class _Components:
    """Vertex sets, by value; all are unions of the same number of districts."""

    sets: Array
    values: Array
    costs: Array

    @classmethod
    def of(cls, bonds: BondList, sets: Array) -> _Components:
        """Sort sets by ``scale * cost(C) + prices(C)``."""
        u, v = bonds.graph.edges.T
        values = bonds.values(~sets) + int(bonds.prices.sum())
        order = np.argsort(values, kind="stable")
        sets = sets[order]
        return cls(sets, values[order], (sets[:, u] != sets[:, v]) @ bonds.graph.costs)


def split_districts(
    bonds: BondList, low: int, high: int, parts: int, limit: int, fee: int, pause: Callable[[], None]
) -> Iterator[Array]:
    """Give the districts of at most a value whose complement is disconnected and divides into districts.

    Parameters
    ----------
    bonds : BondList
        Its graph, scale and prices count.
    low, high : int
        Inclusive bounds on the weight of a district.
    parts : int
        The number of districts of a plan.
    limit : int
        The greatest value ``scale * cost(S) - prices(S)``.
    fee : int
        Districts with a connected complement have at least this value.
    pause : callable
        Called many times a second; it may raise an exception.

    Yields
    ------
    ndarray of bool, shape (count, n)
        Districts, each once over all batches.

    Raises
    ------
    MemoryError
        If more than 100,000 components would be combined.

    Notes
    -----
    Let C_1, ..., C_s be the components of the complement of S. A plan with S divides C_i into j_i districts,
    with sum parts - 1. Each C_i is a bond, and ``value(S) = v(C_1) + ... + v(C_s) - prices(V)``
    with ``v(C) = scale * cost(C) + prices(C)``. The costs of the C_i sum to that of S, which `greatest_cost`
    bounds. So for each number j of districts, bonds of small v and small cost are listed, and disjoint
    ones are combined.

    Components of parts - 2 districts are many. Each stands beside one component of one district. The latter
    are listed first. Those with a common vertex form a group. Beside it, only components without the
    vertex are listed: both kinds often prefer the same nodes, of low prices.
    """
    graph, others = bonds.graph, parts - 1
    if others < 2:  # the complement is a district
        return
    all_prices = int(bonds.prices.sum())
    room = limit + all_prices  # of the sum of v(C) over the components
    # least[j]: of v(C) for a union C of j districts; at first of prices(C).
    least = [0] + [
        all_prices - greatest(bonds.prices, graph.weights, graph.total - j * low) for j in range(1, others)
    ]
    least[1] = max(least[1], 2 * least[1] + fee)
    # The complement of C is a bond of the value v(C) - prices(V).
    windows = [(graph.total - j * high, graph.total - j * low) for j in range(others)]
    cap, cheapest = greatest_cost(bonds, limit, high, pause), [0] * others
    free = BondList(graph, 1, [0] * graph.size)

    def limits(j: int) -> tuple[int, int]:
        """The greatest v(C) and cost(C) of a component of j districts; below `least` if there is none."""
        value, cost = least[j] - 1, -1
        for values, costs in _least_sums(least, cheapest, others - j, pause):
            if values + least[j] <= room and costs + cheapest[j] <= cap:
                value, cost = max(value, room - values), max(cost, cap - costs)
        return value, cost

    for j in range(1, others):
        value, cost = limits(j)
        cheapest[j] = free.least(*windows[j], cost, pause)
    for j in range(1, others):
        value, cost = limits(j)
        least[j] = max(least[j], bonds.least(*windows[j], value - all_prices, pause, cost) + all_prices)
    lists: dict[int, _Components] = {}
    for j in range(1, others if others < 3 else others - 1):
        value, cost = limits(j)
        sets = [np.zeros((0, graph.size), np.bool_)]
        if value >= least[j]:
            for batch in bonds.within(*windows[j], value - all_prices, pause, cost):
                sets.append(~batch)
                _require_few(sum(map(len, sets)))
        lists[j] = _Components.of(bonds, np.concatenate(sets))
        least[j] = int(lists[j].values.min(initial=value + 1))
    every: dict[bytes, None] = {}
    unions = [_unions(lists, room, cap, others, pause)]
    if others > 2 and limits(others - 1)[0] >= least[others - 1]:
        unions.append(_pairs(bonds, windows[others - 1], lists[1], room, cap, pause))
    for some in unions:
        for union in some:
            rest = ~union
            if rest.tobytes() in every or not low <= graph.weights[rest].sum() <= high:
                continue
            if len(graph.components(np.flatnonzero(union).tolist())) > 1 and (
                len(graph.components(np.flatnonzero(rest).tolist())) == 1
            ):
                every[rest.tobytes()] = None
                if bonds.values(rest[None])[0] <= limit:
                    yield rest[None]


def _require_few(count: int) -> None:
    if count > _MOST:
        raise MemoryError(f"more than {_MOST:,} components of complements are listed")


def _least_sums(
    least: list[int], cheapest: list[int], number: int, pause: Callable[[], None]
) -> list[tuple[int, int]]:
    """Give the sums of values and costs of components of j districts in all that no other sum undercuts."""
    sums = [[(0, 0)]]
    for left in range(1, number + 1):
        pause()
        some: list[tuple[int, int]] = []
        for value, cost in sorted(
            (least[j] + value, cheapest[j] + cost)
            for j in range(1, left + 1)
            for value, cost in sums[left - j]
        ):
            if not some or cost < some[-1][1]:
                some.append((value, cost))
        sums.append(some)
    return sums[number]


def _unions(
    lists: dict[int, _Components], room: int, cap: int, parts: int, pause: Callable[[], None]
) -> Iterator[Array]:
    """Give the unions of disjoint components of lists with a number of districts in sum."""
    if not lists:
        return
    number = np.concatenate([np.full(len(some.values), j) for j, some in lists.items()])
    # Components by their value for each district, rounded down.
    mean = np.concatenate([some.values // j for j, some in lists.items()])
    order = np.argsort(mean, kind="stable")
    values = np.concatenate([some.values for some in lists.values()])[order]
    costs = np.concatenate([some.costs for some in lists.values()])[order]
    sets = np.concatenate([some.sets for some in lists.values()])[order]
    number, mean = number[order], mean[order]
    bits = np.packbits(sets, axis=1)

    def combine(first: int, union: Array, spent: int, paid: int, left: int) -> Iterator[Array]:
        """Add components of `left` districts in sum, from the position `first` on."""
        pause()
        if left == 0:
            yield union
            return
        # The means rise, so the first one is at most that of all that is left.
        some = slice(first, int(np.searchsorted(mean, (room - spent) // left, side="right")))
        fits = (number[some] <= left) & (paid + costs[some] <= cap)
        fits &= ~(bits[some] & np.packbits(union)).any(axis=1)
        for i in (first + np.flatnonzero(fits)).tolist():
            yield from combine(
                i + 1, union | sets[i], spent + int(values[i]), paid + int(costs[i]), left - int(number[i])
            )

    yield from combine(0, np.zeros(sets.shape[1], np.bool_), 0, 0, parts)


def _pairs(
    bonds: BondList,
    window: tuple[int, int],
    small: _Components,
    room: int,
    cap: int,
    pause: Callable[[], None],
) -> Iterator[Array]:
    """Give the unions of a component of a list and a disjoint one, a bond of a weight in the window."""
    all_prices, count = int(bonds.prices.sum()), 0
    left = np.ones(len(small.values), np.bool_)
    while left.any():
        # The vertex of the best component that most others have.
        first = int(np.argmax(left))
        common = int(np.argmax(small.sets[first] * small.sets[left].sum(axis=0)))
        group = np.flatnonzero(left & small.sets[:, common])
        left[group] = False
        value, cost = room - int(small.values[first]), cap - int(small.costs[group].min())
        near = small.sets[group].astype(np.float32)
        for batch in bonds.within(*window, value - all_prices, pause, cost, inside=common):
            large = _Components.of(bonds, ~batch)
            count += len(batch)
            _require_few(count)
            apart = large.sets.astype(np.float32) @ near.T == 0
            apart &= large.values[:, None] + small.values[group] <= room
            apart &= large.costs[:, None] + small.costs[group] <= cap
            for i, j in np.argwhere(apart).tolist():
                yield large.sets[i] | small.sets[group[j]]
