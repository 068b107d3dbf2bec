"""Methods for schedules: the ledger of spent privacy in some order, programs, flows, and local ratios."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, require
from forcopt.language import Model, Variable
from forcopt.loops.solution import ModelSolution
from forcopt.models.adaptive_queries.data_models import DataModel
from forcopt.models.adaptive_queries.schedule import QuerySchedule, Schedule
from forcopt.models.adaptive_queries.tolerances import CHOSEN
from forcopt.privacy import BudgetSpentError
from forcopt.problem import Handles, Outcome
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
    forcopt.privacy.ledger.BudgetSpentError: query [1, 1]: window 2 has spent 0.8 of 1;
    the query takes 0.4
    >>> ledger.spent.tolist()
    [0.4, 0.8, 0.8, 0.8, 0.8, 0.4]
    """

    def __init__(self, data_model: DataModel, epsilon: float) -> None:
        from forcopt.numeric.range_loads import RangeLoads

        require(np.isfinite(epsilon) and epsilon > 0, "epsilon", epsilon, "be above 0 and finite")
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
        taken = zip(*pairs[took].T.tolist(), spends[took].tolist(), strict=True)
        self._accepted += list(taken)
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


@QuerySchedule.algorithm(
    "min-cost-flow",
    exact=True,
    cites="Arkin and Silverberg (1987); Ahuja, Magnanti, Orlin (1993), section 9.7",
)
def min_cost_flow(problem: QuerySchedule, *, time_limit: float | None = None) -> Outcome:
    """Equal costs: successive shortest paths along the windows, one for each query that fits a window.

    O(Q log Q) for each path; where one query fits, a dynamic program finds the path. Of queries that exclude
    each other in the stream's order, the heaviest stands for all. At the time limit the paths so far are a
    valid choice, and their gains bound the rest.
    """
    from forcopt.graphs.interval_packing import heaviest_disjoint, heaviest_packing

    deadline = Deadline(time_limit)
    capacity = problem.capacity
    if capacity is None:
        raise DeclarationError("costs differ; 'min-cost-flow' needs equal ones: see 'milp' and 'local-ratio'")
    kept = np.flatnonzero(problem.one_of_each(problem.query_weights))
    first, last = (ends[kept] for ends in problem.touched)
    weights = problem.query_weights[kept]
    if capacity == 1:
        return Outcome(problem.schedule(kept[heaviest_disjoint(first, last, weights)]), iterations=1)
    found = heaviest_packing(first, last, weights, capacity, deadline)
    decision, done = problem.schedule(kept[found.chosen]), found.complete
    if done:
        return Outcome(decision, status=Status.OPTIMAL, iterations=found.paths)
    return Outcome(decision, found.bound, Status.FEASIBLE, found.paths, deadline.end)


@QuerySchedule.formulation("milp", exact=True, cites="Du and Dwork (2022), Theorems 10, 12, 14, 17; packing")
def milp(problem: QuerySchedule, model: Model) -> Handles:
    """A binary for each query.

    Returns
    -------
    Handles
        ``answered``, shape ``(Q,)``.
    """
    return _write(problem, model, relaxed=False)


@QuerySchedule.formulation("lp", cites="consecutive ones: Fulkerson and Gross (1965)", whole="milp")
def lp(problem: QuerySchedule, model: Model) -> Handles:
    """A fraction of each query; whole at a vertex if all queries cost the same.

    Fractions are rounded down to the queries that fit, in the order of their fractions. The bound is the
    optimum over fractions.

    Returns
    -------
    Handles
        ``answered``, shape ``(Q,)``.
    """
    return _write(problem, model, relaxed=True)


def _write(problem: QuerySchedule, model: Model, relaxed: bool) -> Handles:
    costs, budgets = problem.units
    first, last = problem.touched
    capacity = problem.capacity
    possible = problem.answerable
    most, name = possible.astype(float), model.unused_name("answered")
    z = model.variable(name, len(first), lower=0, upper=most, integer=not relaxed)
    rows, columns = incidence(first, last)
    weights = problem.query_weights
    top = float(weights.max())
    # solvers' tolerances are absolute: the weights that count should be neither tiny nor huge
    unit = 1.0 if top == 0 or 1e-2 <= top <= 1e6 else 2.0 ** np.floor(np.log2(top))
    starts, row = np.unique(rows, return_inverse=True)
    shape = (len(starts), len(first))
    if capacity is not None:  # whole coefficients: the relaxation has whole vertices
        matrix = sp.csr_array((np.ones(len(rows)), (row.ravel(), columns)), shape=shape)
        model.subject_to(matrix @ z <= max(capacity, 0), name=model.unused_name("budget"))
    else:
        for each, budget in zip(costs, budgets, strict=True):
            common = int(np.gcd.reduce(np.append(each, budget))) or 1
            if budget // common <= 2**30:  # whole rows: solvers' tolerances are below a unit
                coefficients, room = each // common, float(budget // common)
            else:
                coefficients, room = each / budget, 1.0
            matrix = sp.csr_array((coefficients[columns].astype(float), (row.ravel(), columns)), shape=shape)
            model.subject_to(matrix @ z <= room, name=model.unused_name("budget"))
    for group in problem.groups:
        model.subject_to(z[group].sum() <= 1, name=model.unused_name("one_of_a_group"))

    def decision(result: ModelSolution) -> Schedule:
        values = result[z]
        chosen = values > 0.5
        if relaxed or problem.evaluate(np.flatnonzero(chosen)).violations:
            order = np.lexsort((-weights, -np.round(values, 6)))
            chosen = fitted(problem, order[values[order] > CHOSEN])
        return problem.schedule(chosen)

    def start(decision: Schedule | Array) -> dict[Variable, Array]:
        queries = decision.queries if isinstance(decision, Schedule) else np.asarray(decision, dtype=np.int64)
        problem.evaluate(queries)
        values = np.zeros(len(first))
        values[queries] = 1
        return {z: values}

    return Handles((z * (weights / unit)).sum(), decision, start, unit=unit, answered=z)


def incidence(first: Array, last: Array) -> tuple[Array, Array]:
    """Pair the windows with the queries on them.

    All windows have the same budget. If one is overspent, so is one where a query begins. Others are left
    out.

    Parameters
    ----------
    first, last : Array
        The first and the last window of each query, shape ``(Q,)``.

    Returns
    -------
    windows, queries : Array
        One entry of each for a pair.
    """
    starts = np.unique(first)
    low = np.searchsorted(starts, first)
    count = np.searchsorted(starts, last, side="right") - low
    columns = np.repeat(np.arange(len(first)), count)
    offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return starts[np.repeat(low, count) + offset], columns


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
    status = Status.OPTIMAL if value >= bound else Status.APPROXIMATE
    message = "" if complete else f"{deadline.end}: no share of the optimum is proved"
    return Outcome(chosen, bound, status, message=message, guarantee=bound - value)


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
