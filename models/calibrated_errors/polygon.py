"""Stage 1 in closed form, in exact fractions."""

from __future__ import annotations

from forcopt.clock import Deadline
from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["polygon"]


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
    problem : CalibratedEqualErrors
        The problem.
    backend : str, optional
        For the linear programs of stage 2.
    time_limit : float, optional
        Seconds.
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
