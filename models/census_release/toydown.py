"""ToyDown: least squares level by level, with counts of any sign or projected onto simplices."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.models.census_release.common import answered, demand
from forcopt.models.census_release.passes import check_clock, project_children
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.problem import Outcome


def _by_level(problem: ConsistentRelease, deadline: Deadline) -> Array:
    """Project each level onto the counts that the level before and the fixed counts below allow."""
    h = problem.hierarchy
    low, fixed = problem.floors[0]
    found = np.where(fixed, low, np.maximum(problem.noisy[0], low))
    for level in range(1, h.depth):
        check_clock(deadline)
        (low, fixed), (order, begin) = problem.floors[level], h.children[level - 1]
        columns = [
            project_children(
                order,
                begin,
                np.array(found[:, t]),
                np.array(problem.noisy[level][:, t]),
                np.array(low[:, t]),
                np.array(fixed[:, t]),
                not problem.nonnegative,
            )
            for t in range(problem.types)
        ]
        found = np.stack(columns, axis=1)
    return found


@ConsistentRelease.algorithm(
    "toydown", exact=True, cites="Cohen et al. (2021), Algorithm 2 and Theorem 2", rank="published"
)
def toydown(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real counts of any sign in top-down order: a unit's children share equally in their deficit, in O(n).

    The root keeps its noisy count. Children whose counts are fixed (invariants and zeros) take no share.
    """
    demand(problem, "toydown", order="top-down", nonnegative=False)
    return answered(problem, lambda: _by_level(problem, Deadline(time_limit)))


@ConsistentRelease.algorithm(
    "simplex", exact=True, cites="Cohen et al. (2021), section 3.3; Held et al. (1974)", rank="published"
)
def simplex(problem: ConsistentRelease, *, time_limit: float | None = None) -> Outcome:
    """Real nonnegative counts in top-down order, in O(n log n).

    The children of each unit are projected onto the simplex of the unit's count. A unit's count is at least
    the sum of the invariants below it, so that no level is infeasible.
    """
    demand(problem, "simplex", order="top-down", nonnegative=True)
    return answered(problem, lambda: _by_level(problem, Deadline(time_limit)))
