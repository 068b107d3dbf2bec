"""The districts that meet a share: without one there is no plan, and plans begin with one."""

from __future__ import annotations

import networkx as nx
import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.graphs.connected_sets import ConnectedSets
from forcopt.models.districting.cluster_search import _grow, _Prices
from forcopt.models.districting.clustering_bound import NoSuchDistrict
from forcopt.models.districting.column_generation import column_generation
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.side_constraints import Share
from forcopt.problem import Outcome
from forcopt.status import Status

_LOOKS = 20_000_000
"""Connected sets to look at from each first node."""

_SOME = 20
"""Districts to list from each first node while the greatest share is sought."""

_WANTED = 50
"""Districts to list before plans are made around some."""

_SIDE = 3.0
"""The first boundary sought is this multiple of the square root of a district's nodes, in average edges."""

_WIDER = 1.15
"""The next one is this multiple of it."""

_TRIED = 6
"""The districts with the cheapest boundaries around which plans are made."""

_STEP = 1e-4
"""Shares are told in these steps."""


def shares(problem: Districting) -> list[Share]:
    """The shares that some district must meet."""
    return [item for item in problem.side_constraints if isinstance(item, Share)]


def districts_meeting(
    problem: Districting, share: Share, each: int, deadline: Deadline
) -> tuple[Array, bool]:
    """List connected sets within the population bounds that meet a share.

    Parameters
    ----------
    problem : Districting
        The problem.
    share : Share
        The share.
    each : int
        The number of sets to list from each first node; with 1, the list ends with the first set.
    deadline : Deadline
        Ends the list.

    Returns
    -------
    sets : ndarray of bool, shape (count, n)
        Sets that meet the share.
    every : bool
        Whether these are all.

    Notes
    -----
    A node's surplus is its group less the share of its total. A set grows from its node of the greatest
    surplus as long as the surpluses above 0 within reach could make up for those below 0.
    """
    g, (low, high), row = problem.arrays, problem.population_bounds, share.row(problem)
    n, (first, ends, _) = g.size, g.links
    if int(np.abs(row.weights).sum() + abs(row.low)) * max(high, 1) >= 2**62:
        return np.zeros((0, n), np.bool_), False
    order = np.argsort(-row.weights, kind="stable")
    rank = np.argsort(order)
    prices = _Prices(first, ends, g.weights, row.weights, row.weights * high, rank, low, high, 0)
    found, every, some = [np.zeros((0, n), np.bool_)], True, np.zeros((each, n), np.bool_)
    for root in order.tolist():
        if row.weights[root] < 0 <= row.low:
            break
        if deadline.passed or (each == 1 and len(found) > 1 and len(found[-1])):
            every = False
            break
        some[:] = False
        count, left = _grow(prices, root, row.low - 1, some, 0, each, _LOOKS)
        found.append(some[:count].copy())
        every &= left > 0
    return np.concatenate(found), every


def screened(problem: Districting, deadline: Deadline) -> Outcome | None:
    """Give the outcome if no connected set within the population bounds meets a share; else None.

    Parameters
    ----------
    problem : Districting
        The problem.
    deadline : Deadline
        Ends the search for the greatest share that a district can have.

    Returns
    -------
    Outcome or None
        Infeasible, with a reason and a proof.
    """
    for share in shares(problem):
        sets, every = districts_meeting(problem, share, 1, deadline)
        if len(sets) or not every:
            continue
        below, above = 0.0, share.at_least
        while every and above - below > _STEP and not deadline.passed:
            lower = share.model_copy(update={"at_least": round((below + above) / 2, 5)})
            sets, every = districts_meeting(problem, lower, _SOME, deadline)
            if len(sets):
                shares_of = (sets @ problem.numbers(share.attribute)) / (sets @ problem.numbers(share.total))
                below, every = max(lower.at_least, float(shares_of.max())), True
            else:
                above = lower.at_least
        best = f"the greatest is {below:.4f}" if every else f"one has {below:.4f}"
        message = (
            f"no connected set of {' to '.join(map(str, problem.population_bounds))} people has a share of "
            f"{share.at_least:g} of {share.attribute} in {share.total}; {best}"
        )
        return Outcome(None, float("inf"), Status.INFEASIBLE, message=message, proof=NoSuchDistrict(share))
    return None


def seeded(problem: Districting, seed: int | np.random.Generator | None, deadline: Deadline) -> Plan | None:
    """Make a plan around a district that meets a share: the others divide the rest at least cost.

    Parameters
    ----------
    problem : Districting
        With the objective ``cut``, equal seats, and one share.
    seed : int or numpy.random.Generator, optional
        Of the local search for the rest.
    deadline : Deadline
        Ends the search.

    Returns
    -------
    Plan or None
        The best plan found.
    """
    if problem.districts == 1:
        whole = Plan.from_labels(problem, np.zeros(len(problem.nodes), np.int64))
        return whole if problem.evaluate(whole).feasible else None
    share, g = shares(problem)[0], problem.arrays
    sets, cost = _cheap(problem, share, deadline)
    fewer = (share.model_copy(update={"districts": share.districts - 1}),) if share.districts > 1 else ()
    best, value, tried = None, np.inf, 0
    for i in np.argsort(cost, kind="stable").tolist():
        rest = np.flatnonzero(~sets[i])
        if len(g.components(rest.tolist())) > 1:
            continue
        tried += 1
        if tried > _TRIED or deadline.passed:
            break
        kept = nx.Graph(problem.graph.subgraph([problem.nodes[w] for w in rest]))
        costs = dict(zip(map(tuple, g.edges.tolist()), g.costs.tolist(), strict=True))
        for a, b in kept.edges:
            pair = sorted((problem.place[a], problem.place[b]))
            kept.edges[a, b]["cost"] = costs.get(tuple(pair), 0)
        others = problem.replace(
            graph=kept, districts=problem.districts - 1, tolerance=None, bounds=problem.population_bounds,
            cost="cost", seats=None, side_constraints=fewer, rules=(),
        )  # fmt: skip
        limit = None if deadline.left is None else deadline.left / 2
        start = seeded(others, seed, Deadline(limit)) if fewer else None
        found = column_generation(others, start=start, seed=seed, time_limit=limit).decision
        if found is None:
            continue
        labels = np.full(g.size, problem.districts - 1)
        labels[[problem.place[name] for name in found.assignment]] = list(found.assignment.values())
        plan = Plan.from_labels(problem, labels)
        evaluation = problem.evaluate(plan)
        if evaluation.feasible and evaluation.objective < value:
            best, value = plan, evaluation.objective
    return best


def _cheap(problem: Districting, share: Share, deadline: Deadline) -> tuple[Array, Array]:
    """Districts of cheap boundary that meet a share, and the costs of their boundaries.

    Surpluses are prizes, such that a district of the average surplus of the whole is not near a cheap one.
    """
    g, k, (low, high), row = problem.arrays, problem.districts, problem.population_bounds, share.row(problem)
    order = np.argsort(-row.weights, kind="stable")
    graph, edge = g.reordered(order.tolist()), float(g.costs.mean()) if len(g.costs) else 1.0
    most = _SIDE * edge * (g.size / k) ** 0.5
    prizes = row.weights[order] * (most / max(1.0, abs(float(row.weights.sum())) / k))
    kept, paid = [np.zeros((0, g.size), np.bool_)], [np.zeros(0, np.int64)]
    while sum(map(len, kept)) < _WANTED and most <= 2 * g.costs.sum() and not deadline.passed:
        kept, paid, search = kept[:1], paid[:1], ConnectedSets(graph, low, high, k, most, prizes)
        while not search.done and not deadline.passed:
            sets, costs = search.step()
            named = np.zeros_like(sets)
            named[:, order] = sets
            good = row.holds(named)
            kept.append(named[good])
            paid.append(costs[good])
        most *= _WIDER
    return np.concatenate(kept), np.concatenate(paid)
