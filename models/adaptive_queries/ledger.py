"""The ledger of spent privacy: queries are answered in their order, as long as windows have budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_queries.data_models import DataModel
from forcopt.models.adaptive_queries.schedule import QuerySchedule
from forcopt.privacy import BudgetSpentError
from forcopt.problem import Outcome
from forcopt.status import Status

_UNITS = 10**18
"""Units in which the budget of a window counts."""


class QueryRefusedError(DeclarationError):
    """A query that the rules of the data model exclude; the message names the rule alone."""


class Ledger:
    """The budgets of all windows, spent query after query.

    Parameters
    ----------
    data_model : DataModel
        The data model; a model with a stream keeps its order.
    epsilon : float
        The budget of each window, above 0.

    Notes
    -----
    A segment tree holds the spent amounts: a question takes O(log windows). A window may spend more than its
    budget by ``1e-12`` of it, for the rounding of floats: six times 1 / 6 fits 1. Refusals depend on
    intervals and costs only.

    References
    ----------
    Du and Dwork (2022), conditions of Theorems 10, 12, 14 and 17.

    Examples
    --------
    >>> from forcopt.models.adaptive_queries import DecayingCorrelation
    >>> ledger = Ledger(DecayingCorrelation(attributes=6, independence=0.5, width=1), epsilon=1.0)
    >>> ledger.ask([3, 3], 0.4)
    >>> ledger.ask([4, 5], 0.4)
    >>> ledger.ask([1, 1], 0.4)
    Traceback (most recent call last):
    forcopt.privacy.accountant.BudgetSpentError: query [1, 1]: window 2 has spent 0.8 of 1;
    the query takes 0.4
    >>> ledger.spent.tolist()
    [0.4, 0.8, 0.8, 0.8, 0.8, 0.4]
    """

    def __init__(self, data_model: DataModel, epsilon: float) -> None:
        from forcopt.numeric.range_loads import RangeLoads

        if not (np.isfinite(epsilon) and epsilon > 0):
            raise DeclarationError(f"epsilon is {epsilon}; it must be above 0 and finite")
        self.data_model, self.epsilon = data_model, float(epsilon)
        self._loads = RangeLoads(data_model.windows, np.array([_UNITS + _UNITS // 10**12]))
        self._furthest = 0
        self._accepted: list[tuple[int, int, float]] = []

    @property
    def accepted(self) -> list[tuple[int, int, float]]:
        """First position, last position and cost of each accepted query, in order."""
        return list(self._accepted)

    @property
    def spent(self) -> Array:
        """The spent budget of each window, shape ``(windows,)``."""
        return np.asarray(self._loads.loads()[0] / _UNITS * self.epsilon)

    def ask(self, interval: Any, cost: float) -> None:
        """Enter a query, before it is answered.

        Parameters
        ----------
        interval : pair of int
            First and last position, from 1.
        cost : float
            Its epsilon, above 0.

        Raises
        ------
        QueryRefusedError
            If the data model refuses the interval, or it comes too late for the stream.
        BudgetSpentError
            If a window would be overspent; the ledger then stays unchanged.
        """
        pair, units = self._read([interval], [cost])
        name = f"query [{pair[0, 0]}, {pair[0, 1]}]"
        for rule in self.data_model.refusals(pair).values():
            raise QueryRefusedError(f"{name}: {rule}")
        if pair[0, 0] < self._furthest - self.data_model.behind:
            raise QueryRefusedError(
                f"{name}: the stream has passed it: after position {self._furthest}, queries begin at "
                f"{int(self._furthest - self.data_model.behind)} or later"
            )
        first, last = (int(ends[0]) for ends in self.data_model.touched(pair))
        if not self._loads.fit(first, last, units):
            spent = self._loads.loads()[0, first : last + 1]
            over = spent + units[0] > self._loads.budgets[0]
            window = first + int(np.argmax(np.where(over, spent, -1)))
            raise BudgetSpentError(
                f"{name}: window {window + 1} has spent "
                f"{spent[window - first] / _UNITS * self.epsilon:.12g} of {self.epsilon:g}; "
                f"the query takes {cost:g}"
            )
        self._furthest = max(self._furthest, int(pair[0, 1]))
        self._accepted.append((int(pair[0, 0]), int(pair[0, 1]), float(cost)))

    def ask_many(self, intervals: Any, costs: Any) -> Array:
        """Enter queries one after the other, without the queries that a rule or a window refuses.

        Parameters
        ----------
        intervals : array_like
            Shape ``(Q, 2)``.
        costs : array_like
            Above 0, one for all or shape ``(Q,)``.

        Returns
        -------
        Array
            Whether each query is accepted, shape ``(Q,)``. O(Q log windows), compiled.
        """
        pairs, units = self._read(intervals, costs)
        allowed = np.ones(len(pairs), dtype=bool)
        allowed[list(self.data_model.refusals(pairs))] = False
        took = np.zeros(len(pairs), dtype=bool)
        spends = np.broadcast_to(np.asarray(costs, dtype=float), len(pairs))
        if not np.isfinite(self.data_model.behind):
            order = np.flatnonzero(allowed)
            took = self._loads.first_fit(*self.data_model.touched(pairs), units[None, :], order)
        else:
            first, last = self.data_model.touched(pairs)
            for j in np.flatnonzero(allowed):  # whether a query is late depends on the accepted ones
                if pairs[j, 0] >= self._furthest - self.data_model.behind:
                    took[j] = self._loads.fit(int(first[j]), int(last[j]), units[j : j + 1])
                    if took[j]:
                        self._furthest = max(self._furthest, int(pairs[j, 1]))
        if took.any():
            self._furthest = max(self._furthest, int(pairs[took, 1].max()))
        self._accepted += list(
            zip(pairs[took, 0].tolist(), pairs[took, 1].tolist(), spends[took].tolist(), strict=True)
        )
        return took

    def _read(self, intervals: Any, costs: Any) -> tuple[Array, Array]:
        pairs = as_numbers(intervals, "the intervals")
        if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs != np.round(pairs)).any():
            raise DeclarationError("an interval must be two whole numbers: first and last position")
        spends = as_numbers(costs, "the costs")
        if spends.shape not in ((), (len(pairs),), (1,)) or (spends <= 0).any():
            raise DeclarationError(f"the costs must be above 0, one for all or {len(pairs)}")
        shares = np.minimum(spends / self.epsilon, 2.0)  # more than the budget is refused
        units = np.maximum(np.round(shares * _UNITS), 1).astype(np.int64)
        return pairs.astype(np.int64), np.broadcast_to(units, len(pairs))


def fitted(problem: QuerySchedule, order: Array) -> Array:
    """The queries that fit, tried in an order, shape ``(Q,)``; one of each group that excludes each other."""
    from forcopt.numeric.range_loads import RangeLoads

    costs, budgets = problem.units
    took = np.zeros(len(problem.intervals), dtype=bool)
    loads = RangeLoads(problem.data_model.windows, budgets)
    if not problem.groups:
        return took | loads.first_fit(*problem.touched, costs, np.asarray(order, dtype=np.int64))
    first, last = problem.touched
    group, used = problem.group_of_each, set()
    for j in np.asarray(order).tolist():
        if group[j] not in used and loads.fit(int(first[j]), int(last[j]), costs[:, j]):
            took[j] = True
            if group[j] >= 0:
                used.add(int(group[j]))
    return took


@QuerySchedule.algorithm("ledger", cites="order of arrival; Du and Dwork (2022)", rank="published")
def by_arrival(problem: QuerySchedule, *, time_limit: float | None = None) -> Outcome:
    """Answer each query as it comes, if its windows have budget and the stream has not passed it.

    An adaptive analyst, whose later queries are not known beforehand, gets these answers.
    """
    deadline = Deadline(time_limit)
    model, pairs = problem.data_model, problem.intervals
    if np.isfinite(model.behind):
        from forcopt.numeric.range_loads import RangeLoads

        costs, budgets = problem.units
        loads, furthest = RangeLoads(model.windows, budgets), 0
        first, last = problem.touched
        taken: list[int] = []
        for j in range(len(pairs)):
            if deadline.passed:
                break
            late = pairs[j, 0] < furthest - model.behind
            if not late and loads.fit(int(first[j]), int(last[j]), costs[:, j]):
                furthest = max(furthest, int(pairs[j, 1]))
                taken.append(j)
        chosen = np.array(taken, dtype=np.int64)
    else:
        chosen = np.flatnonzero(fitted(problem, np.arange(len(pairs))))
    message = deadline.end if deadline.passed else ""
    return Outcome(problem.schedule(chosen), _all(problem), Status.APPROXIMATE, message=message)


@QuerySchedule.algorithm("density", cites="greedy by density; Dantzig (1957)", rank="published")
def density(problem: QuerySchedule, *, time_limit: float | None = None) -> Outcome:
    """Answer queries in the order of weight for cost and touched windows, as long as they fit."""
    costs, budgets = problem.units
    first, last = problem.touched
    price = (costs / budgets[:, None]).max(axis=0) * (last - first + 1)
    order = np.argsort(-problem.query_weights / price, kind="stable")
    return Outcome(problem.schedule(fitted(problem, order)), bound=_all(problem), status=Status.APPROXIMATE)


def _all(problem: QuerySchedule) -> float:
    """The weight of all queries that could be answered one by one."""
    return float(problem.query_weights[problem.answerable].sum())
