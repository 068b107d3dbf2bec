"""All districts of small reduced cost, as cycles of the planar dual and as complements of several cycles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from forcopt.arrays import Array
from forcopt.graphs.cut_bound import largest_boundary, least_value, most_within
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.graphs.weighted import WeightedGraph
from forcopt.graphs.window_cycles import WindowCycles
from forcopt.models.districting.tolerances import ROUNDING

_STEP, _FIRST, _QUICK = 2, 8, 50_000
"""The limit on the cost of a cycle rises by the cost of 2 average edges a round, for 2.2 times as many paths;
by that of 8 from a round with fewer paths than the last number."""


class CycleDistricts:
    """The connected vertex sets within weight bounds, by the cost of their boundary less prizes.

    Parameters
    ----------
    graph : WeightedGraph
        Connected and planar, with n vertices.
    low, high : int
        Inclusive bounds on the weight of a district.
    parts : int
        The number of districts of a plan.

    Attributes
    ----------
    cheapest : WindowCycles
        The search of `least_cost`; of two districts, its cycles are plans and keep its links.
    paths : int
        The number of dual paths listed so far.

    Raises
    ------
    DeclarationError
        If the graph is disconnected or not planar.

    Notes
    -----
    Let S be a district, and let C_1 to C_r be the components of its complement. The cut of each C_i is a
    bond: C_i is connected, and so is its complement, which consists of S and components adjacent to S.
    So the cut of S is the disjoint union of r simple cycles of the dual. Sets with r = 1 are listed
    by `WindowCycles.sets`. For r >= 2, each C_i is a union of j whole districts, 1 <= j <= parts - 2, and
    the reduced cost of S is the sum of ``cost(C_i) + prizes(C_i)``, less all prizes. So bonds
    C are listed with this value as a reduced cost, and disjoint ones are combined. The sum of the costs
    is at most the threshold plus the greatest ``prizes(S)``, so one bond costs at most half of that.

    Examples
    --------
    >>> g = WeightedGraph.of([1] * 3, [(0, 1), (1, 2)], [1, 1])
    >>> *_, (sets, costs) = CycleDistricts(g, 1, 1, 3).sets(2.0, np.zeros(3))
    >>> sets.astype(int).tolist(), costs.tolist()  # its complement is disconnected
    ([[0, 1, 0]], [2])
    """

    def __init__(self, graph: WeightedGraph, low: int, high: int, parts: int) -> None:
        self.graph, self.low, self.high, self.parts = graph, low, high, parts
        dual, total = PlanarDual.of(graph), graph.total
        self.usual = 10 * float(graph.costs.mean()) if len(graph.costs) else 0.0
        window = max(low, total - (parts - 1) * high), min(high, total - (parts - 1) * low)
        self.simple = self.cheapest = WindowCycles(dual, *window)
        if parts == 2:
            self.cheapest = WindowCycles(dual, *window, symmetric=True)
        windows: list[tuple[int, int]] = []  # of the weights of j districts, united where they meet
        for j in range(1, parts - 1):
            least, most = j * low, min(j * high, total)
            if windows and least <= windows[-1][1] + 1:
                windows[-1] = (windows[-1][0], max(most, windows[-1][1]))
            elif least <= total:
                windows.append((least, most))
        self.unions = WindowCycles(dual, *windows[0], more=windows[1:]) if windows else None

    @property
    def paths(self) -> int:
        """The number of dual paths listed so far."""
        return sum(search.paths for search in {self.simple, self.cheapest, self.unions} if search is not None)

    def sets(
        self, threshold: float, prizes: Array, pause: Callable[[], None] | None = None
    ) -> Iterator[tuple[Array, Array]]:
        """Give all districts of a reduced cost of at most a threshold.

        Parameters
        ----------
        threshold : float
            The largest ``cost(S) - prizes(S)``.
        prizes : ndarray, shape (n,)
            One for each vertex.
        pause : callable, optional
            Called many times a second; it may raise an exception.

        Yields
        ------
        sets : ndarray of bool, shape (count, n)
            Districts, each once over all batches.
        costs : ndarray of int64, shape (count,)
            The costs of their boundaries.
        """
        most = self._most(threshold, prizes)
        if most >= 0:
            yield from self.simple.sets(most, prizes, threshold, pause=pause)
            yield from self._split(threshold, prizes, most, pause)

    def _split(
        self, threshold: float, prizes: Array, most: int, pause: Callable[[], None] | None
    ) -> Iterator[tuple[Array, Array]]:
        """Give the districts among them whose complement is disconnected; as `sets`."""
        if self.unions is None:
            return
        budget = threshold + float(prizes.sum()) + ROUNDING
        # Beside a bond of j districts and S, the other bonds hold the rest of the weight.
        total, limits = self.graph.total, np.full(len(self.unions.bounds), -np.inf)
        of = np.zeros(self.parts - 1, np.int64)  # the window of the unions of j districts
        for i, (lightest, heaviest) in enumerate(self.unions.bounds):
            for j in range(1, self.parts - 1):
                if lightest <= j * self.high and j * self.low <= heaviest:
                    rest = max(self.low, total - (j + 1) * self.high)
                    limits[i] = max(limits[i], budget - least_value(self.graph, prizes, rest))
                    of[j] = i
        # Of the bonds around S, one costs at most half. least[q]: of bonds with q districts together.
        cheapest = np.full(len(limits), most // 2 + 1)
        for sets, costs in self.unions.sets(most // 2, -prizes, limits, pause=pause):
            weights = sets @ self.graph.weights
            for i, (lightest, heaviest) in enumerate(self.unions.bounds):
                inside = (weights >= lightest) & (weights <= heaviest)
                cheapest[i] = min(cheapest[i], costs[inside].min(initial=most))
        if cheapest.min() > most // 2:
            return
        least_cost = [0] + [most + 1] * (self.parts - 1)
        for q in range(1, self.parts):
            for j in range(1, min(q, self.parts - 2) + 1):
                least_cost[q] = min(least_cost[q], least_cost[q - j] + int(cheapest[of[j]]))
        # least[q]: of the values of bonds with q districts together, as far as their lists are known.
        batches: list[tuple[Array, ...]] = []  # bits, costs, weights, values
        known = np.full(len(limits), -np.inf)
        least = [0.0] + [-np.inf] * (self.parts - 1)
        caps = [
            max(most - least_cost[self.parts - 1 - j] for j in np.flatnonzero(of == i) if j > 0)
            for i in range(len(limits))
        ]
        for i in np.argsort(caps, kind="stable"):
            room = max(budget - least[self.parts - 1 - j] for j in np.flatnonzero(of == i) if j > 0)
            only = np.where(np.arange(len(limits)) == i, np.minimum(limits, room), -np.inf)
            near = self.unions.sets(caps[i], -prizes, only, pause=pause) if room > -np.inf else ()
            known[i] = np.inf
            for sets, costs in near:
                values = costs + sets @ prizes
                known[i] = values.min(initial=known[i])
                batches.append((np.packbits(sets, axis=1), costs, sets @ self.graph.weights, values))
            for q in range(1, self.parts):
                pairs = [(least[q - j], known[of[j]]) for j in range(1, min(q, self.parts - 2) + 1)]
                least[q] = min(np.inf if np.inf in pair else sum(pair) for pair in pairs)
        if not batches:
            return
        bits, paid, weights, value = (np.concatenate(column) for column in zip(*batches, strict=True))
        batches.clear()
        places, numbers = [], []  # a weight may fit several numbers of districts
        for j in range(1, self.parts - 1):
            fits = (weights >= j * self.low) & (weights <= j * self.high)
            places.append(np.flatnonzero(fits & (value <= budget - least[self.parts - 1 - j])))
            numbers.append(np.full(len(places[-1]), j))
        at, number = np.concatenate(places), np.concatenate(numbers)
        order = np.argsort(value[at] / number, kind="stable")
        at, number = at[order], number[order]
        bits, paid, value = bits[at], paid[at], value[at]
        mean, reserve, size = value / number, np.array(least), self.graph.size
        u, w = self.graph.edges.T
        found: dict[bytes, tuple[Array, int]] = {}  # by the set

        def combine(first: int, union: Array, spent: float, cost: int, left: int) -> None:
            """Add bonds with `left` districts in sum, from the position `first` on, apart from the union."""
            if pause is not None:
                pause()
            if left == 0:
                rest = ~union
                inside = self.low <= self.graph.weights[rest].sum() <= self.high
                if inside and len(self.graph.components(np.flatnonzero(rest).tolist())) == 1:
                    found[rest.tobytes()] = (rest, cost)
                return
            # The means of the values by district rise, so the first one is at most that of all that is left.
            some = slice(first, int(np.searchsorted(mean, (budget - spent) / left, side="right")))
            fits = (number[some] <= left) & (cost + paid[some] <= most)
            fits &= spent + value[some] + reserve[(left - number[some]).clip(min=0)] <= budget
            border = union.copy()
            border[u[union[w]]] = True
            border[w[union[u]]] = True
            at = first + np.flatnonzero(fits)
            for i in at[~(bits[at] & np.packbits(border)).any(axis=1)].tolist():
                more = union | np.unpackbits(bits[i], count=size).view(np.bool_)
                combine(i + 1, more, spent + float(value[i]), cost + int(paid[i]), left - int(number[i]))

        combine(0, np.zeros(size, np.bool_), 0.0, 0, self.parts - 1)
        if found:
            yield np.array([s for s, _ in found.values()]), np.array([c for _, c in found.values()], np.int64)

    def least_cost(
        self, pause: Callable[[], None] | None = None, enough: Callable[[], float] = lambda: np.inf
    ) -> Iterator[tuple[int, Array | None]]:
        """Give rising lower bounds on the cost of a district; the last is the least cost of a simple one.

        Parameters
        ----------
        pause : callable, optional
            See `sets`.
        enough : callable, optional
            Bounds beyond its value are not sought.

        Yields
        ------
        least : int
            No district costs less.
        sides : ndarray of int or None
            The sides of the cheapest simple cycle, with the last bound.

        Notes
        -----
        A limit rises until a simple cycle encloses a district. A district with a disconnected complement
        costs at least twice the least cost of a bond of whole districts.
        """
        costs = self.graph.costs
        edge, limit, bond, step = max(1.0, float(costs.mean())), 0, None, _FIRST
        while limit <= costs.sum():
            before, most = self.paths, int(np.ceil(min(enough(), costs.sum() + 2))) - 1
            limit = max(limit + 1, min(limit + int(step * edge), most))
            # The last cycle is the cheapest.
            cycle = next(iter(deque(self.cheapest.search(limit, pause=pause), 1)), None)
            if bond is None:
                found = [] if self.unions is None else self.unions.search(limit, pause=pause)
                bond = min((c for c, _ in found), default=None)
            several = np.inf if self.unions is None else 2 * (limit + 1 if bond is None else bond)
            least = int(min(limit + 1 if cycle is None else cycle[0], several))
            yield least, None if cycle is None else self.cheapest.dual.sides(cycle[1])
            if cycle is not None or several <= limit:
                return
            step = _FIRST if self.paths - before < _QUICK else _STEP

    def _most(self, threshold: float, prizes: Array) -> int:
        """The greatest cost of a district of a reduced cost of at most a threshold."""
        first = threshold + most_within(prizes, self.graph.weights, self.high)
        if first > self.usual:
            first = largest_boundary(self.graph, prizes, threshold, self.low, self.high, first)
        return int(np.floor(first + ROUNDING))
