"""Simple cycles of a planar dual whose enclosed weight lies in a window, the cheapest or all of them.

The search meets in the middle. From a start face it lists all simple dual paths of at most half the cost.
Then it joins pairs of paths by an edge if their sums of flows fit the window. The start face is deleted, and
the next one follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.compiled import njit
from forcopt.errors import DeclarationError
from forcopt.graphs.planar_dual import PlanarDual, flow_sums, spanning_tree
from forcopt.graphs.states import longer
from forcopt.graphs.tolerances import ROUNDED, SLACK
from forcopt.graphs.walk_bounds import completion_bounds, from_tree
from forcopt.graphs.weighted import component_labels
from forcopt.memory import memory_budget

_PATHS = 2_000_000
"""Darts to look at between two looks at the clock."""

_JOINS = 20_000_000
"""Pairs of paths to look at between two looks at the clock."""

_BATCH = 20_000
"""Cycles to find between two looks at the clock; their vertex sets take a byte for each vertex."""

_SORTED = 1_000_000
"""Paths to sort between two looks at the clock."""

_CLASSES = 64
"""Paths are grouped by this number of intervals of their cost."""

_MANY = 50_000
"""From more paths of one start on, bounds on reduced costs are computed."""

_FINER: tuple[tuple[int, int], ...] = ((1, 250), (20, 1000), (100, 4000))
"""At these multiples of `many`, the total weight is divided into this number of buckets for these bounds."""

_NARROW = 100
"""In windows of at most this fraction of the total weight, the prizes are taken less those of the weight."""

_LARGEST = 2**30
"""Paths of one start: 32 bits number them."""

_JOINED = 80
"""Bytes for each path, while paths are joined: its place in the order, and the columns in this order."""


class _Dual(NamedTuple):
    """The dual of a start face.

    Attributes
    ----------
    starts, darts : Array
        The darts of face g are ``darts[starts[g]:starts[g + 1]]``.
    face : Array
        Of each dart.
    gain : Array
        Of each dart, the flow sum of the weights.
    cost : Array
        Of each edge.
    prize : Array
        Of each dart, the flow sum of the prizes.
    gone : Array
        Whether each face is deleted.
    """

    starts: Array
    darts: Array
    face: Array
    gain: Array
    cost: Array
    prize: Array
    gone: Array


class _Reach(NamedTuple):
    """What a path may become.

    Attributes
    ----------
    back : Array
        The least cost from each face to the start; -1 out of reach.
    most : int
        The largest cost of a cycle.
    first, last : Array
        See `completion_bounds`; empty without bounds.
    width, half : int
        Of their buckets.
    """

    back: Array
    most: int
    first: Array
    last: Array
    width: int
    half: int


class _Paths(NamedTuple):
    """The paths of a start, by number; 0 is the empty path.

    Attributes
    ----------
    at : Array
        The face at the end.
    paid, total, won : Array
        Sums along the path: of costs, of weights' flows, of prizes' flows.
    role : Array
        Whether a cycle within the threshold may begin with it (bit 1), or end with its reverse (bit 2).
    size : Array
        The number of its edges.
    parent, via : Array
        The path without its last dart, and that dart; -1 for the empty path.
    """

    at: Array
    paid: Array
    total: Array
    won: Array
    role: Array
    size: Array
    parent: Array
    via: Array


class _Walk(NamedTuple):
    """Where the depth-first search is.

    Attributes
    ----------
    trail, pointer : Array
        For each depth the path, and the next dart to look at.
    used : Array
        Whether each face is on the path.
    now : Array
        The number of paths, and the depth (-1: all are listed).
    """

    trail: Array
    pointer: Array
    used: Array
    now: Array


class _Wanted(NamedTuple):
    """Which cycles to give.

    Attributes
    ----------
    windows, threshold : Array
        Bounds on the sum of a cycle, and the largest reduced cost for each.
    every : bool
        Whether to give all; else only cycles each cheaper than the one before.
    enough : int
        The number of cycles after which the search pauses.
    """

    windows: Array
    threshold: Array
    every: bool
    enough: int


class _Groups(NamedTuple):
    """The paths by group (end face and class of cost), and by rising sum in each.

    Attributes
    ----------
    order, begins : Array
        The paths in this order, and where each group begins.
    total, paid, won, role : Array
        Columns of `_Paths` in this order, so that they are read contiguously.
    cheapest : Array
        The least cost plus prize of each group.
    classes, step : int
        The number of classes of a face, and their width.
    """

    order: Array
    begins: Array
    total: Array
    paid: Array
    won: Array
    role: Array
    cheapest: Array
    classes: int
    step: int


@njit(cache=True)
def _extend(dual, reach, paths, walk, budget):  # type: ignore[no-untyped-def]
    """List simple paths from the start face, depth first, until the budget or the space is used."""
    starts, darts, face, gain, cost, prize, gone = dual
    back, most, first, last, width, half = reach
    at, paid, total, won, role, size, parent, via = paths
    trail, pointer, used, now = walk
    count, depth = now
    # The trail holds the prefixes of the path at its depth, and `used` marks the faces of that path.
    while depth >= 0 and budget > 0 and count < len(at):
        i = trail[depth]
        g = at[i]
        if pointer[depth] == starts[g + 1]:
            used[g] = False
            depth -= 1
            continue
        d = darts[pointer[depth]]
        pointer[depth] += 1
        budget -= 1
        h = face[d ^ 1]
        if used[h] or gone[h] or back[h] < 0:
            continue
        c = paid[i] + cost[d >> 1]
        if 2 * c > most or c + back[h] > most:
            continue
        mark = role[i]
        if len(first) > 0:  # may a cycle begin with the path, and may one end with its reverse?
            b = min(max((total[i] + gain[d]) // width + half, 0), 2 * half)
            if c - won[i] - prize[d] + first[h, b] > 0.0:
                mark &= ~1
            if c + won[i] + prize[d] + last[h, b] > 0.0:
                mark &= ~2
            if mark == 0:
                continue
        role[count] = mark
        at[count], paid[count], total[count] = h, c, total[i] + gain[d]
        size[count], parent[count], via[count] = size[i] + 1, i, d
        won[count] = won[i] + prize[d]
        used[h] = True
        depth += 1
        trail[depth], pointer[depth] = count, starts[h]
        count += 1
    now[0], now[1] = count, depth


@njit(cache=True, inline="always")
def _marked(stamp, at, parent, i):  # type: ignore[no-untyped-def]
    """Stamp the faces of path i, without the start face, with its number."""
    p = i
    while parent[p] >= 0:
        stamp[at[p]] = i
        p = parent[p]


@njit(cache=True, inline="always")
def _meets(stamp, at, parent, i, j):  # type: ignore[no-untyped-def]
    """Whether path j has a face that is stamped with i."""
    p, found = j, False
    while parent[p] >= 0 and not found:
        found = stamp[at[p]] == i
        p = parent[p]
    return found


@njit(cache=True, inline="always")
def _is_split(a, b, c):  # type: ignore[no-untyped-def]
    """Whether a cycle of path, edge and path of these costs is split at its middle."""
    return b < a + c and a <= b + c


@njit(cache=True, inline="always")
def _is_no_cycle(size, via, i, j, d, loop):  # type: ignore[no-untyped-def]
    """Whether paths i and j and the dart d go there and back by one edge, or d is a loop on a path."""
    return (size[i] + size[j] == 1 and via[i + j] >> 1 == d >> 1) or (loop and size[i] > 0)


@njit(cache=True)
def _rewind(place, dual, begins, classes, g):  # type: ignore[no-untyped-def]
    """Set the positions in all groups beside face g to their begins."""
    for spot in range(dual.starts[g], dual.starts[g + 1]):
        h = dual.face[dual.darts[spot] ^ 1]
        for w in range(place.shape[1]):
            for group in range(classes):
                place[spot - dual.starts[g], w, group] = begins[h * classes + group]


@njit(cache=True)
def _join(dual, wanted, most, paths, groups, stamp, begin, budget):  # type: ignore[no-untyped-def]
    """Join the paths from ``order[begin]`` on with an edge and a second path.

    The search pauses before a first path if it has looked at `budget` second paths, or has found enough
    cycles.

    Returns
    -------
    found : ndarray of int64, shape (count, 3)
        The first path, the middle dart, the second path.
    most : int
        The cost that a further cycle may have.
    x : int
        The position in `order` at which the search goes on.
    """
    starts, darts, face, gain, cost, prize, gone = dual
    windows, threshold, every, enough = wanted
    at, paid, total, won, role, size, parent, via = paths
    order, begins, sums, paid2, won2, role2, cheapest, classes, step = groups
    found = np.empty((16, 3), np.int64)
    count = 0
    room = np.empty(len(windows))
    # Sums of first paths rise within a group, so the search in another group goes on at its last position.
    place = np.zeros((np.diff(starts).max(), len(windows), classes), np.int64)
    before = -1
    for x in range(begin, len(order)):
        if budget <= 0 or count >= enough:
            return found[:count], most, x
        budget -= 1
        i = order[x]
        g, a = at[i], paid[i]
        if g * classes + a // step != before:
            before = g * classes + a // step
            _rewind(place, dual, begins, classes, g)
        if a > most or role[i] & 1 == 0:
            continue
        marked = False
        for spot in range(starts[g], starts[g + 1]):
            d = darts[spot]
            h, c = face[d ^ 1], cost[d >> 1]
            if gone[h] or a + c > most:
                continue
            for w in range(len(windows)):
                room[w] = threshold[w] - a - c + won[i] + prize[d]
            least, largest = max(0, a - c) // step, min(a + c - 1, most - a - c) // step
            for w in range(len(windows)):
                low = total[i] + gain[d] - windows[w, 1]
                high = total[i] + gain[d] - windows[w, 0]
                for group in range(least, min(largest, classes - 1) + 1):
                    if cheapest[h * classes + group] > room[w]:
                        continue
                    y, stop = place[spot - starts[g], w, group], begins[h * classes + group + 1]
                    budget -= 1
                    while y < stop and sums[y] < low:  # no second path before y fits, now or later
                        y += 1
                    place[spot - starts[g], w, group] = y
                    while y < stop and sums[y] <= high:
                        z, b = y, paid2[y]
                        y += 1
                        budget -= 1
                        if (
                            b + won2[z] > room[w] or not _is_split(a, b, c) or a + c + b > most
                            or role2[z] & 2 == 0
                        ):  # fmt: skip
                            continue
                        j = order[z]
                        if _is_no_cycle(size, via, i, j, d, h == g):
                            continue
                        if not marked:
                            marked = True
                            _marked(stamp, at, parent, i)
                        if _meets(stamp, at, parent, i, j):
                            continue
                        if count == len(found):
                            found = longer(found, 2 * count)
                        found[count, 0], found[count, 1], found[count, 2] = i, d, j
                        count += 1
                        if not every:
                            most = a + c + b - 1
    return found[:count], most, len(order)


@njit(cache=True)
def _enclosed(found, dual, paths, tree, sets, costs):  # type: ignore[no-untyped-def]
    """Write the vertex set S of each cycle, and its cost.

    The tree has its vertices with their parents, in an order from the root, and the dart to each vertex.
    """
    gain, cost = dual
    parent, via = paths
    order, above = tree
    crossed = np.zeros(len(cost), np.bool_)
    for x in range(len(found)):  # no edge is crossed before and after
        i, d, j = found[x]
        crossed[d >> 1] = True
        costs[x] = cost[d >> 1]
        total = gain[d]
        for end in (i, j):
            p = end
            while parent[p] >= 0:
                crossed[via[p] >> 1] = True
                costs[x] += cost[via[p] >> 1]
                total += gain[via[p]] if end == i else -gain[via[p]]
                p = parent[p]
        sets[x, order[0, 0]] = total < 0
        for y in range(1, len(order)):
            v, u = order[y]
            sets[x, v] = sets[x, u] != crossed[above[v] >> 1]
        crossed[d >> 1] = False
        for end in (i, j):
            p = end
            while parent[p] >= 0:
                crossed[via[p] >> 1] = False
                p = parent[p]


class WindowCycles:
    """The simple dual cycles with an enclosed weight in a window, by meeting in the middle.

    Parameters
    ----------
    dual : PlanarDual
        The dual of a connected graph with n vertices, m edges, weights and costs.
    low, high : int
        Inclusive bounds on the weight of S, the side to which the darts of a directed cycle point.
    more : sequence of tuple of int, optional
        Further windows of weights, disjoint from the first and from each other.
    symmetric : bool, optional
        Whether the complement of S satisfies the bounds if S does. Then each undirected cycle is
        given once; otherwise once for each direction that satisfies the bounds.
    must_link, cannot_link : sequence of tuple of int, optional
        Pairs of vertices that a cycle that `search` gives must not, or must, separate.

    Attributes
    ----------
    paths : int
        The number of paths listed so far, over all starts.
    many : int
        From this number of paths of a start on, `sets` computes bounds on reduced costs.

    Raises
    ------
    DeclarationError
        If the weights are too large to be refined, beyond 2**62 divided by the number of weights of 0, or
        the costs, beyond 2**61 divided by the number of edges if some are 0.

    Notes
    -----
    **Each cycle is found exactly once from a start.** Let a directed cycle of cost c through the start face
    be given, with positive edge costs. Its longest prefix of cost a with 2 a <= c is followed by an edge of
    cost e with 2 (a + e) > c. The rest, reversed, is a path from the start of cost b = c - a - e.
    The two conditions are a <= b + e and b < a + e, so the prefix, the edge and the rest are unique, and
    a and b are at most c / 2. Costs of 0 are replaced by positive ones: all costs are multiplied by
    m + 1, then 1 is added. This preserves the order of the costs of cycles, which have at most m edges.

    **The window.** The flow sums of `flow_sums` are additive along the cycle, so the second path is
    sought by binary search among the sums at the other end of the edge. Vertices of weight 0 get a small
    positive weight, less than 1 in sum, so no two directions of a cycle are confused. Links between vertices
    are checked when a cycle is found.

    **All cycles are found.** A cycle is found at the first of its faces that is a start, because deleted
    faces precede the start. The faces that remain form components in the dual. A component is dropped
    only if none of its cycles satisfies the bounds: no cycle of the component crosses
    an edge with a face outside the component, so the ends of such edges are on one side together. If these
    contractions make a vertex set of weight w, then one side of each cycle weighs at most the total
    minus w, and the other side weighs at least w.

    With branching factor q of the dual (about 2.2 on planar maps) and s starts, time and memory are
    O(s q^(c / 2)) and O(q^(c / 2)) for unit costs.

    References
    ----------
    .. [1] Horowitz and Sahni, Computing partitions with applications to the knapsack problem, JACM 1974.

    Examples
    --------
    >>> from forcopt.graphs.weighted import WeightedGraph
    >>> g = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1, 2, 1, 5])
    >>> cycles = WindowCycles(PlanarDual.of(g), 2, 2, symmetric=True)
    >>> *_, (cost, edges) = cycles.search(20)
    >>> cost, edges.tolist()
    (2, [0, 3])
    """

    def __init__(
        self,
        dual: PlanarDual,
        low: int,
        high: int,
        *,
        more: Sequence[tuple[int, int]] = (),
        symmetric: bool = False,
        must_link: Sequence[tuple[int, int]] = (),
        cannot_link: Sequence[tuple[int, int]] = (),
    ) -> None:
        graph = dual.graph
        total = graph.total
        self.dual, self.symmetric = dual, symmetric
        self.bounds = [(int(low), int(high)), *((int(a), int(b)) for a, b in more)]
        self.must_link, self.cannot_link = list(must_link), list(cannot_link)
        self.paths, self.many = 0, _MANY
        # Where vertices weigh 0, weights are refined so that every vertex set weighs more than 0: then the
        # sign of a sum of flows shows whether the root lies in S.
        unit = 1 + int((graph.weights == 0).sum())
        if (total + 1) * unit >= 2**62:
            raise DeclarationError(f"the weights sum to {total}, too large beside {unit - 1} weights of 0")
        weights = graph.weights * unit + (graph.weights == 0)
        most = int(weights.sum())
        windows = [(max(1, a * unit), min(most - 1, (b + 1) * unit - 1)) for a, b in self.bounds]
        if not symmetric:
            windows += [(a - most, b - most) for a, b in windows]
        self._total = most
        starts, darts = dual.links
        self._factor = len(graph.edges) + 1 if len(graph.edges) and not graph.costs.all() else 1
        if int(graph.costs.sum()) * self._factor + len(graph.edges) >= 2**61:
            raise DeclarationError(f"the costs sum to {int(graph.costs.sum())}, too large beside costs of 0")
        cost = graph.costs if self._factor == 1 else graph.costs * self._factor + 1
        self._links = (starts, darts, dual.face, flow_sums(dual, weights), cost)
        self._tree = spanning_tree(dual)
        self._windows = np.array(windows, np.int64)
        self._edge_faces = dual.face.reshape(-1, 2)

    def search(
        self,
        most: int,
        *,
        every: bool = False,
        separator: Sequence[int] = (),
        pause: Callable[[], None] | None = None,
    ) -> Iterator[tuple[int, Array]]:
        """Give the cycles that cost at most a limit.

        Parameters
        ----------
        most : int
            The largest cost.
        every : bool, optional
            Whether to give all cycles, in any order. Otherwise each is cheaper than the one before, and the
            last is the cheapest of all.
        separator : sequence of int, optional
            Edges; their faces are the first starts. A balanced cycle leaves few further starts.
        pause : callable, optional
            Called many times a second; it may raise an exception, which ends the search.

        Yields
        ------
        cost : int
            The cost of the cycle.
        edges : ndarray of int64
            The edges that it crosses, in increasing order.

        Raises
        ------
        MemoryError
            If the paths of one start exceed the memory limit of the run.
        """
        most = int(most) * self._factor + (self._factor - 1)
        cost = self._links[4]
        all_cycles = every or bool(self.must_link or self.cannot_link)
        space = _Space(self.dual.faces)
        for start, gone in self._starts(separator):
            for found in self._through(start, gone, most, all_cycles, space, pause):
                parent, via = space.paths[-2:]
                for i, d, j in found.tolist():
                    crossed = [d >> 1]
                    for p in (i, j):
                        while parent[p] >= 0:
                            crossed.append(int(via[p]) >> 1)
                            p = int(parent[p])
                    edges = np.array(sorted(crossed), np.int64)
                    paid = int(cost[edges].sum())
                    if paid > most or not self._separates(edges):
                        continue
                    if not every:
                        most = paid // self._factor * self._factor - 1
                    yield paid // self._factor, edges

    def sets(
        self,
        most: int,
        prizes: Array | None = None,
        threshold: float | Array = np.inf,
        *,
        pause: Callable[[], None] | None = None,
    ) -> Iterator[tuple[Array, Array]]:
        """Give the enclosed vertex sets S with ``cost(S) <= most`` and ``cost(S) - prizes(S) <= threshold``.

        Parameters
        ----------
        most : int
            The largest cost of the cycle around S.
        prizes : ndarray, shape (n,), optional
            One for each vertex, of any sign; 0 if left out.
        threshold : float or ndarray, optional
            The largest reduced cost, or one for each window; compared with `SLACK` to spare.
        pause : callable, optional
            See `search`.

        Yields
        ------
        sets : ndarray of bool, shape (count, n)
            Each S is given once, over all batches.
        costs : ndarray of int64, shape (count,)
            Their costs.

        Raises
        ------
        MemoryError
            If the paths of one start exceed the memory limit of the run.

        Notes
        -----
        In a narrow window, prizes in proportion to weight are nearly a constant, which moves into the
        threshold. The bounds on reduced costs then do not gain from weights that are rounded.
        """
        graph, factor = self.dual.graph, self._factor
        most = int(most) * factor + (factor - 1)
        room = (np.zeros(len(self.bounds)) + threshold + SLACK) * factor + (factor - 1)
        gains, rest = None, 0.0
        if prizes is not None:
            values = np.asarray(prizes, float) * factor
            if max(b - a for a, b in self.bounds) <= graph.total // _NARROW:
                rate = float(values.sum()) / max(graph.total, 1)
                values = values - rate * graph.weights
                room = room + [max(rate * a, rate * b) for a, b in self.bounds]
            gains, rest = flow_sums(self.dual, values), float(values.sum())
        # If the root lies in S, the sum of the prizes' flows lacks the total.
        rooms = np.concatenate([room, room + rest])[: len(self._windows)]
        highest = float(np.max(threshold))
        space = _Space(self.dual.faces)
        for start, gone in self._starts(()):
            for found in self._through(start, gone, most, True, space, pause, gains, rooms):
                if not len(found):
                    continue
                parent, via = space.paths[-2:]
                sets = np.zeros((len(found), graph.size), np.bool_)
                costs = np.zeros(len(found), np.int64)
                _enclosed(found, self._links[3:5], (parent, via), self._tree, sets, costs)
                costs //= factor
                good = np.ones(len(found), np.bool_)
                if prizes is not None:
                    good = costs - sets @ prizes <= highest + SLACK
                yield sets[good], costs[good]

    def _starts(self, separator: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """Give start faces with the faces deleted before and outside their component."""
        faces, degree = self.dual.faces, np.diff(self.dual.links[0])
        first = sorted(set(self._edge_faces[list(separator)].ravel().tolist()))
        stack = [(np.ones(faces, np.bool_), first)]
        while stack:
            inside, wanted = stack.pop()
            wanted = [f for f in wanted if inside[f]] or self._separator(inside)
            if not wanted:
                continue
            start = max(wanted, key=lambda f: degree[f])
            yield start, ~inside
            inside = inside.copy()
            inside[start] = False
            labels = component_labels(self._edge_faces[inside[self._edge_faces].all(axis=1)], faces)
            for label in np.unique(labels[inside]):
                part = labels == label
                if self._alive(part):
                    stack.append((part, [f for f in wanted if part[f]]))

    def _alive(self, inside: Array) -> bool:
        graph = self.dual.graph
        # The vertices of a component are separated by no cycle on these faces.
        labels = component_labels(graph.edges[~inside[self._edge_faces].all(axis=1)], graph.size)
        weights = np.zeros(graph.size, np.int64)
        np.add.at(weights, labels, graph.weights)
        heavy = int(weights.max())
        return any(graph.total - heavy >= low or heavy <= high for low, high in self.bounds)

    def _separator(self, inside: Array) -> list[int]:
        """The faces of the most balanced fundamental cycle of a breadth-first tree; none without a cycle."""
        starts, darts, face, gain, *_ = self._links
        members = np.flatnonzero(inside)
        root = int(members[np.argmax(np.diff(starts)[members])])
        reached, sums = {root: -1}, {root: 0}
        queue = [root]
        for g in queue:
            for d in darts[starts[g] : starts[g + 1]].tolist():
                h = int(face[d ^ 1])
                if inside[h] and h not in reached:
                    reached[h], sums[h] = d, sums[g] + int(gain[d])
                    queue.append(h)
        half = int(self._windows[0].sum()) / 2 if len(self.bounds) == 1 else self._total / 2
        best, chosen = np.inf, -1
        tree = {d >> 1 for d in reached.values() if d >= 0}
        for e, (g, h) in enumerate(self._edge_faces.tolist()):
            if e not in tree and inside[g] and inside[h]:
                value = abs(abs(sums[g] + int(gain[2 * e]) - sums[h]) - half)
                if value < best:
                    best, chosen = value, e
        if chosen < 0:
            return []
        found = {root}
        for at in self._edge_faces[chosen].tolist():
            while at != root:
                found.add(at)
                at = int(face[reached[at]])
        return sorted(found)

    def _through(
        self,
        start: int,
        gone: Array,
        most: int,
        every: bool,
        space: _Space,
        pause: Callable[[], None] | None,
        prize: Array | None = None,
        threshold: Array | None = None,
    ) -> Iterator[Array]:
        """Join the paths from a start face; pairs of paths and the dart between them, see `_join`."""
        starts, darts, face, _, cost = self._links
        first = last = np.zeros((0, 0))
        width = half = 1
        finer = _FINER if threshold is not None and bool((threshold < np.inf).all()) else ()
        if prize is None or threshold is None:
            prize, threshold = np.zeros(len(face)), np.full(len(self._windows), np.inf)
        if pause is not None:
            pause()
        gain = from_tree(starts, darts, face, gone, start, self._links[3])
        prize = from_tree(starts, darts, face, gone, start, prize)
        links = (*self._links[:3], gain, self._links[4])
        dual = _Dual(*links, prize, gone)
        back = self._distances(start, gone)
        space.begin(start, int(starts[start]))
        while space.now[1] >= 0:
            if finer and space.now[0] > finer[0][0] * self.many:  # bounds pay
                width, finer = max(1, self._total // finer[0][1]), finer[1:]
                edges = min(len(cost), most // int(cost.min()))
                first, last, width = completion_bounds(
                    links, prize, gone, start, self._windows, threshold, width, edges
                )
                half = first.shape[1] // 2
                space.begin(start, int(starts[start]))
            if space.now[0] == len(space.paths.at):
                space.grow()
            before = int(space.now[0])
            budget = min(_PATHS, max(1000, 2 * finer[0][0] * self.many)) if finer else _PATHS
            _extend(dual, _Reach(back, most, first, last, width, half), space.paths, space.walk, budget)
            self.paths += int(space.now[0]) - before
            if pause is not None:
                pause()
        paths = _Paths(*(column[: space.now[0]] for column in space.paths))
        memory_budget().reserve(_JOINED * len(paths.at))
        step = 1 + max(0, most) // 2 // _CLASSES
        classes = max(0, most) // 2 // step + 1
        group = np.asarray(paths.at, np.int64) * classes + paths.paid // step
        order, begins = _grouped(group, paths.total, self.dual.faces * classes, pause)
        columns = (paths.total, paths.paid, paths.won, paths.role)
        total, paid, won, role = (column[order] for column in columns)
        cheapest, filled = np.full(len(begins) - 1, np.inf), np.flatnonzero(np.diff(begins))
        cheapest[filled] = np.minimum.reduceat(paid + won, begins[filled])
        groups = _Groups(order, begins, total, paid, won, role, cheapest, classes, step)
        wanted = _Wanted(self._windows, threshold, every, _BATCH)
        begin = 0
        while begin < len(order):
            if pause is not None:
                pause()
            found, most, begin = _join(dual, wanted, most, paths, groups, space.stamp, begin, _JOINS)
            yield found
        space.clear()

    def _distances(self, source: int, gone: Array) -> Array:
        """The least cost of a path from a face to each face; -1 for faces out of reach."""
        starts, darts, face, _, cost = self._links
        ends = face[darts ^ 1]
        lengths = np.where(gone[ends], np.inf, cost[darts >> 1])
        network = sp.csr_array((lengths, ends, starts), shape=(self.dual.faces, self.dual.faces))
        far = sp.csgraph.dijkstra(network, indices=source)
        far = np.where(far < 2.0**53, far, far * (1.0 - ROUNDED))  # never too long
        return np.where(np.isfinite(far), far, -1).astype(np.int64)

    def _separates(self, edges: Array) -> bool:
        """Whether a cycle separates the pairs that it must, and no other."""
        if not self.must_link and not self.cannot_link:
            return True
        side = self.dual.sides(edges)
        return all(side[a] == side[b] for a, b in self.must_link) and all(
            side[a] != side[b] for a, b in self.cannot_link
        )


def _grouped(
    group: Array, total: Array, groups: int, pause: Callable[[], None] | None
) -> tuple[Array, Array]:
    """The order of the paths by group, then by sum, and the start of each group in it."""
    ones = np.ones(len(group), np.bool_)
    table = sp.csr_array((ones, (group, np.arange(len(group)))), shape=(groups, len(group)))
    order, begins = table.indices.astype(np.int64), table.indptr.astype(np.int64)
    first = 0
    while first < groups:
        last = max(first + 1, int(np.searchsorted(begins, begins[first] + _SORTED, side="right")) - 1)
        if pause is not None:
            pause()
        some = order[begins[first] : begins[last]]
        order[begins[first] : begins[last]] = some[np.lexsort((total[some], group[some]))]
        first = last
    return order, begins


class _Space:
    """The paths of one start, in arrays that grow, and the search for them."""

    def __init__(self, faces: int) -> None:
        trail, pointer = np.zeros(faces + 1, np.int64), np.zeros(faces + 1, np.int64)
        self.walk = _Walk(trail, pointer, np.zeros(faces, np.bool_), np.zeros(2, np.int64))
        self.now, self.stamp = self.walk.now, np.full(faces, -1, np.int64)
        kinds = (np.int32, np.int64, np.int64, np.float64, np.int8, np.int32, np.int32, np.int32)
        self.paths = _Paths(*(np.empty(1 << 16, kind) for kind in kinds))

    def begin(self, start: int, first: int) -> None:
        """Begin with the empty path at a face whose darts begin at `first`."""
        for column, value in zip(self.paths, (start, 0, 0, 0.0, 3, 0, -1, -1), strict=True):
            column[0] = value
        self.walk.used[:] = False
        self.walk.used[start] = True
        self.stamp[:] = -1
        self.now[:] = 1, 0
        self.walk.trail[0], self.walk.pointer[0] = 0, first

    def grow(self) -> None:
        """Double the space, if the memory limit of the run allows it."""
        if len(self.paths.at) >= _LARGEST:
            raise MemoryError(f"more than {_LARGEST} paths of one start face are not numbered")
        memory_budget().reserve(2 * sum(column.nbytes for column in self.paths))
        self.paths = _Paths(*(np.concatenate([column, np.empty_like(column)]) for column in self.paths))

    def clear(self) -> None:
        """Give back large arrays."""
        if len(self.paths.at) > 1 << 22:
            self.paths = _Paths(*(column[: 1 << 16].copy() for column in self.paths))
