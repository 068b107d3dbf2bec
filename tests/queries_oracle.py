"""Brute force for the tests of query schedules, as the method ``enumeration``."""

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_queries.schedule import QuerySchedule
from forcopt.problem import Outcome
from forcopt.status import Status

LARGEST = 30


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
