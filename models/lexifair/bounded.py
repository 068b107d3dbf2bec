"""Bounded group loss by column generation: a linear program weighs the records for the next fit."""

from __future__ import annotations

from forcopt.clock import Deadline, OnImprovement
from forcopt.language import Constraint, Expression, Model
from forcopt.models.lexifair.formulations import Pool, no_mixture
from forcopt.models.lexifair.regression import BoundedLossRegression
from forcopt.models.lexifair.tolerances import PROVED
from forcopt.problem import Outcome
from forcopt.status import Status


@BoundedLossRegression.algorithm(
    "column-generation", exact=True, cites="Agarwal, Dudík and Wu (2019), section 4, bounded group loss"
)
def column_generation(
    problem: BoundedLossRegression,
    *,
    backend: str = "highs",
    gap: float | None = None,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Mix the known models by a linear program, whose prices of the bounds weigh the records of the next fit.

    The program mixes models for the least loss over all records within the bounds of the groups; each round
    fits one more. The mean of the mixture is the decision: it loses no more, since losses are convex. With
    linear models the end is optimal. With a learner it is approximate: the learner finds no model that
    improves the mixture.

    Parameters
    ----------
    gap : float, optional
        The gap at which to stop, relative to the loss; 1e-7 by default, and 1e-3 with a learner.
    on_improvement : OnImprovement, optional
        Gets the loss and its bound after each fit.
    """
    deadline = Deadline(time_limit)
    pool = Pool(problem.with_everybody, backend, gap, deadline)

    def goal(master: Model, loss: Expression) -> tuple[Expression, list[Constraint]]:
        return loss[-1], [loss[:-1] <= problem.bound / pool.scale]

    found, _, _ = pool.solve(goal, deadline.left, on_improvement)
    base = problem.with_everybody
    if found.fit is None:
        return no_mixture(base, found)
    decision = problem.lexifair.decide(problem.lexifair.fit_of(base.decide(found.fit)))
    if not base.exact:
        return Outcome(decision, None, Status.APPROXIMATE, found.rounds, found.message, found.trace)
    done = float(found.fit.losses[-1]) - found.bound <= PROVED * pool.scale
    status = Status.OPTIMAL if done else Status.FEASIBLE
    return Outcome(decision, found.bound, status, found.rounds, found.message, found.trace)
