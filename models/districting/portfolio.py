"""A dispatcher: dual cycles for two districts, else heuristic, search, and columns or dynamic programming."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.clock import Deadline, Improvement, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.graphs.bits import LARGEST
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.models.districting.column_generation import column_generation
from forcopt.models.districting.dual_cycles import cycles_of, dual_cycles
from forcopt.models.districting.frontier import frontier, sweep_of
from forcopt.models.districting.jit_warmup import jit_warmup
from forcopt.models.districting.large_neighbourhood import large_neighbourhood
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.set_partitioning import set_partitioning
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["portfolio"]

_FEW = 20
"""Districts of this number of nodes on average are listed by reduced cost on nonplanar graphs."""

_LARGE = 8
"""Larger districts on average are listed by reduced cost, and only searched for if no plan is known."""

_HUGE = 50
"""Of larger districts on average, three are drawn anew at a time before the proof begins."""

_ROUNDS = ((1, 2_000, 3_000_000), (8, 10_000, 60_000_000))
"""Annealing schedules, their steps for each node, partial districts of the search; then the proof begins."""

_SMALL = 16
"""Problems of this number of nodes are left to the search."""


@Districting.algorithm(
    "portfolio",
    exact=True,
    cites="see the methods that it runs",
    prepare=jit_warmup("local-search", "set-partitioning", "column-generation", "frontier"),
)
def portfolio(
    problem: Districting,
    *,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Choose methods by the graph, each starting from the best plan and the best bound so far.

    Two districts of a connected planar graph are left to ``dual-cycles``. Otherwise a local search gives a
    plan. Set partitioning looks at some million partial districts on at most 128 nodes (before column
    generation only if districts are small or no plan is known). If districts hold more than 50 nodes on
    average, three at a time are drawn anew. A method with a bound follows for the objective ``cut``: column
    generation on connected planar graphs and where districts hold few nodes, else the dynamic program if
    frontiers hold at most 16 nodes, else the integer program ``labels-separators`` on HiGHS. The
    latter also follows for the objective ``splits``, and for ``deviation`` on more nodes. Other objectives
    are searched to the end, on at most 128 nodes.

    Parameters
    ----------
    problem : Districting
        With any objective and side constraints.
    time_limit : float, optional
        Seconds.
    seed : int or numpy.random.Generator, optional
        Of the local search.
    on_improvement : callable, optional
        Called with each better plan or bound; it stops the method by returning True.

    Returns
    -------
    Outcome
        The best plan and the best bound of all methods.

    Raises
    ------
    DeclarationError
        For the objective ``inertia`` on more than 128 nodes, or with different numbers of seats and `Fixed`.
    """
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)

    def note(step: Improvement) -> bool:
        last = trace.steps[-1] if trace.steps else None
        if last is None or step.objective < last.objective or step.bound > last.bound:
            value = step.objective if last is None else min(step.objective, last.objective)
            trace.add(value, step.bound if last is None else max(step.bound, last.bound))
        return trace.stopped

    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    searchable = _searchable(problem)
    finish = _last(problem)
    by_lists = finish is column_generation and len(problem.nodes) > _LARGE * problem.districts
    if not searchable and finish is None:
        raise DeclarationError(
            f"method 'portfolio' does not take the objective inertia here; {problem.inertia_takers}"
        )
    plan: Plan | None = None
    steps = 0

    def ended(outcome: Outcome) -> Outcome:
        outcome.trace, outcome.iterations = trace.steps, steps
        if trace.over and outcome.status in (Status.FEASIBLE, Status.LIMIT):
            outcome.message = trace.end  # not that of the method's share
        if outcome.status not in (None, Status.INFEASIBLE) and trace.steps:
            outcome.bound = max(trace.steps[-1].bound, -np.inf if outcome.bound is None else outcome.bound)
        return outcome

    if finish is dual_cycles and len(problem.nodes) > _SMALL:
        outcome = dual_cycles(problem, time_limit=deadline.left, seed=seed, on_improvement=note)
        steps += outcome.iterations
        if outcome.status in (None, Status.INFEASIBLE) or trace.over:
            return ended(outcome)
        plan, finish = outcome.decision, _wider(problem)  # the paths exceed the memory limit
    for number, (restarts, steps_each, budget) in enumerate(_ROUNDS[by_lists:], 1):
        left = deadline.left
        first = local_search(
            problem,
            restarts=restarts,
            steps=steps_each * len(problem.nodes),
            time_limit=left if left is None or finish is None else left / 3,
            seed=seed,
            on_improvement=note,
        )
        steps += first.iterations
        if plan is None or (
            first.decision is not None and _value(problem, first.decision) < _value(problem, plan)
        ):
            plan = first.decision
        if searchable and not trace.stopped and (plan is None or not by_lists):
            last = finish is None and number == len(_ROUNDS)
            left = deadline.left
            outcome = set_partitioning(
                problem,
                start=plan,
                budget=None if last else budget,
                time_limit=left if left is None or last else left / 4,
                seed=seed,
                on_improvement=note,
            )
            steps += outcome.iterations
            plan = outcome.decision
            if outcome.status in (None, Status.INFEASIBLE) or last:
                return ended(outcome)
        if trace.over:
            break
    limits = problem.shares or problem.split_limits or problem.unequal_seats
    huge = finish is column_generation and len(problem.nodes) > _HUGE * problem.districts
    if huge and plan is not None and problem.districts > 3 and not limits and not trace.over:
        left = deadline.left
        plan = large_neighbourhood(
            problem, start=plan, time_limit=None if left is None else left / 3, seed=seed, on_improvement=note
        ).decision
    if finish is None or trace.over:
        status = Status.LIMIT if plan is None else Status.FEASIBLE
        return ended(Outcome(plan, float("-inf"), status, steps, trace.end))
    outcome = finish(problem, start=plan, time_limit=deadline.left, seed=seed, on_improvement=note)
    steps += outcome.iterations
    return ended(outcome)


def _value(problem: Districting, plan: Plan) -> float:
    return problem.evaluate(plan).objective


def _searchable(problem: Districting) -> bool:
    """Whether set partitioning takes the problem."""
    seats = problem.unequal_seats and (problem.objective == "deviation" or bool(problem._fixed()))
    return len(problem.nodes) <= LARGEST and not seats


def _last(problem: Districting) -> Callable[..., Outcome] | None:
    """The method that runs to the end, if there is one for the objective."""
    if problem.objective == "splits":
        return _by_cuts
    if problem.objective != "cut":
        return None if _searchable(problem) or problem.objective == "inertia" else _by_cuts
    if problem.districts == 2:
        try:
            cycles_of(problem)
        except DeclarationError:
            return _wider(problem)
        return dual_cycles
    return _wider(problem)


def _wider(problem: Districting) -> Callable[..., Outcome]:
    """The same without dual cycles."""
    if len(problem.nodes) <= _FEW * problem.districts or (problem.districts > 2 and _planar(problem)):
        return column_generation
    try:
        sweep_of(problem)
    except DeclarationError:
        return _by_cuts
    return frontier


def _planar(problem: Districting) -> bool:
    """Whether districts can be listed as dual cycles."""
    try:
        PlanarDual.of(problem.arrays)
    except DeclarationError:
        return False
    return True


def _by_cuts(
    problem: Districting,
    *,
    start: Plan | None,
    time_limit: float | None,
    seed: int | np.random.Generator | None,
    on_improvement: OnImprovement,
) -> Outcome:
    """The integer program that takes the largest graphs, started from the plan known."""
    model = Model("plan")
    handles = problem.declare(model, "labels-separators")
    assert isinstance(handles.objective, Expression)
    model.minimize(handles.objective)
    known = None if start is None else handles.start_at(start)
    result = model.solve(time_limit=time_limit, seed=seed, start=known, on_improvement=on_improvement)
    plan = handles.decision(result) if result.status.has_solution else start
    if start is not None and plan is not None:
        better = problem.evaluate(plan).feasible and _value(problem, plan) < _value(problem, start)
        plan = plan if better else start
    if result.status is Status.INFEASIBLE and plan is None:
        return Outcome(None, float("inf"), Status.INFEASIBLE, result.iterations, result.message)
    if result.status is Status.OPTIMAL:
        return Outcome(plan, iterations=result.iterations)
    status = Status.LIMIT if plan is None else Status.FEASIBLE
    return Outcome(plan, result.bound, status, result.iterations, result.message)
