"""The least range of the ratios of seats to quotas, by moving two thresholds."""

from __future__ import annotations

from fractions import Fraction
from heapq import heapify, heappop, heappush

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.apportionment import Apportionment
from forcopt.problem import Outcome
from forcopt.status import Status

_EVERY = 512
"""Moves between two looks at the clock."""


@Apportionment.algorithm("thresholds", exact=True, cites="Ibaraki and Katoh (1988), chapter 4")
def thresholds(problem: Apportionment, *, time_limit: float | None = None) -> Outcome:
    """Raise a lower threshold on ``s / q`` from event to event, and the least upper one that fits along.

    All ratios lie in [L, U] for some seats exactly if the least seats with ``s >= L q`` and the most with
    ``s <= U q``, within the bounds, enclose the number of seats. Each event of L adds one least seat, so that
    there are at most as many as seats; U only rises with L. O((k + seats) log k) in exact arithmetic.

    References
    ----------
    Ibaraki, Katoh: Resource Allocation Problems, 1988.
    """
    if problem.criterion != "range":
        raise DeclarationError(f"criterion is {problem.criterion!r}; thresholds takes range only")
    deadline = Deadline(time_limit)
    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    low, high = (ends.copy() for ends in problem.bounds)
    q, seats = problem.exact_quotas, problem.seats
    some = [i for i, x in enumerate(q) if x > 0]

    most = low.copy()
    raises = [(Fraction(int(low[i] + 1)) / q[i], i) for i in some if low[i] < high[i]]
    heapify(raises)
    upper = max(Fraction(int(low[i])) / q[i] for i in some)

    def lift(level: Fraction) -> None:
        """Let states have the seats that the upper threshold allows."""
        nonlocal upper
        upper = max(upper, level)
        while raises and raises[0][0] <= upper:
            _, i = heappop(raises)
            most[i] += 1
            if most[i] < high[i]:
                heappush(raises, (Fraction(int(most[i] + 1)) / q[i], i))

    lift(upper)
    while int(most.sum()) < seats:
        lift(raises[0][0])
    lowest = [(Fraction(int(low[i])) / q[i], i) for i in some]
    heapify(lowest)
    best: tuple[Fraction, Array, Array] | None = None
    moves = 0
    while True:
        level = lowest[0][0]
        if best is None or upper - level < best[0]:
            best = upper - level, low.copy(), most.copy()
        if moves % _EVERY == 0 and deadline.passed:
            break
        reached = upper
        while lowest[0][0] == level:  # every state at the lower threshold gets one seat more
            _, i = heappop(lowest)
            if low[i] >= high[i]:
                low[i] = seats + 1  # it cannot
                break
            low[i] += 1
            heappush(lowest, (Fraction(int(low[i])) / q[i], i))
            reached = max(reached, Fraction(int(low[i])) / q[i])
        if int(low.sum()) > seats:
            break
        lift(reached)
        moves += 1
    done = int(low.sum()) > seats
    _, s, most = best
    for i in np.lexsort((np.arange(len(s)), -problem.populations)):
        s[i] += min(int(most[i] - s[i]), seats - int(s.sum()))
    status = None if done else Status.FEASIBLE
    bound = None if done else 0.0
    return Outcome(problem.allocation(s), bound=bound, status=status, iterations=moves)
