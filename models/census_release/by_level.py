"""The walk of ToyDown from the root to the leaves."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.models.census_release.common import out_of_time
from forcopt.models.census_release.passes import check_clock, project_children
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.problem import Outcome

__all__ = ["by_level"]


def by_level(problem: ConsistentRelease, time_limit: float | None) -> Outcome:
    """Project each level onto the counts that the level before and the fixed counts below allow."""
    h, deadline = problem.hierarchy, Deadline(time_limit)
    low, fixed = problem.floors[0]
    found = np.where(fixed, low, np.maximum(problem.noisy[0], low))
    try:
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
    except TimeoutError as error:
        return out_of_time(error)
    return Outcome(Release.of_leaves(h, found))
