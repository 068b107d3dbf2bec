"""Free targets in any dimension, as a mixed-integer program for few agents."""

from __future__ import annotations

import numpy as np

from forcopt.language.constraint import implies
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.strategic.targets import TargetDesign, TargetDesign2D, Targets
from forcopt.problem import Handles

__all__ = ["milp"]

_ROUNDING = 1e-9
"""Truth scores this close to the threshold qualify: sums of floats are not exact."""


@TargetDesign2D.formulation("milp", exact=True, cites="Ahmadi et al. (2022), Corollary 6; our formulation")
@TargetDesign.formulation("milp", exact=True, cites="Ahmadi et al. (2022), Corollary 6; our formulation")
def milp(problem: TargetDesign, model: Model) -> Handles:
    """One designated target for each served agent; no other agent may find it cheaper than its own.

    Features are measured in effort. Served agent k's target lies at or above k in every feature, since
    raising it to there costs k nothing, takes qualification from nobody and only deters others. For every
    other agent i, the target of a served k either qualifies i, or costs i at least as much as its own target
    (1 if it is not served). That cost must be bounded from below, which takes a binary for each feature: n^2
    (d + 2) + n binaries in all.

    Returns
    -------
    Handles
        ``targets`` in units of effort, shape ``(n, d)``, and ``served``, shape ``(n,)``, for the agents of
        positive weight.
    """
    counted = problem.agent_weights > 0
    Y, t, s = problem.scaled()
    Y, weight = Y[counted], problem.agent_weights[counted]
    n, d = Y.shape
    improvable, name = problem.improvable, model.unused_name
    own = np.where(improvable, 0.0, Y * t).sum(
        axis=1
    )  # the share of features that cannot be improved in the truth
    truth = np.where(improvable, t, 0.0)
    lack = s - own - _ROUNDING
    cannot = Y @ t + truth.max() < s - _ROUNDING  # even all effort on the best feature does not qualify

    served = model.variable(name("served"), n, upper=~cannot, binary=True)
    targets = model.variable(name("targets"), (n, d), lower=Y, upper=Y + 1)
    pays = model.variable(name("pays"), n, lower=0, upper=1)
    cost = (targets - Y).sum(axis=1)
    adds = targets @ truth
    model.subject_to(
        cost <= 1,
        implies(served, adds >= lack),
        implies(served, pays >= cost),
        pays >= 1 - served,
        name=model.unused_name("served_if"),
    )
    i, k = np.nonzero(~np.eye(n, dtype=bool))
    gap = targets[k] - Y[i]  # how far i is below the target of k
    above = model.variable(name("above"), (len(i), d), binary=True)
    climbs = model.variable(
        name("climbs"), (len(i), d), lower=np.minimum(Y[k] - Y[i], 0), upper=np.maximum(Y[k] + 1 - Y[i], 0)
    )
    qualifies = model.variable(name("qualifies"), len(i), binary=True)
    deterred = model.variable(name("deterred"), len(i), binary=True)
    model.subject_to(
        implies(above, climbs <= gap),
        implies(1 - above, climbs <= 0),
        implies(qualifies, adds[k] >= lack[i]),
        implies(deterred, climbs.sum(axis=1) >= pays[i]),
        qualifies + deterred >= served[k],
        name=model.unused_name("deterred_if"),
    )

    def decision(result: ModelSolution) -> Targets:
        return Targets(result[targets][result[served] > 0.5] / problem.costs)

    objective: Expression = (served * weight).sum()
    return Handles(objective=objective, decision=decision, targets=targets, served=served)
