"""Stage 1 in closed form, in exact fractions."""

from __future__ import annotations

from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["polygon"]


@CalibratedEqualErrors.algorithm(
    "polygon", exact=True, cites="Reich and Vijaykumar (2021), Theorem 4 and Corollary 5; corrected"
)
def polygon(problem: CalibratedEqualErrors, *, backend: str | None = None) -> Outcome:
    """The best vertex of the exact polygon of feasible rates, O(N log N); then stage 2 on the backend.

    For equal odds without a relaxation.
    """
    rates = problem.best_rates()
    if rates is None:
        return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason())
    target = [float(rate) for rate in rates]
    return Outcome(problem.transported(dict.fromkeys(problem.groups, target), backend))
