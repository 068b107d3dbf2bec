"""The best single classifier, as a mixed-integer program."""

from __future__ import annotations

from forcopt.language.model import Model
from forcopt.models.fair_classification.lp import write
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["milp", "single_model"]


def single_model(problem: FairClassification) -> Model:
    """The program for the best single classifier, to look at, write or hand over.

    A halfspace is a binary for each distinct row of features, tied to normal and offset by implications, with
    every row at least half the margin away; of other classes, one hypothesis is chosen.
    """
    model = Model("single classifier")
    model.minimize(write(problem, model, single=True).error)
    return model


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
    time_limit : float, optional
        Seconds.
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
