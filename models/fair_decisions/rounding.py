"""Classical apportionment: divisor methods, largest remainders, and each quota rounded on its own."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.apportionment import DIVISORS, Apportionment
from forcopt.numeric.apportionment import DivisorMethod, apportion
from forcopt.numeric.apportionment import largest_remainder as by_remainders
from forcopt.problem import Outcome
from forcopt.status import Status


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


@Apportionment.algorithm("largest-remainder", cites="Balinski and Young (2001), chapter 3", rank="published")
def largest_remainder(problem: Apportionment, *, time_limit: float | None = None) -> Outcome:
    """Round the quotas down, and give the seats left to the largest remainders (Hamilton).

    It minimises ``total`` and ``minimax`` if no minimum binds.
    """
    deadline = Deadline(time_limit)
    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    if deadline.passed:
        return Outcome(None, status=Status.LIMIT, message=f"{deadline.end} before the first seat")
    low, high = problem.bounds
    return Outcome(
        problem.allocation(by_remainders(problem.populations, problem.seats, minimum=low, maximum=high))
    )


@Apportionment.algorithm("as-printed", cites="Pujol et al. (2020), Table 3", rank="published")
def as_printed(problem: Apportionment, *, time_limit: float | None = None) -> Outcome:
    """Round each quota to the nearest whole number, one half up, and to the minimum at least.

    These seats need not sum to the number of seats: the evaluation then has the violation ``"seats"``.
    """
    rounded = np.array([int((q + Fraction(1, 2)) // 1) for q in problem.exact_quotas], dtype=np.int64)
    return Outcome(problem.allocation(np.maximum(rounded, np.broadcast_to(problem.minimum, rounded.shape))))
