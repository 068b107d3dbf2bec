"""The best single classifier, as a mixed-integer program."""

from __future__ import annotations

from forcopt.language.model import Model
from forcopt.models.fair_classification.lp import write
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Handles

__all__ = ["milp"]


@FairClassification.formulation("milp", exact=False, cites="Jung et al. (2021), the cost-sensitive oracle")
def milp(problem: FairClassification, model: Model) -> Handles:
    """The fair classifier of least error that does not draw lots; its value is exact among single classifiers.

    A halfspace is a binary for each distinct row of features, tied to normal and offset by implications, with
    every row at least half the margin away; of other classes, one hypothesis is chosen. Mixtures can do
    better, so that the bound of this program does not bound the problem; ``model_solution`` has it.

    Returns:
        ``rates``, the `GroupRates` as expressions; ``error``; ``fairness``, the constraints of the notion.
    """
    return write(problem, model, single=True)
