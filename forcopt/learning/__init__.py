"""Classes of classifiers, each with its cost-sensitive oracle, and randomised policies over them."""

from forcopt.learning.finite import AllFunctions, Finite, ListedHypotheses
from forcopt.learning.halfspaces import Halfspace, Halfspaces
from forcopt.learning.hypotheses import Classifier, Constant, Hypotheses, Hypothesis, Oracle, OracleTimeout
from forcopt.learning.learner import FittedScore, Learner
from forcopt.learning.policy import RandomizedPolicy, systematic_numbers
from forcopt.learning.tables import Schema
from forcopt.learning.thresholds import Stumps, Threshold, Thresholds

__all__ = [
    "AllFunctions",
    "Classifier",
    "Constant",
    "Finite",
    "FittedScore",
    "Halfspace",
    "Halfspaces",
    "Hypotheses",
    "Hypothesis",
    "Learner",
    "ListedHypotheses",
    "Oracle",
    "OracleTimeout",
    "RandomizedPolicy",
    "Schema",
    "Stumps",
    "Threshold",
    "Thresholds",
    "systematic_numbers",
]
