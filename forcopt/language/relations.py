"""Relations between expressions that are not rows; atoms and conditions state them, bridges rewrite them.

Each has a ``kind``. A backend names the kinds that it takes, a bridge the kinds of its input and output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forcopt.arrays import Array
from forcopt.language.expression import Expression
from forcopt.language.terms import Gather

if TYPE_CHECKING:
    from forcopt.language.atom import Atom


def only_columns(expression: Expression) -> Array:
    """The columns of an expression that is one column for each element, flat."""
    (term,) = expression.terms
    assert isinstance(term, Gather) and term.width == 1
    return term.columns.reshape(-1)


@dataclass(frozen=True, eq=False)
class AtomRelation:
    """``result >= atom(arguments)`` for a convex atom, ``<=`` for a concave one.

    Attributes
    ----------
    atom : Atom
        Which function.
    result : Expression
        Shape ``(n,)``, columns of their own.
    arguments : tuple[Expression, ...]
        Each of shape ``(n,)``, or ``(n, d)`` for an atom that reduces its last axis.
    parameter : Any, optional
        The atom's own, such as the k of a sum of k largest.
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

    @property
    def result_columns(self) -> Array:
        """The columns of the result, flat."""
        return only_columns(self.result)


@dataclass(frozen=True, eq=False)
class Product:
    """``result = scale * factor`` with a binary scale, all of shape ``(n,)``."""

    result: Expression
    scale: Expression
    factor: Expression

    kind = "product"

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions that it reads."""
        return (self.scale, self.factor)

    @property
    def result_columns(self) -> Array:
        """The columns of the result, flat."""
        return only_columns(self.result)


@dataclass(frozen=True, eq=False)
class ParameterProduct(Product):
    """``result = scale * factor`` where `scale` reads parameters only; compiling puts their values in."""

    kind = "parameter_product"


@dataclass(frozen=True, eq=False)
class Multiplication(Product):
    """``result = scale * factor`` of any two affine expressions, which is not convex.

    Attributes
    ----------
    pieces : int, default 0
        The number of pieces of the range of `scale` over which a relaxation may replace the equation; 0 for
        the equation itself.
    """

    pieces: int = 0

    @property
    def kind(self) -> str:  # type: ignore[override]
        """What is to be written."""
        return ("multiplication", "mccormick", "piecewise_mccormick")[min(self.pieces, 2)]


@dataclass(frozen=True, eq=False)
class Indicator:
    """``binary = active`` implies ``lower <= row <= upper``.

    Attributes
    ----------
    binary : Expression
        Shape ``(n,)``; one integer column within [0, 1] for each element, and nothing else.
    active : int
        0 or 1.
    row : Expression
        Shape ``(n,)``.
    lower, upper : Any
        Bounds on the row, including its constant; broadcast to ``(n,)``; may be infinite.
    """

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


@dataclass(frozen=True, eq=False)
class SemidefiniteCone:
    """Symmetric matrices without negative eigenvalues.

    Attributes
    ----------
    entries : Expression
        Shape ``(count, order (order + 1) / 2)``: the lower triangle of each, row by row.
    order : int
        Rows of each matrix.
    """

    entries: Expression
    order: int

    kind = "semidefinite_cone"


class OuterSecondOrderCone(SecondOrderCone):
    """One for a solver of rows, which is given tangents."""

    kind = "tangents"


class OuterSemidefiniteCone(SemidefiniteCone):
    """One for a solver of rows, which is given tangents."""

    kind = "tangents"
