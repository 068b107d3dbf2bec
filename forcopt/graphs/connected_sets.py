"""Connected vertex sets within weight bounds whose boundary costs little, less prizes for their vertices.

This is the pricing problem of districting by columns. The prizes are the shadow prices of the vertices; the
wanted sets have small reduced costs. A set grows from its first vertex. One branch takes a neighbour in. The
other excludes it and pays for the edges to it, so that the payment only grows. A branch
ends when the prizes that still fit cannot make up for the payment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.compiled import njit
from forcopt.graphs.tolerances import SLACK
from forcopt.graphs.weighted import WeightedGraph

_FREE, _IN, _OUT, _FAR = 0, 1, 2, 3
_RATES = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)


class _Task(NamedTuple):
    """Which sets are wanted.

    Attributes
    ----------
    starts, ends, costs : Array
        The edges from v go to ``ends[starts[v]:starts[v + 1]]`` and have these costs.
    weight, prize : Array
        Of each vertex.
    rates : Array
        Prices of capacity for the bound.
    low, high, parts : int
        Bounds on the weight of a set, and the number of parts of a partition.
    threshold : float
        The largest cost less prizes.
    """

    starts: Array
    ends: Array
    costs: Array
    weight: Array
    prize: Array
    rates: Array
    low: int
    high: int
    parts: int
    threshold: float


class _Search(NamedTuple):
    """Where the search is.

    Attributes
    ----------
    status : Array
        Of each vertex: free, in, out, or too far from the root.
    joined, touching, severed : Array
        For each vertex the number of neighbours that are in, the cost of the edges to them, and that of the
        edges to neighbours ruled out.
    trail : Array
        The vertices decided after the root.
    people, spent, border, gains : Array
        For each length of the trail the weight that is in, the cost paid, the cost of the edges to free
        neighbours, and the prizes won.
    hope : Array
        For each length of the trail and each rate, the largest gain of free vertices if capacity had that
        price.
    now : Array
        The root, the length of the trail, and whether a new branch has just been entered.
    """

    status: Array
    joined: Array
    touching: Array
    severed: Array
    trail: Array
    people: Array
    spent: Array
    border: Array
    gains: Array
    hope: Array
    now: Array


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
    while True:  # the distances of done vertices are final
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
def _rest_splits(seen, task, status):  # type: ignore[no-untyped-def]
    """Whether the weights of the components outside the set allow exactly the other parts."""
    starts, ends, weight = task.starts, task.ends, task.weight
    low, high, parts = task.low, task.high, task.parts - 1
    n = len(weight)
    queue = np.zeros(n, np.int64)
    fewest, most = 0, 0
    seen[:] = False
    for s in range(n):  # the components seen so far allow `fewest` to `most` parts
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
def _update_neighbours(v, kind, sign, task, search, level):  # type: ignore[no-untyped-def]
    """Update the neighbours of v after v is taken in (kind 1) or ruled out (kind 2), or after this is undone.

    Returns
    -------
    int
        The cost of the edges from v to free neighbours.
    """
    ends, costs, weight, prize, rates = task.ends, task.costs, task.weight, task.prize, task.rates
    status, joined, touching = search.status, search.joined, search.touching
    severed, hope = search.severed, search.hope
    free = 0
    for a in range(task.starts[v], task.starts[v + 1]):  # hope counts v's neighbours before a as updated
        x = ends[a]
        change = sign * costs[a]
        if sign > 0 and status[x] == _FREE:
            free += costs[a]
            before = prize[x] + touching[x] - severed[x]
            after = before + (change if kind == 1 else -change)
            for i in range(len(rates)):
                spare = rates[i] * weight[x]
                hope[level, i] += max(0.0, after - spare) - max(0.0, before - spare)
        if kind == 1:
            touching[x] += change
            joined[x] += sign
        else:
            severed[x] += change
    return free


@njit(cache=True)
def _leave_root(root, task, search):  # type: ignore[no-untyped-def]
    """Undo the choice of a root, and rule it out: no later set may hold it."""
    status = search.status
    if status[root] == _IN:
        _update_neighbours(root, 1, -1, task, search, 0)
        for v in range(root + 1, len(status)):
            if status[v] == _FAR:
                status[v] = _FREE
                _update_neighbours(v, 2, -1, task, search, 0)
    status[root] = _OUT
    _update_neighbours(root, 2, 1, task, search, 0)


@njit(cache=True)
def _enter_root(root, far, task, search):  # type: ignore[no-untyped-def]
    """Take a vertex in as the first of a set, without those too far; False if none is large enough."""
    weight, prize, rates = task.weight, task.prize, task.rates
    status, severed, hope = search.status, search.severed, search.hope
    if weight[root] > task.high:
        return False
    if _distances(far, root, task.starts, task.ends, weight, status, task.high) < task.low:
        return False
    status[root] = _IN
    for v in range(root + 1, len(status)):
        if far[v] > task.high:
            status[v] = _FAR
            _update_neighbours(v, 2, 1, task, search, 0)
    for i in range(len(rates)):
        hope[0, i] = 0.0
        for v in range(root + 1, len(status)):
            if status[v] == _FREE:
                hope[0, i] += max(0.0, prize[v] - severed[v] - rates[i] * weight[v])
    search.people[0], search.spent[0], search.gains[0] = weight[root], severed[root], prize[root]
    search.border[0] = _update_neighbours(root, 1, 1, task, search, 0)
    return True


@njit(cache=True)
def _is_hopeless(most, depth, task, search):  # type: ignore[no-untyped-def]
    """Whether at some price of capacity the free vertices cannot make up for what is paid."""
    left = task.high - search.people[depth]
    hopeless = False
    for i in range(len(task.rates)):
        hopeless = hopeless or most + task.rates[i] * left + search.hope[depth, i] < 0
    return hopeless


@njit(cache=True)
def _dearest_neighbour(root, search):  # type: ignore[no-untyped-def]
    """The free neighbour of the set with the largest cost of edges to it; -1 if there is none."""
    status, joined, touching = search.status, search.joined, search.touching
    found, dearest = -1, -1
    for x in range(root + 1, len(status)):
        if status[x] == _FREE and joined[x] > 0 and touching[x] > dearest:
            found, dearest = x, touching[x]
    return found


@njit(cache=True)
def _decide(v, kind, depth, task, search):  # type: ignore[no-untyped-def]
    """Take a vertex in or rule it out, as the last of a trail of this length."""
    weight, prize, rates, hope = task.weight, task.prize, task.rates, search.hope
    touching, severed = search.touching[v], search.severed[v]
    search.status[v] = kind
    for i in range(len(rates)):
        hope[depth, i] = hope[depth - 1, i] - max(0.0, prize[v] + touching - severed - rates[i] * weight[v])
    free = _update_neighbours(v, kind, 1, task, search, depth)
    people, spent, border = search.people, search.spent, search.border
    taken = kind == _IN
    people[depth] = people[depth - 1] + (weight[v] if taken else 0)
    spent[depth] = spent[depth - 1] + (severed if taken else touching)
    border[depth] = border[depth - 1] - touching + (free if taken else 0)
    search.gains[depth] = search.gains[depth - 1] + (prize[v] if taken else 0.0)


@njit(cache=True)
def _grow(task, search, found, paid, budget):  # type: ignore[no-untyped-def]
    """Look at up to `budget` branches; write the sets found and their costs.

    Returns
    -------
    tuple
        The number of sets, and what is left of the budget.
    """
    n = len(task.weight)
    count = 0
    reach, far = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    status, trail = search.status, search.trail
    root, depth, fresh = search.now
    # All sets are found whose first vertex precedes the root, or that come before the trail.
    while budget > 0 and count < len(found):
        budget -= 1
        if not fresh and depth == 0:
            if root >= 0:
                _leave_root(root, task, search)
            root += 1
            if root == n:
                break
            fresh = 1 if _enter_root(root, far, task, search) else 0
            continue
        if fresh:
            fresh = 0
            people, spent = search.people[depth], search.spent[depth]
            # Every edge to a free neighbour is paid for unless the neighbour, if there is room, is taken in.
            most = task.threshold + search.gains[depth] - spent - search.border[depth]
            if _is_hopeless(most, depth, task, search):
                continue
            v = _dearest_neighbour(root, search)
            if v < 0:
                if people >= task.low and most >= 0 and _rest_splits(reach, task, status):
                    found[count] = status == _IN
                    paid[count] = spent
                    count += 1
                continue
            trail[depth] = v
            depth += 1
            kind = _OUT if people + task.weight[v] > task.high else _IN
        else:
            v = trail[depth - 1]
            _update_neighbours(v, status[v], -1, task, search, depth)
            if status[v] == _OUT:
                status[v] = _FREE
                depth -= 1
                continue
            kind = _OUT
        _decide(v, kind, depth, task, search)
        fresh = 1
    search.now[:] = root, depth, fresh
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
        most = threshold + SLACK
        self._task = _Task(starts, ends, costs, graph.weights, gains, rates, low, high, parts, most)
        joined, touching, severed, trail = (np.zeros(n, np.int64) for _ in range(4))
        people, spent, border = (np.zeros(n + 1, np.int64) for _ in range(3))
        self._search = _Search(
            np.zeros(n, np.int8), joined, touching, severed, trail, people, spent, border, np.zeros(n + 1),
            np.zeros((n + 1, len(rates))), np.array([-1, 0, 0], np.int64),
        )  # fmt: skip
        self.looked_at = 0

    @property
    def done(self) -> bool:
        """Whether the search is complete."""
        return int(self._search.now[0]) == len(self._search.status)

    def step(self, budget: int = 1_000_000, most: int = 100_000) -> tuple[Array, Array]:
        """Look at up to `budget` branches.

        Returns
        -------
        tuple[Array, Array]
            The sets found, bool, shape (count, n), at most `most` of them, and the costs of their boundaries.
        """
        found = np.zeros((most, len(self._search.status)), np.bool_)
        paid = np.zeros(most, np.int64)
        count, unused = _grow(self._task, self._search, found, paid, budget)
        self.looked_at += budget - unused
        return found[:count].copy(), paid[:count].copy()
