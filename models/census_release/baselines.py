"""Baselines of agencies and scripts: clip, round, whole problems level by level; and ToyDown."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.models.census_release import common
from forcopt.models.census_release.passes import check_clock, project_children
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.problem import Outcome


@ConsistentRelease.algorithm("clip", rank="published")
def clip(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real counts of any sign, with negative ones set to 0: this breaks the sums."""
    clock = Deadline(time_limit)
    found = common.real_optimum(problem.replace(integer=False, nonnegative=False), clock.left)
    if clock.passed:
        return common.out_of_time(clock)
    levels = [np.maximum(level, 0.0) if problem.nonnegative else level.copy() for level in found]
    if problem.integer:
        levels = [np.round(level) for level in levels]
    return Outcome(Release(problem.hierarchy, tuple(levels)))


@ConsistentRelease.algorithm("largest-remainder", rank="published")
def largest_remainder_rounding(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Round the real optimum from the root down: floors, and one more for the largest remainders.

    All sums, signs and whole invariants hold.
    """
    clock = Deadline(time_limit)

    def leaves() -> Array:
        real = common.real_optimum(problem, clock.left)
        check_clock(clock)
        return common.round_by_remainders(problem.hierarchy, real)

    return common.answered(problem, leaves)


def _by_level(problem: ConsistentRelease, deadline: Deadline) -> Array:
    """Project each level onto the counts that the level before and the fixed counts below allow."""
    h = problem.hierarchy
    low, fixed = problem.floors[0]
    found = np.where(fixed, low, np.maximum(problem.noisy[0], low))
    for level in range(1, h.depth):
        check_clock(deadline)
        (low, fixed), (order, begin) = problem.floors[level], h.children[level - 1]
        parts = (found, problem.noisy[level], low, fixed)
        by_type = ([np.array(part[:, t]) for part in parts] for t in range(problem.types))
        columns = [project_children(order, begin, *own, not problem.nonnegative) for own in by_type]
        found = np.stack(columns, axis=1)
    return found


@ConsistentRelease.algorithm(
    "toydown", exact=True, cites="Cohen et al. (2021), Algorithm 2 and Theorem 2", rank="published"
)
def toydown(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real counts of any sign in top-down order: a unit's children share equally in their deficit, in O(n).

    The root keeps its noisy count. Children whose counts are fixed (invariants and zeros) take no share.
    """
    common.demand(problem, "toydown", order="top-down", nonnegative=False, integer=False)
    return common.answered(problem, lambda: _by_level(problem, Deadline(time_limit)))


@ConsistentRelease.algorithm(
    "simplex", exact=True, cites="Cohen et al. (2021), section 3.3; Held et al. (1974)", rank="published"
)
def simplex(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real nonnegative counts in top-down order, in O(n log n).

    The children of each unit are projected onto the simplex of the unit's count. A unit's count is at least
    the sum of the invariants below it, so that no level is infeasible.
    """
    common.demand(problem, "simplex", order="top-down", nonnegative=True, integer=False)
    return common.answered(problem, lambda: _by_level(problem, Deadline(time_limit)))
