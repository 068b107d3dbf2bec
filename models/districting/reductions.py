"""Hard instances by reduction: bin packing as districting, unit weights, and rounded populations."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from forcopt.errors import DeclarationError, require
from forcopt.models.districting.districts import SUMS
from forcopt.models.districting.problem import Districting, measures


def bin_packing(values: Sequence[int], bins: int, capacity: int | None = None) -> Districting:
    """A planar instance whose plans are the assignments of items to (named) bins that fill every bin equally.

    Theorem 1 of Cohen-Addad et al. (FORC 2021), with the edge list and the target repaired: rows 1 to 2 n +
    1 of vertices, odd ones with k, even ones with k + 1; every vertex of an odd row is joined to the two
    nearest of each neighbouring even row. Weights are those of the paper times 2 n - 2, so that all are
    integers.

    Parameters
    ----------
    values : Sequence[int]
        Of the items, positive integers; at least two, with those of value 1 that `capacity` adds.
    bins : int
        How many.
    capacity : int, optional
        Of each bin. Items of value 1 fill the bins that are not full, so there is a plan if and only if the
        values fit. By default the values fill all bins: they must then sum to a multiple of `bins`.

    Returns
    -------
    Districting
        With a tolerance of 0.

    Raises
    ------
    DeclarationError
        For fewer than two values, values that are not positive integers, a sum that is not a multiple of
        `bins`, or more than all bins hold.

    Examples
    --------
    >>> bin_packing([2, 1, 1], 2).count().total
    2
    >>> bin_packing([3, 2], 2, capacity=3).solve("set-partitioning").status.value
    'optimal'
    """
    if any(not isinstance(v, int) or v < 1 for v in values):
        raise DeclarationError(f"values is {list(values)}; it must be two or more positive integers")
    if bins < 1 or (capacity is None and sum(values) % bins):
        raise DeclarationError(f"bins is {bins}; it must divide the sum of the values, {sum(values)}")
    full = sum(values) // bins if capacity is None else capacity
    if bins * full < sum(values):
        raise DeclarationError(f"capacity is {capacity}; {bins} bins must hold the sum, {sum(values)}")
    items = [*values, *[1] * (bins * full - sum(values))]
    n, k, scale = len(items), bins, 2 * len(items) - 2
    require(n >= 2, "values", list(values), "be two or more positive integers")
    graph: nx.Graph[tuple[int, int]] = nx.Graph()
    for row in range(1, 2 * n + 2):
        odd = row % 2 == 1
        weight = {1: scale * (k * full) ** 2, 2 * n + 1: scale * (k * full) ** 4}.get(
            row, 1 if odd else scale * items[row // 2 - 1]
        )
        for j in range(1, k + (1 if odd else 2)):
            graph.add_node((row, j), population=weight, x=j + (0.5 if odd else 0.0), y=-row)
    for row in range(1, 2 * n + 2, 2):
        for j in range(1, k + 1):
            for other in (row - 1, row + 1):
                if 1 < other < 2 * n + 1:
                    graph.add_edge((row, j), (other, j))
                    graph.add_edge((row, j), (other, j + 1))
    target = scale * ((k * full) ** 2 + (k * full) ** 4 + k * full) + scale // 2 + scale * full
    return Districting(graph, k, bounds=(target, target))


def unit_weights(problem: Districting) -> Districting:
    """The same problem with populations of 1: each node gets as many leaves as it has people, less one.

    A leaf is connected through its node only, and alone it is too small for a district. So the plans of the
    two problems correspond, with the same cut, if every district must have two people or more.

    Parameters
    ----------
    problem : Districting
        With populations of at least 1. The leaves of `v` are ``(v, 1), (v, 2), ...``, with its attributes.

    Returns
    -------
    Districting
        With as many nodes as there are people.

    Raises
    ------
    DeclarationError
        If a node has no people, a district may have fewer than two, or a rule or the objective adds up nodes
        or other attributes than the population.

    References
    ----------
    Cohen-Addad et al. (FORC 2021), Lemma 3.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> p = Districting(grid(2, 2, [1, 2, 2, 1]), 2, bounds=(2, 4))
    >>> len(unit_weights(p).nodes), unit_weights(p).count().total == p.count().total
    (6, True)
    """
    people = problem.arrays.weights
    if people.min() < 1 or problem.windows.min() < 2:
        raise DeclarationError(
            f"the least population is {people.min()} and the least of a district {problem.windows.min()}; "
            "unit weights need at least 1 and at least 2"
        )
    sums = (rule.function for rule in (*problem.all_rules, problem.goal) if rule is not None)
    if any(leaf.name in SUMS and leaf.of != problem.population for f in sums for leaf in measures(f)):
        raise DeclarationError("a rule or the objective counts nodes or attributes, which no leaf divides")
    graph = problem.graph.copy()
    for node, size in zip(problem.nodes, people.tolist(), strict=True):
        graph.nodes[node][problem.population] = 1
        for i in range(1, size):
            graph.add_node((node, i), **graph.nodes[node])
            graph.add_edge(node, (node, i))
    return problem.replace(graph=graph)


def rounded_populations(problem: Districting, unit: int) -> tuple[Districting, int]:
    """The problem with populations in units, rounded up; and how far a district may then be too small.

    The dynamic programs are faster on smaller populations, but the rounded problem is another one: it may
    lose plans and admit false ones.

    Parameters
    ----------
    problem : Districting
        With equal seats.
    unit : int
        How many people make a unit, at least 1.

    Returns
    -------
    tuple[Districting, int]
        The rounded problem, whose bounds are those of districts in units, rounded inwards. And the
        shortfall e: a district of any of its plans has at most U people and at least L - e, where L and U are
        the bounds of the problem.

    Raises
    ------
    DeclarationError
        If the unit is below 1 or leaves no whole number of units between the bounds, or for unequal seats.

    Notes
    -----
    A district of u units has at most ``unit u`` people, and fewer by the excess ``unit ceil(p / unit) - p``
    of each of its nodes. Its nodes are at most n - k + 1, so e is the sum of the n - k + 1 largest excesses,
    which is less than ``(unit - 1) (n - k + 1) + 1``.

    References
    ----------
    Cohen-Addad et al. (FORC 2021), the third remark after Theorem 2, which states no error.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> p = Districting(grid(1, 4, [19, 21, 22, 18]), 2, bounds=(30, 50))
    >>> rounded, shortfall = rounded_populations(p, 10)
    >>> rounded.arrays.weights.tolist(), rounded.population_bounds, shortfall
    ([2, 3, 3, 2], (3, 5), 19)
    """
    require(unit >= 1 and not problem.unequal_seats, "unit", unit, "be at least 1, and the seats equal")
    lower, upper = (int(v) for v in problem.windows[0])
    bounds = (-(-lower // unit), upper // unit)
    if bounds[0] > bounds[1]:
        raise DeclarationError(f"unit is {unit}; a multiple of it must lie between {lower} and {upper}")
    graph = problem.graph.copy()
    whole = -(-problem.arrays.weights // unit)
    nx.set_node_attributes(graph, dict(zip(problem.nodes, whole.tolist(), strict=True)), problem.population)
    excess = np.sort(unit * whole - problem.arrays.weights)
    rounded = problem.replace(graph=graph, tolerance=None, seats=None, bounds=bounds)
    return rounded, int(excess[problem.districts - 1 :].sum())
