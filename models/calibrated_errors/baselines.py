"""What others do: leave the scores alone, or equalise the predictions and forget the scores."""

from __future__ import annotations

import numpy as np

from forcopt.language.model import Model
from forcopt.models.calibrated_errors.decision import ScoreKernel
from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["as_predicted", "equal_odds"]


@CalibratedEqualErrors.algorithm("as-predicted", exact=False)
def as_predicted(problem: CalibratedEqualErrors) -> Outcome:
    """Keep the scores: accuracy alone, or calibration alone, which is the same.

    A calibrated score is best used with the cutoff k / (k + 1), so nothing has a lower loss; the evaluation
    shows how unequal the rates are.
    """
    kernels = {name: ScoreKernel.unchanged(*score) for name, score in problem.scores.items()}
    decision = problem.decision(kernels)
    errors = problem.evaluate(decision).objective
    return Outcome(decision, bound=errors if problem.relaxation is None else None)


@CalibratedEqualErrors.algorithm(
    "equal-odds", exact=False, cites="Hardt, Price and Srebro (2016), sections 3.2 and 4"
)
def equal_odds(problem: CalibratedEqualErrors, *, backend: str | None = None) -> Outcome:
    """Meet the constraint on the rates without calibration: the prediction itself is the new score.

    Its loss is a lower bound on that of calibrated scores; the difference is the price of calibration.
    """
    model = Model("equal odds")
    count = sum(score.shape[1] for score in problem.scores.values())
    accept = model.variable("accept", count, lower=0, upper=1)
    rates = problem.rates(accept)
    if problem.parity is not None:
        model.subject_to(problem.parity.rows(rates))
    model.minimize(problem.loss(rates))
    said = model.solve(backend or "highs")
    if not said.status.has_solution:
        return Outcome(None, status=said.status, message=said.message)
    ends = np.cumsum([score.shape[1] for score in problem.scores.values()])[:-1]
    accepted = np.split(np.clip(said[accept], 0.0, 1.0), ends)
    kernels = {
        name: ScoreKernel(values, masses, np.array([0.0, 1.0]), np.stack([1 - h, h], axis=1))
        for (name, (values, masses)), h in zip(problem.scores.items(), accepted, strict=True)
    }
    return Outcome(problem.decision(kernels), bound=said.bound, status=Status.APPROXIMATE)
