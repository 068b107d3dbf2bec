"""The classes of hypotheses, each with its cost-sensitive oracle."""

from forcopt.models.fair_classification.hypotheses.all_functions import AllFunctions
from forcopt.models.fair_classification.hypotheses.base import (
    Classifier,
    Constant,
    Hypotheses,
    Hypothesis,
    Oracle,
)
from forcopt.models.fair_classification.hypotheses.finite import Finite
from forcopt.models.fair_classification.hypotheses.halfspaces import Halfspace, Halfspaces
from forcopt.models.fair_classification.hypotheses.learner import Learner
from forcopt.models.fair_classification.hypotheses.thresholds import Threshold, Thresholds

__all__ = [
    "AllFunctions",
    "Classifier",
    "Constant",
    "Finite",
    "Halfspace",
    "Halfspaces",
    "Hypotheses",
    "Hypothesis",
    "Learner",
    "Oracle",
    "Threshold",
    "Thresholds",
]
