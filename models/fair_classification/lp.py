"""The linear program over all mixtures, written out."""

from __future__ import annotations

import scipy.sparse as sp

from forcopt.language.model import Model
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Handles

__all__ = ["lp", "write"]


@FairClassification.formulation(
    "lp",
    exact=True,
    cites="Jagielski et al. (2019), program (2); Jung et al. (2021), program (1) to (3)",
)
def lp(problem: FairClassification, model: Model) -> Handles:
    """Linear program with a column for each hypothesis (a probability for each row, for `AllFunctions`).

    For classes that can be listed: `Finite`, `Thresholds`, `Halfspaces` of at most two features and few
    records, `AllFunctions`.

    Returns
    -------
    Handles
        ``rates``, the `GroupRates` (or `ClassRates`) as expressions; ``error``; ``fairness``, the constraints
        of the notion.
    """
    return write(problem, model, single=False)


def write(problem: FairClassification, model: Model, single: bool) -> Handles:
    """Write the problem over mixtures, or over single hypotheses, into a model."""
    lagrangian, moments = problem.lagrangian, problem.moments
    wanted = sp.csr_array(sp.vstack([lagrangian.costs[None, :], moments.matrix]))
    hull = problem.oracle.hull(model, wanted, single)
    error = hull.mapped[0] + lagrangian.base
    rates = moments.rates(hull.mapped[1:])
    fairness = problem.demand.rows(rates)
    model.subject_to(fairness)
    return Handles(
        objective=error,
        decision=lambda solution: problem.policy(*hull.mixture(solution)),
        start=lambda decision: hull.start(*problem.mixture(decision)),
        rates=rates,
        error=error,
        fairness=fairness,
    )
