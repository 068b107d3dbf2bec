"""The problems: one package each."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forcopt.models.adaptive_queries import AccuracyPlan, BudgetAllocation, QuerySchedule, TransferSplit
    from forcopt.models.adaptive_robustness import (
        AdaptiveRobustClassification,
        RobustBayes,
        RobustnessRadius,
    )
    from forcopt.models.allocation import PrecisionAllocation, PrivateAllocation, StratifiedAllocation
    from forcopt.models.amplification import DPHypothesisTest, TightAmplification
    from forcopt.models.calibrated_errors import CalibratedEqualErrors, CalibratedTransport
    from forcopt.models.districting import Districting
    from forcopt.models.fair_classification import FairClassification
    from forcopt.models.fair_postprocessing import FairPostprocessing, ScorePostprocessing
    from forcopt.models.lexifair import LexifairClassification, LexifairRegression
    from forcopt.models.leximax_cohort import LeximaxCohort
    from forcopt.models.strategic import (
        LeastEffortClassification,
        StrategicClassification,
        StrategicLinearClassifier,
        TargetDesign,
        TargetDesign2D,
    )

_LATER = {
    "BudgetAllocation": "forcopt.models.adaptive_queries",
    "TransferSplit": "forcopt.models.adaptive_queries",
    "AccuracyPlan": "forcopt.models.adaptive_queries",
    "QuerySchedule": "forcopt.models.adaptive_queries",
    "AdaptiveRobustClassification": "forcopt.models.adaptive_robustness",
    "CalibratedEqualErrors": "forcopt.models.calibrated_errors",
    "CalibratedTransport": "forcopt.models.calibrated_errors",
    "DPHypothesisTest": "forcopt.models.amplification",
    "Districting": "forcopt.models.districting",
    "FairClassification": "forcopt.models.fair_classification",
    "FairPostprocessing": "forcopt.models.fair_postprocessing",
    "LeastEffortClassification": "forcopt.models.strategic",
    "PrecisionAllocation": "forcopt.models.allocation",
    "PrivateAllocation": "forcopt.models.allocation",
    "LeximaxCohort": "forcopt.models.leximax_cohort",
    "LexifairClassification": "forcopt.models.lexifair",
    "LexifairRegression": "forcopt.models.lexifair",
    "ScorePostprocessing": "forcopt.models.fair_postprocessing",
    "RobustBayes": "forcopt.models.adaptive_robustness",
    "RobustnessRadius": "forcopt.models.adaptive_robustness",
    "StrategicClassification": "forcopt.models.strategic",
    "StrategicLinearClassifier": "forcopt.models.strategic",
    "StratifiedAllocation": "forcopt.models.allocation",
    "TargetDesign": "forcopt.models.strategic",
    "TargetDesign2D": "forcopt.models.strategic",
    "TightAmplification": "forcopt.models.amplification",
}
"""Problems by the package that is imported when one is first used."""

__all__ = [
    "AccuracyPlan",
    "AdaptiveRobustClassification",
    "BudgetAllocation",
    "CalibratedEqualErrors",
    "CalibratedTransport",
    "DPHypothesisTest",
    "Districting",
    "FairClassification",
    "FairPostprocessing",
    "LeastEffortClassification",
    "LexifairClassification",
    "LexifairRegression",
    "LeximaxCohort",
    "PrecisionAllocation",
    "PrivateAllocation",
    "QuerySchedule",
    "RobustBayes",
    "RobustnessRadius",
    "ScorePostprocessing",
    "StrategicClassification",
    "StrategicLinearClassifier",
    "StratifiedAllocation",
    "TargetDesign",
    "TargetDesign2D",
    "TightAmplification",
    "TransferSplit",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'forcopt.models' has no attribute {name!r}")
