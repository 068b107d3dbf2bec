"""The problems: one package each."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forcopt.models.calibrated_errors import CalibratedEqualErrors, CalibratedTransport
    from forcopt.models.districting import Districting
    from forcopt.models.fair_classification import FairClassification
    from forcopt.models.fair_postprocessing import FairPostprocessing
    from forcopt.models.strategic import (
        LeastEffortClassification,
        StrategicClassification,
        StrategicLinearClassifier,
        TargetDesign,
        TargetDesign2D,
    )

_LATER = {
    "CalibratedEqualErrors": "forcopt.models.calibrated_errors",
    "CalibratedTransport": "forcopt.models.calibrated_errors",
    "Districting": "forcopt.models.districting",
    "FairClassification": "forcopt.models.fair_classification",
    "FairPostprocessing": "forcopt.models.fair_postprocessing",
    "LeastEffortClassification": "forcopt.models.strategic",
    "StrategicClassification": "forcopt.models.strategic",
    "StrategicLinearClassifier": "forcopt.models.strategic",
    "TargetDesign": "forcopt.models.strategic",
    "TargetDesign2D": "forcopt.models.strategic",
}
"""Problems by the package that is imported when one is first used."""

__all__ = [
    "CalibratedEqualErrors",
    "CalibratedTransport",
    "Districting",
    "FairClassification",
    "FairPostprocessing",
    "LeastEffortClassification",
    "StrategicClassification",
    "StrategicLinearClassifier",
    "TargetDesign",
    "TargetDesign2D",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'forcopt.models' has no attribute {name!r}")
