"""The linear program over the probabilities of predicting 1."""

from __future__ import annotations

import numpy as np

from forcopt.fairness import ERROR
from forcopt.language.model import Model
from forcopt.models.fair_postprocessing.problem import FairPostprocessing
from forcopt.problem import Handles

__all__ = ["lp"]


@FairPostprocessing.formulation("lp", exact=True, cites="Jagielski et al. (2019), LP (5) and (6)")
def lp(problem: FairPostprocessing, model: Model) -> Handles:
    """Linear program: 2 K probabilities, and for each rate of the notion one level and K rows.

    It is always feasible: a constant prediction has equal rates in all groups.

    Returns:
        ``probabilities``, shape ``(2, K)``; ``rates``, the `GroupRates` as expressions; ``error``;
        ``fairness``, the constraints of the notion.
    """
    name = model.unused_name("probability")
    labels = [f"{name}[{prediction},{group}]" for prediction in (0, 1) for group in problem.groups]
    probabilities = model.variable(name, shape=(2, len(problem.groups)), lower=0, upper=1, labels=labels)
    rates = problem.rates(probabilities)
    fairness = problem.constraint.rows(rates)
    model.subject_to(fairness)
    error = rates.overall(ERROR)
    return Handles(
        objective=error,
        # a solver may leave the bounds by its tolerance
        decision=lambda said: problem.postprocessor(np.clip(said[probabilities], 0.0, 1.0)),
        probabilities=probabilities,
        rates=rates,
        error=error,
        fairness=fairness,
    )
