"""All sets of criteria, for the tests: registers the method "enumeration" of both problems."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.strategic.problem import (
    LeastEffortClassification,
    OpenCriteria,
    StrategicClassification,
    StrategicGraph,
)
from forcopt.models.strategic.tolerances import ROUNDING
from forcopt.problem import Outcome
from forcopt.status import Status

MOST_CRITERIA = 20


@StrategicClassification.algorithm(
    "enumeration", exact=True, cites="Ahmadi et al. (2022), section 2.1", rank="oracle"
)
def enumerate_sets(problem: StrategicClassification, *, time_limit: float | None = None) -> Outcome:
    """Try all 2^m sets of criteria (m at most 20), every agent's response to all of them at once."""
    groups, deadline = problem.group_of, Deadline(time_limit)
    found = _outcomes(problem, groups, problem.group_count, deadline)
    if found is None:
        message = f"{deadline.end}; no criterion is open, which has the value 0"
        return Outcome(OpenCriteria(()), status=Status.FEASIBLE, message=message)
    true, false, _ = found
    allowed = np.flatnonzero(_within_limit(problem, false.sum(axis=0)))
    values = (true - problem.penalty * false)[:, allowed]
    # leximin: the smallest value first, then the next; lexsort's last key is its first
    best = np.lexsort(np.sort(values.round(9), axis=0)[::-1])[-1]
    return Outcome(_criteria(allowed[best], problem.criteria), iterations=true.shape[1])


@LeastEffortClassification.algorithm(
    "enumeration", exact=True, cites="Ahmadi et al. (2022), section 2.1", rank="oracle"
)
def enumerate_efforts(problem: LeastEffortClassification, *, time_limit: float | None = None) -> Outcome:
    """Try all 2^m sets of criteria (m at most 20), every agent's response to all of them at once."""
    deadline = Deadline(time_limit)
    found = _outcomes(problem, np.zeros(problem.agents, dtype=np.int64), 1, deadline)
    if found is None:
        return Outcome(None, status=Status.LIMIT, message=deadline.end)
    true, false, effort = found
    enough = true[0] >= problem.min_true_positives - ROUNDING
    allowed = np.flatnonzero(_within_limit(problem, false[0]) & enough)
    if not allowed.size:
        return Outcome(
            None,
            status=Status.INFEASIBLE,
            iterations=true.shape[1],
            message=f"no set of criteria has {problem.min_true_positives:g} true positives within the limit",
        )
    return Outcome(_criteria(allowed[np.argmin(effort[allowed])], problem.criteria), iterations=true.shape[1])


def _outcomes(
    problem: StrategicGraph, groups: Array, group_count: int, deadline: Deadline
) -> tuple[Array, Array, Array] | None:
    """True and false positives of each group, shape ``(groups, 2^m)``, and the effort, for every set of
    criteria; None after the deadline."""
    if problem.criteria > MOST_CRITERIA:
        raise DeclarationError(
            f"criteria is {problem.criteria}; enumeration tries 2^criteria sets, so it may be at most "
            f"{MOST_CRITERIA}"
        )
    graph, sets = problem.graph, np.arange(2**problem.criteria)
    true, false = np.zeros((group_count, len(sets))), np.zeros((group_count, len(sets)))
    effort = np.zeros(len(sets))
    for i, weight in enumerate(problem.agent_weights):
        if deadline.passed:
            return None
        waiting = np.ones(len(sets), dtype=bool)  # the sets where i has not met a criterion yet
        for e in range(graph.start[i], graph.start[i + 1]):
            meets = waiting & (sets >> graph.criterion[e] & 1 == 1)
            (true if graph.improves[e] else false)[groups[i], meets] += weight
            effort[meets] += weight * graph.cost[e]
            waiting &= ~meets
    return true, false, effort


def _within_limit(problem: StrategicGraph, false_positives: Array) -> Array:
    limit = np.inf if problem.max_false_positives is None else problem.max_false_positives
    return np.asarray(false_positives <= limit + ROUNDING)


def _criteria(number: int, criteria: int) -> OpenCriteria:
    return OpenCriteria(p for p in range(criteria) if number >> p & 1)
