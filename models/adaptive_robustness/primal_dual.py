"""The primal-dual method for vertex covers: at most twice the least loss."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness.constant import constant_loss
from forcopt.models.adaptive_robustness.max_flow import network, push, saturated_cover
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes
from forcopt.problem import Outcome

__all__ = ["primal_dual"]


@RobustBayes.algorithm(
    "primal-dual",
    guarantee=lambda problem: constant_loss(problem)[1],
    cites="Bar-Yehuda, Even (1981)",
    rank="published",
)
def primal_dual(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Match conflicting masses greedily until none can be; lose the matched masses. Two labels.

    Returns
    -------
    Outcome
        The loss is at most twice the bound, the mass that was matched.
    """
    if problem.labels != 2:
        raise DeclarationError(f"primal-dual is for 2 labels, and there are {problem.labels}: use milp")
    decision, loss = constant_loss(problem)
    bound = problem.bayes_risk
    conflicts = problem.find_conflicts(Deadline(time_limit))
    if conflicts is None:
        return Outcome(decision, min(bound, loss), message="time ran out before all conflicts were found")
    net, n = network(problem, conflicts), len(problem.points)
    matched = push(net, (np.empty(n, np.int64), np.empty(n, np.int64))) / net.denominator
    cover = saturated_cover(problem, net)
    value = float(problem.masses[~cover.safe].sum())
    if value < loss:
        decision, loss = cover, value
    bound = min(max(bound, matched), loss)
    return Outcome(decision, bound, guarantee=loss - bound)
