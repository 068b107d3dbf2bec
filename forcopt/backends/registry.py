"""Find a backend by name; list those there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

from forcopt.backends.base import Backend
from forcopt.compile.capabilities import Capabilities
from forcopt.errors import NotInstalledError, unknown

__all__ = ["all_capabilities", "backends", "get_backend", "register_backend"]

_MODULES = ("cpsat", "highs", "mathopt", "pyscipopt")
"""One module a solver family; each calls `register_backend` for its backends when imported."""

_BACKENDS: dict[str, Backend] = {}
_FAMILIES: dict[str, Callable[[str], Backend]] = {}


def register_backend(backend: Backend) -> Backend:
    """Make a backend known under its name, replacing one of the same name."""
    _BACKENDS[backend.name] = backend
    return backend


def register_family(prefix: str, make: Callable[[str], Backend]) -> None:
    """Make every name ``prefix:NAME`` known; `make` is given NAME."""
    _FAMILIES[prefix] = make


@cache
def _load() -> None:
    for module in _MODULES:
        import_module(f"forcopt.backends.{module}")


def backends() -> dict[str, Backend]:
    """All backends by name, ready to run or not."""
    _load()
    return dict(_BACKENDS)


def get_backend(name: str) -> Backend:
    """Give the backend of that name, ready to run.

    Raises:
        UnknownNameError: if there is none, with the nearest name.
        NotInstalledError: if it lacks something, with the command that installs it.
    """
    _load()
    prefix, _, rest = name.partition(":")
    if name not in _BACKENDS and rest and prefix in _FAMILIES:
        register_backend(_FAMILIES[prefix](rest))
    if name not in _BACKENDS:
        raise unknown("backend", name, list(_BACKENDS))
    backend = _BACKENDS[name]
    lack = backend.missing()
    if lack:
        raise NotInstalledError(f"backend {name!r} is not installed: {lack}; install it with: {backend.install}")
    return backend


def all_capabilities() -> Mapping[str, Capabilities]:
    """What each backend takes, for refusals that name those that could."""
    return {name: backend.capabilities for name, backend in backends().items()}
