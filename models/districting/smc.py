"""Sequential Monte Carlo: plans grow by a district at a time, which a random spanning tree cuts off the rest."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import splu

from forcopt.arrays import Array
from forcopt.compiled import njit
from forcopt.errors import DeclarationError, require
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.recom import (
    _divide,
    _Map,
    _merge,
    _Merged,
    _random,
    _State,
    _uniform_tree,
    _weigh,
    drawing,
)

_TREES = 10_000
"""Trees drawn for each new partial plan, before the problem is given up."""


@njit(cache=True)
def _cut_off(graph, state, merged, new, left):  # type: ignore[no-untyped-def]
    """Draw a tree of the rest, district 0, and cut a district off, so that `left` districts fit into the rest.

    Give the number of ways to do so; if there is none, nothing changes.
    """
    count, ways, top, a, b = _merge(graph, state, merged, 0, new), 0, -1, 0, 0
    _uniform_tree(merged, count, state.draw)
    total = _weigh(graph, merged, count)
    for v in merged.order[1:count]:
        for side in range(2):
            people = total - merged.below[v] if side else merged.below[v]
            rest = total - people
            if graph.low <= people <= graph.high and left * graph.low <= rest <= left * graph.high:
                ways += 1
                if _random(state.draw, ways) == 0:
                    top, a, b = v, (0 if side else new), (new if side else 0)
    if ways:
        _divide(graph, state, merged, count, (top, a, b))
    return ways


def _log_trees(adjacent: sp.csr_array, inside: Array) -> float:
    """The logarithm of the number of spanning trees, by Kirchhoff's theorem."""
    first = sp.csr_array(([1.0], ([0], [0])), (len(inside), len(inside)))
    # With 1 more in the corner, the determinant is no longer 0, but the minor without the first row and column.
    matrix = sp.csc_array(laplacian(adjacent[inside][:, inside]) + first)
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
        For unequal seats, a graph that is not connected, a single district, a power that is not finite; and if
        10,000 trees for each plan give too few plans.

    Notes
    -----
    The law is proportional to the product over the districts of t(D) to the power rho, where t(D) is the number
    of spanning trees of D [1]_. A partial plan is a set of districts D_1 to D_i and a connected rest R, with the
    law proportional to ``t(D_1)^rho ... t(D_i)^rho t(R)``. A new one is made of an old one, drawn by its weight,
    by a uniform spanning tree of its rest. If b cuts of the tree leave a district and a rest within the bounds of
    the remaining districts, one of them is drawn, and the weight gets the factor b; if there is none, an old
    one is drawn again.

    With the factor b, a new partial plan comes from an old one in the measure
    ``q = t(D) t(R) c(D, R) / t(D | R)``, where c(D, R) is the number of edges between D and R. In [1]_ a cut
    is one of the k_i nearest to the mean population, and it is rejected if it is not within the bounds; this
    gives the same q, divided by k_i, if k_i is at least b for all trees, which is estimated there.

    The same partial plan comes from each way to join a district to the rest. As the target of the old one times
    q is ``t(D_j)^(1 - rho) c(D_j, R)`` times the target of the new one, the weight is b divided by the sum of
    ``t(D_j)^(1 - rho) c(D_j, R)`` over all j, so that no order of the districts counts more than once [2]_. In
    the last step the rest is a district itself, and the sum is over all pairs of districts,
    ``(t(D_i) t(D_j))^(1 - rho) c(D_i, D_j)``. For rho = 1 this is the number of cut edges.

    References
    ----------
    .. [1] McCartan and Imai, Sequential Monte Carlo for sampling balanced and compact redistricting plans,
       Annals of Applied Statistics 2023.
    .. [2] O'Sullivan, McCartan and Imai, Generalized sequential Monte Carlo for redistricting, 2025.
    """
    g, k = problem.arrays, problem.districts
    problem.require("smc", str(problem.objective), "goal", takes=("each", "one", "sum", "plan"))
    require(np.isfinite(rho), "rho", rho, "be finite")
    require(k > 1, "districts", k, "be at least 2 for the method smc")
    require(len(g.components()) == 1, "graph", f"of {len(g.components())} components", "be connected for smc")
    graph = _Map(*g.links, g.edges, g.weights, *problem.population_bounds, True)
    merged, draw = _Merged.of(g.size, len(g.edges)), drawing(rng)
    ends = np.concatenate([g.edges, g.edges[:, ::-1]]).T
    adjacent = sp.csr_array((np.ones(ends.shape[1]), tuple(ends)), (g.size, g.size))
    tied = bool(problem.side_constraints or problem.rules)
    # One row for each partial plan: its districts, the logarithms of their numbers of trees, and of its weight.
    labels, trees, logs = np.zeros((size, g.size), np.int64), np.zeros((size, k)), np.zeros(size)
    for new in range(1, k):
        found, tries, last = list[tuple[Array, Array, float]](), 0, new == k - 1
        chances = np.cumsum(np.exp(logs - logs.max()))
        while len(found) < size:
            if tries >= _TREES * (len(found) + 1):
                raise DeclarationError(
                    f"method 'smc': {tries} trees gave {len(found)} of {size} plans with {new} districts"
                )
            tries += 1
            old = int(np.searchsorted(chances, rng.random() * chances[-1]))
            state = _State.of(g, labels[old].copy(), k, draw)
            ways = _cut_off(graph, state, merged, new, k - new)
            label = state.label
            if not ways or (
                tied and last and not problem.evaluate(Plan.from_labels(problem, label)).feasible
            ):
                continue
            known = trees[old].copy()
            for d in ((new, 0) if last else (new,)) if rho != 1 else ():
                known[d] = _log_trees(adjacent, np.flatnonzero(label == d))
            a, b = label[g.edges[state.cut[: state.cuts[0]]]].T
            terms = ((1 - rho) * (known[a] + known[b]))[last | (a * b == 0)]
            found.append((label, known, np.log(ways) - np.logaddexp.reduce(terms)))
        labels, trees, logs = (np.array(column) for column in zip(*found, strict=True))
    weights = np.exp(logs - logs.max())
    return tuple(Plan.from_labels(problem, label) for label in labels), weights / weights.sum()
