"""Stage 1: programs over the probability of accepting each score, exact polygons, and baselines."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.fairness import FALSE_POSITIVE, TRUE_POSITIVE
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.calibrated_errors.decision import CalibratedScores, ScoreKernel
from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors, demands
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


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
        raise DeclarationError("method 'qp' needs a relaxation, the penalty's matrix; else use 'lp'")
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

    parts: dict[str, Any] = {"accept": accept, "rates": rates, "loss": loss, "fairness": fairness}
    return Handles(loss, lambda result: stage_2(result, Deadline()), timed_decision=stage_2, **parts)


@CalibratedEqualErrors.algorithm(
    "polygon",
    exact=True,
    cites="Reich and Vijaykumar (2021), Theorem 4 and Corollary 5; corrected",
    rank="published",
)
def polygon(
    problem: CalibratedEqualErrors, *, backend: str | None = None, time_limit: float | None = None
) -> Outcome:
    """Find the best vertex of the exact polygon of feasible rates; then solve stage 2 on the backend.

    It needs equal odds and no relaxation. The polygon takes O(N log N) operations on fractions for N scores.

    Parameters
    ----------
    backend : str, optional
        For the linear programs of stage 2.
    """
    deadline = Deadline(time_limit)
    try:
        rates = problem.best_rates(deadline)
        if rates is None:
            return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason())
        target = [float(rate) for rate in rates]
        return Outcome(problem.transported(dict.fromkeys(problem.groups, target), backend, deadline))
    except TimeoutError as error:
        return Outcome(None, status=Status.LIMIT, message=str(error))


@CalibratedEqualErrors.algorithm("as-predicted", rank="published")
def as_predicted(problem: CalibratedEqualErrors, *, time_limit: float | None = None) -> Outcome:
    """Keep the scores.

    The cutoff k / (k + 1) minimizes the loss of a calibrated score, so no decision has a lower loss. The
    evaluation shows the disparity of the rates.

    Parameters
    ----------
    time_limit : float, optional
        Seconds; the run is linear in the number of scores and stays below any limit of use.
    """
    Deadline(time_limit)  # refuses a malformed limit
    decision = problem.decision({name: ScoreKernel.unchanged(*s) for name, s in problem.scores.items()})
    errors = problem.evaluate(decision).objective
    return Outcome(decision, bound=errors if problem.relaxation is None else None)


@CalibratedEqualErrors.algorithm("equal-odds", cites="Hardt et al. (2016), section 4", rank="published")
def equal_odds(
    problem: CalibratedEqualErrors, *, backend: str | None = None, time_limit: float | None = None
) -> Outcome:
    """Meet the constraint on the rates without calibration: the prediction itself is the new score.

    The loss is a lower bound on the loss of calibrated scores; the difference is the price of calibration.

    Parameters
    ----------
    backend : str, optional
        For the linear program, quadratic with a relaxation; a fitting one by default.
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
        return Outcome(None, result.bound, result.status, message=result.reason or result.message)
    ends = np.cumsum([score.shape[1] for score in problem.scores.values()])[:-1]
    accepted = np.split(np.clip(result[accept], 0.0, 1.0), ends)
    kernels = {}
    for (name, score), h in zip(problem.scores.items(), accepted, strict=True):
        kernels[name] = ScoreKernel(score[0], score[1], np.array([0.0, 1.0]), np.stack([1 - h, h], axis=1))
    return Outcome(problem.decision(kernels), bound=result.bound, status=Status.APPROXIMATE)
