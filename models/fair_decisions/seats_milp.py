"""The mixed-integer programs of apportionment, one for each kind of measure."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.language.atoms import abs as absolute
from forcopt.language.model import Model, Variable
from forcopt.language.objective import leximax, minimize
from forcopt.loops.solution import ModelSolution
from forcopt.models.fair_decisions.apportionment import DIVISORS, Apportionment, Seats
from forcopt.numeric.apportionment import signpost
from forcopt.problem import Handles


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

    def start(decision: Seats | Any) -> dict[Variable, Array]:
        return {s: problem.read(decision)}

    return Handles(
        objective=objective,
        decision=lambda result: problem.allocation(np.round(result[s]).astype(np.int64)),
        start=start,
        seats=s,
    )


def _unit_steps(problem: Apportionment, model: Model) -> Handles:
    low, high = problem.bounds
    room = problem.seats - int(low.sum())
    count = np.minimum(high - low, room)
    state = np.repeat(np.arange(len(low)), count)
    rank = low[state] + np.arange(len(state)) - np.repeat(np.cumsum(count) - count, count)  # seats before
    seats = model.variable(model.unused_name("seats"), len(low), lower=low, upper=low + count, integer=True)
    takes = model.variable(model.unused_name("takes"), len(state), lower=0, upper=1)
    rows = sp.csr_array((np.ones(len(state)), (state, np.arange(len(state)))), shape=(len(low), len(state)))
    model.subject_to(
        seats.sum() == problem.seats, rows @ takes + low == seats, name=model.unused_name("all_seats")
    )
    q = problem.quotas[state]
    match problem.criterion:
        case "hill":
            steps = 1 - q**2 / (rank * (rank + 1.0))
        case "dean":
            steps = signpost(rank, "dean") / q - 1
        case "webster" | "jefferson" | "adams":
            shift = {"webster": 0.0, "jefferson": 0.5, "adams": -0.5}[problem.criterion]
            steps = (2 * rank + 1 + 2 * shift) / q - 2

    def decision(result: ModelSolution) -> Seats:
        return problem.allocation(np.round(result[seats]).astype(np.int64))

    def start(given: Seats | Any) -> dict[Variable, Array]:
        s = problem.read(given)
        return {seats: s, takes: (rank < s[state]).astype(float)}

    return Handles(
        # an objective, not an expression: before the optimum, seats may be taken out of order
        objective=minimize((steps * takes).sum() + problem.measure(low)),
        decision=decision,
        start=start,
        seats=seats,
    )
