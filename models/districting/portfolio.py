"""Heuristic, search, then columns or dynamic programming, each starting from what the one before knows."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from forcopt.clock import Improvement
from forcopt.errors import DeclarationError
from forcopt.graphs.bits import LARGEST
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.models.districting.column_generation import column_generation
from forcopt.models.districting.frontier import frontier, sweep_of
from forcopt.models.districting.jit_warmup import jit_warmup
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.set_partitioning import set_partitioning
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["portfolio"]

_FEW = 20
"""Districts of so many nodes on average are few enough to enumerate by reduced cost."""

_ROUNDS = ((1, 2_000, 0.25), (8, 10_000, 5.0))
"""Annealing schedules, their steps for each node, seconds of search; then comes the dynamic program."""


@Districting.algorithm(
    "portfolio",
    exact=True,
    cites="see local-search, set-partitioning and frontier",
    prepare=jit_warmup("local-search", "set-partitioning", "column-generation", "frontier"),
)
def portfolio(
    problem: Districting,
    *,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: Callable[[Improvement], bool | None] | None = None,
) -> Outcome:
    """Local search for a plan to beat, some seconds of set partitioning, then columns or the frontier.

    What is left after the search is for the objective ``cut``: column generation where districts hold few
    nodes; where they hold many, the dynamic program if frontiers are of at most 16 nodes, and else the
    integer program ``labels-separators`` on HiGHS, started from the best plan. Other objectives are
    searched to the end, on at most 128 nodes.

    Parameters
    ----------
    problem : Districting
        Which.
    time_limit : float, optional
        Seconds.
    seed : int or numpy.random.Generator, optional
        Of the local search.
    on_improvement : Callable[[Improvement], bool | None], optional
        Called with each better plan; stop by returning True.

    Raises
    ------
    DeclarationError
        For another objective than ``cut`` on more than 128 nodes; the integer programs take that.
    """
    began = time.perf_counter()
    trace: list[Improvement] = []
    stopped = False

    def left() -> float | None:
        return None if time_limit is None else max(0.0, time_limit - (time.perf_counter() - began))

    def note(step: Improvement) -> bool:
        nonlocal stopped
        shifted = Improvement(time.perf_counter() - began, step.objective, step.bound)
        if not trace or step.objective < trace[-1].objective or step.bound > trace[-1].bound:
            trace.append(shifted)
            stopped = bool(on_improvement and on_improvement(shifted)) or stopped
        return stopped

    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    searchable = len(problem.nodes) <= LARGEST
    finish = _last(problem)
    if not searchable and finish is None:
        raise DeclarationError(
            f"method 'portfolio' takes graphs of at most {LARGEST} nodes, or the objective cut; "
            "try the formulations 'separators' or 'shirabe'"
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
            if finish is not None or number < len(_ROUNDS):
                limit = seconds if limit is None else min(limit / 4, seconds)
            said = set_partitioning(problem, start=plan, time_limit=limit, seed=seed, on_improvement=note)
            steps += said.iterations
            plan = said.decision
            if said.status in (None, Status.INFEASIBLE) or (number == len(_ROUNDS) and finish is None):
                said.trace, said.iterations = trace, steps
                return said
        if stopped:
            break
    if finish is None or stopped:
        status = Status.LIMIT if plan is None else Status.FEASIBLE
        return Outcome(plan, float("-inf"), status, steps, "stopped", trace)
    said = finish(problem, start=plan, time_limit=left(), seed=seed, on_improvement=note)
    said.trace, said.iterations = trace, steps + said.iterations
    return said


def _value(problem: Districting, plan: Plan) -> float:
    return problem.evaluate(plan).objective


def _last(problem: Districting) -> Callable[..., Outcome] | None:
    """The method that runs to the end, if there is one for the objective."""
    try:
        problem.require_cut("portfolio")
    except DeclarationError:
        return None
    if len(problem.nodes) > _FEW * problem.districts:
        try:
            sweep_of(problem)
        except DeclarationError:
            return _by_cuts
        return frontier
    return column_generation


def _by_cuts(
    problem: Districting,
    *,
    start: Plan | None,
    time_limit: float | None,
    seed: int | np.random.Generator | None,
    on_improvement: Callable[[Improvement], bool | None],
) -> Outcome:
    """The integer program that takes the largest graphs, started from the plan known."""
    model = Model("plan")
    handles = problem.declare(model, "labels-separators")
    assert isinstance(handles.objective, Expression)
    model.minimize(handles.objective)
    known = None if start is None else handles.start_at(start)
    said = model.solve(time_limit=time_limit, seed=seed, start=known, on_improvement=on_improvement)
    plan = handles.decision(said) if said.status.has_solution else start
    if start is not None and plan is not None:
        better = problem.evaluate(plan).feasible and _value(problem, plan) < _value(problem, start)
        plan = plan if better else start
    if said.status is Status.INFEASIBLE and plan is None:
        return Outcome(None, float("inf"), Status.INFEASIBLE, said.iterations, said.message)
    if said.status is Status.OPTIMAL:
        return Outcome(plan, iterations=said.iterations)
    status = Status.LIMIT if plan is None else Status.FEASIBLE
    return Outcome(plan, said.bound, status, said.iterations, said.message)
