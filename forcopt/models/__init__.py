"""The problems: one package each.

In a checkout the packages lie in the folder ``models`` beside ``forcopt``; an installation has them here.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

_CHECKOUT = Path(__file__).parents[2]
if (_CHECKOUT / "models").is_dir() and (_CHECKOUT / "pyproject.toml").is_file():
    __path__.append(str(_CHECKOUT / "models"))

if TYPE_CHECKING:
    from forcopt.models.adaptive_queries import AccuracyPlan, QuerySchedule
    from forcopt.models.adaptive_robustness import AdaptiveRobustClassification, RobustBayes, RobustnessRadius
    from forcopt.models.allocation import PrecisionAllocation, PrivateAllocation, StratifiedAllocation
    from forcopt.models.amplification import DPHypothesisTest, TightAmplification
    from forcopt.models.calibrated_errors import CalibratedEqualErrors, CalibratedTransport
    from forcopt.models.census_release import (
        ConsistentRelease,
        EcologicalRegression,
        LevelBudget,
        StableDistrict,
    )
    from forcopt.models.counting_queries import CountingQueries, LatticeNoise, LinearQueries, PrivateMechanism
    from forcopt.models.districting import CountyClustering, Districting
    from forcopt.models.fair_auctions import FairAuction
    from forcopt.models.fair_classification import FairClassification
    from forcopt.models.fair_decisions import Apportionment, CoverageDecision, FormulaGrant
    from forcopt.models.fair_postprocessing import (
        FairPostprocessing,
        MulticlassPostprocessing,
        ScorePostprocessing,
    )
    from forcopt.models.fair_ranking import FairRanking
    from forcopt.models.lexifair import BoundedLossRegression, LexifairClassification, LexifairRegression
    from forcopt.models.leximax_cohort import LeximaxCohort
    from forcopt.models.secure_sum import SecureSum
    from forcopt.models.strategic import (
        LeastEffortClassification,
        StrategicClassification,
        StrategicLinearClassifier,
        TargetDesign,
        TargetDesign2D,
    )

_LATER = {
    "AccuracyPlan": "forcopt.models.adaptive_queries",
    "AdaptiveRobustClassification": "forcopt.models.adaptive_robustness",
    "Apportionment": "forcopt.models.fair_decisions",
    "BoundedLossRegression": "forcopt.models.lexifair",
    "CalibratedEqualErrors": "forcopt.models.calibrated_errors",
    "CalibratedTransport": "forcopt.models.calibrated_errors",
    "ConsistentRelease": "forcopt.models.census_release",
    "CountingQueries": "forcopt.models.counting_queries",
    "CountyClustering": "forcopt.models.districting",
    "CoverageDecision": "forcopt.models.fair_decisions",
    "Districting": "forcopt.models.districting",
    "DPHypothesisTest": "forcopt.models.amplification",
    "EcologicalRegression": "forcopt.models.census_release",
    "FairAuction": "forcopt.models.fair_auctions",
    "FairClassification": "forcopt.models.fair_classification",
    "FairPostprocessing": "forcopt.models.fair_postprocessing",
    "FairRanking": "forcopt.models.fair_ranking",
    "FormulaGrant": "forcopt.models.fair_decisions",
    "LatticeNoise": "forcopt.models.counting_queries",
    "LeastEffortClassification": "forcopt.models.strategic",
    "LevelBudget": "forcopt.models.census_release",
    "LexifairClassification": "forcopt.models.lexifair",
    "LexifairRegression": "forcopt.models.lexifair",
    "LeximaxCohort": "forcopt.models.leximax_cohort",
    "LinearQueries": "forcopt.models.counting_queries",
    "MulticlassPostprocessing": "forcopt.models.fair_postprocessing",
    "PrecisionAllocation": "forcopt.models.allocation",
    "PrivateAllocation": "forcopt.models.allocation",
    "PrivateMechanism": "forcopt.models.counting_queries",
    "QuerySchedule": "forcopt.models.adaptive_queries",
    "RobustBayes": "forcopt.models.adaptive_robustness",
    "RobustnessRadius": "forcopt.models.adaptive_robustness",
    "ScorePostprocessing": "forcopt.models.fair_postprocessing",
    "SecureSum": "forcopt.models.secure_sum",
    "StableDistrict": "forcopt.models.census_release",
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
    "Apportionment",
    "BoundedLossRegression",
    "CalibratedEqualErrors",
    "CalibratedTransport",
    "ConsistentRelease",
    "CountingQueries",
    "CountyClustering",
    "CoverageDecision",
    "DPHypothesisTest",
    "Districting",
    "EcologicalRegression",
    "FairAuction",
    "FairClassification",
    "FairPostprocessing",
    "FairRanking",
    "FormulaGrant",
    "LatticeNoise",
    "LeastEffortClassification",
    "LevelBudget",
    "LexifairClassification",
    "LexifairRegression",
    "LeximaxCohort",
    "LinearQueries",
    "MulticlassPostprocessing",
    "PrecisionAllocation",
    "PrivateAllocation",
    "PrivateMechanism",
    "QuerySchedule",
    "RobustBayes",
    "RobustnessRadius",
    "ScorePostprocessing",
    "SecureSum",
    "StableDistrict",
    "StrategicClassification",
    "StrategicLinearClassifier",
    "StratifiedAllocation",
    "TargetDesign",
    "TargetDesign2D",
    "TightAmplification",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    from forcopt.errors import missing

    raise missing("forcopt.models", name, list(_LATER))
