"""The linear programs."""

from __future__ import annotations

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.amplification.hypothesis import DPHypothesisTest, DPTest
from forcopt.models.amplification.problem import Distinguisher, TightAmplification
from forcopt.problem import Handles

__all__ = ["hypothesis_lp", "tight_lp"]

LARGEST_LOSS = 20.0
"""Of an edge: solvers drop coefficients below 1e-9, which is e^-20.7."""


@TightAmplification.formulation("lp", exact=True, cites="Charnes and Cooper (1962)")
def tight_lp(problem: TightAmplification, model: Model) -> Handles:
    """Maximise one likelihood where the other is 1, in both directions at once.

    Each direction has a density of its own; the likelihoods that are held fixed sum to 1 over both, so that
    the better direction gets everything. 2 S variables, 4 E + 1 rows.

    Returns
    -------
    Handles
        ``density``, shape ``(2, samples)``: of an outcome that is likelier before, and of one likelier after.
    """
    largest = float((problem.epsilon * problem.steps).max(initial=0.0))
    if largest > LARGEST_LOSS:
        raise DeclarationError(
            f"epsilon is {problem.epsilon:g}: an edge has loss {largest:.4g}, and beyond {LARGEST_LOSS:g} "
            "linear solvers take its coefficient for 0: see the closed forms of "
            "forcopt.privacy.amplification"
        )
    laws = np.stack([problem.before, problem.after])
    density = model.variable(model.unused_name("density"), laws.shape, lower=0)
    model.subject_to((laws[::-1] * density).sum() == 1, name=model.unused_name("scale"))
    s, t = problem.edges.T
    factor = np.exp(-problem.epsilon * problem.steps)  # below 1: no coefficient overflows
    model.subject_to(
        density[:, s] * factor <= density[:, t],
        density[:, t] * factor <= density[:, s],
        name=model.unused_name("privacy"),
    )

    def decision(result: ModelSolution) -> Distinguisher:
        fixed = (laws[::-1] * result[density]).sum(axis=1)
        found = [problem.made_private(q) for q in result[density][fixed > 1e-6]]
        return max(found, key=lambda d: d.loss)

    return Handles(objective=(laws * density).sum(), decision=decision, density=density)


@DPHypothesisTest.formulation("lp", exact=True, cites="Bun et al. (2022), Proposition 4")
def hypothesis_lp(problem: DPHypothesisTest, model: Model) -> Handles:
    """One probability for each count, four rows for each two neighbouring counts.

    Returns
    -------
    Handles
        ``acceptance``, shape ``(K + 1,)``.
    """
    h = model.variable(model.unused_name("acceptance"), len(problem.first), lower=0, upper=1)
    factor = np.exp(-problem.epsilon)
    for answer in (h, 1 - h):
        model.subject_to(
            factor * answer[1:] <= answer[:-1],
            factor * answer[:-1] <= answer[1:],
            name=model.unused_name("privacy"),
        )
    return Handles(
        objective=(h * (problem.first - problem.second)).sum(),
        decision=lambda result: DPTest(problem.made_private(result[h])),
        start=lambda test: {h: test.acceptance if isinstance(test, DPTest) else test},
        acceptance=h,
    )
