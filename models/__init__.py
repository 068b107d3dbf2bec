"""The problems: one package each."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forcopt.models.districting import Districting
    from forcopt.models.fair_postprocessing import FairPostprocessing
    from forcopt.models.lexifair import LexifairClassification, LexifairRegression
    from forcopt.models.strategic import (
        LeastEffortClassification,
        StrategicClassification,
        StrategicLinearClassifier,
        TargetDesign,
        TargetDesign2D,
    )

_LATER = {
    "Districting": "forcopt.models.districting",
    "FairPostprocessing": "forcopt.models.fair_postprocessing",
    "LeastEffortClassification": "forcopt.models.strategic",
    "LexifairClassification": "forcopt.models.lexifair",
    "LexifairRegression": "forcopt.models.lexifair",
    "StrategicClassification": "forcopt.models.strategic",
    "StrategicLinearClassifier": "forcopt.models.strategic",
    "TargetDesign": "forcopt.models.strategic",
    "TargetDesign2D": "forcopt.models.strategic",
}
"""Problems by the package that is imported when one is first used."""

__all__ = [
    "Districting",
    "FairPostprocessing",
    "LeastEffortClassification",
    "LexifairClassification",
    "LexifairRegression",
    "StrategicClassification",
    "StrategicLinearClassifier",
    "TargetDesign",
    "TargetDesign2D",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'forcopt.models' has no attribute {name!r}")
