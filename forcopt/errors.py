"""Every error that the library itself raises; all of them also are a standard exception."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

__all__ = [
    "BackendError",
    "CurvatureError",
    "DeclarationError",
    "ForcoptError",
    "NotInstalledError",
    "UnboundedExpressionError",
    "UnknownNameError",
    "UnsupportedError",
]


class ForcoptError(Exception):
    """The base of all errors of this library.

    Examples
    --------
    >>> import forcopt as fo
    >>> try:
    ...     fo.load("postprocessing/compas").solve("simplex")
    ... except fo.ForcoptError as error:
    ...     print(error)
    unknown method 'simplex' of FairPostprocessing; known: as-predicted, dp-postprocessing, lp
    """


class DeclarationError(ForcoptError, ValueError):
    """A malformed model or problem: the message names the field, the value and the rule.

    Examples
    --------
    >>> from forcopt import DeclarationError
    >>> from forcopt.fairness import EqualizedOdds
    >>> try:
    ...     EqualizedOdds(-1)
    ... except DeclarationError as error:
    ...     print(error)
    EqualizedOdds: tolerance is -1; input should be greater than or equal to 0
    """


class CurvatureError(ForcoptError, ValueError):
    """An expression is used where its curvature makes the model nonconvex; names the atom and the place.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2)
    >>> try:
    ...     m.subject_to(fo.norm(x) >= 1, name="far")
    ... except fo.CurvatureError as error:
    ...     print(error)
    constraint far: the expression must be concave, but norm_2#1 is convex; the model would not be convex
    """


class UnboundedExpressionError(ForcoptError, ValueError):
    """A rewriting needs bounds that cannot be derived; names the variable that lacks one.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> b, x = m.variable("b", binary=True), m.variable("x")
    >>> _ = m.subject_to(fo.implies(b, x <= 3))
    >>> try:
    ...     m.solve()
    ... except fo.UnboundedExpressionError as error:
    ...     print(str(error).partition(";")[0])
    big_m needs bounds on x: variable x has no upper bound
    """


class UnsupportedError(ForcoptError, ValueError):
    """No chain of bridges turns the model into kinds that the backend takes; it names capable backends.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2)
    >>> m.minimize(fo.exp(x - 1).sum())
    >>> try:
    ...     m.solve("glop")
    ... except fo.UnsupportedError as error:
    ...     print(str(error).partition(";")[0])
    backend 'glop' cannot take exp in model 'model'
    """


class UnknownNameError(ForcoptError, ValueError):
    """A backend, method, model or field that does not exist; suggests the nearest that does.

    Examples
    --------
    >>> import forcopt as fo
    >>> try:
    ...     fo.Model().solve("hihgs")
    ... except fo.UnknownNameError as error:
    ...     print(str(error).partition(" known")[0])
    unknown backend 'hihgs'; did you mean 'highs'?
    """


class NotInstalledError(ForcoptError, RuntimeError):
    """A backend whose package or executable is missing; gives the command that installs it."""


class BackendError(ForcoptError, RuntimeError):
    """A solver crashed, refused the model or answered nonsense; keeps the solver's own words."""


_PACKAGES = {"sklearn": "scikit-learn", "flint": "python-flint", "dp_accounting": "dp-accounting"}
"""Packages by their module, where the two are called differently."""


def package_of(module: str | None) -> str:
    """The package that installs a module, as ``pip install`` takes it.

    Examples
    --------
    >>> package_of("sklearn.tree"), package_of("pandas")
    ('scikit-learn', 'pandas')
    """
    top = (module or "").partition(".")[0]
    return _PACKAGES.get(top, top)


def required(module: str, what: str) -> Any:
    """Import a module that may be missing.

    Parameters
    ----------
    module : str
        To import.
    what : str
        That needs it: the subject of the message.

    Raises
    ------
    NotInstalledError
        If it is missing, with the command that installs it.

    Examples
    --------
    >>> try:
    ...     required("polaris", "a picture of stars")
    ... except NotInstalledError as error:
    ...     print(error)
    a picture of stars needs polaris, which is not installed: pip install polaris
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise lack_of(module, what, error) from None


def lack_of(module: str, what: str, error: ImportError) -> NotInstalledError:
    """Give the error for a module that is missing, or that is there but cannot be imported.

    Examples
    --------
    >>> lack_of("numpy", "an array", ImportError("DLL load failed"))
    NotInstalledError('an array needs numpy, which cannot be imported: DLL load failed')
    """
    package = package_of(module)
    lack = f"which is not installed: pip install {package}"
    if find_spec(module.partition(".")[0]):
        lack = f"which cannot be imported: {error}"
    return NotInstalledError(f"{what} needs {package}, {lack}")


def needs_sklearn(module: str, name: str) -> Any:
    """Give a class from a module that imports scikit-learn, which is not a requirement."""
    required("sklearn", name)
    return getattr(import_module(module), name)


def require(holds: object, name: str, value: Any, rule: str) -> None:
    """Refuse a value unless a rule holds.

    Parameters
    ----------
    holds : object
        Whether it does.
    name, value : str, Any
        What the message names.
    rule : str
        What the value must do, as in "be at least 1".

    Raises
    ------
    DeclarationError
        If it does not hold.

    Examples
    --------
    >>> require(0 < 3, "rate", 3, "be positive")
    >>> require(-1 > 0, "rate", -1, "be positive")
    Traceback (most recent call last):
    forcopt.errors.DeclarationError: rate is -1; it must be positive
    """
    if not holds:
        shown = value.item() if getattr(value, "shape", None) == () else value
        raise DeclarationError(f"{name} is {shown!r}; it must {rule}")


def require_shape(holds: object, subject: str, values: Any, rule: str) -> None:
    """Refuse an array unless a rule on its shape holds.

    Parameters
    ----------
    holds : object
        Whether it does.
    subject : str
        The array with its verb, as in "weights have".
    values : Array
        The array.
    rule : str
        What the shape must do, as in "be (n,)".

    Raises
    ------
    DeclarationError
        If it does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.ones((2, 3))
    >>> require_shape(weights.ndim == 1, "weights have", weights, "be (n,)")
    Traceback (most recent call last):
    forcopt.errors.DeclarationError: weights have shape (2, 3); it must be (n,)
    """
    if not holds:
        raise DeclarationError(f"{subject} shape {values.shape}; it must {rule}")


def check_choice(name: str, value: object, *choices: str | None) -> None:
    """Refuse a value that is none of the choices of a parameter.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        As given.
    choices : str or None
        The choices; None stands for a value that is left out.

    Raises
    ------
    DeclarationError
        For another value.

    Examples
    --------
    >>> check_choice("noise", "laplace", "laplace", "geometric")
    >>> check_choice("noise", "Laplace", "laplace", "geometric")
    Traceback (most recent call last):
    forcopt.errors.DeclarationError: noise is 'Laplace'; it must be 'laplace' or 'geometric'
    """
    if not (value is None or isinstance(value, str)) or value not in choices:
        *others, last = [repr(choice) for choice in choices if choice is not None]
        known = f"{', '.join(others)} or {last}" if others else last
        raise DeclarationError(f"{name} is {value!r}; it must be {known}")


def unknown(kind: str, name: str, known: list[str]) -> UnknownNameError:
    """Build the error for an unknown `name`, with the nearest of the `known` ones as a suggestion.

    Parameters
    ----------
    kind : str
        The kind of thing, such as ``"backend"``, or ``"option of method 'lp'"``: the name goes before "of".
    name : str
        The unknown name.
    known : list of str
        The names that exist.

    Examples
    --------
    >>> str(unknown("backend", "hihgs", ["highs", "scs"]))
    "unknown backend 'hihgs'; did you mean 'highs'? known: highs, scs"
    >>> str(unknown("field of Point", "z", ["x", "y"]))
    "unknown field 'z' of Point; known: x, y"
    """
    noun, of, owner = kind.partition(" of ")
    near = similar(str(name), known, _SUGGESTED if len(known) > _LISTED else 1)
    hint = f" did you mean {' or '.join(map(repr, near))}?" if near else ""
    subject = f"unknown {noun} '{name}'{of}{owner}"
    if len(known) > _LISTED:
        return UnknownNameError(f"{subject};{hint or ' nothing is similar among'} {len(known)} known")
    return UnknownNameError(f"{subject};{hint} known: {', '.join(sorted(known)) or 'none'}")


def check_known(kind: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that is not known.

    Raises
    ------
    UnknownNameError
        The error of `unknown`.
    """
    if name not in known:
        raise unknown(kind, name, list(known))


def similar(name: str, known: list[str], most: int) -> list[str]:
    """Give the known names that are spelled like `name`, else those that contain it.

    Examples
    --------
    >>> similar("fair", ["FairAuction", "Districting", "FairRanking"], 3)
    ['FairAuction', 'FairRanking']
    """
    from difflib import get_close_matches

    return get_close_matches(name, known, n=most) or [k for k in known if name.lower() in k.lower()][:most]


def missing(module: str, name: str, known: list[str]) -> AttributeError:
    """Build the error for a name that a module lacks.

    Examples
    --------
    >>> str(missing("forcopt", "vstack", ["stack", "concatenate"]))
    "module 'forcopt' has no attribute 'vstack'; did you mean 'stack'?"
    """
    near = [] if name.startswith("_") else similar(name, known, _SUGGESTED)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")


def counterpart(thing: object, name: str, known: dict[str, str]) -> AttributeError:
    """Build the error for an attribute that an object lacks, with the call that other languages name so.

    Examples
    --------
    >>> str(counterpart([], "addConstr", {"addconstr": "m.subject_to(...)"}))
    "'list' object has no attribute 'addConstr'; write m.subject_to(...)"
    """
    call = known.get(_spelled(name), "")
    hint = f"; write {call}" if call else ""
    text = f"{type(thing).__name__!r} object has no attribute {name!r}{hint}"
    return AttributeError(text, name=name, obj=thing)


def unexpected(function: str, name: str, known: dict[str, str]) -> TypeError:
    """Build the error for an argument that a function lacks, with what other languages mean by it.

    Examples
    --------
    >>> str(unexpected("variable", "lb", {"lb": "lower=..."}))
    "variable() got an unexpected keyword argument 'lb'; write lower=..."
    """
    instead = known.get(_spelled(name), "")
    hint = f"; write {instead}" if instead else ""
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def _spelled(name: str) -> str:
    """A name as hints list it."""
    return name.replace("_", "").lower()


def unsettable(thing: object, name: str, known: dict[str, str]) -> AttributeError:
    """Build the error for an assignment to an attribute that an object lacks, or that is fixed.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> m.time_limit = 3
    Traceback (most recent call last):
    AttributeError: 'Model' object has no attribute 'time_limit' to set; write m.solve(time_limit=...)
    """
    call = known.get(_spelled(name), "")
    kind = type(thing).__name__
    has = f"attribute {name!r} of {kind!r} object is fixed"
    text = has if hasattr(type(thing), name) else f"{kind!r} object has no attribute {name!r} to set"
    return AttributeError(text + (f"; write {call}" if call else ""), name=name, obj=thing)


_LISTED, _SUGGESTED = 40, 3
"""An error lists all known names up to the first number; beyond it suggests up to the second."""


class Guarded:
    """A base of classes whose attributes are fixed, but for some.

    Attributes
    ----------
    _settable : frozenset[str]
        The public names that can be set; names that begin with an underscore can.
    _hints : dict[str, str]
        What to write instead, by the refused name in small letters without underscores.
    """

    __slots__ = ()

    _settable: ClassVar[frozenset[str]]
    _hints: ClassVar[dict[str, str]]

    if not TYPE_CHECKING:  # type checkers still report a wrong name

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in self._settable and not name.startswith("_"):
                raise unsettable(self, name, self._hints)
            object.__setattr__(self, name, value)

    def __setstate__(self, state: Any) -> None:
        own, slots = state if isinstance(state, tuple) else (state, None)
        for name, value in {**(own or {}), **(slots or {})}.items():
            object.__setattr__(self, name, value)
