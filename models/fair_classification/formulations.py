"""The linear program over all mixtures, and the mixed-integer program of the best single classifier."""

from __future__ import annotations

import scipy.sparse as sp

from forcopt.language.model import Model
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


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


@FairClassification.algorithm("milp", cites="Jung et al. (2021), section 3.2", rank="published")
def milp(problem: FairClassification, *, backend: str = "highs", time_limit: float | None = None) -> Outcome:
    """The fair classifier of least error that draws no lots, by a mixed-integer program.

    Exact among single classifiers (halfspaces: among those with the margin). Mixtures can do better, so it
    proves no bound on the problem. If no single classifier is fair it fails with these words, as a mixture
    may still be fair.

    Parameters
    ----------
    problem : FairClassification
        With hypotheses that can be listed, `AllFunctions`, or `Halfspaces` of any dimension.
    backend : str, default "highs"
        Any that takes integer programs.
    """
    model = Model("single classifier")
    handles = write(problem, model, single=True)
    model.minimize(handles.error)
    solution = model.solve(backend, time_limit=time_limit, gap=0.0)
    if solution.point is None:
        none = solution.status is Status.INFEASIBLE
        message = "proved: no single classifier is fair; a mixture may be" if none else solution.message
        return Outcome(None, status=Status.FAILED if none else solution.status, message=message)
    proved = (
        "the best single classifier" if solution.status is Status.OPTIMAL else "not proved to be the best"
    )
    return Outcome(
        handles.decision(solution), iterations=solution.nodes, message=f"{proved}; {solution.message}"
    )
