"""The linear relaxation, whose support is optimal where no false positive is allowed."""

from __future__ import annotations

import numpy as np

from forcopt.language.model import Model
from forcopt.language.objective import leximin
from forcopt.loops.solution import ModelSolution
from forcopt.models.strategic.greedy_deletion import largest_gaming_free_set
from forcopt.models.strategic.milp import values_by_group, write_responses
from forcopt.models.strategic.problem import OpenCriteria, StrategicClassification
from forcopt.problem import Handles

__all__ = ["lp"]

POSITIVE = 1e-6
LEVELS = np.linspace(0, 1, 20)


@StrategicClassification.formulation(
    "lp",
    cites="Ahmadi et al. (2022), section 3; the relaxation's exactness follows from Theorem 2",
    whole="milp",
)
def lp(problem: StrategicClassification, model: Model) -> Handles:
    """Relax the binaries: the value bounds the optimum, and equals it where no false positive is allowed.

    Without false positives, every criterion of the support is met first by an agent that improves (the
    closest row of a gaming edge forces a better improving one into the support), so that opening the support
    reaches the relaxation's value. Otherwise the support may break the limit: the best set is opened among
    the support, its criteria that the relaxation opens most (at 20 levels), and greedy deletion's
    set.

    Returns
    -------
    Handles
        ``is_open``, shape ``(m,)``; ``true_positives`` and ``false_positives`` by group.
    """
    responses = write_responses(problem, model, integer=False)
    true, false = values_by_group(problem, responses)
    values = true - problem.penalty * false

    def decision(result: ModelSolution) -> OpenCriteria:
        z = result[responses.is_open]
        levels = np.unique(np.quantile(z[z > POSITIVE], LEVELS)) if (z > POSITIVE).any() else [1.0]
        tried = [z >= level - POSITIVE / 2 for level in levels]  # the support first
        sets = [
            OpenCriteria(np.flatnonzero(s).tolist()) for s in [*tried, largest_gaming_free_set(problem)[0]]
        ]
        evaluation = [(problem.evaluate(s), s) for s in sets]
        return max(((e.objective, s) for e, s in evaluation if e.feasible), key=lambda pair: pair[0])[1]

    return Handles(
        objective=values.sum() if problem.groups is None else leximin(values),
        decision=decision,
        is_open=responses.is_open,
        true_positives=true,
        false_positives=false,
    )
