"""forcopt: optimization modelling for responsible computing.

>>> import forcopt as fo
>>> m = fo.Model("diet")
>>> x = m.variable("x", shape=2, lower=0)
>>> need = m.subject_to(x[0] + 2 * x[1] >= 4, name="need")
>>> m.minimize(3 * x[0] + 4 * x[1])
>>> m.solve().objective
8.0
"""

from forcopt.errors import (
    BackendError,
    CurvatureError,
    DeclarationError,
    ForcoptError,
    NotInstalledError,
    UnboundedExpressionError,
    UnknownNameError,
    UnsupportedError,
)
from forcopt.language import *  # noqa: F403
from forcopt.language import __all__ as _language
from forcopt.status import Status

__version__ = "0.1.0"

__all__ = [
    *_language,
    "BackendError",
    "CurvatureError",
    "DeclarationError",
    "ForcoptError",
    "NotInstalledError",
    "Status",
    "UnboundedExpressionError",
    "UnknownNameError",
    "UnsupportedError",
]
