"""Exact dynamic programming along a vertex order, bounded by its own coarser runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from forcopt.clock import OnImprovement
from forcopt.graphs.frontier import Sweep
from forcopt.models.districting.dynamic import decide
from forcopt.models.districting.jit_warmup import jit_warmup
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome

__all__ = ["frontier", "sweep_of"]


def sweep_of(problem: Districting, method: str = "frontier") -> Sweep:
    """The sweep along a short-frontier order; each problem's is planned once.

    Raises
    ------
    DeclarationError
        For another objective, for a feature that the method does not take, or a frontier longer than 16.
    """
    problem.require(method, "cut")
    cached = problem.__dict__.get("_sweep")
    if cached is None:
        low, high = problem.population_bounds
        chained = [(a, b) for group in problem.must_link for a, b in pairwise(group)]
        cached = Sweep(
            problem.arrays, low, high, problem.districts, cannot_link=problem.cannot_link, must_link=chained,
            limit=problem.pair_limit,
        )  # fmt: skip
        problem.__dict__["_sweep"] = cached
    assert isinstance(cached, Sweep)
    return cached


@Districting.algorithm(
    "frontier",
    exact=True,
    cites="Cohen-Addad et al. (FORC 2021), Theorem 2, on a path decomposition",
    prepare=jit_warmup("local-search", "frontier"),
)
def frontier(
    problem: Districting,
    *,
    start: Plan | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Dynamic programming over the frontier of a vertex order, bounded by coarser runs of itself.

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
    return decide(problem, lambda: sweep_of(problem), start, time_limit, seed, on_improvement)
