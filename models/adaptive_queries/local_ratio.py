"""Queries of different costs: at least a third of the optimum, by local ratio."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_queries.ledger import fitted
from forcopt.models.adaptive_queries.schedule import QuerySchedule
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["local_ratio"]


def _largest_distance(problem: QuerySchedule) -> float:
    outcome = local_ratio(problem)
    assert outcome.guarantee is not None
    return outcome.guarantee


@QuerySchedule.algorithm(
    "local-ratio",
    exact=False,
    guarantee=_largest_distance,
    cites="Bar-Noy, Bar-Yehuda, Freund, Naor, Schieber (2001), section 4",
)
def local_ratio(problem: QuerySchedule, *, time_limit: float | None = None) -> Outcome:
    """The better of the expensive queries and of the cheap ones: at least a third of the optimum.

    Queries that cost more than half of the budget exclude each other wherever they meet: their best choice is
    exact. The cheap ones go by local ratio, which gives at least half of their optimum. O(Q log Q). What fits
    besides is added, in the order of density. The bound adds the optimum of the expensive queries to the
    bound of local ratio. Where a stream lets queries exclude each other (`QuerySchedule.groups`), the bound
    still holds, but the third is not proved.
    """
    costs, budgets = problem.units
    if len(costs) > 1:
        raise DeclarationError("delta is given; method 'local-ratio' takes one budget")
    from forcopt.graphs.interval_packing import heaviest_disjoint

    weights, (first, last) = problem.query_weights, problem.touched
    allowed = problem.answerable
    share = costs[0] / budgets[0]
    expensive = np.flatnonzero(allowed & (2 * costs[0] > budgets[0]))
    cheap = np.flatnonzero(allowed & (2 * costs[0] <= budgets[0]))
    exact = expensive[heaviest_disjoint(first[expensive], last[expensive], weights[expensive])]
    pushed, twice = _charge(first[cheap], last[cheap], weights[cheap], share[cheap])
    stack = cheap[pushed]
    found = np.flatnonzero(fitted(problem, stack[::-1]))
    bound = float(weights[exact].sum()) + twice
    best = max(exact, found, key=lambda chosen: float(weights[chosen].sum()))
    price = share * (last - first + 1)
    rest = np.argsort(-weights / price, kind="stable")
    rest = rest[~np.isin(rest, best) & allowed[rest]]
    chosen = problem.schedule(fitted(problem, np.concatenate([best, rest])))
    value = float(weights[chosen.queries].sum())
    bound = max(min(bound, float(weights[allowed].sum())), value)
    return Outcome(
        chosen,
        bound=bound,
        status=Status.OPTIMAL if value >= bound else Status.APPROXIMATE,
        guarantee=bound - value,
    )


def _charge(first: Array, last: Array, weights: Array, share: Array) -> tuple[Array, float]:
    """Charge each query, by its last window, to those that end later and meet it.

    Returns the queries whose weight is left, in the order of their last windows, and twice the sum of these
    weights, which bounds the weight of every choice.
    """
    order = np.argsort(last, kind="stable")
    ends = last[order]
    before = np.searchsorted(ends, first[order], side="left")  # those that end before the query begins
    charged = np.zeros(len(order) + 1)
    pushed = []
    left = weights[order].astype(float).tolist()
    for k, j in enumerate(order.tolist()):
        rest = left[k] - share[j] * (charged[k] - charged[before[k]])
        charged[k + 1] = charged[k]
        if rest > 0:
            pushed.append(j)
            charged[k + 1] += rest / (1 - share[j])
    total = 2 * sum((charged[k + 1] - charged[k]) * (1 - share[j]) for k, j in enumerate(order.tolist()))
    return np.array(pushed, dtype=np.int64), float(total)
