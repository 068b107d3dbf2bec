"""Queries of different costs: at least a third of the optimum, a sixth with two budgets, by local ratio."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.models.adaptive_queries.ledger import fitted
from forcopt.models.adaptive_queries.schedule import QuerySchedule
from forcopt.problem import Outcome
from forcopt.status import Status


def _largest_distance(problem: QuerySchedule) -> float:
    outcome = local_ratio(problem)
    assert outcome.guarantee is not None
    return outcome.guarantee


@QuerySchedule.algorithm(
    "local-ratio",
    guarantee=_largest_distance,
    cites="Bar-Noy, Bar-Yehuda, Freund, Naor, Schieber (2001), section 4",
    rank="published",
)
def local_ratio(problem: QuerySchedule, *, time_limit: float | None = None) -> Outcome:
    """The better of the expensive queries and of the cheap ones: at least a third of the optimum.

    Queries that cost more than half of the budget exclude each other wherever they meet: their best choice is
    exact. The cheap ones go by local ratio, which gives at least half of their optimum. O(Q log Q). Other
    queries that fit are added, in the order of density. The bound adds the optimum of the expensive queries
    to the bound of local ratio.

    With budgets of both epsilon and delta, the cost of a query is its larger share of a budget, and the
    method gives at least a sixth of the optimum. Queries that answer together within both budgets have
    shares that sum to at most 2 in each window. So at most two expensive ones meet in a window, and such
    intervals are two sets of disjoint ones, each at most as heavy as the best set. A query of share s <= 1/2
    that local ratio charges w charges others ``w / (1 - s)`` for each unit of share: at most
    ``max(2 w / (1 - s), w (1 + (2 - s) / (1 - s))) <= 4 w`` to all queries that answer together, and at least
    w to the queries that it finds. If a query does not fit, one of its budgets lacks room.

    Of queries that exclude each other in the stream's order
    (`QuerySchedule.groups`), the cheaper are charged first, and charge the others in full: both shares of the
    optimum stay.
    """
    costs, budgets = problem.units
    from forcopt.graphs.interval_packing import heaviest_disjoint

    deadline = Deadline(time_limit)
    weights, (first, last) = problem.query_weights, problem.touched
    allowed = problem.answerable
    share = (costs / budgets[:, None]).max(axis=0)
    large = (2 * costs > budgets[:, None]).any(axis=0)
    expensive, cheap = np.flatnonzero(allowed & large), np.flatnonzero(allowed & ~large)
    exact = expensive[heaviest_disjoint(first[expensive], last[expensive], weights[expensive])]
    group = problem.group_of_each
    at = first[cheap], last[cheap]
    pushed, charges, complete = _charge(*at, weights[cheap], share[cheap], group[cheap], deadline)
    stack = cheap[pushed]
    found = np.flatnonzero(fitted(problem, stack[::-1]))
    bound = len(budgets) * (float(weights[exact].sum()) + 2 * charges)
    if not complete:
        bound = float(weights[allowed].sum())
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
        message="" if complete else f"{deadline.end}: no share of the optimum is proved",
    )


def _charge(
    first: Array, last: Array, weights: Array, share: Array, group: Array, deadline: Deadline
) -> tuple[Array, float, bool]:
    """Charge each query, by its last window, to the queries that end later and meet it.

    Returns the queries whose weight is left, in the order of their last windows; the sum of these weights;
    and whether the time sufficed.
    """
    order = np.lexsort((share, last))
    ends = last[order]
    before = np.searchsorted(ends, first[order], side="left")  # queries that end before this one begins
    charged = np.zeros(len(order) + 1)
    alike: dict[int, tuple[float, float]] = {}  # the charge of a group, and its part in `charged`
    pushed: list[int] = []
    total = 0.0
    left = weights[order].astype(float).tolist()
    for k, j in enumerate(order.tolist()):
        if k % 1024 == 0 and deadline.passed:
            return np.array(pushed, dtype=np.int64), total, False
        full, counted = alike.get(int(group[j]), (0.0, 0.0))
        rest = left[k] - share[j] * (charged[k] - charged[before[k]] - counted) - full
        charged[k + 1] = charged[k]
        if rest > 0:
            pushed.append(j)
            step = rest / (1 - share[j])
            charged[k + 1] += step
            total += rest
            if group[j] >= 0:
                alike[int(group[j])] = full + rest, counted + step
    return np.array(pushed, dtype=np.int64), total, True
