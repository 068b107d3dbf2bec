"""Strategic classification: agents who can both game and improve.

Ahmadi, Beyhaghi, Blum, Naggita: On classification of strategic agents who can both game and improve, FORC
2022.
"""

from forcopt.models.strategic import (  # noqa: F401  (register the methods)
    baselines,
    enumeration,
    greedy_deletion,
    linear_milp,
    lp,
    milp,
    separator_lp,
)
from forcopt.models.strategic.linear import LinearClassifier, StrategicLinearClassifier
from forcopt.models.strategic.problem import (
    LeastEffortClassification,
    OpenCriteria,
    StrategicClassification,
)
from forcopt.models.strategic.responses import Responses

__all__ = [
    "LeastEffortClassification",
    "LinearClassifier",
    "OpenCriteria",
    "Responses",
    "StrategicClassification",
    "StrategicLinearClassifier",
]
