"""All districts of small reduced cost, as cycles of the planar dual and as complements of several cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from forcopt.arrays import Array
from forcopt.graphs.cut_bound import largest_boundary, least_value
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.graphs.weighted import WeightedGraph
from forcopt.graphs.window_cycles import WindowCycles

__all__ = ["CycleDistricts"]


def _most_prizes(prizes: Array, weights: Array, limit: int) -> float:
    """Bound ``prizes(S)`` over sets S of at most a weight: the fractional knapsack."""
    value = float(prizes[weights == 0].clip(min=0).sum())
    at = np.flatnonzero((weights > 0) & (prizes > 0))
    at = at[np.argsort(-prizes[at] / weights[at], kind="stable")]
    before = np.cumsum(weights[at]) - weights[at]
    return value + float(((limit - before) / weights[at]).clip(0.0, 1.0) @ prizes[at])


def _least_sums(least: dict[int, float], parts: int) -> list[float]:
    """The least sum of the values of bonds with q districts together, q < parts, by the least for each."""
    sums = [0.0] + [np.inf] * (parts - 1)
    for q in range(1, parts):
        sums[q] = min((sums[q - j] + value for j, value in least.items() if j <= q), default=np.inf)
    return sums


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
    >>> sets, costs = next(CycleDistricts(g, 1, 1, 3).split(2.0, np.zeros(3)))
    >>> sets.astype(int).tolist(), costs.tolist()
    ([[0, 1, 0]], [2])
    """

    def __init__(self, graph: WeightedGraph, low: int, high: int, parts: int) -> None:
        self.graph, self.low, self.high, self.parts = graph, low, high, parts
        dual, total = PlanarDual.of(graph), graph.total
        self.usual = 10 * float(graph.costs.mean()) if len(graph.costs) else 0.0
        self.simple = WindowCycles(
            dual, max(low, total - (parts - 1) * high), min(high, total - (parts - 1) * low)
        )
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
        return self.simple.paths + (0 if self.unions is None else self.unions.paths)

    def sets(
        self,
        threshold: float,
        prizes: Array,
        pause: Callable[[], None] | None = None,
        cap: int | None = None,
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
        cap : int, optional
            The greatest cost of a boundary.

        Yields
        ------
        sets : ndarray of bool, shape (count, n)
            Districts, each once over all batches.
        costs : ndarray of int64, shape (count,)
            The costs of their boundaries.
        """
        most = self._most(threshold, prizes, cap)
        if most >= 0:
            yield from self.simple.sets(most, prizes, threshold, pause=pause)
        yield from self.split(threshold, prizes, pause, most)

    def split(
        self,
        threshold: float,
        prizes: Array,
        pause: Callable[[], None] | None = None,
        cap: int | None = None,
    ) -> Iterator[tuple[Array, Array]]:
        """Give the districts among them whose complement is disconnected; as `sets`."""
        if self.unions is None:
            return
        budget, most = threshold + float(prizes.sum()) + 1e-6, self._most(threshold, prizes, cap)
        # Bonds are disjoint, so the prizes of the others sum to at least the sum of the negative prizes.
        below = float(prizes.clip(max=0).sum())
        # Beside a bond of j districts and S, the other bonds hold the rest of the weight.
        total, limits = self.graph.total, np.full(len(self.unions.bounds), -np.inf)
        for i, (lightest, heaviest) in enumerate(self.unions.bounds):
            for j in range(1, self.parts - 1):
                if lightest <= j * self.high and j * self.low <= heaviest:
                    rest = max(self.low, total - (j + 1) * self.high)
                    limits[i] = max(limits[i], budget - least_value(self.graph, prizes, rest))
        batches = list(self.unions.sets(most // 2, -prizes, limits, pause=pause))
        bonds = self._by_districts(batches, prizes)
        # At most one bond costs more than half, and the others are listed now.
        values, costs = (
            _least_sums({j: float(rows[c].min()) for j, rows in bonds.items()}, self.parts) for c in (2, 1)
        )
        most_of_one = -1
        for i, (lightest, heaviest) in enumerate(self.unions.bounds):
            limits[i] = -np.inf
            for j in range(1, self.parts - 1):
                rest = self.parts - 1 - j
                if lightest <= j * self.high and j * self.low <= heaviest and np.isfinite(costs[rest]):
                    limits[i] = max(limits[i], budget - values[rest])
                    most_of_one = max(most_of_one, int(most - costs[rest]))
        if most_of_one > most // 2:
            longer = self.unions.sets(most_of_one, -prizes, limits, pause=pause)
            batches += [(sets[paid > most // 2], paid[paid > most // 2]) for sets, paid in longer]
            bonds = self._by_districts(batches, prizes)
        least = _least_sums({j: float(rows[2].min()) for j, rows in bonds.items()}, self.parts)
        pieces = []
        for j, (sets, paid, value) in bonds.items():
            near = value <= budget - least[self.parts - 1 - j]
            pieces += [(v, j, s, int(c)) for v, s, c in zip(value[near], sets[near], paid[near], strict=True)]
        pieces.sort(key=lambda piece: (piece[0], piece[1]))
        u, w = self.graph.edges.T
        found: dict[bytes, tuple[Array, int]] = {}  # by the set: weights may fit several numbers of districts

        def combine(first: int, union: Array, value: float, cost: int, left: int) -> None:
            """Add bonds with `left` districts in sum, from the position `first` on, apart from the union."""
            if pause is not None:
                pause()
            if left == 0:
                rest = ~union
                inside = self.low <= self.graph.weights[rest].sum() <= self.high
                if inside and len(self.graph.components(np.flatnonzero(rest).tolist())) == 1:
                    found[rest.tobytes()] = (rest, cost)
                return
            border = union.copy()
            border[u[union[w]]] = True
            border[w[union[u]]] = True
            for i in range(first, len(pieces)):
                v, j, members, paid = pieces[i]
                if value + v + below > budget:
                    break
                if (
                    j <= left and value + v + least[left - j] <= budget and cost + paid <= most
                    and not (members & border).any()
                ):  # fmt: skip
                    combine(i + 1, union | members, value + float(v), cost + paid, left - j)

        combine(0, np.zeros(self.graph.size, np.bool_), 0.0, 0, self.parts - 1)
        if found:
            yield np.array([s for s, _ in found.values()]), np.array([c for _, c in found.values()], np.int64)

    def _by_districts(
        self, batches: list[tuple[Array, Array]], prizes: Array
    ) -> dict[int, tuple[Array, Array, Array]]:
        """The sets, costs and values of bonds by each number of districts that their weights fit."""
        out = {}
        if batches:
            sets, costs = (np.concatenate(column) for column in zip(*batches, strict=True))
            weights = sets @ self.graph.weights
            for j in range(1, self.parts - 1):
                fits = (weights >= j * self.low) & (weights <= j * self.high)
                if fits.any():
                    out[j] = sets[fits], costs[fits], costs[fits] + sets[fits] @ prizes
        return out

    def least_cost(self, pause: Callable[[], None] | None = None) -> Iterator[int]:
        """Give rising lower bounds on the cost of a district; the last is the least cost of a simple one.

        Parameters
        ----------
        pause : callable, optional
            See `sets`.

        Yields
        ------
        int
            No district costs less.

        Notes
        -----
        A limit rises until a simple cycle encloses a district. A district with a disconnected complement
        costs at least twice the least cost of a bond of whole districts.
        """
        costs = self.graph.costs
        step, limit, bond = max(1, int(costs.mean())), 0, None
        while limit <= costs.sum():
            limit += step
            district = min((c for c, _ in self.simple.search(limit, pause=pause)), default=None)
            if bond is None:
                found = [] if self.unions is None else self.unions.search(limit, pause=pause)
                bond = min((c for c, _ in found), default=None)
            several = np.inf if self.unions is None else 2 * (limit + 1 if bond is None else bond)
            yield int(min(limit + 1 if district is None else district, several))
            if district is not None or several <= limit:
                return

    def _most(self, threshold: float, prizes: Array, cap: int | None) -> int:
        """The greatest cost, up to a cap, of a district of a reduced cost of at most a threshold."""
        first = threshold + _most_prizes(prizes, self.graph.weights, self.high)
        if cap is not None:
            first = min(first, float(cap))
        elif first > self.usual:
            first = largest_boundary(self.graph, prizes, threshold, self.low, self.high, first)
        return int(np.floor(first + 1e-6))
