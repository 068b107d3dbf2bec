"""Clusterings of counties: recombination by spanning trees, a bound by prices, a choice near the bound.

Let sigma >= 1 and e_v be numbers with ``e(C) <= sigma s - 1`` for each cluster C of s districts, where e(C)
sums e_v over its counties. Over a clustering of k districts in m clusters they sum to at most
``sigma k - m``. So ``m <= sigma k - e(V)``. With sigma = 1 and the districts that a county fills alone, less
1, this bound holds; a linear program over the clusters known finds better numbers, and clusters that break
the inequality are sought among all connected sets. All of it is in integers, so the bound is exact.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, generator
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.compiled import njit
from forcopt.errors import DeclarationError
from forcopt.language.atoms import positive_part
from forcopt.language.model import Model
from forcopt.models.districting import recom
from forcopt.models.districting.clustering import CountyClustering
from forcopt.models.districting.clustering_bound import ClusteringBound
from forcopt.models.districting.plan import Plan
from forcopt.problem import Outcome
from forcopt.status import Status

_UNIT = 10**6
"""What a whole district is worth in the integers of the bound."""

_TREES = 8
"""Spanning trees that are drawn for each pair of clusters."""

_JOINS, _BELOW = 50, 2
"""One in this number of pairs that no tree divides is joined, if the clusters are that few below the most."""

_STEPS, _STUCK = 500, 40
"""Steps between two looks at the clock, and how often these may pass before a chain begins anew."""

_PATIENCE, _LONG = 200, 1000
"""Looks without a better clustering, before the linear bound and after a choice."""

_SHARE = 2 / 3
"""The linear bound and the choice take at most this share of the time; the rest is for recombination."""

_BOX = 3
"""How many districts the price of a county may be away from the first one."""

_CHARGES = (0.05, 0.01, 0.0)
"""For each district that a price exceeds the population by: such counties make the search long."""

_EACH, _MOST = 50, 300_000
"""New clusters of one first county in a round, and all that are kept, or chosen from at the end."""

_LOOKS = 20_000_000
"""Connected sets to look at for each second that is left, for each first county."""


class _Clusters(NamedTuple):
    """The clusters of a chain, beside its `_State`."""

    seats: Array
    """The number of districts of each."""
    numbers: Array
    """How many there are, and the most so far."""
    best: Array
    """The labels of the most."""


@njit(cache=True)
def _recombine(graph, state, merged, clusters, steps):  # type: ignore[no-untyped-def]
    """Divide clusters, or two neighbours anew, by random trees; seldom join two that no tree divides."""
    seats, count = clusters.seats, clusters.numbers
    for _ in range(steps if len(graph.edges) else 0):
        # Clusters are numbered from 0 to count[0] - 1; their seats sum to those of the plan.
        u, v = graph.edges[recom._random(state.draw, len(graph.edges))]
        a, b = state.label[u], state.label[v]
        both = seats[a] + (seats[b] if a != b else 0)
        if both == 1:
            continue
        alone = a == b
        if alone:
            b = count[0]
        size, top, first = recom._merge(graph, state, merged, a, b), -1, 0
        for _ in range(_TREES):
            recom._uniform_tree(merged, size, state.draw)
            top, first, _ = recom._cut_edge(graph, merged, size, both, state.draw)
            if top >= 0:
                break
        if top >= 0:
            recom._divide(graph, state, merged, size, (top, a, b))
            seats[a], seats[b] = first, both - first
            count[0] += alone
        elif not alone and count[0] > count[1] - _BELOW and recom._random(state.draw, _JOINS) == 0:
            recom._divide(graph, state, merged, size, (merged.order[0], a, b))
            count[0] -= 1
            last = count[0]
            seats[a], seats[b] = both, seats[last]
            state.size[b] = state.size[last] if b != last else 0
            for x in range(state.size[b]):
                w = state.members[last, x]
                state.members[b, x], state.label[w] = w, b
            state.size[last] = 0
        if count[0] > count[1]:
            count[1] = count[0]
            clusters.best[:] = state.label


class _Prices(NamedTuple):
    """The prices of counties, in integers."""

    first: Array
    """Where the neighbours of each county begin in `ends`."""
    ends: Array
    weight: Array
    price: Array
    net: Array
    """The price times the upper bound, less sigma times the population."""
    rank: Array
    """Clusters grow from their county of the least rank."""
    low: int
    high: int
    sigma: int


@njit(cache=True)
def _reachable(prices, root, bar, inside):  # type: ignore[no-untyped-def]
    """Mark the counties that a cluster from a root may have; give the greatest sum of nets above 0."""
    net, rank, n = prices.net, prices.rank, len(prices.net)
    far, done = np.full(n, np.int64(2**62)), np.zeros(n, np.bool_)
    far[root] = 0
    while True:  # distances of done counties are final: paths pay the nets below 0
        u = -1
        for v in range(n):
            if not done[v] and far[v] < 2**62 and (u < 0 or far[v] < far[u]):
                u = v
        if u < 0:
            break
        done[u] = True
        for a in range(prices.first[u], prices.first[u + 1]):
            v = prices.ends[a]
            if rank[v] > rank[root]:
                far[v] = min(far[v], far[u] + max(0, -net[v]))
    most, before = 0, -1
    for v in range(n):
        inside[v] = done[v] and v != root
        most += max(0, net[v]) if inside[v] else 0
    while most != before:  # what may be won decides how far a path may lead
        before = most
        most = 0
        for v in range(n):
            inside[v] = inside[v] and far[v] < net[root] + before - bar
            if inside[v] and net[v] > 0:
                most += net[v]
    return most


@njit(cache=True)
def _grow(prices, root, above, found, count, each, looks):  # type: ignore[no-untyped-def]
    """Write the clusters from a root that are worth more than `above`, up to `each` and a number of looks.

    Give their number, and the looks left: none if there may be more.
    """
    first, ends, net, weight, high = prices.first, prices.ends, prices.net, prices.weight, prices.high
    bar = above * high
    inside = np.zeros(len(net), np.bool_)
    rest = _reachable(prices, root, bar, inside)
    n = len(net)
    queue, at, length = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    queue[0], tail, depth, j, last = root, 1, 0, 0, min(len(found), count + each)
    people, paid, won = 0, 0, 0
    rest += max(net[root], 0)
    while True:
        # The set holds the entries `at` of the queue, which has its neighbours in order of their discovery.
        if j == tail or (depth == 0 and j > 0):
            if depth == 0:
                return count, looks
            depth -= 1
            j = at[depth]
            v = queue[j]
            for x in range(length[depth], tail):
                inside[queue[x]] = True
            tail = length[depth]
            people, paid, won = people - weight[v], paid - prices.price[v], won - net[v]
            rest += max(net[v], 0)
            j += 1
            continue
        looks -= 1
        v = queue[j]
        too_many = prices.sigma == 0 and people + weight[v] > high  # sets are for one district
        if too_many or won + net[v] + rest - max(net[v], 0) <= bar:
            j += 1
            continue
        people, paid, won = people + weight[v], paid + prices.price[v], won + net[v]
        rest -= max(net[v], 0)
        at[depth], length[depth] = j, tail
        depth += 1
        for a in range(first[v], first[v + 1]):
            if inside[ends[a]]:
                inside[ends[a]], queue[tail] = False, ends[a]
                tail += 1
        seats = max(1, (people + high - 1) // high)
        if seats * prices.low <= people and paid - prices.sigma * seats > above:
            for x in range(depth):
                found[count, queue[at[x]]] = True
            count += 1
        if count == last or looks <= 0:
            return count, 0
        j += 1


class _Search:
    """Chains of clusterings in turn, the best of all, and the clusters that they meet."""

    def __init__(self, problem: CountyClustering, random: np.random.Generator, trace: Trace) -> None:
        g, (low, high) = problem.whole.arrays, problem.window
        self.problem, self.random, self.trace, self.known = problem, random, trace, dict[bytes, None]()
        self.map = recom._Map(*g.links, g.edges, g.weights, low, high, True)
        self.whole, self.seats = np.zeros(g.size, np.int64), np.zeros(g.size + 1, np.int64)
        pieces = g.components()
        least, largest = problem.sizes(np.array([g.weights[piece].sum() for piece in pieces]))
        spare, self.most = problem.districts - int(least.sum()), len(pieces)
        for c, piece in enumerate(pieces):
            self.whole[piece] = c
            more = min(spare, int(largest[c] - least[c]))
            self.seats[c], spare = least[c] + more, spare - more
        self.best, self.merged = self.whole, recom._Merged.of(g.size, len(g.edges))
        self.bound = problem.districts - int((problem.sizes(g.weights)[0] - 1).sum())
        self.told()
        self.begin()

    def begin(self) -> None:
        """Begin a chain, with the components as clusters."""
        g, first, count = self.problem.whole.arrays, self.whole, np.full(2, self.whole.max() + 1)
        self.state = recom._State.of(g, first.copy(), len(self.seats), self.random)
        self.clusters, self.idle = _Clusters(self.seats.copy(), count, first.copy()), 0

    def told(self) -> None:
        """Note the number of clusters and the bound."""
        self.trace.add(float(self.most), float(self.bound))

    def sets(self) -> Array:
        """The clusters met, shape (count, n)."""
        n = len(self.best)
        bits = np.frombuffer(b"".join(self.known), np.uint8).reshape(len(self.known), -(-n // 8))
        return np.unpackbits(bits, axis=1, count=n).astype(np.bool_)

    def plan(self) -> Plan:
        return Plan.from_labels(self.problem.parted(self.most), self.best)

    def improve(self, patience: float) -> None:
        """Go on until the bound is met, or for a while without a better clustering; leave stuck chains."""
        idle = 0
        while idle < patience and not self.trace.over and self.most < self.bound:
            before = self.clusters.numbers[1]
            _recombine(self.map, self.state, self.merged, self.clusters, _STEPS)
            for labels in (self.state.label, self.clusters.best) if len(self.known) < _MOST else ():
                sets = labels == np.arange(labels.max() + 1)[:, None]
                self.known |= dict.fromkeys(map(bytes, np.packbits(sets, axis=1)))
            now, idle = int(self.clusters.numbers[1]), idle + 1
            self.idle = self.idle + 1 if now == before else 0
            if now > self.most:
                self.best, self.most, idle = self.clusters.best.copy(), now, 0
                self.told()
            if self.idle == _STUCK:
                self.begin()


class _Bound:
    """The prices of a bound, and the clusters that hold them down."""

    def __init__(self, problem: CountyClustering, sets: Array) -> None:
        self.problem, self.sets, self.graph = problem, sets, problem.whole.arrays
        self.first = problem.sizes(self.graph.weights)[0] - 1
        size = _UNIT * (int(self.first.sum()) + 2 * _BOX * len(self.first)) * max(problem.window[1], 1)
        if size + 2 * _UNIT * self.graph.total >= 2**62:
            raise DeclarationError("the populations are too large for 64-bit integers")
        self.price, self.sigma = self.first * _UNIT, _UNIT

    @property
    def value(self) -> int:
        """The bound that the prices give if no cluster breaks them, in units."""
        return int(self.sigma * self.problem.districts - self.price.sum())

    def solve(self, charge: float, deadline: Deadline) -> None:
        """Take the best prices for the clusters known, with a charge on prices above the population.

        Raises `TimeoutError` if the deadline ends the linear program.
        """
        weights, high = self.graph.weights, self.problem.window[1]
        seats = self.problem.sizes(self.sets @ weights)[0]
        model = Model("prices")
        price = model.variable("price", len(weights), lower=self.first - _BOX, upper=self.first + _BOX)
        sigma = model.variable("sigma", lower=1.0, upper=3.0)
        model.subject_to(sp.csr_array(self.sets.astype(float)) @ price <= sigma * seats - 1)
        above = positive_part(price - sigma * (weights / high)).sum()
        model.minimize(sigma * self.problem.districts - price.sum() + charge * above)
        result = model.solve(time_limit=deadline.left)
        if result.status is not Status.OPTIMAL:
            raise TimeoutError(result.message)
        self.price = np.floor(result[price] * _UNIT).astype(np.int64) - 1
        self.sigma = int(np.ceil(result[sigma] * _UNIT))

    def clusters(self, above: int, each: int, deadline: Deadline) -> tuple[Array, bool]:
        """Clusters whose prices exceed ``sigma s - 1`` by more than `above`; and whether these are all."""
        low, high = self.problem.window
        net = self.price * high - self.sigma * self.graph.weights
        order = np.argsort(-self.price, kind="stable")
        rank = np.argsort(order)
        first, ends, _ = self.graph.links
        prices = _Prices(first, ends, self.graph.weights, self.price, net, rank, low, high, self.sigma)
        found, count, every = np.zeros((min(_MOST, each * len(order)), len(order)), np.bool_), 0, True
        for root in order.tolist():
            if above >= 0 and self.price[root] <= 0:  # sigma is at least 1
                break
            deadline.check()
            looks = 2**62 if deadline.left is None else int(_LOOKS * deadline.left) + 1
            count, left = _grow(prices, root, above - _UNIT, found, count, each, looks)
            every &= left > 0
            if count == len(found):
                return found, False
        return found[:count], every

    def choose(self, most: int, deadline: Deadline) -> tuple[Array | None, bool]:
        """A clustering of more than `most` clusters, as sets, of all clusters that it may have.

        The prices of its clusters fall short of ``sigma s - 1`` by at most what the bound exceeds it. None
        without one, and whether this is proved.
        """
        sets, every = self.clusters(-(self.value - (most + 1) * _UNIT) - 1, _MOST, deadline)
        if not every or not len(sets):
            return None, every
        least, largest = self.problem.sizes(sets @ self.graph.weights)
        model = Model("clusters")
        taken = model.variable("taken", len(sets), binary=True)
        model.subject_to(sp.csr_array(sets.T.astype(float)) @ taken == 1, name="each_county_once")
        model.subject_to(taken @ least <= self.problem.districts, taken @ largest >= self.problem.districts)
        model.subject_to(taken.sum() >= most + 1)
        model.maximize(taken.sum())
        # HiGHS 1.16 presolves without a look at the clock: 27,000 clusters took more than 3 minutes.
        result = model.solve(time_limit=deadline.left, options={"presolve": "off"})
        if result.status.has_solution:
            return sets[result[taken] > 0.5], result.status is Status.OPTIMAL
        return None, result.status is Status.INFEASIBLE


@CountyClustering.algorithm(
    "column-generation",
    exact=True,
    cites="Carter et al. (2020); Shahmizad and Buchanan (2025) for the problem",
)
def column_generation(
    problem: CountyClustering,
    *,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
    to_the_end: bool = True,
) -> Outcome:
    """Recombination, then a linear bound by prices of counties, then a choice among clusters near the bound.

    Parameters
    ----------
    problem : CountyClustering
        With any number of counties.
    seed : int or numpy.random.Generator, optional
        Of the recombination; 0 by default.
    to_the_end : bool, optional
        Whether the recombination goes on until the time limit, if nothing else improves the bound.

    Returns
    -------
    Outcome
        If the linear bound, rounded down, is the number of clusters found, the prices are a certificate.

    Notes
    -----
    Clusters that break a price's inequality are sought from each county of positive price: a connected set
    grows as long as its prices, less sigma times its population over the upper bound, may still exceed -1.
    Where the rounded bound b exceeds the m clusters found, every clustering of m + 1 consists of clusters
    whose prices fall short by at most the bound less m + 1 together. All of these are listed, and an integer
    program chooses. If they are too many, the recombination goes on until the time limit.
    """
    trace = Trace(Deadline(time_limit), on_improvement)
    search = _Search(problem, generator(0 if seed is None else seed), trace)
    search.improve(_PATIENCE)
    prices = _Bound(problem, search.sets())
    held = prices.price, prices.sigma
    deadline = Deadline(None if time_limit is None else _SHARE * time_limit)
    with suppress(TimeoutError):
        charges = list(_CHARGES)
        while charges and search.most < search.bound:
            trace.check()
            prices.solve(charges[0], deadline)
            found, every = prices.clusters(0, _EACH, deadline)
            if len(found):
                prices.sets = np.concatenate([prices.sets, found])
                continue
            del charges[0]
            if every and prices.value // _UNIT < search.bound:
                held, search.bound = (prices.price, prices.sigma), prices.value // _UNIT
                search.told()
    prices.price, prices.sigma = held
    before = 0
    while before < search.most < search.bound and not trace.over:
        before, proved = search.most, False
        with suppress(TimeoutError):
            sets, proved = prices.choose(before, deadline)
            if sets is not None:
                search.best, search.most = sets.argmax(axis=0), len(sets)
        if proved:
            search.bound = search.most
            search.told()
        search.improve(np.inf if time_limit is not None and to_the_end else _LONG)
    ended = trace.end if trace.over else "too many clusters are near the bound"
    status, message = (Status.OPTIMAL, "") if search.most == search.bound else (Status.FEASIBLE, ended)
    plan, proof = search.plan(), None  # if the integer program closed the gap
    if (held[1] * problem.districts - held[0].sum()) // _UNIT == search.bound:
        proof = ClusteringBound(tuple(held[0].tolist()), int(held[1]), _UNIT, tuple(plan.labels.tolist()))
    return Outcome(plan, float(search.bound), status, len(prices.sets), message, trace.steps, proof=proof)


@CountyClustering.algorithm("recombination", cites="DeFord, Duchin and Solomon (2021) for the step")
def recombination(
    problem: CountyClustering,
    *,
    steps: int = 100_000,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Divide clusters, and pairs of neighbours anew, by random spanning trees.

    Parameters
    ----------
    problem : CountyClustering
        With any number of counties.
    steps : int, optional
        How many steps may pass without a better clustering.
    seed : int or numpy.random.Generator, optional
        0 by default.

    Returns
    -------
    Outcome
        With the bound by districts that counties fill alone.
    """
    trace = Trace(Deadline(time_limit), on_improvement)
    search = _Search(problem, generator(0 if seed is None else seed), trace)
    search.improve(max(1, steps // _STEPS))
    return Outcome(search.plan(), float(search.bound), None, 0, trace.end if trace.over else "", trace.steps)
