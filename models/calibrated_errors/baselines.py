"""Baselines: unchanged scores, and equal odds of the predictions without calibration."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.language.model import Model
from forcopt.models.calibrated_errors.decision import ScoreKernel
from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["as_predicted", "equal_odds"]


@CalibratedEqualErrors.algorithm("as-predicted", rank="published")
def as_predicted(problem: CalibratedEqualErrors, *, time_limit: float | None = None) -> Outcome:
    """Keep the scores.

    The cutoff k / (k + 1) minimizes the loss of a calibrated score, so no decision has a lower loss. The
    evaluation shows the disparity of the rates.

    Parameters
    ----------
    problem : CalibratedEqualErrors
        The problem.
    time_limit : float, optional
        Seconds; the run is linear in the number of scores and stays below any limit of use.
    """
    Deadline(time_limit)  # refuses a malformed limit
    kernels = {name: ScoreKernel.unchanged(*score) for name, score in problem.scores.items()}
    decision = problem.decision(kernels)
    errors = problem.evaluate(decision).objective
    return Outcome(decision, bound=errors if problem.relaxation is None else None)


@CalibratedEqualErrors.algorithm(
    "equal-odds", cites="Hardt, Price and Srebro (2016), sections 3.2 and 4", rank="published"
)
def equal_odds(
    problem: CalibratedEqualErrors, *, backend: str | None = None, time_limit: float | None = None
) -> Outcome:
    """Meet the constraint on the rates without calibration: the prediction itself is the new score.

    The loss is a lower bound on the loss of calibrated scores; the difference is the price of calibration.

    Parameters
    ----------
    problem : CalibratedEqualErrors
        The problem.
    backend : str, optional
        For the linear program, quadratic with a relaxation; a fitting one by default.
    time_limit : float, optional
        Seconds.
    """
    deadline = Deadline(time_limit)
    model = Model("equal odds")
    count = sum(score.shape[1] for score in problem.scores.values())
    accept = model.variable("accept", count, lower=0, upper=1)
    rates = problem.rates(accept)
    if problem.parity is not None:
        model.subject_to(problem.parity.rows(rates))
    model.minimize(problem.loss(rates))
    result = model.solve(backend, time_limit=deadline.left)
    if not result.status.has_solution:
        return Outcome(
            None, bound=result.bound, status=result.status, message=result.reason or result.message
        )
    ends = np.cumsum([score.shape[1] for score in problem.scores.values()])[:-1]
    accepted = np.split(np.clip(result[accept], 0.0, 1.0), ends)
    kernels = {
        name: ScoreKernel(values, masses, np.array([0.0, 1.0]), np.stack([1 - h, h], axis=1))
        for (name, (values, masses)), h in zip(problem.scores.items(), accepted, strict=True)
    }
    return Outcome(problem.decision(kernels), bound=result.bound, status=Status.APPROXIMATE)
