"""Exact dynamic programming along a sphere-cut decomposition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from forcopt.clock import OnImprovement
from forcopt.graphs.branch_decomposition import BranchDecomposition
from forcopt.graphs.sphere_cut import SphereCut
from forcopt.models.districting.dynamic import decide
from forcopt.models.districting.jit_warmup import jit_warmup
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome

__all__ = ["sphere_cut", "tables_of"]


def tables_of(problem: Districting) -> SphereCut:
    """The dynamic program of a problem with at least two nodes; each problem's is planned once.

    Raises
    ------
    DeclarationError
        For another objective, for a feature that the method does not take, or a width over 16.
    """
    problem.require("sphere-cut", "cut")
    cached = problem.__dict__.get("_tables")
    if cached is None:
        low, high = problem.population_bounds
        chained = [(a, b) for group in problem.must_link for a, b in pairwise(group)]
        decomposition = BranchDecomposition.of(problem.arrays, [*problem.cannot_link, *chained])
        cached = SphereCut(
            decomposition, low, high, problem.districts, problem.cannot_link, chained, problem.pair_limit
        )
        problem.__dict__["_tables"] = cached
    assert isinstance(cached, SphereCut)
    return cached


@Districting.algorithm(
    "sphere-cut",
    exact=True,
    cites="Cohen-Addad et al. (FORC 2021), Theorem 2",
    prepare=jit_warmup("local-search", "sphere-cut"),
)
def sphere_cut(
    problem: Districting,
    *,
    start: Plan | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Dynamic programming along a branch decomposition from the radial graph, bounded by coarser runs.

    See `forcopt.models.districting.dynamic.decide` for the bounds.

    Parameters
    ----------
    problem : Districting
        With the objective ``cut``, equal seats, and side constraints other than `Share` and `SplitLimit`.
    start : Plan, optional
        A feasible plan; only cheaper ones are sought. A local search gives one by default.
    time_limit : float, optional
        Seconds.
    seed : int or numpy.random.Generator, optional
        Of the local search.
    on_improvement : callable, optional
        Called with each better plan or bound; it stops the method by returning True.

    Returns
    -------
    Outcome
        With the bound of the last relaxation, if the time limit ends the method.
    """
    problem.require("sphere-cut", "cut")
    if len(problem.nodes) == 1 and not problem.infeasibility_reason():
        return Outcome(Plan.of(problem, [[0]]))
    return decide(problem, lambda: tables_of(problem), start, time_limit, seed, on_improvement)
