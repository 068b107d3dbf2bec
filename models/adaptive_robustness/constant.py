"""One label everywhere: never wrong by geometry, and best once all balls meet."""

from __future__ import annotations

import numpy as np

from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes, RobustClassifier
from forcopt.problem import Outcome

__all__ = ["constant"]


def constant_loss(problem: RobustBayes) -> tuple[RobustClassifier, float]:
    """The best constant classifier and its loss."""
    safe = np.zeros(problem.masses.shape, dtype=bool)
    total = problem.masses.sum(axis=0)
    safe[:, int(total.argmax())] = True
    return problem.classifier(safe), float(problem.masses[~safe].sum())


@RobustBayes.algorithm("constant", cites="Chowdhury, Urner (2022), section 3", rank="published")
def constant(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Predict the likeliest label everywhere; the bound is the Bayes risk.

    Parameters
    ----------
    problem : RobustBayes
        Which.
    time_limit : float, optional
        Of no effect on a closed form.
    """
    decision, loss = constant_loss(problem)
    return Outcome(decision, min(problem.bayes_risk, loss))
