"""Stage 1 as a program over the probability of accepting each score."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.fairness import FALSE_POSITIVE, TRUE_POSITIVE
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.calibrated_errors.decision import CalibratedScores
from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors, demands
from forcopt.problem import Handles

__all__ = ["lp", "qp"]


@CalibratedEqualErrors.formulation("lp", exact=True, cites="Reich and Vijaykumar (2021), (11), (13)")
def lp(problem: CalibratedEqualErrors, model: Model) -> Handles:
    """Linear program: a column for each value of each group; then stage 2 on the same backend.

    Returns
    -------
    Handles
        ``accept``, the probability of accepting each value of each group in turn; ``rates``, the `GroupRates`
        as expressions; ``loss``; ``fairness``, the constraints.

    Raises
    ------
    DeclarationError
        If there is a relaxation, which needs ``qp``.
    """
    if problem.relaxation is not None:
        raise DeclarationError("method 'lp' demands rates and has no penalty for relaxation; use 'qp'")
    return _stage_1(problem, model)


@CalibratedEqualErrors.formulation("qp", exact=True, cites="Reich and Vijaykumar (2021), (19), (20)")
def qp(problem: CalibratedEqualErrors, model: Model) -> Handles:
    """Convex quadratic program: differences of the rates are punished; then stage 2 on the same backend.

    It is always feasible unless there is a constraint too: the old scores are calibrated.

    Returns
    -------
    Handles
        As `lp`.

    Raises
    ------
    DeclarationError
        If there is no relaxation.
    """
    if problem.relaxation is None:
        raise DeclarationError(
            "method 'qp' needs a relaxation, the matrix of the penalty; without one use 'lp'"
        )
    return _stage_1(problem, model)


def _stage_1(problem: CalibratedEqualErrors, model: Model) -> Handles:
    count = sum(score.shape[1] for score in problem.scores.values())
    accept = model.variable(model.unused_name("accept"), count, lower=0, upper=1)
    rates = problem.rates(accept)
    fairness = demands(problem).rows(rates)
    model.subject_to(fairness)
    loss = problem.loss(rates)

    def stage_2(result: ModelSolution, deadline: Deadline) -> CalibratedScores:
        # The rates of a clipped point are within every group's reach, whatever the solver's tolerance.
        found = problem.rates(np.clip(result[accept], 0.0, 1.0))
        targets = np.stack([found.rate(FALSE_POSITIVE), found.rate(TRUE_POSITIVE)], axis=1)
        by_group = dict(zip(problem.groups, targets, strict=True))
        return problem.transported(by_group, result.backend, deadline)

    return Handles(
        objective=loss,
        decision=lambda result: stage_2(result, Deadline()),
        timed_decision=stage_2,
        accept=accept,
        rates=rates,
        loss=loss,
        fairness=fairness,
    )
