"""Leave the predictions as they are."""

from __future__ import annotations

import numpy as np

from forcopt.models.fair_postprocessing.problem import FairPostprocessing
from forcopt.problem import Outcome

__all__ = ["as_predicted"]


@FairPostprocessing.algorithm("as-predicted", exact=False)
def as_predicted(problem: FairPostprocessing) -> Outcome:
    """Leave the predictions as they are: the evaluation shows their error and how unfair they are."""
    probabilities = np.repeat([[0.0], [1.0]], len(problem.groups), axis=1)
    return Outcome(problem.postprocessor(probabilities))
