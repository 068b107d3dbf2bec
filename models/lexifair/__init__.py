"""Lexicographically fair learning: the largest group loss as small as possible, then the next.

Diana, Gill, Globus-Harris, Kearns, Roth, Sharifi-Malvajerdi: Lexicographically Fair Learning: Algorithms and
Generalization, FORC 2021.
"""

from typing import TYPE_CHECKING, Any

from forcopt.errors import needs_sklearn
from forcopt.learning import Finite, ListedHypotheses, Stumps
from forcopt.models.lexifair import bounded, formulations, no_regret  # noqa: F401  (register the methods)
from forcopt.models.lexifair.classification import ClassifierMixture, LexifairClassification
from forcopt.models.lexifair.instances import random_regression
from forcopt.models.lexifair.problem import GroupModel, Level, groups_of, records_needed
from forcopt.models.lexifair.regression import (
    BoundedLossRegression,
    LexifairRegression,
    LinearModel,
    RegressorMean,
)

if TYPE_CHECKING:
    from forcopt.models.lexifair.estimator import FairRegressor

__all__ = [
    "BoundedLossRegression",
    "ClassifierMixture",
    "FairRegressor",
    "Finite",
    "GroupModel",
    "Level",
    "LexifairClassification",
    "LexifairRegression",
    "LinearModel",
    "ListedHypotheses",
    "RegressorMean",
    "Stumps",
    "groups_of",
    "random_regression",
    "records_needed",
]


def __getattr__(name: str) -> Any:
    if name == "FairRegressor":
        return needs_sklearn("forcopt.models.lexifair.estimator", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
