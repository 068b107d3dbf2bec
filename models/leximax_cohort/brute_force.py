"""Look at every cohort."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from math import comb

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.problem import Outcome
from forcopt.status import Status

_MOST = 5_000_000
_BATCH = 50_000
_DECIMALS = 9
"""Utilities, in units of `LeximaxCohort.unit`, are rounded to this number of decimals before a comparison, so
that exact ties stay ties."""


def all_cohorts(problem: LeximaxCohort) -> Iterator[Array]:
    """Give all cohorts that meet the demands, in batches of rows of 0 and 1.

    Raises
    ------
    DeclarationError
        If there are more than 5,000,000 of the size, or it is no whole number.
    """
    n, k = len(problem.utilities), round(problem.size)
    if not problem.is_whole:
        raise DeclarationError(f"size is {problem.size:g}; cohorts need a whole number")
    if comb(n, k) > _MOST:
        raise DeclarationError(f"{comb(n, k)} cohorts are too many to look at; at most {_MOST}")
    (lower, upper), classes = problem.bounds, problem.classes
    members = combinations(range(n), k)
    while batch := list(islice(members, _BATCH)):
        rows = np.zeros((len(batch), n))
        np.put_along_axis(rows, np.array(batch), 1.0, axis=1)
        counts = rows @ classes.members.T
        good = ((rows >= lower) & (rows <= upper)).all(axis=1)
        good &= ((counts >= classes.least) & (counts <= classes.most)).all(axis=1)
        good &= (rows @ problem.household_rows.T <= 1).all(axis=1)
        yield rows[good]


@LeximaxCohort.algorithm("brute-force", exact=True, rank="oracle")
def brute_force(problem: LeximaxCohort, *, time_limit: float | None = None) -> Outcome:
    """One cohort: compare the sorted utilities of all. O(C(n, k) m log m); for 5,000,000 cohorts at most."""
    if not problem.integer:
        raise DeclarationError("'brute-force' finds one cohort; declare the problem with integer=True")
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
