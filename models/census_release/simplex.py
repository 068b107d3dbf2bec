"""Nonnegative ToyDown: projections onto simplices, level by level."""

from __future__ import annotations

from forcopt.models.census_release.by_level import by_level
from forcopt.models.census_release.common import demand, infeasible
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.problem import Outcome

__all__ = ["simplex"]


@ConsistentRelease.algorithm(
    "simplex", exact=True, cites="Cohen et al. (2021), section 3.3; Held et al. (1974)", rank="published"
)
def simplex(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real nonnegative counts in top-down order, in O(n log n).

    The children of each unit are projected onto the simplex of the unit's count. A unit's count is at least
    the sum of the invariants below it, so that no level is infeasible.
    """
    demand(problem, "simplex", order="top-down", nonnegative=True)
    return infeasible(problem) or by_level(problem, time_limit)
