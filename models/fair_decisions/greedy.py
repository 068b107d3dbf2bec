"""One seat after the other where it helps most: exact for sums and for the largest of convex measures."""

from __future__ import annotations

from fractions import Fraction
from heapq import heapify, heappop, heapreplace

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.apportionment import Apportionment
from forcopt.problem import Outcome
from forcopt.status import Status

Claim = tuple[Fraction, bool, Fraction, Fraction]
"""The change by a seat, as an order: the least comes first."""

_EVERY = 512
"""Seats between two looks at the clock."""


@Apportionment.algorithm("greedy", exact=True, cites="Fox (1966); Ibaraki and Katoh (1988), chapter 4")
def greedy(problem: Apportionment, *, time_limit: float | None = None) -> Outcome:
    """Give each seat to the state where it lowers the deviations most, in exact arithmetic.

    For ``total`` the gain of a seat is the change of ``|s - q|``. For ``minimax`` and ``leximax`` it is
    compared as that of ``M^|s - q|`` for M without bound: seats that bring a state nearer to its quota come
    first, those of the state farthest away before others; then the seats after which the state is least far
    above. These gains fall with each seat of a state, so that the greedy choice is optimal. Equal totals are
    settled by the order of leximax, then equal claims go to the larger state, then to the earlier one.
    O((k + seats) log k) comparisons of fractions.

    References
    ----------
    Fox: Discrete optimization via marginal analysis. Management Science 13, 1966.
    Ibaraki, Katoh: Resource Allocation Problems, 1988.
    """
    if problem.criterion not in ("total", "minimax", "leximax"):
        raise DeclarationError(
            f"criterion is {problem.criterion!r}; greedy takes total, minimax and leximax, the default "
            "method every criterion"
        )
    deadline = Deadline(time_limit)
    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    low, high = problem.bounds
    q, p = problem.exact_quotas, problem.exact_populations
    total = problem.criterion == "total"

    def key(i: int, seats: int) -> Claim:
        before, after = abs(seats - q[i]), abs(seats + 1 - q[i])
        worse = after >= before
        first, then = (after, -before) if worse else (-before, after)
        return after - before if total else Fraction(0), worse, first, then

    # Every seat up to some distance below the quotas comes before all others.
    down, distance = np.array([int(x // 1) for x in q]), 0
    base = np.clip(down, low, high)
    while int(base.sum()) > problem.seats:
        distance = max(1, 2 * distance)
        base = np.clip(down - distance, low, high)
    s = base.copy()
    left = problem.seats - int(s.sum())
    heap = [(key(i, int(s[i])), -p[i], i) for i in np.flatnonzero(s < high).tolist()]
    heapify(heap)
    last: Claim | None = None
    winners: list[int] = []
    for step in range(left):
        if step % _EVERY == 0 and deadline.passed:
            return Outcome(None, status=Status.LIMIT, message=f"{deadline.end} after {step} seats")
        claim, size, i = heap[0]
        if claim != last:
            last, winners = claim, []
        winners.append(i)
        s[i] += 1
        if s[i] < high[i]:
            heapreplace(heap, (key(i, int(s[i])), size, i))
        else:
            heappop(heap)
    losers = [i for claim, _, i in heap if claim == last]
    tied = tuple(sorted({*winners, *losers})) if losers else ()
    return Outcome(problem.allocation(s, tied), iterations=left)
