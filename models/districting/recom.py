"""ReCom: merge two adjacent districts, draw a spanning tree of both, and cut the tree at a balanced edge."""

from __future__ import annotations

import heapq
from typing import Literal, NamedTuple

import numpy as np

from forcopt.arrays import Array, generator
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.compiled import njit
from forcopt.errors import DeclarationError, check_known, require
from forcopt.graphs.weighted import WeightedGraph
from forcopt.models.districting.districts import OBJECTIVES, POLSBY_POPPER
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan, feasible_start, minimizing
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

_TREES = 200
"""Spanning trees that are drawn for one pair of districts, before another pair is tried."""

_PAIRS = 50
"""Pairs that are tried in one step, before the chain is taken for stuck."""

_MIX = np.uint64(0x2545F4914F6CDD1D)
"""The multiplier of Marsaglia's xorshift* generator."""


class _Map(NamedTuple):
    """The graph, and the bounds on districts."""

    first: Array
    """Where the neighbours of each vertex begin in `ends`."""
    ends: Array
    number: Array
    """The edge to each of these neighbours."""
    edges: Array
    weight: Array
    low: int
    high: int
    uniform: bool
    """Whether trees are uniform; else they have the least sum of random weights."""


class _State(NamedTuple):
    """Where the chain is."""

    label: Array
    members: Array
    """``[d, :size[d]]``: the vertices of district d."""
    size: Array
    cut: Array
    """``cut[:cuts[0]]``: the edges between districts, in any order."""
    cuts: Array
    place: Array
    """The place of each edge in `cut`; -1 for other edges."""
    draw: Array
    """The state of the generator."""

    @classmethod
    def of(cls, g: WeightedGraph, label: Array, room: int, seed: int | np.random.Generator | None) -> _State:
        """The state with these labels, with room for a number of districts."""
        members, place = np.zeros((room, g.size), np.int64), np.full(len(g.edges), -1, np.int64)
        size = np.bincount(label, minlength=room)
        for d in range(room):
            members[d, : size[d]] = np.flatnonzero(label == d)
        cut = np.flatnonzero(label[g.edges[:, 0]] != label[g.edges[:, 1]])
        place[cut] = np.arange(len(cut))
        draw = generator(seed).integers(1, 2**63, 1).astype(np.uint64)
        return cls(label, members, size, np.resize(cut, len(place)), np.array([len(cut)]), place, draw)


class _Merged(NamedTuple):
    """Two districts as one graph of vertices 0 to n - 1, and a tree on it; scratch of each step."""

    nodes: Array
    """The vertex of the map."""
    place: Array
    """The vertex here of each one of the map; -1 for others."""
    first: Array
    ends: Array
    up: Array
    """The parent of each vertex in the tree; itself at the root."""
    order: Array
    """The vertices, parents before their children."""
    mark: Array
    below: Array
    """The weight of each subtree."""

    @classmethod
    def of(cls, vertices: int, edges: int) -> _Merged:
        """Scratch for a map."""
        nodes, first, up, order, mark, below = np.zeros((6, vertices + 1), np.int64)
        return cls(nodes, np.full(vertices, -1), first, np.zeros(2 * edges, np.int64), up, order, mark, below)


@njit(cache=True, inline="always")
def _random(draw, bound):  # type: ignore[no-untyped-def]
    """A random integer from 0 to `bound` - 1."""
    x = draw[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    draw[0] = x
    return np.int64(((x * _MIX) >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32))


@njit(cache=True)
def _merge(graph, state, merged, a, b):  # type: ignore[no-untyped-def]
    """Write the graph of two districts; give the number of its vertices."""
    label, nodes, place = state.label, merged.nodes, merged.place
    count = 0
    for d in (a, b):
        for v in state.members[d, : state.size[d]]:
            nodes[count], place[v] = v, count
            count += 1
    at = 0
    for i in range(count):
        v = nodes[i]
        merged.first[i] = at
        for e in range(graph.first[v], graph.first[v + 1]):
            u = graph.ends[e]
            if label[u] == a or label[u] == b:
                merged.ends[at] = place[u]
                at += 1
    merged.first[count] = at
    return count


@njit(cache=True)
def _uniform_tree(merged, count, draw):  # type: ignore[no-untyped-def]
    """Draw a tree by Wilson's algorithm: each vertex walks to the tree, and its loops are erased.

    The law is the same for every root; walks meet one of large degree sooner.
    """
    first, ends, up, order, mark = merged.first, merged.ends, merged.up, merged.order, merged.mark
    mark[:count] = 0
    root = np.argmax(first[1 : count + 1] - first[:count])
    mark[root], up[root], order[0], done = 1, root, root, 1
    for v in range(count):
        u = v
        while mark[u] == 0:
            up[u] = ends[first[u] + _random(draw, first[u + 1] - first[u])]
            u = up[u]
        u, begin = v, done
        while mark[u] == 0:
            mark[u], order[done] = 1, u
            done += 1
            u = up[u]
        for i in range((done - begin) // 2):
            order[begin + i], order[done - 1 - i] = order[done - 1 - i], order[begin + i]


@njit(cache=True)
def _least_tree(merged, count, draw):  # type: ignore[no-untyped-def]
    """Draw a tree of least weight for random weights of the edges, by Prim's algorithm.

    The heap holds the weight of an edge to a vertex outside, and in the low bits this vertex.
    """
    first, ends, up, order, mark = merged.first, merged.ends, merged.up, merged.order, merged.mark
    mark[:count] = 0
    root = _random(draw, count)
    mark[root], up[root], order[0], done = 1, root, root, 1
    heap = [0 for _ in range(0)]
    least = merged.below
    least[:count] = 2**31
    u = root
    while done < count:
        for e in range(first[u], first[u + 1]):
            v, weight = ends[e], _random(draw, 2**31)
            if mark[v] == 0 and weight < least[v]:
                least[v], up[v] = weight, u
                heapq.heappush(heap, weight << 32 | v)
        while mark[u] == 1:
            u = heapq.heappop(heap) & 0xFFFFFFFF
        mark[u], order[done] = 1, u
        done += 1


@njit(cache=True)
def _weigh(graph, merged, count):  # type: ignore[no-untyped-def]
    """Write the weight of each subtree; give that of the whole tree."""
    below = merged.below
    for i in range(count):
        below[i] = graph.weight[merged.nodes[i]]
    for v in merged.order[count - 1 : 0 : -1]:
        below[merged.up[v]] += below[v]
    return below[merged.order[0]]


@njit(cache=True)
def _cut_edge(graph, merged, count, seats, draw):  # type: ignore[no-untyped-def]
    """Draw an edge that cuts the tree into parts of whole numbers of seats.

    Give the vertex below it, -1 if there is none, the least number of seats of the part below, and the number
    of such edges.
    """
    total = _weigh(graph, merged, count)
    low, high = graph.low, graph.high
    chosen, least, number = -1, 0, 0
    for v in merged.order[count - 1 : 0 : -1]:
        people = merged.below[v]
        rest = total - people
        if seats == 2:
            first = 1 if low <= people <= high and low <= rest <= high else 0
        else:
            first = max(1, (people + high - 1) // high, seats - rest // low)
            if first > min(seats - 1, people // low, seats - (rest + high - 1) // high):
                first = 0
        if first > 0:
            number += 1
            if _random(draw, number) == 0:
                chosen, least = v, first
    return chosen, least, number


@njit(cache=True)
def _divide(graph, state, merged, count, pair):  # type: ignore[no-untyped-def]
    """Give the vertices below the first of the pair's tree edge to one district, the others to the other."""
    top, a, b = pair
    label, place, cut, cuts = state.label, state.place, state.cut, state.cuts
    mark, size = merged.mark, state.size
    mark[:count] = 0
    mark[top] = 1
    size[a] = size[b] = 0
    for x in range(count):
        i = merged.order[x]
        mark[i] |= mark[merged.up[i]] & 1
        d = a if mark[i] else b
        state.members[d, size[d]] = merged.nodes[i]
        size[d] += 1
        if label[merged.nodes[i]] != d:
            label[merged.nodes[i]] = d
            mark[i] |= 2  # its edges may become cut, or cease to be
    for i in range(count):
        v = merged.nodes[i]
        merged.place[v] = -1
        if mark[i] < 2:
            continue
        for s in range(graph.first[v], graph.first[v + 1]):
            e = graph.number[s]
            apart = label[v] != label[graph.ends[s]]
            if apart and place[e] < 0:
                cut[cuts[0]], place[e] = e, cuts[0]
                cuts[0] += 1
            elif not apart and place[e] >= 0:
                cuts[0] -= 1
                last = cut[cuts[0]]
                cut[place[e]], place[last], place[e] = last, place[e], -1


@njit(cache=True)
def _walk(graph, state, merged, steps):  # type: ignore[no-untyped-def]
    """Make up to a number of steps; give how many were made before no pair could be divided."""
    for step in range(steps):
        for _ in range(_PAIRS):
            if state.cuts[0] == 0:
                return step
            u, v = graph.edges[state.cut[_random(state.draw, state.cuts[0])]]
            pair = state.label[u], state.label[v]
            count = _merge(graph, state, merged, *pair)
            for _ in range(_TREES):
                if graph.uniform:
                    _uniform_tree(merged, count, state.draw)
                else:
                    _least_tree(merged, count, state.draw)
                top, _, _ = _cut_edge(graph, merged, count, 2, state.draw)
                if top >= 0:
                    break
            if top >= 0:
                _divide(graph, state, merged, count, (top, *pair))
                break
        else:
            return step
    return steps


@njit(cache=True)
def _walk_reversibly(graph, state, merged, steps):  # type: ignore[no-untyped-def]
    """Make steps of the reversible chain, up to the first that divides a pair; give how many."""
    for step in range(steps):
        if state.cuts[0] == 0:
            return step
        a, b = state.label[graph.edges[_random(state.draw, len(graph.edges))]]
        if a == b:
            continue
        count = _merge(graph, state, merged, a, b)
        _uniform_tree(merged, count, state.draw)
        top, _, number = _cut_edge(graph, merged, count, 2, state.draw)
        weights = np.sort(graph.weight[merged.nodes[:count]])
        most = 1 + np.searchsorted(np.cumsum(weights), weights.sum() - 2 * graph.low, side="right")
        if _random(state.draw, most) < number:
            _divide(graph, state, merged, count, (top, a, b))
            return step + 1
    return steps


class ReCom:
    """A ReCom chain of plans.

    Parameters
    ----------
    problem : Districting
        With equal seats. A step to a plan that breaks a side constraint or a rule is drawn anew.
    start : Plan
        The first plan, which must be feasible.
    seed : int or numpy.random.Generator, optional
        Of the draws.
    tree : {"uniform", "least"}, optional
        Trees are uniform, by Wilson's algorithm; or they have the least sum of random weights, as those of
        GerryChain's default.
    reversible : bool, optional
        Make the reversible chain of [3]_. Its trees are uniform.

    Notes
    -----
    A step draws a cut edge uniformly, then spanning trees of the two districts that meet there until a tree
    has edges whose removal leaves two districts within the bounds; one of these edges is drawn uniformly.
    After 200 trees without such an edge, another cut edge is drawn.

    A list of the cut edges, and one of the vertices of each district, are kept up to date, so a step takes
    time in proportion to the two districts: for a uniform tree, to the mean time in which a random walk
    meets a vertex [2]_.

    The law of a plan after many steps is not known, unless the chain is reversible: then it is proportional
    to the product over the districts of their numbers of spanning trees [3]_, if the steps connect all plans.
    A step of the reversible chain draws an edge uniformly among all m edges of the map, one tree of the
    districts A and B at its ends, and one of the b edges of the tree that leave two districts within the
    bounds. The plan stays, and the step counts, if A = B, with probability ``1 - b / M``, or if the new plan
    breaks a side constraint or a rule.

    With t(A) trees of A, and c(A, B) edges between A and B, a step from A and B to A' and B' has
    probability ``c(A, B) / m * c(A', B') t(A') t(B') / t(A | B) / M``. Times ``t(A) t(B)``, this is
    symmetric, so the chain is reversible. In [3]_ all pairs are equally likely, and the new plan is accepted
    with probability ``1 / c(A', B')``; the law is the same, but most trees are lost.

    M is at least the b of every tree: 1 more than the number of the lightest vertices of A and B that weigh
    together at most the weight of A and B less twice the lower bound. (The b edges leave b + 1 parts of the
    tree, and at least two of these, at its ends, weigh at least the lower bound.)

    References
    ----------
    .. [1] DeFord, Duchin and Solomon, Recombination: a family of Markov chains for redistricting, Harvard
       Data Science Review 2021.
    .. [2] Wilson, Generating random spanning trees more quickly than the cover time, STOC 1996.
    .. [3] Cannon, Duchin, Randall and Rule, Spanning tree methods for sampling graph partitions,
       arXiv:2210.01401, 2022.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> p = Districting(grid(4, 4), districts=4, tolerance=0)
    >>> chain = ReCom(p, Plan.from_labels(p, [v // 4 for v in range(16)]), seed=1)
    >>> chain.run(100)
    100
    >>> p.evaluate(chain.plan).feasible
    True
    """

    def __init__(
        self,
        problem: Districting,
        start: Plan,
        seed: int | np.random.Generator | None = None,
        tree: Literal["uniform", "least"] = "uniform",
        *,
        reversible: bool = False,
    ) -> None:
        check_known("law of trees", tree, ("uniform", "least"))
        require(tree == "uniform" or not reversible, "tree", tree, "be 'uniform' in the reversible chain")
        problem.require("recom", *OBJECTIVES[:POLSBY_POPPER], "goal")
        g = problem.arrays
        self.problem, self.reversible = problem, reversible
        self._map = _Map(*g.links, g.edges, g.weights, *problem.population_bounds, tree == "uniform")
        if (plan := feasible_start(problem, start)) is None:
            raise DeclarationError("start is None; it must be a plan")
        self._state = _State.of(g, plan.labels.copy(), problem.districts, seed)
        self._merged = _Merged.of(g.size, len(g.edges))

    @property
    def labels(self) -> Array:
        """The district of each node, in the chain's own numbers, shape (n,)."""
        return self._state.label.copy()

    @property
    def plan(self) -> Plan:
        """The plan at which the chain is."""
        return Plan.from_labels(self.problem, self._state.label)

    @property
    def cut_edges(self) -> int:
        """The number of adjacent pairs of nodes in different districts."""
        return int(self._state.cuts[0])

    def run(self, steps: int) -> int:
        """Make steps.

        Returns
        -------
        int
            How many steps were made: fewer if none of 50 pairs of districts can be divided anew, or if as
            many plans in a row break a side constraint. The reversible chain makes all steps, unless no
            districts are adjacent.
        """
        free = not self.problem.side_constraints and not self.problem.rules
        if free and not self.reversible:
            return int(_walk(self._map, self._state, self._merged, steps))
        walk, done, refused = _walk_reversibly if self.reversible else _walk, 0, 0
        while done < steps and refused < _PAIRS:
            before = [] if free else [column.copy() for column in self._state[:-1]]
            made = walk(self._map, self._state, self._merged, steps - done if self.reversible else 1)
            if not made:
                break
            kept = free or self.problem.evaluate(self.plan).feasible
            for column, old in zip(self._state, () if kept else before, strict=False):
                column[:] = old
            done, refused = (done + made, 0) if kept or self.reversible else (done, refused + 1)
        return done


def started(
    problem: Districting, start: Plan | None, rng: np.random.Generator, time_limit: float | None = None
) -> Plan | None:
    """Give a plan to start a chain from: the given one, which must be feasible, or a local search's."""
    given = feasible_start(problem, start)
    return given or local_search(problem, restarts=4, seed=rng, time_limit=time_limit).decision


@Districting.algorithm(
    "recom",
    cites="DeFord, Duchin and Solomon (2021), Recombination",
    rank="published",
    rules=("each", "one", "sum", "plan"),
)
@minimizing
def recom(
    problem: Districting,
    *,
    start: Plan | None = None,
    steps: int = 1000,
    burst: int | None = None,
    tree: Literal["uniform", "least"] = "uniform",
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """The best plan that a ReCom chain meets; see `ReCom`.

    Parameters
    ----------
    problem : Districting
        With equal seats.
    start : Plan, optional
        The chain's first plan; a local search's by default.
    steps : int, optional
        Of the chain, at most.
    burst : int, optional
        Short bursts [1]_: after each this many steps, the chain goes on from the best plan of the burst.
    tree : {"uniform", "least"}, optional
        The law of the spanning trees.
    seed : int or numpy.random.Generator, optional
        0 by default.
    on_improvement : callable, optional
        Called with each better plan; it stops the chain by returning True.

    Returns
    -------
    Outcome
        If the chain cannot move, the message says so, and the plan is the best of the chain so far.

    References
    ----------
    .. [1] Cannon, Goldbloom-Helzner, Gupta, Matthews and Suwal, Voting rights, Markov chains, and
       optimization by short bursts, Methodology and Computing in Applied Probability 2023.
    """
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    problem.require("recom", *OBJECTIVES[:POLSBY_POPPER], "goal")
    rng = np.random.default_rng(0 if seed is None else seed)
    plan = started(problem, start, rng, None if deadline.left is None else deadline.left / 2)
    if plan is None:
        return Outcome(None, status=Status.LIMIT, message="no plan to start the chain from was found")

    def value(labels: Array) -> float:
        if problem.objective == "cut":
            return problem.arrays.cut_cost(labels) / problem.cost_scale
        if problem.goal is not None:
            return float(problem.values(labels == np.arange(problem.districts)[:, None]).sum())
        return problem.evaluate(Plan.from_labels(problem, labels)).objective

    chain, step, ended = ReCom(problem, plan, rng, tree), 0, ""
    best, least = plan.labels, value(plan.labels)
    local, lowest = best, least  # of the burst
    trace.add(least, float("-inf"))
    while step < steps and not trace.over:
        if not chain.run(1):
            ended = "; from there no two adjacent districts could be divided anew"
            break
        step += 1
        labels = chain.labels
        now = value(labels)
        if now <= lowest:
            local, lowest = labels, now
        if now < least:
            best, least = labels, now
            trace.add(now, float("-inf"))
        if burst is not None and step % burst == 0:
            chain = ReCom(problem, Plan.from_labels(problem, local), rng, tree)
    message = f"steps of the chain: {step}{ended}"
    return Outcome(Plan.from_labels(problem, best), None, None, step, message, trace.steps)
