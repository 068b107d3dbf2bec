"""Leave the predictions as they are."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.models.fair_postprocessing.problem import FairPostprocessing
from forcopt.problem import Outcome

__all__ = ["as_predicted"]


@FairPostprocessing.algorithm("as-predicted", rank="published")
def as_predicted(problem: FairPostprocessing, *, time_limit: float | None = None) -> Outcome:
    """Leave the predictions as they are: the evaluation shows their error and their disparity.

    Parameters
    ----------
    problem : FairPostprocessing
        The problem.
    time_limit : float, optional
        Seconds; the run is linear in the number of groups and stays below any limit of use.
    """
    Deadline(time_limit)  # refuses a malformed limit
    probabilities = np.repeat([[0.0], [1.0]], len(problem.groups), axis=1)
    return Outcome(problem.postprocessor(probabilities))
