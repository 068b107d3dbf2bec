"""Exact dynamic programming along a sphere-cut decomposition."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.graphs.branch_decomposition import BranchDecomposition
from forcopt.graphs.sphere_cut import SphereCut
from forcopt.models.districting.frontier import SMALL
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["sphere_cut", "tables_of"]


def tables_of(problem: Districting) -> SphereCut:
    """The dynamic programme of a problem with at least two nodes."""
    problem.require_cut("sphere-cut")
    low, high = problem.population_bounds
    chained = [(a, b) for group in problem.together for a, b in pairwise(group)]
    decomposition = BranchDecomposition.of(problem.arrays, [*problem.apart, *chained])
    return SphereCut(decomposition, low, high, problem.districts, problem.apart, chained)


@Districting.algorithm("sphere-cut", exact=True, cites="Cohen-Addad et al. (FORC 2021), Theorem 2")
def sphere_cut(
    problem: Districting,
    *,
    start: Plan | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
) -> Outcome:
    """Dynamic programming along a branch decomposition from the radial graph; a local search bounds it.

    Args:
        problem: with the objective ``cut``; a `CutLimit` only if every edge costs 1.
        start: a feasible plan to beat, instead of the local search's.
        time_limit: seconds; looked at after each cluster.
        seed: of the local search.
    """
    began = time.perf_counter()
    reason = problem.obstacle()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    tables = tables_of(problem) if len(problem.nodes) > 1 else None
    if tables is None:
        return Outcome(Plan.of(problem, [[0]]))
    plan = start
    if plan is None and len(problem.nodes) > SMALL:
        plan = local_search(problem, restarts=4, seed=seed, time_limit=time_limit).decision
    elif plan is not None and not problem.evaluate(plan).feasible:
        raise DeclarationError("start: the plan is not feasible; see evaluate(start).violations")
    most = problem.cut_limit
    if plan is not None:
        most = problem.arrays.cut_cost(plan.labels) - 1
    try:
        found = tables.cheapest(
            most, lambda: time_limit is not None and time.perf_counter() - began > time_limit
        )
    except TimeoutError:
        status = Status.LIMIT if plan is None else Status.FEASIBLE
        return Outcome(plan, 0.0, status, tables.states, "stopped by the time limit")
    if found is not None:
        plan = Plan.of(problem, found[1])
    if plan is None:
        message = "the dynamic programme ends without a plan"
        return Outcome(None, float("inf"), Status.INFEASIBLE, tables.states, message)
    return Outcome(plan, iterations=tables.states)
