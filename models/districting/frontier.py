"""Exact dynamic programming along a vertex order, bounded by its own coarser runs."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.graphs.frontier import Bound, Sweep
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["SMALL", "frontier", "sweep_of"]

_FINER = (10, 20, 60, 200, 800)
"""Relaxations round weights to these fractions of the mean in turn, each bounded by the one before."""

SMALL = 16
"""So few nodes need no plan to beat and no bounds."""

_FEW = 20_000
"""States of a relaxation that are few enough to go on without a finer one."""


def sweep_of(problem: Districting, method: str = "frontier") -> Sweep:
    """The sweep along a short-frontier order; each problem's is planned once.

    Raises:
        DeclarationError: for another objective, a `CutLimit` with costs other than 1, or a frontier longer
            than 16.
    """
    problem.require_cut(method)
    cached = problem.__dict__.get("_sweep")
    if cached is None:
        low, high = problem.population_bounds
        chained = [(a, b) for group in problem.together for a, b in pairwise(group)]
        cached = Sweep(problem.arrays, low, high, problem.districts, apart=problem.apart, joined=chained)
        problem.__dict__["_sweep"] = cached
    assert isinstance(cached, Sweep)
    return cached


@Districting.algorithm(
    "frontier", exact=True, cites="Cohen-Addad et al. (FORC 2021), Theorem 2, on a path decomposition"
)
def frontier(
    problem: Districting,
    *,
    start: Plan | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
) -> Outcome:
    """Dynamic programming over the frontier of a vertex order, bounded by coarser runs of itself.

    A local search gives a cost to beat. The same programme with populations left out, then rounded ever more
    finely, gives for each state a bound on the cost of what is left; only states that may still beat it are
    kept.

    Args:
        problem: with the objective ``cut``.
        start: a feasible plan to beat, instead of the local search's.
        time_limit: seconds; looked at after each vertex.
        seed: of the local search.
    """
    began = time.perf_counter()
    reason = problem.obstacle()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    sweep = sweep_of(problem)
    plan = start
    if plan is None and len(problem.nodes) > SMALL:
        plan = local_search(problem, restarts=4, seed=seed, time_limit=time_limit).decision
    elif plan is not None and not problem.evaluate(plan).feasible:
        raise DeclarationError("start: the plan is not feasible; see evaluate(start).violations")
    most = problem.cut_limit
    if plan is not None:
        most = problem.arrays.cut_cost(plan.labels) - 1
    states = 0
    least = 0

    def late() -> bool:
        return time_limit is not None and time.perf_counter() - began > time_limit

    try:
        bound: Bound | None = None
        if len(problem.nodes) > SMALL:
            for parts in (None, *_FINER):
                unit = None if parts is None else int(problem.mean / parts)
                if unit is not None and unit < 2:
                    break
                bound = sweep.relaxation(unit, most, bound, late)
                states += sweep.states
                if bound is None:
                    return _settled(problem, plan, states)
                least = max(least, bound.least)
                if unit is not None and sum(map(len, bound.costs)) < _FEW:
                    break
        found = sweep.cheapest(most, bound, late)
    except (TimeoutError, MemoryError) as stop:
        status = Status.LIMIT if plan is None else Status.FEASIBLE
        message = str(stop) or "stopped by the time limit"
        return Outcome(plan, least / problem.cost_scale, status, states, message)
    states += sweep.states
    if found is None:
        return _settled(problem, plan, states)
    return Outcome(Plan.of(problem, found[1]), iterations=states)


def _settled(problem: Districting, plan: Plan | None, states: int) -> Outcome:
    """No plan beats the one known."""
    if plan is None:
        message = "the dynamic programme ends without a plan"
        return Outcome(None, float("inf"), Status.INFEASIBLE, states, message)
    return Outcome(plan, iterations=states)
