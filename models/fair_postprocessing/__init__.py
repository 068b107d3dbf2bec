"""Fair post-processing: remix the predictions of a given binary classifier, group by group.

Jagielski, Kearns, Mao, Oprea, Roth, Sharifi-Malvajerdi, Ullman: Differentially Private Fair Learning, ICML
2019, section 2.1 and appendix B; after Hardt, Price and Srebro (2016). With groups that are seen through
randomized response: Mozannar, Ohannessian, Srebro: Fair Learning with Private Demographic Data, ICML 2020.
Of scores: Hardt, Price and Srebro (2016), section 4.2.
"""

from typing import TYPE_CHECKING, Any

from forcopt.errors import needs_sklearn
from forcopt.models.fair_postprocessing.decision import (
    RandomizedPostprocessor,
    RandomizedRemix,
    RandomizedThresholds,
)
from forcopt.models.fair_postprocessing.dp_postprocessing import PrivacyCost, privacy_cost
from forcopt.models.fair_postprocessing.multiclass import MulticlassPostprocessing
from forcopt.models.fair_postprocessing.problem import FairPostprocessing
from forcopt.models.fair_postprocessing.scores import ScorePostprocessing

if TYPE_CHECKING:
    from forcopt.models.fair_postprocessing.file_report import FairReport, fair_report
    from forcopt.models.fair_postprocessing.threshold_postprocessor import ThresholdPostprocessor

__all__ = [
    "FairPostprocessing",
    "FairReport",
    "MulticlassPostprocessing",
    "PrivacyCost",
    "RandomizedPostprocessor",
    "RandomizedRemix",
    "RandomizedThresholds",
    "ScorePostprocessing",
    "ThresholdPostprocessor",
    "fair_report",
    "privacy_cost",
]


def __getattr__(name: str) -> Any:
    if name == "ThresholdPostprocessor":
        return needs_sklearn("forcopt.models.fair_postprocessing.threshold_postprocessor", name)
    if name in ("FairReport", "fair_report"):
        return needs_sklearn("forcopt.models.fair_postprocessing.file_report", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
