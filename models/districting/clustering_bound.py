"""Checks by all connected sets of high price, in integers: bounds on clusterings, shares out of reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import networkx as nx

from forcopt.clock import Deadline
from forcopt.errors import require
from forcopt.graphs.weighted import WeightedGraph
from forcopt.loops.certify.certificate import Certificate
from forcopt.models.districting.bound_certificate import Kept
from forcopt.models.districting.clustering import CountyClustering
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.side_constraints import Share

_MOMENT = 10_000
"""Sets between two looks at the clock."""


@dataclass(frozen=True)
class ClusteringBound(Kept):
    """Prices of counties that bound the number of clusters.

    Attributes
    ----------
    price : tuple of int
        Of each county, in the order of the graph.
    sigma, unit : int
        For each cluster C of s districts, ``price(C) <= sigma s - unit``; so m clusters of k districts have
        ``unit m <= sigma k - price(V)``.
    labels : tuple of int
        The cluster of each county, by position, in the clustering found.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> p = CountyClustering(grid(1, 3, population=[15, 5, 10]), districts=3, bounds=(10, 10))
    >>> ClusteringBound((1, 0, 0), 1, 1, (0, 0, 1)).check(p).optimal
    True
    """

    price: tuple[int, ...]
    sigma: int
    unit: int
    labels: tuple[int, ...]

    def check(self, problem: CountyClustering, time_limit: float | None = None) -> Certificate:
        """Search all connected sets for a cluster that breaks the inequality, without the search's code.

        Parameters
        ----------
        problem : CountyClustering
            Whose counties have the prices.
        time_limit : float, optional
            Seconds, after which no bound is proved.

        Returns
        -------
        Certificate
            With the bound if no cluster breaks it.

        Raises
        ------
        DeclarationError
            If the numbers of prices and of labels are not that of the counties.
        """
        lengths, n = (len(self.price), len(self.labels)), len(problem.whole.nodes)
        require(lengths == (n, n), "price and labels", lengths, f"have {n} entries each, one a county")
        deadline, bound, how = Deadline(time_limit), None, ""
        try:
            graph, window = problem.whole.arrays, problem.window
            broken = next(sets_above(graph, self.price, self.sigma, -self.unit, window, deadline), None)
            if not 0 < self.unit <= self.sigma:
                how = f"sigma is {self.sigma}; it must be at least the unit, {self.unit}, above 0"
            elif broken is None:
                bound = Fraction((self.sigma * problem.districts - sum(self.price)) // self.unit)
                how = "all connected sets that could break the prices were listed, in integers"
            else:
                how = f"the cluster {[problem.whole.nodes[v] for v in broken]} breaks the prices"
        except TimeoutError as stop:
            how = str(stop)
        found = problem.evaluate(dict(zip(problem.whole.nodes, self.labels, strict=True)))
        value = Fraction(int(found.objective)) if found.feasible else None
        optimal = value == bound if value is not None and bound is not None else None
        return Certificate(found.feasible, None, value, bound, optimal, how)


def sets_above(
    graph: WeightedGraph,
    price: Sequence[int],
    sigma: int,
    above: int,
    window: tuple[int, int],
    deadline: Deadline,
) -> Iterator[list[int]]:
    """Give the connected sets for s >= 1 districts whose prices exceed ``sigma s + above``.

    Parameters
    ----------
    graph : WeightedGraph
        With populations.
    price : sequence of int
        Of each vertex.
    sigma : int
        If it is 0, s is 1.
    above : int
        At least ``-sigma`` or -1, so a set has a vertex of a price of at least 0.
    window : tuple of int
        Bounds on the population of a district; s is the least number that they allow a set.
    deadline : Deadline
        Raises `TimeoutError` when it has passed.

    Yields
    ------
    list of int
        Each set grows from its first vertex in order of falling prices.
    """
    low, high, people = window[0], max(window[1], 1), graph.weights.tolist()  # a factor, so not 0
    net = [p * high - sigma * w for p, w in zip(price, people, strict=True)]
    left = nx.DiGraph()
    left.add_nodes_from(graph)
    for u, v in graph.edges.tolist():
        left.add_edge(u, v, pays=max(0, -net[v]))
        left.add_edge(v, u, pays=max(0, -net[u]))
    looked = 0
    for root in sorted(graph, key=lambda v: -price[v]):
        if price[root] < 0 or (price[root] == 0 and sigma + above >= 0):
            return  # sets of the vertices that are left have no price above 0
        far = nx.single_source_dijkstra_path_length(left, root, weight="pays")
        may, before = set(far), set[int]()
        while may != before:  # a set pays the path to each vertex, and wins the nets above 0 at most
            before = may
            room = net[root] - above * high + sum(max(0, net[v]) for v in before if v != root)
            may = {root} | {v for v in before if far[v] < room}
        stack = [([root], [v for v in left[root] if v in may], frozenset([root]), True)]
        while stack:
            inside, border, decided, new = stack.pop()
            looked += 1
            if looked % _MOMENT == 0:
                deadline.check()
            open_ = sum(max(0, net[v]) for v in may - decided)
            weight = sum(people[v] for v in inside)
            if sum(net[v] for v in inside) + open_ <= above * high or (sigma == 0 and weight > high):
                continue
            seats = max(1, -(-weight // high))
            if new and seats * low <= weight and sum(price[v] for v in inside) > sigma * seats + above:
                yield inside
            if border:  # with the first vertex of the border, and without
                first, rest = border[0], border[1:]
                decided |= {first}
                more = [v for v in left[first] if v in may and v not in decided and v not in rest]
                stack.append((inside, rest, decided, False))
                stack.append(([*inside, first], rest + more, decided, True))
        left.remove_node(root)


@dataclass(frozen=True)
class NoSuchDistrict(Kept):
    """The claim that no connected set within the population bounds meets a share.

    Attributes
    ----------
    constraint : Share
        Of the problem, whose infeasibility follows.
    """

    constraint: Share

    def check(self, problem: Districting, time_limit: float | None = None) -> Certificate:
        """Search all connected sets for one that meets the share, without the search's code.

        Parameters
        ----------
        problem : Districting
            With the constraint.
        time_limit : float, optional
            Seconds, after which nothing is proved.

        Returns
        -------
        Certificate
            That there is no plan, if there is no such set.

        Raises
        ------
        DeclarationError
            If the problem lacks the constraint.
        """
        require(self.constraint in problem.side_constraints, "share", self.constraint, "be the problem's")
        row, feasible = self.constraint.row(problem), None
        try:
            graph, prices, window = problem.arrays, row.weights.tolist(), problem.population_bounds
            found = next(sets_above(graph, prices, 0, row.low - 1, window, Deadline(time_limit)), None)
            how = f"a district of {[problem.nodes[v] for v in found or ()]} meets {self.constraint!r}"
            if found is None:
                feasible, how = False, "all connected sets that could meet the share were listed, in integers"
        except TimeoutError as stop:
            how = str(stop)
        return Certificate(feasible, None, None, None, None, how)
