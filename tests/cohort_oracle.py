"""One cohort by comparison of all, for the tests: registers the method "brute-force"."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.leximax_cohort.formulations import all_cohorts, only_leximin
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.problem import Outcome
from forcopt.status import Status

_DECIMALS = 9
"""Utilities, in units of `LeximaxCohort.unit`, are rounded to this number of decimals before a comparison, so
that exact ties stay ties."""


@LeximaxCohort.algorithm("brute-force", exact=True, rank="oracle")
def brute_force(problem: LeximaxCohort, *, time_limit: float | None = None) -> Outcome:
    """One cohort: compare the sorted utilities of all. O(C(n, k) m log m); for 5,000,000 cohorts at most."""
    if not problem.integer:
        raise DeclarationError("'brute-force' finds one cohort; declare the problem with integer=True")
    only_leximin(problem)
    deadline, utilities = Deadline(time_limit), problem.utilities / problem.unit
    best: Array | None = None
    cohort: Array | None = None
    looked = 0
    for rows in all_cohorts(problem):
        looked += len(rows)
        if deadline.passed:
            break
        if not len(rows):
            continue
        sorted_ = np.sort(np.round(rows @ utilities, _DECIMALS), axis=1)
        at = np.lexsort(sorted_.T[::-1])[-1]  # lexsort's last key is its first
        if best is None or tuple(sorted_[at]) > tuple(best):
            best, cohort = sorted_[at], rows[at]
    if deadline.passed:
        status = Status.LIMIT if cohort is None else Status.FEASIBLE
        found = None if cohort is None else problem.lottery(cohort)
        return Outcome(
            found, status=status, iterations=looked, message=f"{deadline.end} after {looked} cohorts"
        )
    if cohort is None:
        return Outcome(None, status=Status.INFEASIBLE, message="no cohort of the size meets the demands")
    return Outcome(problem.lottery(cohort), iterations=looked, message=f"{looked} cohorts")
