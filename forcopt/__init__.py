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

# ruff: noqa: F401 (the names of __all__ are imported when first used)

from importlib import import_module
from typing import TYPE_CHECKING, Any

from forcopt import deprecated, errors
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
from forcopt.status import Status
from forcopt.version import __version__ as __version__

if TYPE_CHECKING:
    from forcopt import data, fairness, language, models, privacy
    from forcopt.language import *  # noqa: F403
    from forcopt.loops.exchange import read
    from forcopt.loops.imports import from_cvxpy, from_highs, from_linopy, from_pyomo
    from forcopt.problem import Evaluation, Handles, Method, Outcome, Problem, Solution, examples, load
    from forcopt.problem.policy import Policy
    from forcopt.study.compare import compare
    from forcopt.study.comparison import Comparison
    from forcopt.study.estimates import Estimates
    from forcopt.study.replicate import replicate
    from forcopt.study.sweep import sweep

_LATER = {
    name: module
    for module, names in {
        "forcopt.loops.exchange": "read",
        "forcopt.loops.imports": "from_cvxpy from_highs from_linopy from_pyomo",
        "forcopt.problem": "Evaluation Handles Method Outcome Problem Solution examples load",
        "forcopt.problem.policy": "Policy",
        "forcopt.study": "Comparison Estimates compare replicate sweep",
    }.items()
    for name in names.split()
}
"""Names that are imported when first used, as those of `language` are: ``import forcopt`` stays quick, and
`forcopt.check` needs no other package."""

_LATER_MODULES = ("data", "fairness", "language", "models", "privacy")
"""Packages that are imported when first used."""

_OWN = sorted({*errors.__all__, *_LATER, *_LATER_MODULES, "Status"} - {"language"})

if TYPE_CHECKING:  # the same names, as type checkers read them
    # fmt: off
    __all__ = ["Comparison", "Estimates", "Evaluation", "Handles", "Method", "Outcome", "Policy", "Problem",
               "Solution", "Status", "compare", "data", "examples", "fairness", "from_cvxpy", "from_highs",
               "from_linopy", "from_pyomo", "load", "models", "privacy", "read", "replicate", "sweep"]
    # fmt: on
    __all__ += errors.__all__
    __all__ += language.__all__


def __getattr__(name: str) -> Any:
    if f"forcopt.{name}" in deprecated.RENAMED:
        return deprecated.renamed(f"forcopt.{name}")
    if name in _LATER_MODULES:
        return import_module(f"forcopt.{name}")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name == "__all__" or not name.startswith("__"):
        language = import_module("forcopt.language")
        if name == "__all__":
            return [*language.__all__, *_OWN]
        if name in language.__all__:
            found = globals()[name] = getattr(language, name)
            return found
    raise errors.missing("forcopt", name, __getattr__("__all__"))


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
