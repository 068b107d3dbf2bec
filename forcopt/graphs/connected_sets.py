"""Connected vertex sets within weight bounds whose boundary costs little, less prizes for their vertices.

This is the pricing problem of districting by columns. The prizes are the shadow prices of the vertices; the
wanted sets have small reduced costs. A set grows from its first vertex. One branch takes a neighbour in. The
other excludes it and pays for the edges to it, so that the payment only grows. A branch
ends when the prizes that still fit cannot make up for the payment.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from forcopt.arrays import Array
from forcopt.graphs.weighted import WeightedGraph

__all__ = ["ConnectedSets"]

_FREE, _IN, _OUT, _FAR = 0, 1, 2, 3
_RATES = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
_SLACK = 1e-6
"""The tolerance of comparisons of sums of prizes, which are floats."""


@njit(cache=True)
def _distances(far, root, starts, ends, weight, status, high):  # type: ignore[no-untyped-def]
    """The least weight of a path from the root to each vertex, both ends included, around excluded vertices.

    Returns
    -------
    int
        The total weight of the vertices at a distance of at most `high`.
    """
    far[:] = high + 1
    far[root] = weight[root]
    done = np.zeros(len(weight), np.bool_)
    total = 0
    while True:
        u = -1
        for v in range(len(weight)):
            if not done[v] and far[v] <= high and (u < 0 or far[v] < far[u]):
                u = v
        if u < 0:
            return total
        done[u] = True
        total += weight[u]
        for a in range(starts[u], starts[u + 1]):
            v = ends[a]
            if status[v] != _OUT:
                far[v] = min(far[v], far[u] + weight[v])


@njit(cache=True)
def _rest_splits(seen, starts, ends, weight, status, low, high, parts):  # type: ignore[no-untyped-def]
    """Whether the weights of the components outside the set allow exactly `parts` parts."""
    n = len(weight)
    queue = np.zeros(n, np.int64)
    fewest, most = 0, 0
    seen[:] = False
    for s in range(n):
        if seen[s] or status[s] == _IN:
            continue
        seen[s] = True
        queue[0], length, total, at = s, 1, 0, 0
        while at < length:
            v = queue[at]
            at += 1
            total += weight[v]
            for a in range(starts[v], starts[v + 1]):
                x = ends[a]
                if not seen[x] and status[x] != _IN:
                    seen[x] = True
                    queue[length] = x
                    length += 1
        least = max(1, (total + high - 1) // high) if high > 0 else 1
        largest = min(length, total // low) if low > 0 else length
        if least > largest:
            return False
        fewest, most = fewest + least, most + largest
    return fewest <= parts <= most


@njit(cache=True, inline="always")
def _update_neighbours(v, kind, sign, starts, ends, costs, weight, prize, rates, status, near, hope, level):  # type: ignore[no-untyped-def]
    """Update the neighbours of v after v is taken in (kind 1) or ruled out (kind 2), or after this is undone.

    Returns
    -------
    int
        The cost of the edges from v to free neighbours.
    """
    free = 0
    for a in range(starts[v], starts[v + 1]):
        x = ends[a]
        change = sign * costs[a]
        if sign > 0 and status[x] == _FREE:
            free += costs[a]
            before = prize[x] + near[x, 1] - near[x, 2]
            after = before + (change if kind == 1 else -change)
            for i in range(len(rates)):
                spare = rates[i] * weight[x]
                hope[level, i] += max(0.0, after - spare) - max(0.0, before - spare)
        near[x, kind] += change
        if kind == 1:
            near[x, 0] += sign
    return free


@njit(cache=True)
def _grow(  # type: ignore[no-untyped-def]
    starts, ends, costs, weight, prize, rates, low, high, parts,
    threshold, status, near, trail, sums, gains, hope, now, found, paid, budget,
):  # fmt: skip
    """Look at up to `budget` branches.

    `status` marks vertices as taken in or ruled out; `near[v]` holds how many neighbours of v are in,
    the cost of the edges to them, and that of the edges to neighbours ruled out; `trail` the vertices decided
    after the root; `now` the root, the length of the trail, and whether a new branch has just been entered.
    For each length of the trail, `sums` holds the weight in, the cost paid and that of the edges to free
    neighbours, `gains` the prizes won, and `hope` for each rate the largest gain of free vertices
    if capacity had that price.
    """
    n = len(weight)
    count = 0
    reach, far = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    root, depth, fresh = now
    while budget > 0 and count < len(found):
        budget -= 1
        if not fresh and depth == 0:  # this root is done; no later set may hold it
            if root >= 0:
                if status[root] == _IN:
                    _update_neighbours(
                        root, 1, -1, starts, ends, costs, weight, prize, rates, status, near, hope, 0
                    )
                    for v in range(root + 1, n):
                        if status[v] == _FAR:
                            status[v] = _FREE
                            _update_neighbours(
                                v, 2, -1, starts, ends, costs, weight, prize, rates, status, near, hope, 0
                            )
                status[root] = _OUT
                _update_neighbours(
                    root, 2, 1, starts, ends, costs, weight, prize, rates, status, near, hope, 0
                )
            root += 1
            if root == n:
                break
            if weight[root] <= high and _distances(far, root, starts, ends, weight, status, high) >= low:
                status[root] = _IN
                for v in range(root + 1, n):
                    if far[v] > high:
                        status[v] = _FAR
                        _update_neighbours(
                            v, 2, 1, starts, ends, costs, weight, prize, rates, status, near, hope, 0
                        )
                for i in range(len(rates)):
                    hope[0, i] = 0.0
                    for v in range(root + 1, n):
                        if status[v] == _FREE:
                            hope[0, i] += max(0.0, prize[v] - near[v, 2] - rates[i] * weight[v])
                sums[0] = weight[root], near[root, 2], 0
                gains[0] = prize[root]
                sums[0, 2] = _update_neighbours(
                    root, 1, 1, starts, ends, costs, weight, prize, rates, status, near, hope, 0
                )
                fresh = 1
            continue
        if fresh:
            fresh = 0
            people, spent, border = sums[depth]
            # Every edge to a free neighbour is paid for unless the neighbour, if there is room, is taken in.
            most = threshold + gains[depth] - spent - border
            hopeless = False
            for i in range(len(rates)):
                hopeless = hopeless or most + rates[i] * (high - people) + hope[depth, i] < 0
            if hopeless:
                continue
            v, dearest = -1, -1
            for x in range(root + 1, n):
                if status[x] == _FREE and near[x, 0] > 0 and near[x, 1] > dearest:
                    v, dearest = x, near[x, 1]
            if v < 0:
                if (
                    people >= low
                    and most >= 0
                    and _rest_splits(reach, starts, ends, weight, status, low, high, parts - 1)
                ):
                    found[count] = status == _IN
                    paid[count] = spent
                    count += 1
                continue
            trail[depth] = v
            depth += 1
            kind = _OUT if people + weight[v] > high else _IN
        else:
            v = trail[depth - 1]
            _update_neighbours(
                v, status[v], -1, starts, ends, costs, weight, prize, rates, status, near, hope, 0
            )
            if status[v] == _OUT:
                status[v] = _FREE
                depth -= 1
                continue
            kind = _OUT
        status[v] = kind
        for i in range(len(rates)):
            spare = rates[i] * weight[v]
            hope[depth, i] = hope[depth - 1, i] - max(0.0, prize[v] + near[v, 1] - near[v, 2] - spare)
        sums[depth] = sums[depth - 1]
        gains[depth] = gains[depth - 1]
        sums[depth, 2] -= near[v, 1]
        free = _update_neighbours(
            v, kind, 1, starts, ends, costs, weight, prize, rates, status, near, hope, depth
        )
        if kind == _IN:
            sums[depth, 0] += weight[v]
            sums[depth, 1] += near[v, 2]
            sums[depth, 2] += free
            gains[depth] += prize[v]
        else:
            sums[depth, 1] += near[v, 1]
        fresh = 1
    now[:] = root, depth, fresh
    return count, budget


class ConnectedSets:
    """The connected vertex sets S of weight `low` to `high` with ``c(boundary) - prizes(S) <= threshold``.

    Of these only sets are given whose complement could be split into ``parts - 1`` connected parts within
    the bounds, by the weights of its components.

    Parameters
    ----------
    graph : WeightedGraph
        With weights and costs. Each set grows from its first vertex.
    low, high : int
        Inclusive bounds on the weight.
    parts : int
        How many parts a partition has.
    threshold : float
        See above.
    prizes : Array, optional
        Of the vertices; none if left out.

    Examples
    --------
    >>> g = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1] * 4)
    >>> sets, costs = ConnectedSets(g, 2, 2, 2, 2).step()
    >>> sorted(np.flatnonzero(s).tolist() for s in sets), costs.tolist()
    ([[0, 1], [0, 3], [1, 2], [2, 3]], [2, 2, 2, 2])
    """

    def __init__(
        self,
        graph: WeightedGraph,
        low: int,
        high: int,
        parts: int,
        threshold: float,
        prizes: Array | None = None,
    ) -> None:
        n = graph.size
        starts, ends, numbers = graph.links
        costs = graph.costs[numbers]
        gains = np.zeros(n) if prizes is None else np.asarray(prizes, float)
        rates = np.array(_RATES) * max(0.0, float(gains.sum())) / max(graph.total, 1)
        self._fixed = (
            starts, ends, costs, graph.weights, gains, rates, low, high, parts, threshold + _SLACK
        )  # fmt: skip
        self._state = (
            np.zeros(n, np.int8),
            np.zeros((n, 3), np.int64),
            np.zeros(n, np.int64),
            np.zeros((n + 1, 3), np.int64),
            np.zeros(n + 1),
            np.zeros((n + 1, len(rates))),
            np.array([-1, 0, 0], np.int64),
        )
        self.looked_at = 0

    @property
    def done(self) -> bool:
        """Whether the search is complete."""
        return int(self._state[-1][0]) == len(self._state[0])

    def step(self, budget: int = 1_000_000, most: int = 100_000) -> tuple[Array, Array]:
        """Look at up to `budget` branches.

        Returns
        -------
        tuple[Array, Array]
            The sets found, bool, shape (count, n), at most `most` of them, and the costs of their boundaries.
        """
        found = np.zeros((most, len(self._state[0])), np.bool_)
        paid = np.zeros(most, np.int64)
        count, unused = _grow(*self._fixed, *self._state, found, paid, budget)
        self.looked_at += budget - unused
        return found[:count].copy(), paid[:count].copy()
