"""Heuristic, then search, then dynamic programming, each starting from what the one before knows."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from forcopt.backends.base import Improvement
from forcopt.errors import DeclarationError
from forcopt.graphs.bits import LARGEST
from forcopt.graphs.states import WIDEST
from forcopt.models.districting.frontier import frontier, sweep_of
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.set_partitioning import set_partitioning
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["portfolio"]

_ROUNDS = ((1, 2_000, 0.25), (8, 10_000, 5.0))
"""Annealing schedules, their steps for each node, seconds of search; then comes the dynamic programme."""


@Districting.algorithm("portfolio", exact=True, cites="see local-search, set-partitioning and frontier")
def portfolio(
    problem: Districting,
    *,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: Callable[[Improvement], bool | None] | None = None,
) -> Outcome:
    """Local search for a plan to beat, some seconds of set partitioning, then the frontier with its bounds.

    The dynamic programme is for the objective ``cut`` and frontiers of at most 16 nodes, the search for at
    most 128 nodes; where one cannot, the other runs to the end.

    Args:
        problem: which.
        time_limit: seconds.
        seed: of the local search.
        on_improvement: called with each better plan; stop by returning True.

    Raises:
        DeclarationError: if neither can take the problem; the integer programmes can.
    """
    began = time.perf_counter()
    trace: list[Improvement] = []
    stopped = False

    def left() -> float | None:
        return None if time_limit is None else max(0.0, time_limit - (time.perf_counter() - began))

    def note(step: Improvement) -> bool:
        nonlocal stopped
        shifted = Improvement(time.perf_counter() - began, step.objective, step.bound)
        if not trace or step.objective < trace[-1].objective:
            trace.append(shifted)
            stopped = bool(on_improvement and on_improvement(shifted)) or stopped
        return stopped

    reason = problem.obstacle()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    searchable = len(problem.nodes) <= LARGEST
    sweepable = problem.objective == "cut" and _narrow(problem)
    if not searchable and not sweepable:
        raise DeclarationError(
            f"method 'portfolio' takes graphs of at most {LARGEST} nodes, or the objective cut on frontiers "
            f"of at most {WIDEST}; try the formulations 'separators' or 'flow'"
        )
    plan: Plan | None = None
    steps = 0
    for number, (restarts, steps_each, seconds) in enumerate(_ROUNDS, 1):
        first = local_search(
            problem,
            restarts=restarts,
            steps=steps_each * len(problem.nodes),
            time_limit=left(),
            seed=seed,
            on_improvement=note,
        )
        steps += first.iterations
        if plan is None or (
            first.decision is not None and _value(problem, first.decision) < _value(problem, plan)
        ):
            plan = first.decision
        if searchable and not stopped:
            limit = left()
            if sweepable or number < len(_ROUNDS):
                limit = seconds if limit is None else min(limit / 4, seconds)
            said = set_partitioning(problem, start=plan, time_limit=limit, seed=seed, on_improvement=note)
            steps += said.iterations
            plan = said.decision
            if said.status in (None, Status.INFEASIBLE) or (number == len(_ROUNDS) and not sweepable):
                said.trace, said.iterations = trace, steps
                return said
        if stopped:
            break
    if not sweepable or stopped:
        status = Status.LIMIT if plan is None else Status.FEASIBLE
        return Outcome(plan, float("-inf"), status, steps, "stopped", trace)
    said = frontier(problem, start=plan, time_limit=left(), seed=seed)
    if said.decision is not None:
        note(Improvement(0.0, problem.evaluate(said.decision).objective, float("-inf")))
    said.trace, said.iterations = trace, steps + said.iterations
    return said


def _value(problem: Districting, plan: Plan) -> float:
    return problem.evaluate(plan).objective


def _narrow(problem: Districting) -> bool:
    try:
        sweep_of(problem)
    except DeclarationError:
        return False
    return True
