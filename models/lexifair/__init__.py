"""Lexicographically fair learning: the largest group loss as small as possible, then the next.

Diana, Gill, Globus-Harris, Kearns, Roth, Sharifi-Malvajerdi: Lexicographically Fair Learning: Algorithms and
Generalization, FORC 2021.
"""

from forcopt.models.lexifair import (  # noqa: F401  (register the methods)
    column_generation,
    enumeration,
    formulations,
    ftpl,
    no_regret,
)
from forcopt.models.lexifair.classification import ClassifierMixture, LexifairClassification
from forcopt.models.lexifair.generalization import records_needed
from forcopt.models.lexifair.generators import random_regression
from forcopt.models.lexifair.hypotheses import Hypotheses, Predictions, Stumps
from forcopt.models.lexifair.levels import Level
from forcopt.models.lexifair.problem import GroupModel, groups_of
from forcopt.models.lexifair.regression import LexifairRegression, LinearModel

__all__ = [
    "ClassifierMixture",
    "GroupModel",
    "Hypotheses",
    "Level",
    "LexifairClassification",
    "LexifairRegression",
    "LinearModel",
    "Predictions",
    "Stumps",
    "groups_of",
    "random_regression",
    "records_needed",
]
