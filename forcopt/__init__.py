"""forcopt: optimization modelling for responsible computing.

Examples
--------
>>> import forcopt as fo
>>> m = fo.Model("diet")
>>> x = m.variable("x", shape=2, lower=0)
>>> need = m.subject_to(x[0] + 2 * x[1] >= 4, name="need")
>>> m.minimize(3 * x[0] + 4 * x[1])
>>> m.solve().objective
8.0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from forcopt import data, fairness, models, privacy
    from forcopt.loops.exchange import read
    from forcopt.problem import Evaluation, Handles, Method, Outcome, Problem, Solution, examples, load
    from forcopt.study.compare import compare
    from forcopt.study.comparison import Comparison
    from forcopt.study.estimates import Estimates
    from forcopt.study.replicate import replicate
    from forcopt.study.sweep import sweep

__version__ = "0.1.0"

_LATER = {
    "Comparison": "forcopt.study",
    "Estimates": "forcopt.study",
    "Evaluation": "forcopt.problem",
    "Handles": "forcopt.problem",
    "Method": "forcopt.problem",
    "Outcome": "forcopt.problem",
    "Problem": "forcopt.problem",
    "Solution": "forcopt.problem",
    "compare": "forcopt.study",
    "examples": "forcopt.problem",
    "load": "forcopt.problem",
    "read": "forcopt.loops.exchange",
    "replicate": "forcopt.study",
    "sweep": "forcopt.study",
}
"""Names that are imported when first used, so that ``import forcopt`` stays quick."""

_LATER_MODULES = ("data", "fairness", "models", "privacy")
"""Packages that are imported when first used."""

__all__ = [
    *_language,
    "BackendError",
    "Comparison",
    "CurvatureError",
    "DeclarationError",
    "Estimates",
    "Evaluation",
    "ForcoptError",
    "Handles",
    "Method",
    "NotInstalledError",
    "Outcome",
    "Problem",
    "Solution",
    "Status",
    "UnboundedExpressionError",
    "UnknownNameError",
    "UnsupportedError",
    "compare",
    "data",
    "examples",
    "fairness",
    "load",
    "models",
    "privacy",
    "read",
    "replicate",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _LATER_MODULES:
        return import_module(f"forcopt.{name}")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    from forcopt.errors import missing

    raise missing("forcopt", name, __all__)
