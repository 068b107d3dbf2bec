"""Exact dynamic programming along a vertex order, bounded by its own coarser runs."""

from __future__ import annotations

from itertools import pairwise

from forcopt.graphs.frontier import Sweep
from forcopt.models.districting.dynamic import check_features, dynamic_program
from forcopt.models.districting.problem import Districting

__all__ = ["frontier", "sweep_of"]


def sweep_of(problem: Districting, method: str = "frontier") -> Sweep:
    """The sweep along a short-frontier order; each problem's is planned once.

    Raises
    ------
    DeclarationError
        For another objective, for a feature that the method does not take, or a frontier longer than 16.
    """
    check_features(problem, method)
    cached = problem.__dict__.get("_sweep")
    if cached is None:
        chained = [(a, b) for group in problem.must_link for a, b in pairwise(group)]
        cached = Sweep(
            problem.arrays, problem.windows.tolist(), cannot_link=problem.cannot_link, must_link=chained,
            limit=problem.pair_limit,
        )  # fmt: skip
        problem.__dict__["_sweep"] = cached
    assert isinstance(cached, Sweep)
    return cached


frontier = dynamic_program(
    "frontier",
    sweep_of,
    "Dynamic programming over the frontier of a vertex order, bounded by coarser runs of itself.",
    cites="Cohen-Addad et al. (FORC 2021), Theorem 2, on a path decomposition",
)
