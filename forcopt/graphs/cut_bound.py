"""Bounds on the boundary costs and prices of vertex sets within weight bounds, by minimum cuts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.graphs.tolerances import LEAST_PRICE
from forcopt.graphs.weighted import WeightedGraph

_SHARES = (0.1, 0.35, 0.7)
"""The shares of the boundary cost that are charged in the relaxation, beside 0."""

_STEPS = 11
"""Multipliers that are tried for each share."""

_UNIT = 2**22
"""Capacities are integers: the largest gain is worth this number of units."""


def most_within(values: Array, weights: Array, limit: int) -> float:
    """Bound ``values(S)`` over sets S of at most a weight: the fractional knapsack."""
    value = float(values[weights == 0].clip(min=0).sum())
    at = np.flatnonzero((weights > 0) & (values > 0))
    at = at[np.argsort(-values[at] / weights[at], kind="stable")]
    before = np.cumsum(weights[at]) - weights[at]
    return value + float(((limit - before) / weights[at]).clip(0.0, 1.0) @ values[at])


class _BestSets:
    """Maximize ``gains(S) - share * cost(S)`` over all vertex sets S, from above, by a minimum cut."""

    def __init__(self, graph: WeightedGraph) -> None:
        n, (u, v) = graph.size, graph.edges.T
        nodes = np.arange(n)
        self.graph = graph
        rows = np.concatenate([np.full(n, n), nodes, u, v])
        columns = np.concatenate([nodes, np.full(n, n + 1), v, u])
        self.order = np.lexsort((columns, rows))
        starts = np.searchsorted(rows[self.order], np.arange(n + 3))
        self.frame = starts.astype(np.int32), columns[self.order].astype(np.int32)

    def value(self, gains: Array, share: float) -> float:
        """The maximum; rounding only makes it larger."""
        n = self.graph.size
        largest = max(
            float(np.abs(gains).max(initial=0.0)), share * float(self.graph.costs.max(initial=0)), LEAST_PRICE
        )
        # A flow of all units at once must stay below 2**31.
        scale = min(_UNIT, 2**30 / n) / largest
        up = np.ceil(gains * scale).astype(np.int64)
        paid = np.floor(share * self.graph.costs * scale).astype(np.int64)
        capacities = np.concatenate([up.clip(min=0), (-up).clip(min=0), paid, paid])
        starts, columns = self.frame
        capacity = capacities[self.order].astype(np.int32)
        network = sp.csr_array((capacity, columns, starts), shape=(n + 2, n + 2))
        cut = int(sp.csgraph.maximum_flow(network, n, n + 1).flow_value)
        return (int(up.clip(min=0).sum()) - cut) / scale


def largest_boundary(
    graph: WeightedGraph, prizes: Array, threshold: float, low: int, high: int, first: float
) -> float:
    """Bound ``cost(S)`` over the sets S with ``cost(S) - prizes(S) <= threshold`` and a weight in a window.

    Parameters
    ----------
    graph : WeightedGraph
        With n vertices, weights and costs.
    prizes : ndarray, shape (n,)
        One for each vertex, of any sign.
    threshold : float
        The largest reduced cost.
    low, high : int
        Inclusive bounds on the weight.
    first : float
        A bound that is known.

    Returns
    -------
    float
        At most `first`.

    Notes
    -----
    For a share t in [0, 1), ``(1 - t) cost(S) <= threshold + prizes(S) - t cost(S)``. The right-hand side is
    maximized over all sets within the window. The window is relaxed by a multiplier y: a term
    ``y (high - weight(S))`` for y >= 0, ``y (low - weight(S))`` for y < 0, is not negative within the window.
    The maximum of ``prizes(S) - y weight(S) - t cost(S)`` over all sets is a minimum cut, since the cost of a
    boundary is submodular. The bound is convex in y; Brent's search finds a good one, and every y
    gives a valid bound. With t = 0 the best y gives the fractional knapsack.

    References
    ----------
    .. [1] Picard, Maximal closure of a graph and applications to combinatorial problems, Management Science
       1976.

    Examples
    --------
    >>> path = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3)], [1, 1, 1])
    >>> bound = largest_boundary(path, np.array([1.0, 0, 1, 0]), 0.0, 1, 2, 9.0)
    >>> bool(1 <= bound < 2)  # {0} and {2, 3} attain 1
    True
    """
    if graph.size < 3 or not len(graph.edges):
        return first
    best_sets = _BestSets(graph)
    rates = prizes[graph.weights > 0] / graph.weights[graph.weights > 0]
    if not len(rates):
        return first
    best = first
    for share in _SHARES:

        def bound(y: float, share: float = share) -> float:
            most = best_sets.value(prizes - y * graph.weights, share) + y * (high if y >= 0 else low)
            return (threshold + most) / (1 - share)

        left, right = min(0.0, float(rates.min())), max(0.0, float(np.quantile(rates, 0.95)))
        best = min(best, _least(bound, left, right))
    return best


def _least(value: Callable[[float], float], left: float, right: float) -> float:
    """The least of some values between two ends, by Brent's search."""
    options = {"maxiter": _STEPS}
    found = scipy.optimize.minimize_scalar(value, bounds=(left, right), method="bounded", options=options)
    return float(found.fun)


def least_value(graph: WeightedGraph, prices: Array, low: int) -> float:
    """Bound ``cost(S) + prices(S)`` from below over the vertex sets S of at least a weight.

    Parameters
    ----------
    graph : WeightedGraph
        With n vertices, weights and costs.
    prices : ndarray, shape (n,)
        One for each vertex, of any sign.
    low : int
        The least weight.

    Returns
    -------
    float
        See `largest_boundary`: the weight is relaxed by a multiplier, and the rest is a minimum cut.

    Examples
    --------
    >>> path = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3)], [1, 1, 1])
    >>> bound = least_value(path, np.array([1.0, 2, 3, 4]), 2)
    >>> bool(3.99 < bound <= 4)  # {0, 1} attains 4
    True
    """
    best_sets = _BestSets(graph)

    def negated(y: float) -> float:
        return best_sets.value(y * graph.weights - prices, 1.0) - y * low

    rates = prices[graph.weights > 0] / graph.weights[graph.weights > 0]
    largest = 2 * max(float(np.abs(rates).max(initial=0.0)), LEAST_PRICE)
    return -min(negated(0.0), _least(negated, 0.0, largest))
