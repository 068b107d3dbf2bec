"""Fair learning: the randomised classifier of least error that is fair.

Agarwal, Beygelzimer, Dudik, Langford, Wallach: A reductions approach to fair classification, ICML 2018.
Jagielski, Kearns, Mao, Oprea, Roth, Sharifi-Malvajerdi, Ullman: Differentially private fair learning, ICML
2019. Mozannar, Ohannessian, Srebro: Fair learning with private demographic data, ICML 2020. Jung, Kearns,
Neel, Roth, Stapleton, Wu: An algorithmic framework for fairness elicitation, FORC 2021.
"""

from typing import TYPE_CHECKING, Any

from forcopt.errors import needs_sklearn
from forcopt.learning import AllFunctions, Finite, Halfspaces, Hypotheses, Learner, Thresholds
from forcopt.models.fair_classification import dp_oracle_learner, formulations, games  # noqa: F401  (register the methods)
from forcopt.models.fair_classification.auditing import Audit, audit
from forcopt.models.fair_classification.decision import GroupProxy, RandomizedClassifier
from forcopt.models.fair_classification.elicitation import elicitation_failure, elicitation_sample
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.models.fair_classification.two_step import TwoStepClassifier

if TYPE_CHECKING:
    from forcopt.models.fair_classification.estimator import FairClassifier

__all__ = [
    "AllFunctions",
    "Audit",
    "FairClassification",
    "FairClassifier",
    "Finite",
    "GroupProxy",
    "Halfspaces",
    "Hypotheses",
    "Learner",
    "RandomizedClassifier",
    "Thresholds",
    "TwoStepClassifier",
    "audit",
    "elicitation_failure",
    "elicitation_sample",
]


def __getattr__(name: str) -> Any:
    if name == "FairClassifier":
        return needs_sklearn("forcopt.models.fair_classification.estimator", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
