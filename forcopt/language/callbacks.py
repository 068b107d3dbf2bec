"""Callbacks that help a search and change no model: cuts, and heuristics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forcopt.arrays import Array
from forcopt.language.constraint import Separator
from forcopt.language.expression import Expression

if TYPE_CHECKING:
    from forcopt.language.model import Model

__all__ = ["Cut", "Heuristic", "Proposer"]

Proposer = Callable[[Callable[[Expression], Array]], Mapping[Any, Any] | None]
"""Takes a function that evaluates expressions at a relaxation's point; gives values of variables, or None."""


@dataclass(eq=False)
class Cut:
    """A family of constraints that every feasible point satisfies, and a relaxation's point may not."""

    model: Model
    separate: Separator
    name: str = ""

    kind = "cut"


@dataclass(eq=False)
class Heuristic:
    """A function that proposes a feasible point, given a relaxation's."""

    model: Model
    propose: Proposer
    name: str = ""

    kind = "heuristic"
