"""The registry of bridges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forcopt.compile.bridge_context import BridgeContext

__all__ = ["Bridge", "bridge", "bridges"]

Rewrite = Callable[[Any, "BridgeContext"], None]


@dataclass(frozen=True)
class Bridge:
    """Rewrites one kind of relation into others.

    Attributes
    ----------
    name : str
        The name that ``s.bridges`` shows.
    takes : str
        The kind it rewrites.
    gives : tuple[str, ...]
        The kinds it leaves behind; ``rows`` for linear rows.
    rewrite : Rewrite
        Called with the relation and the draft to write to.
    cost : float, default 1.0
        How reluctantly it is used; the compiler takes the cheapest chain.
    """

    name: str
    takes: str
    gives: tuple[str, ...]
    rewrite: Rewrite
    cost: float = 1.0


_BRIDGES: dict[str, Bridge] = {}


def bridge(takes: str, gives: tuple[str, ...] = ("rows",), cost: float = 1.0) -> Callable[[Rewrite], Rewrite]:
    """Register a function as the bridge of its name.

    Parameters
    ----------
    takes : str
        The kind it rewrites.
    gives : tuple[str, ...], default ("rows",)
        The kinds it leaves behind.
    cost : float, default 1.0
        See `Bridge`.

    Returns
    -------
    Callable[[Rewrite], Rewrite]
        A decorator that registers the function and returns it.

    Examples
    --------
    >>> @bridge("sketch", gives=("rows",), cost=2.0)
    ... def sketch_rows(relation, context): ...
    >>> _BRIDGES.pop("sketch_rows").takes
    'sketch'
    """

    def register(rewrite: Rewrite) -> Rewrite:
        name = rewrite.__name__
        _BRIDGES[name] = Bridge(name, takes, gives, rewrite, cost)
        return rewrite

    return register


def bridges() -> list[Bridge]:
    """All registered bridges.

    Returns
    -------
    list[Bridge]
        In the order of their registration.

    Examples
    --------
    >>> from forcopt.compile.bridges import bridges
    >>> any(b.takes == "abs" for b in bridges())
    True
    """
    return list(_BRIDGES.values())
