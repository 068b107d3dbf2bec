"""Large neighbourhood search: three districts of a plan at a time are drawn anew, to optimality.

Two districts with a common border leave little freedom, and a local search ends where no pair improves. Three
districts of a plan are a problem of their own, which column generation proves in seconds on planar graphs of
hundreds of nodes. The search ends where no three improve.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import networkx as nx
import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.models.districting.column_generation import column_generation
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan, feasible_start
from forcopt.models.districting.problem import Districting, jit_warmup
from forcopt.models.districting.side_constraints import CannotLink, MustLink
from forcopt.problem import Outcome

_SECONDS = 60.0
"""The search for three districts ends after this time, and keeps the best that it found."""


@Districting.algorithm(
    "large-neighbourhood", cites="Shaw (1998)", prepare=jit_warmup("local-search", "column-generation")
)
def large_neighbourhood(
    problem: Districting,
    *,
    start: Plan | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Draw three districts of a plan anew by column generation, until no three become cheaper.

    Parameters
    ----------
    problem : Districting
        With the objective ``cut``, equal seats, and no limits on shares or splits.
    start : Plan, optional
        A feasible plan. A local search gives one by default.
    backend : str, optional
        Solves the linear and integer programs; ``highs`` by default.
    time_limit : float, optional
        Seconds.
    seed : int or numpy.random.Generator, optional
        Of the local search.
    on_improvement : callable, optional
        Called with each better plan; it stops the search by returning True.

    Returns
    -------
    Outcome
        The best plan, without a bound.

    Raises
    ------
    DeclarationError
        For another objective, such limits, or a start that is not feasible.

    Notes
    -----
    In plans of three districts, two are drawn anew. Plans of two districts are left to the local search. The
    search for three districts runs once, for at most 60 s.

    References
    ----------
    .. [1] Shaw, Using constraint programming and local search methods to solve vehicle routing problems,
       Principles and Practice of Constraint Programming 1998.

    Examples
    --------
    >>> from forcopt.data import delaunay
    >>> p = Districting(delaunay(60, 1), districts=4, tolerance=0.1)
    >>> first = p.solve("local-search", restarts=1, seed=0)
    >>> p.solve("large-neighbourhood", start=first.decision).objective <= first.objective
    True
    """
    problem.require("large-neighbourhood", "cut")
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    plan = feasible_start(problem, start)
    if plan is None:
        first = local_search(problem, seed=seed, time_limit=deadline.left)
        if first.decision is None:
            return first
        plan = first.decision
    value = problem.evaluate(plan).objective
    trace.add(value, float("-inf"))
    done: set[frozenset[tuple[int, ...]]] = set()
    number = min(3, problem.districts - 1)
    improved = number > 1
    while improved and not trace.over:
        improved = False
        for chosen in combinations(range(problem.districts), number):
            nodes = np.flatnonzero(np.isin(plan.labels, chosen))
            parts = frozenset(tuple(np.flatnonzero(plan.labels == d).tolist()) for d in chosen)
            if parts in done or len(problem.arrays.components(nodes.tolist())) > 1:
                continue
            done.add(parts)
            labels = np.array(plan.labels)
            labels[nodes] = np.array(chosen)[_drawn(problem, nodes, labels[nodes], backend, deadline)]
            other = Plan.from_labels(problem, labels)
            found = problem.evaluate(other)
            improved = found.feasible and found.objective < value
            if improved:
                plan, value = other, found.objective
                trace.add(value, float("-inf"))
            if improved or trace.over:
                break
    return Outcome(plan, iterations=len(done), trace=trace.steps)


def _drawn(
    problem: Districting, nodes: Array, labels: Array, backend: str | None, deadline: Deadline
) -> Array:
    """Divide nodes into as many districts as labels, at least cost: numbers from 0 on."""
    graph, place = problem.arrays, {int(v): i for i, v in enumerate(nodes)}
    part: nx.Graph[int] = nx.Graph()
    part.add_nodes_from((i, {"population": int(graph.weights[v])}) for v, i in place.items())
    for (u, v), cost in zip(graph.edges.tolist(), graph.costs.tolist(), strict=True):
        if u in place and v in place:
            part.add_edge(place[u], place[v], cost=cost)
    links: list[MustLink | CannotLink] = []
    for group in problem.must_link:
        links += [MustLink(nodes=(place[u], place[v])) for u, v in pairwise(group) if u in place]
    for u, v in problem.cannot_link:
        if u in place and v in place:
            links.append(CannotLink(nodes=(place[u], place[v])))
    of = np.unique(labels, return_inverse=True)[1]
    local = Districting(
        part, districts=int(of.max()) + 1, bounds=problem.population_bounds, side_constraints=tuple(links)
    )
    start = Plan.from_labels(local, of)
    limit = _SECONDS if deadline.left is None else min(_SECONDS, deadline.left)
    drawn = column_generation(local, start=start, backend=backend, time_limit=limit).decision
    return np.asarray((start if drawn is None else drawn).labels)
