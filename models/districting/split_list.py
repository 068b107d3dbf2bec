"""All districts of small reduced cost whose complement is disconnected, by its components, in integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import networkx as nx
import numpy as np

from forcopt.arrays import Array
from forcopt.models.districting.bond_list import BondList, greatest

__all__ = ["greatest_cost", "split_districts"]

_MOST = 100_000
"""Components of complements that are combined."""

_TENTHS = (1, 2, 4)
"""The share of a boundary's cost that a minimum cut charges."""

_RATES = 8
"""Rates of the weight that are tried for each share, and again around the best one."""


def greatest_cost(bonds: BondList, limit: int, heaviest: int, pause: Callable[[], None] | None = None) -> int:
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
    bonds: BondList,
    low: int,
    high: int,
    parts: int,
    limit: int,
    fee: int,
    pause: Callable[[], None],
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
    values, costs = (
        np.concatenate([getattr(some, field) for some in lists.values()])[order]
        for field in ("values", "costs")
    )
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
