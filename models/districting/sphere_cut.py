"""Exact dynamic programming along a sphere-cut decomposition."""

from __future__ import annotations

from itertools import pairwise

from forcopt.graphs.branch_decomposition import BranchDecomposition
from forcopt.graphs.sphere_cut import SphereCut
from forcopt.models.districting.dynamic import check_features, dynamic_program
from forcopt.models.districting.problem import Districting

__all__ = ["sphere_cut", "tables_of"]


def tables_of(problem: Districting, method: str = "sphere-cut") -> SphereCut:
    """The dynamic program of a problem with at least two nodes; each problem's is planned once.

    Raises
    ------
    DeclarationError
        For another objective, for a feature that the method does not take, or a width over 16.
    """
    check_features(problem, method)
    cached = problem.__dict__.get("_tables")
    if cached is None:
        chained = [(a, b) for group in problem.must_link for a, b in pairwise(group)]
        decomposition = BranchDecomposition.of(problem.arrays, [*problem.cannot_link, *chained])
        cached = SphereCut(
            decomposition, problem.windows.tolist(), problem.cannot_link, chained, problem.pair_limit
        )
        problem.__dict__["_tables"] = cached
    assert isinstance(cached, SphereCut)
    return cached


sphere_cut = dynamic_program(
    "sphere-cut",
    tables_of,
    "Dynamic programming along a branch decomposition from the radial graph, bounded by coarser runs.",
    cites="Cohen-Addad et al. (FORC 2021), Theorem 2",
)
