"""Strategic classification: agents who can both game and improve.

Ahmadi, Beyhaghi, Blum, Naggita: On classification of strategic agents who can both game and improve, FORC
2022.
"""

from forcopt.models.strategic import criteria  # noqa: F401  (register the methods)
from forcopt.models.strategic.learning import Learned, learn_bandit, learn_full_information
from forcopt.models.strategic.linear import LinearClassifier, StrategicLinearClassifier
from forcopt.models.strategic.linear_milp import find_separator
from forcopt.models.strategic.problem import LeastEffortClassification, OpenCriteria, StrategicClassification
from forcopt.models.strategic.responses import Responses
from forcopt.models.strategic.targets import TargetDesign, TargetDesign2D, Targets

__all__ = [
    "Learned",
    "LeastEffortClassification",
    "LinearClassifier",
    "OpenCriteria",
    "Responses",
    "StrategicClassification",
    "StrategicLinearClassifier",
    "TargetDesign",
    "TargetDesign2D",
    "Targets",
    "find_separator",
    "learn_bandit",
    "learn_full_information",
]
