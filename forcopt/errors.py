"""Every error that the library itself raises; all of them also are a standard exception."""

from __future__ import annotations

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
    """The base of all errors of this library."""


class DeclarationError(ForcoptError, ValueError):
    """A malformed model or problem: the message names the field, the value and the rule."""


class CurvatureError(ForcoptError, ValueError):
    """An expression is used where its curvature makes the model nonconvex; names the atom and the place."""


class UnboundedExpressionError(ForcoptError, ValueError):
    """A rewriting needs bounds that cannot be derived; names the variable that lacks one."""


class UnsupportedError(ForcoptError, ValueError):
    """No chain of bridges turns the model into kinds that the backend takes; it names capable backends."""


class UnknownNameError(ForcoptError, ValueError):
    """A backend, method, model or field that does not exist; suggests the nearest that does."""


class NotInstalledError(ForcoptError, RuntimeError):
    """A backend whose package or executable is missing; gives the command that installs it."""


class BackendError(ForcoptError, RuntimeError):
    """A solver crashed, refused the model or answered nonsense; keeps the solver's own words."""


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
    near = similar(name, known, _SUGGESTED if len(known) > _LISTED else 1)
    hint = f" did you mean {' or '.join(map(repr, near))}?" if near else ""
    subject = f"unknown {noun} '{name}'{of}{owner}"
    if len(known) > _LISTED:
        return UnknownNameError(f"{subject};{hint or ' nothing is similar among'} {len(known)} known")
    return UnknownNameError(f"{subject};{hint} known: {', '.join(sorted(known)) or 'none'}")


def similar(name: str, known: list[str], most: int) -> list[str]:
    """Give the known names that are spelled like `name`, else those that contain it.

    Examples
    --------
    >>> similar("fair", ["FairAuction", "Districting", "FairRanking"], 3)
    ['FairAuction', 'FairRanking']
    """
    from difflib import get_close_matches

    return get_close_matches(name, known, n=most) or [k for k in known if name.lower() in k.lower()][:most]


_LISTED, _SUGGESTED = 40, 3
"""An error lists all known names up to the first number; beyond it suggests up to the second."""
