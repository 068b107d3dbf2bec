"""Divisor methods: seats go one after the other to the highest priority."""

from __future__ import annotations

from typing import cast

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.apportionment import DIVISORS, Apportionment
from forcopt.numeric.apportionment import DivisorMethod, apportion
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["divisor"]


@Apportionment.algorithm("divisor", exact=True, cites="Huntington (1928); Balinski and Young (2001), A.3")
def divisor(problem: Apportionment, *, time_limit: float | None = None) -> Outcome:
    """Apportion by the divisor method of the criterion, between the minimums and the quotas.

    The measure is a sum of convex functions of one state's seats, whose increments are ordered as the
    method's priorities; so the greedy choice is optimal within any bounds on each state. O(k) a bisection
    step and a heap for the last seats, see `forcopt.numeric.apportionment.apportion`.
    """
    if problem.criterion not in DIVISORS:
        raise DeclarationError(
            f"criterion is {problem.criterion!r}, no divisor method; the default method and milp take it"
        )
    deadline = Deadline(time_limit)
    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    if deadline.passed:
        return Outcome(None, status=Status.LIMIT, message=f"{deadline.end} before the first seat")
    low, high = problem.bounds
    method = cast(DivisorMethod, problem.criterion)
    found = apportion(problem.populations, problem.seats, method, minimum=low, maximum=high)
    return Outcome(problem.allocation(found.seats, found.tied))
