"""Methods of apportionment: divisors and remainders, one seat after the other, programs."""

from __future__ import annotations

from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.language.atoms import abs as absolute
from forcopt.language.model import Model
from forcopt.language.objective import leximax, minimize
from forcopt.language.variable import Variable
from forcopt.models.fair_decisions.apportionment import DIVISORS, Apportionment, Seats
from forcopt.numeric.apportionment import DivisorMethod, apportion, signpost
from forcopt.numeric.apportionment import largest_remainder as by_remainders
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


def _stopped(problem: Apportionment, deadline: Deadline) -> Outcome | None:
    """The outcome before the first seat, if there is nothing to do or no time."""
    if (outcome := Outcome.infeasible(problem.infeasibility_reason())) is not None or not deadline.passed:
        return outcome
    return Outcome(None, status=Status.LIMIT, message=f"{deadline.end} before the first seat")


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
    if (outcome := _stopped(problem, Deadline(time_limit))) is not None:
        return outcome
    low, high = problem.bounds
    method = cast(DivisorMethod, problem.criterion)
    found = apportion(problem.populations, problem.seats, method, minimum=low, maximum=high)
    return Outcome(problem.allocation(found.seats, found.tied))


@Apportionment.algorithm("largest-remainder", cites="Balinski and Young (2001), chapter 3", rank="published")
def largest_remainder(problem: Apportionment, *, time_limit: float | None = None) -> Outcome:
    """Round the quotas down, and give the seats left to the largest remainders (Hamilton).

    It minimises ``total`` and ``minimax`` if no minimum binds.
    """
    if (outcome := _stopped(problem, Deadline(time_limit))) is not None:
        return outcome
    low, high = problem.bounds
    found = by_remainders(problem.populations, problem.seats, minimum=low, maximum=high)
    return Outcome(problem.allocation(found))


@Apportionment.algorithm("as-printed", cites="Pujol et al. (2020), Table 3", rank="published")
def as_printed(problem: Apportionment, *, time_limit: float | None = None) -> Outcome:
    """Round each quota to the nearest whole number, one half up, and to the minimum at least.

    These seats need not sum to the number of seats: the evaluation then has the violation ``"seats"``.
    """
    rounded = np.array([int((q + Fraction(1, 2)) // 1) for q in problem.exact_quotas], dtype=np.int64)
    return Outcome(problem.allocation(np.maximum(rounded, np.broadcast_to(problem.minimum, rounded.shape))))


Claim = tuple[Fraction, bool, Fraction, Fraction]
"""The change by a seat, as an order: the least comes first."""

_EVERY = 512
"""Seats, or moves of a threshold, between two looks at the clock."""


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
    if (outcome := Outcome.infeasible(problem.infeasibility_reason())) is not None:
        return outcome
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


@Apportionment.formulation(
    "milp", exact=True, cites="Balinski and Young (2001); Pujol et al. (2020), Table 3"
)
def milp(problem: Apportionment, model: Model) -> Handles:
    """Whole seats between minimums and quotas; a unit step for each seat that a divisor method may give.

    The increments of a divisor method's measure rise with each seat of a state, so that a state's steps are
    taken in order and whole, and the relaxation has a whole optimum. The other measures are absolute
    values and extremes of linear functions of the seats.

    Returns
    -------
    Handles
        ``seats``, shape ``(k,)``.
    """
    low, high = problem.bounds
    if problem.criterion in DIVISORS and not problem.infeasibility_reason():
        return _unit_steps(problem, model)
    s = model.variable(model.unused_name("seats"), len(low), lower=0, upper=problem.seats, integer=True)
    model.subject_to(s >= low, s <= high, name=model.unused_name("bounds"))
    model.subject_to(s.sum() == problem.seats, name=model.unused_name("all_seats"))
    some = problem.populations > 0
    objective: Any
    match problem.criterion:
        case "total":
            objective = minimize(absolute(s - problem.quotas).sum())
        case "minimax":
            objective = minimize(absolute(s - problem.quotas).max())
        case "leximax":
            objective = leximax(absolute(s - problem.quotas))
        case "range":
            ratios = s[np.flatnonzero(some)] * (1 / problem.quotas[some])
            objective = minimize(ratios.max() - ratios.min())
        case _:  # infeasible, whatever the measure
            objective = minimize(0.0 * s.sum())

    return Handles(
        objective=objective,
        decision=lambda result: problem.allocation(np.round(result[s]).astype(np.int64)),
        start=lambda decision: {s: problem.read(decision)},
        seats=s,
    )


def _unit_steps(problem: Apportionment, model: Model) -> Handles:
    low, high = problem.bounds
    count = np.minimum(high - low, problem.seats - int(low.sum()))
    state = np.repeat(np.arange(len(low)), count)
    rank = low[state] + np.arange(len(state)) - np.repeat(np.cumsum(count) - count, count)  # seats before
    seats = model.variable(model.unused_name("seats"), len(low), lower=low, upper=low + count, integer=True)
    takes = model.variable(model.unused_name("takes"), len(state), lower=0, upper=1)
    rows = sp.csr_array((np.ones(len(state)), (state, np.arange(len(state)))), shape=(len(low), len(state)))
    name = model.unused_name("all_seats")
    model.subject_to(seats.sum() == problem.seats, rows @ takes + low == seats, name=name)
    q = problem.quotas[state]
    if problem.criterion == "hill":
        steps = 1 - q**2 / (rank * (rank + 1.0))
    else:
        posts = signpost(rank, cast(DivisorMethod, problem.criterion))
        steps = (1 if problem.criterion == "dean" else 2) * (posts / q - 1)

    def start(given: Seats | Any) -> dict[Variable, Array]:
        s = problem.read(given)
        return {seats: s, takes: (rank < s[state]).astype(float)}

    return Handles(
        # an objective, not an expression: before the optimum, seats may be taken out of order
        objective=minimize((steps * takes).sum() + problem.measure(low)),
        decision=lambda result: problem.allocation(np.round(result[seats]).astype(np.int64)),
        start=start,
        seats=seats,
    )
