"""Joint weighted least squares by two passes over the tree."""

from __future__ import annotations

from forcopt.clock import Deadline
from forcopt.models.census_release.common import demand, infeasible, out_of_time
from forcopt.models.census_release.passes import least_squares
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.problem import Outcome

__all__ = ["tree_wls"]


@ConsistentRelease.algorithm(
    "tree-wls",
    exact=True,
    cites="Hay, Rastogi, Miklau, Suciu (2010), Theorem 3, with weights",
    rank="published",
)
def tree_wls(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real counts of any sign in joint order: the best linear unbiased estimate, in O(n).

    Fixed counts (invariants and zeros) are measurements without variance.
    """
    demand(problem, "tree-wls", order="joint", nonnegative=False)
    if (none := infeasible(problem)) is not None:
        return none
    try:
        leaves = least_squares(
            problem.hierarchy, problem.noisy, list(problem.weights), problem.held, Deadline(time_limit)
        )
    except TimeoutError as error:
        return out_of_time(error)
    return Outcome(Release.of_leaves(problem.hierarchy, leaves))
