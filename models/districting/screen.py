"""Reasons why there is no plan: no district meets a share, or a limit on splits is below their bound."""

from __future__ import annotations

from math import floor

import networkx as nx
import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.graphs.weighted import component_labels
from forcopt.models.districting.cluster_search import _grow, _Prices
from forcopt.models.districting.clustering import CountyClustering
from forcopt.models.districting.clustering_bound import NoSuchDistrict
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.side_constraints import Share, SplitLimit
from forcopt.problem import Outcome
from forcopt.status import Status

_LOOKS = 20_000_000
"""Connected sets to look at from each first node."""

_MANY_LOOKS, _ENTRIES, _AT_ONCE = 500_000_000, 20_000_000, 10_000
"""As many looks, and about so many nodes of districts, where all are listed; how many are sifted at once."""

_SOME = 20
"""Districts to list from each first node while the greatest share is sought."""

_STEP = 1e-4
"""Shares are told in these steps."""


def districts_meeting(
    problem: Districting, share: Share, each: int, deadline: Deadline, whole: bool = False
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
    whole : bool, optional
        Whether a part of the list is of no use: more is looked at, and the list ends if it is not whole.

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
    n, (first, ends, _), high = g.size, g.links, max(high, 1)  # it is a factor, so not 0 where nobody lives
    if int(np.abs(row.weights).sum() + abs(row.low)) * high >= 2**62:
        return np.zeros((0, n), np.bool_), False
    order = np.argsort(-row.weights, kind="stable")
    rank = np.argsort(order)
    prices = _Prices(first, ends, g.weights, row.weights, row.weights * high, rank, low, high, 0)
    found, every, some = [np.zeros((0, n), np.bool_)], True, np.zeros((each, n), np.bool_)
    for root in order.tolist():
        if row.weights[root] < 0 <= row.low:
            break
        enough = each == 1 and len(found) > 1 and len(found[-1]) > 0
        if deadline.passed or enough or (whole and not every):
            every = False
            break
        some[:] = False
        count, left = _grow(prices, root, row.low - 1, some, 0, each, _MANY_LOOKS if whole else _LOOKS)
        found.append(some[:count].copy())
        every &= left > 0
    return np.concatenate(found), every


def completable(problem: Districting, share: Share, deadline: Deadline) -> tuple[Array, bool]:
    """List districts that meet a share, if the people of what they leave fit the other districts.

    Parameters
    ----------
    problem : Districting
        The problem.
    share : Share
        The share.
    deadline : Deadline
        Ends the list.

    Returns
    -------
    sets : ndarray of bool, shape (count, n)
        Those of least cost first.
    every : bool
        Whether these are all; else the list is of no use.
    """
    g, (low, high), k = problem.arrays, problem.population_bounds, problem.districts
    sets, every = districts_meeting(problem, share, _ENTRIES // max(g.size, 1), deadline, True)
    kept, (u, w), n = [np.zeros((0, g.size), np.bool_)], g.edges.T, g.size
    for begin in range(0, len(sets), _AT_ONCE):
        some = sets[begin : begin + _AT_ONCE]
        which, edge = np.nonzero(~(some[:, u] | some[:, w]))
        labels = component_labels(np.column_stack([which * n + u[edge], which * n + w[edge]]), some.size)
        people = np.bincount(labels, np.where(some, 0, g.weights).ravel())
        of = np.zeros(len(people), np.int64)
        of[labels] = np.arange(some.size) // n
        least, most = np.ceil(people / max(high, 1)), people // low if low else np.full(len(people), k)
        fits = (np.bincount(of, least > most) == 0) & (g.size - some.sum(axis=1) >= k - 1)
        kept.append(some[fits & (np.bincount(of, least) < k) & (np.bincount(of, most) >= k - 1)])
    found = np.concatenate(kept)
    return found[np.argsort((found[:, u] != found[:, w]) @ g.costs, kind="stable")], every


def screened(problem: Districting, deadline: Deadline) -> Outcome | None:
    """Give the outcome if no connected set meets a share, or a limit on splits is too low; else None.

    Parameters
    ----------
    problem : Districting
        The problem.
    deadline : Deadline
        Ends the searches.

    Returns
    -------
    Outcome or None
        Infeasible, with a reason, and for a share with a proof.
    """
    for share in (item for item in problem.side_constraints if isinstance(item, Share)):
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
    for item in (item for item in problem.side_constraints if isinstance(item, SplitLimit)):
        below = item.limit < problem.districts - 1  # no bound is above that
        if below and (least := least_splits(problem, deadline, item.attribute)) > item.limit:
            reason = f"every plan has at least {least} splits of {item.attribute!r}, by populations"
            return Outcome.infeasible(f"{reason}; {item!r} allows fewer")
    return None


def least_splits(problem: Districting, deadline: Deadline, attribute: str | None = None) -> int:
    """Bound the splits of counties from below, by populations and by clusters of counties.

    Parameters
    ----------
    problem : Districting
        With counties.
    deadline : Deadline
        Ends the search for clusters; the bound then is weaker.
    attribute : str, optional
        The node attribute that names the county; that of the problem by default.

    Returns
    -------
    int
        No plan has fewer splits.
    """
    units, g = problem.units(attribute or problem.county), problem.arrays
    people = np.bincount(units, g.weights).astype(np.int64)
    low, high = problem.population_bounds
    alone = int((-(-people // max(high, 1)) - 1).clip(min=0).sum())
    if problem.unequal_seats or low < 1:
        return alone
    counties: nx.Graph[int] = nx.Graph()
    counties.add_nodes_from((c, {"population": int(w)}) for c, w in enumerate(people))
    counties.add_edges_from((a, b) for a, b in units[g.edges].tolist() if a != b)
    clustering = CountyClustering(counties, problem.districts, bounds=(low, high))
    bound = clustering.solve("column-generation", time_limit=deadline.left, to_the_end=False).bound
    return max(alone, problem.districts - floor(bound)) if np.isfinite(bound) else alone
