"""ToyDown: least squares level by level, in closed form."""

from __future__ import annotations

from forcopt.models.census_release.by_level import by_level
from forcopt.models.census_release.common import demand, infeasible
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.problem import Outcome

__all__ = ["toydown"]


@ConsistentRelease.algorithm(
    "toydown", exact=True, cites="Cohen et al. (2021), Algorithm 2 and Theorem 2", rank="published"
)
def toydown(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real counts of any sign in top-down order: a unit's children share equally in their deficit, in O(n).

    The root keeps its noisy count. Children whose counts are fixed (invariants and zeros) take no share.
    """
    demand(problem, "toydown", order="top-down", nonnegative=False)
    return infeasible(problem) or by_level(problem, time_limit)
