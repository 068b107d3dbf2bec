"""Exact schedules: queries of equal cost by min-cost flow and dynamic programs, few by enumeration."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_queries.schedule import QuerySchedule
from forcopt.problem import Outcome
from forcopt.status import Status


def _compile() -> None:
    from forcopt.graphs.interval_packing import heaviest_disjoint, heaviest_packing

    first, last, weight = np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1.0, 1.0, 1.0])
    heaviest_disjoint(first, last, weight)
    heaviest_packing(first, last, weight, 2)


def _capacity(problem: QuerySchedule, method: str) -> int:
    capacity = problem.capacity
    if capacity is None:
        raise DeclarationError(
            f"costs differ; method {method!r} needs equal ones: see 'milp' and 'local-ratio'"
        )
    return capacity


def _candidates(problem: QuerySchedule) -> Array:
    return np.flatnonzero(problem.one_of_each(problem.query_weights))


@QuerySchedule.algorithm(
    "min-cost-flow",
    exact=True,
    cites="Arkin and Silverberg (1987); Ahuja, Magnanti, Orlin (1993), section 9.7",
    prepare=_compile,
)
def min_cost_flow(problem: QuerySchedule, *, time_limit: float | None = None) -> Outcome:
    """Equal costs: successive shortest paths along the windows, one for each query that fits a window.

    O(Q log Q) for each path. Of queries that exclude each other in the stream's order, the heaviest stands
    for all. At the time limit the paths so far are a valid choice, and their gains bound the rest.
    """
    from forcopt.graphs.interval_packing import heaviest_packing

    deadline = Deadline(time_limit)
    capacity = _capacity(problem, "min-cost-flow")
    kept = _candidates(problem)
    first, last = (ends[kept] for ends in problem.touched)
    found = heaviest_packing(first, last, problem.query_weights[kept], capacity, deadline)
    return Outcome(
        problem.schedule(kept[found.chosen]),
        bound=None if found.complete else found.bound,
        status=Status.OPTIMAL if found.complete else Status.FEASIBLE,
        iterations=found.paths,
        message="" if found.complete else deadline.end,
    )


@QuerySchedule.algorithm("dynamic", exact=True, cites="weighted interval scheduling", prepare=_compile)
def dynamic(problem: QuerySchedule, *, time_limit: float | None = None) -> Outcome:
    """Equal costs of more than half a budget: at most one query a window, by dynamic programming.

    O(Q log Q).
    """
    from forcopt.graphs.interval_packing import heaviest_disjoint

    capacity = _capacity(problem, "dynamic")
    if capacity > 1:
        raise DeclarationError(
            f"a window can answer {capacity} queries; method 'dynamic' takes one: see 'min-cost-flow'"
        )
    if capacity == 0:
        return Outcome(problem.schedule([]))
    first, last = problem.touched
    return Outcome(problem.schedule(heaviest_disjoint(first, last, problem.query_weights)))


LARGEST = 30
"""More queries than this are refused."""


@QuerySchedule.algorithm("enumeration", exact=True, cites="depth-first search", rank="oracle")
def enumeration(problem: QuerySchedule, *, time_limit: float | None = None) -> Outcome:
    """Take or leave one query after the other, as long as the best could still be beaten.

    O(2^Q windows); at most 30 queries.
    """
    deadline = Deadline(time_limit)
    weights, (costs, budgets) = problem.query_weights, problem.units
    if len(weights) > LARGEST:
        raise DeclarationError(f"there are {len(weights)} queries; method 'enumeration' takes {LARGEST}")
    first, last = problem.touched
    group = problem.group_of_each
    order = np.argsort(-weights, kind="stable").tolist()
    rest = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    loads = np.zeros((len(costs), problem.data_model.windows), dtype=np.int64)
    best, chosen, visited = -1.0, [], 0
    taken: list[int] = []
    used: set[int] = set()

    def search(k: int, value: float) -> bool:
        nonlocal best, chosen, visited
        visited += 1
        if visited % 1024 == 0 and deadline.passed:
            return False
        if value > best:
            best, chosen = value, taken.copy()
        if k == len(order) or value + rest[k] <= best:
            return True
        j = order[k]
        window = np.s_[:, first[j] : last[j] + 1]
        loads[window] += costs[:, j, None]
        free = group[j] < 0 or group[j] not in used
        done = True
        if free and (loads[window] <= budgets[:, None]).all():
            taken.append(j)
            used.add(int(group[j]))
            done = search(k + 1, value + float(weights[j]))
            taken.pop()
            used.discard(int(group[j]))
        loads[window] -= costs[:, j, None]
        return done and search(k + 1, value)

    complete = search(0, 0.0)
    decision = problem.schedule(np.array(chosen, dtype=np.int64))
    if complete:
        return Outcome(decision, iterations=visited)
    bound = float(weights[problem.answerable].sum())
    return Outcome(decision, bound, Status.FEASIBLE, visited, deadline.end)
