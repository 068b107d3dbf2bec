"""Relations between expressions that are not rows: what atoms and semantic constraints leave for bridges.

Each has a ``kind``; a backend says which kinds it takes, and a bridge which kind it rewrites into which others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forcopt.language.expression import Expression

if TYPE_CHECKING:
    from forcopt.language.atoms import Atom

__all__ = [
    "AtomRelation",
    "ExponentialCone",
    "Indicator",
    "PowerCone",
    "Product",
    "SecondOrderCone",
]


@dataclass(frozen=True, eq=False)
class AtomRelation:
    """``result >= atom(arguments)`` for a convex atom, ``<=`` for a concave one.

    Attributes:
        atom: which function.
        result: shape ``(n,)``, columns of their own.
        arguments: each of shape ``(n,)``, or ``(n, d)`` for an atom that reduces its last axis.
        parameter: the atom's own, such as the k of a sum of k largest.
    """

    atom: Atom
    result: Expression
    arguments: tuple[Expression, ...]
    parameter: Any = None

    @property
    def kind(self) -> str:
        """The atom's name."""
        return self.atom.name

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions that it reads."""
        return self.arguments


@dataclass(frozen=True, eq=False)
class Product:
    """``result = binary * factor``, all of shape ``(n,)``."""

    result: Expression
    binary: Expression
    factor: Expression

    kind = "product"

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions that it reads."""
        return (self.binary, self.factor)


@dataclass(frozen=True, eq=False)
class Indicator:
    """``binary = active`` implies ``lower <= row <= upper``; shapes ``(n,)``; `binary` has one column each."""

    binary: Expression
    active: int
    row: Expression
    lower: Any
    upper: Any

    kind = "indicator"


@dataclass(frozen=True, eq=False)
class SecondOrderCone:
    """``norm2(vector[i]) <= bound[i]``; shapes ``(n, d)`` and ``(n,)``."""

    bound: Expression
    vector: Expression

    kind = "second_order"


@dataclass(frozen=True, eq=False)
class ExponentialCone:
    """``y exp(x / y) <= z``, ``y > 0`` (or its closure), all of shape ``(n,)``."""

    x: Expression
    y: Expression
    z: Expression

    kind = "exponential"


@dataclass(frozen=True, eq=False)
class PowerCone:
    """``x**alpha * y**(1 - alpha) >= |z|``, ``x, y >= 0``, all of shape ``(n,)``; ``0 < alpha < 1``."""

    x: Expression
    y: Expression
    z: Expression
    alpha: float

    kind = "power_cone"
