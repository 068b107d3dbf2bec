"""Find a backend by name; list all backends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import cache
from importlib import import_module

from forcopt.backends.base import Backend, RawResult, Session, SolveOptions
from forcopt.compile.compiler import Capabilities
from forcopt.compile.program import Program
from forcopt.errors import DeclarationError, NotInstalledError, UnknownNameError, require, unknown

_MODULES = ("highs", "cvxpy", "cpsat", "mathopt", "pyscipopt", "pyomo")
"""One module a solver family; each calls `register_backend` for its backends when imported."""

_BACKENDS: dict[str, Backend] = {}
_FAMILIES: dict[str, tuple[Callable[[str], Backend], Callable[[], list[str]]]] = {}


def register_backend(backend: Backend) -> Backend:
    """Make a backend known under its name, replacing one of the same name.

    Parameters
    ----------
    backend : Backend
        Its ``name`` is the key.

    Returns
    -------
    Backend
        The same object, so that it can be used as a decorator of an instance.

    Examples
    --------
    >>> register_backend(get_backend("highs")).name
    'highs'
    """
    _BACKENDS[backend.name] = backend
    return backend


def register_family(prefix: str, make: Callable[[str], Backend], members: Callable[[], list[str]]) -> None:
    """Make every name ``prefix:NAME`` known.

    Parameters
    ----------
    prefix : str
        Before the colon.
    make : Callable[[str], Backend]
        Is given NAME.
    members : Callable[[], list[str]]
        Gives the NAMEs that are found here; must be quick and import nothing heavy.
    """
    _FAMILIES[prefix] = make, members


@cache
def _load() -> None:
    for module in _MODULES:
        import_module(f"forcopt.backends.{module}")


def backends() -> dict[str, Backend]:
    """All backends by name, ready to run or not.

    Returns
    -------
    dict[str, Backend]
        Name to backend, also those whose solver is not installed.

    Examples
    --------
    >>> "highs" in backends()
    True
    """
    _load()
    return dict(_BACKENDS)


def families() -> dict[str, list[str]]:
    """For each family of backends the names found here, such as ``cvxpy:SCIP``; others may work, too."""
    _load()
    return {prefix: [f"{prefix}:{name}" for name in members()] for prefix, (_, members) in _FAMILIES.items()}


def _configured(name: str) -> Backend:
    """The backend ``NAME[OPTION=VALUE,...]``: another one with options of its solver."""
    base, _, text = name.removesuffix("]").partition("[")
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(sign for _, sign, _ in pairs):
        raise DeclarationError(f"the backend is {name!r}; options are written NAME[OPTION=VALUE,...]")
    given = {option.strip(): _value(value.strip()) for option, _, value in pairs}
    out = copy(get_backend(base))
    out.name, made = name, out.session

    def session(program: Program) -> Session:
        held = made(program)
        solve = held.solve

        def with_options(options: SolveOptions) -> RawResult:
            return solve(replace(options, extra={**given, **options.extra}))

        held.solve = with_options  # type: ignore[method-assign]
        return held

    out.session = session  # type: ignore[method-assign]
    return out


def _value(text: str) -> object:
    """The value of an option: a number or true or false, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def get_backend(name: str) -> Backend:
    """Give the backend of that name, ready to run.

    Parameters
    ----------
    name : str
        A name of `backends`, or ``"pyomo:SOLVER"`` and the like for a family; ``"highs[presolve=off]"`` is a
        backend with options of its solver, by the solver's own names.

    Returns
    -------
    Backend
        Its solver is installed.

    Raises
    ------
    DeclarationError
        If the name is no string.
    UnknownNameError
        If no backend has the name; the message lists the nearest one.
    NotInstalledError
        If a package is missing; the message has the command that installs it.

    Examples
    --------
    >>> get_backend("highs").name
    'highs'
    """
    _load()
    require(isinstance(name, str), "the backend", name, "be the name of one")
    if name not in _BACKENDS and name.endswith("]"):
        register_backend(_configured(name))
    prefix, _, rest = name.partition(":")
    if name not in _BACKENDS and rest and prefix in _FAMILIES:
        register_backend(_FAMILIES[prefix][0](rest))
    if name not in _BACKENDS:
        error = unknown("backend", name, list(_BACKENDS))
        others = " or ".join(f"{family}:{name.lower()}" for family in sorted(_FAMILIES))
        raise UnknownNameError(f"{error}; {others} for a solver of theirs")
    backend = _BACKENDS[name]
    lack = backend.missing()
    if lack:
        raise NotInstalledError(
            f"backend {name!r} is not installed: {lack}; install it with: {backend.install}"
        )
    return backend


def all_capabilities() -> Mapping[str, Capabilities]:
    """Return the capabilities of each backend, for refusals that name capable backends."""
    return {name: backend.capabilities for name, backend in backends().items()}
