"""Sequential Monte Carlo: plans grow by one district at a time, cut off a random tree of the rest."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from forcopt.arrays import Array
from forcopt.compiled import njit
from forcopt.errors import require
from forcopt.models.districting import recom
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting

_TREES = 10_000
"""Trees drawn for each new partial plan, before the problem is given up."""


@njit(cache=True)
def _cut_off(graph, state, merged, new, left):  # type: ignore[no-untyped-def]
    """Draw a tree of the rest, district 0, and cut a district off it, so that the rest can become `left`.

    Give the number of ways to cut; if there is none, nothing changes.
    """
    count, ways, top, a, b = recom._merge(graph, state, merged, 0, new), 0, -1, 0, 0
    recom._uniform_tree(merged, count, state.draw)
    total = recom._weigh(graph, merged, count)
    for v in merged.order[1:count]:
        for side in range(2):
            people = total - merged.below[v] if side else merged.below[v]
            if graph.low <= people <= graph.high and left * graph.low <= total - people <= left * graph.high:
                ways += 1
                if recom._random(state.draw, ways) == 0:
                    top, a, b = v, (0 if side else new), (new if side else 0)
    if ways:
        recom._divide(graph, state, merged, count, (top, a, b))
    return ways


def _log_trees(edges: Array, inside: Array) -> float:
    """The logarithm of the number of spanning trees, by Kirchhoff's theorem."""
    own, place = np.arange(inside.sum()), np.cumsum(inside) - 1
    a, b = place[edges[inside[edges].all(axis=1)]].T
    degree = np.bincount(np.concatenate([a, b, [0]]), minlength=len(own))
    # With 1 more in its corner, the Laplacian has the determinant of its minor there.
    values = np.concatenate([degree, np.full(2 * len(a), -1)]).astype(float)
    matrix = sp.csc_array((values, (np.concatenate([own, a, b]), np.concatenate([own, b, a]))))
    return float(np.log(np.abs(splu(matrix).U.diagonal())).sum())


def sequential_plans(
    problem: Districting, size: int, rho: float, rng: np.random.Generator
) -> tuple[tuple[Plan, ...], Array]:
    """Draw weighted plans by sequential Monte Carlo.

    Parameters
    ----------
    problem : Districting
        With equal seats and a connected graph. Plans that break a side constraint or a rule are drawn anew.
    size : int
        The number of plans.
    rho : float
        The power of the number of spanning trees.
    rng : numpy.random.Generator
        Of the draws.

    Returns
    -------
    plans : tuple of Plan
    weights : ndarray, shape (size,)
        They sum to 1.

    Raises
    ------
    DeclarationError
        For unequal seats, a graph that is not connected, a single district, a power that is not finite; and
        if fewer than one tree in 10,000 gives a plan.

    Notes
    -----
    Let t(D) be the number of spanning trees of a district D. The law of plans is proportional to the product
    of all ``t(D)^rho`` [1]_. A partial plan has districts D_1 to D_i and a connected rest R, and the law
    proportional to ``t(D_1)^rho ... t(D_i)^rho t(R)``. To make one, an old one is drawn by its weight, and a
    uniform spanning tree of its rest. Let b cuts of the tree leave a district within the bounds and a rest
    within those of the districts to come. One of them is drawn, and the weight gets the factor b; without
    any, an old one is drawn again.

    So an old partial plan gives a new one with district D and rest R the mean weight
    ``t(D) t(R) c(D, R) / t(D | R)``, where c(D, R) is the number of edges between D and R. In [1]_, one of
    the k_i cuts nearest to the mean population is drawn, and rejected outside the bounds; this gives the
    same, divided by k_i, if k_i is at least b for all trees. Here no such k_i is needed.

    A partial plan has several old ones: any D_j beside R may be the one cut off last. The target of such an
    old one times its mean weight is ``t(D_j)^(1 - rho) c(D_j, R)`` times the target of the new one. So the
    weight is b divided by the sum of ``t(D_j)^(1 - rho) c(D_j, R)`` over all j, and a plan does not count
    more often if its districts can be cut off in more orders [2]_. In the last step R is a district too, and
    the sum of ``(t(D_i) t(D_j))^(1 - rho) c(D_i, D_j)`` is over all pairs; for rho = 1 it is the number of
    cut edges.

    References
    ----------
    .. [1] McCartan and Imai, Sequential Monte Carlo for sampling balanced and compact redistricting plans,
       Annals of Applied Statistics 2023.
    .. [2] Del Moral, Doucet and Jasra, Sequential Monte Carlo samplers, Journal of the Royal Statistical
       Society B 2006, for such backward kernels.
    """
    g, k = problem.arrays, problem.districts
    problem.require("smc", str(problem.objective), "goal", takes=("each", "one", "sum", "plan"))
    require(isinstance(rho, int | float | np.number) and np.isfinite(rho), "rho", rho, "be finite")
    require(k > 1, "districts", k, "be at least 2 for the method smc")
    require(len(g.components()) == 1, "graph", f"of {len(g.components())} components", "be connected for smc")
    graph = recom._Map(*g.links, g.edges, g.weights, *problem.population_bounds, True)
    merged = recom._Merged.of(g.size, len(g.edges))
    # For each partial plan: its districts, the logarithms of their numbers of trees, and that of its weight.
    labels, trees, logs = np.zeros((size, g.size), np.int64), np.zeros((size, k)), np.zeros(size)
    for new in range(1, k):
        found, tries, last = list[tuple[Array, Array, float]](), 0, new == k - 1
        counted = () if rho == 1 else (new, 0) if last else (new,)
        chances = np.cumsum(np.exp(logs - logs.max()))
        while len(found) < size:
            made = f"number of plans of {new + 1} districts after {tries} trees"
            require(tries < _TREES * (len(found) + 1), made, len(found), f"be {size}")
            tries += 1
            old = int(np.searchsorted(chances, rng.random() * chances[-1]))
            state = recom._State.of(g, labels[old].copy(), k, rng)
            ways, label, known = _cut_off(graph, state, merged, new, k - new), state.label, trees[old].copy()
            if not ways or (last and not problem.evaluate(Plan.from_labels(problem, label)).feasible):
                continue
            for d in counted:
                known[d] = _log_trees(g.edges, label == d)
            a, b = label[g.edges[state.cut[: state.cuts[0]]]].T
            terms = ((1 - rho) * (known[a] + known[b]))[last | (a * b == 0)]
            found.append((label, known, np.log(ways) - np.logaddexp.reduce(terms)))
        labels, trees, logs = (np.array(column) for column in zip(*found, strict=True))
    weights = np.exp(logs - logs.max())
    return tuple(Plan.from_labels(problem, label) for label in labels), weights / weights.sum()
