"""Parameters: data of a model that may change between solves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_numbers, broadcast_shapes, refuse_entry
from forcopt.errors import CurvatureError, DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes
from forcopt.language.relations import ParameterProduct
from forcopt.language.terms import mark
from forcopt.language.variable import Declared

if TYPE_CHECKING:
    from forcopt.language.model import Model

__all__ = ["Parameter", "parameter_matmul", "parameter_product"]


class Parameter(Declared):
    """Numbers that may change between solves; an expression like any other. Made by `Model.parameter`.

    Attributes
    ----------
    name : str
        Unique in its model.
    start : int
        Its first column; the others follow in C order.
    position : int
        Of its block among the blocks of the model.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, demand = m.variable("x", lower=0), m.parameter("demand", value=2)
    >>> _ = m.subject_to(x >= demand)
    >>> m.minimize(3 * x)
    >>> first = m.solve().objective
    >>> demand.value = 5
    >>> first, m.solve().objective
    (6.0, 15.0)
    """

    __slots__ = ("_value",)

    _settable = frozenset(("value",))

    def __init__(self, model: Model, position: int) -> None:
        super().__init__(model, position)
        self._value = np.full(self.shape, np.nan)

    @property
    def value(self) -> Array:
        """The numbers that the next solve takes; a copy."""
        return self._value.copy()

    @value.setter
    def value(self, value: Any) -> None:
        subject = f"parameter {self.name}: value"
        numbers = as_numbers(self.aligned(value, subject), subject)
        if numbers.shape != self.shape:
            try:
                numbers = np.array(np.broadcast_to(numbers, self.shape))
            except ValueError:
                raise DeclarationError(
                    f"{subject} has shape {numbers.shape}, which does not broadcast to {self.shape}"
                ) from None
        block = self.model.block_of(self.start)
        low, high = (np.broadcast_to(b, numbers.shape) for b in (block.lower, block.upper))
        outside = (numbers < low) | (numbers > high)
        if outside.any():
            at = int(np.argmax(outside))
            rule = f"within the declared range [{low.flat[at]:g}, {high.flat[at]:g}]"
            refuse_entry(numbers.shape, at, numbers.flat[at], subject, rule)
        self._value = numbers

    def __repr__(self) -> str:
        return f"<parameter {self.name} of shape {self.shape}>"


def parameter_product(left: Expression, right: Expression, axes: Axes | None = None) -> Expression | None:
    """The elementwise product of two expressions of which one reads parameters only; None if neither does.

    They are in line, and the result has the given axes.
    """
    model = left.model
    known = model.parametric_columns()
    if known is None:
        return None
    scale, factor = (left, right) if _reads_only(left, known) else (right, left)
    if not _reads_only(scale, known):
        return None
    shape = broadcast_shapes([scale.shape, factor.shape], "multiplying")
    flat, inside = scale.broadcast_to(shape).ravel(), factor.broadcast_to(shape).ravel()
    (low, high), (least, most) = model.span_of(flat), model.span_of(inside)
    curvature = 0
    if not model.is_affine(inside):
        if (low < 0).any():
            if (high <= 0).all():
                opposite = parameter_product(-scale, factor, axes)
                return None if opposite is None else -opposite
            raise CurvatureError(
                f"a product of the parameter {scale._short()} and {factor._short()}: the parameter may be "
                "negative; declare it with lower=0"
            )
        curvature = model.curvature(inside, "inside a product with a parameter")
    with np.errstate(invalid="ignore"):
        corners = np.stack([a * b for a in (low, high) for b in (least, most)])
    corners = np.where(np.isnan(corners), 0.0, corners)
    lower, upper = corners.min(axis=0), corners.max(axis=0)
    result = model.add_columns(
        "scaled", shape, lower.reshape(shape), upper.reshape(shape), curvature, axes=axes
    )
    model.relations.append(ParameterProduct(result.ravel(), flat, inside))
    if _reads_only(factor, known):
        model.note_parametric(result)
    return result


def parameter_matmul(left: Expression, right: Expression) -> Expression | None:
    """``left @ right`` of which one reads parameters only; None if neither does. They are in line."""
    left, right = left.labelled(None), right.labelled(None)
    if left.ndim == 1:
        out = parameter_product(left if right.ndim == 1 else left[:, None], right)
        return None if out is None else out.sum(axis=0)
    if right.ndim == 1:
        out = parameter_product(left, right)
        return None if out is None else out.sum(axis=-1)
    out = parameter_product(left[:, :, None], right[None, :, :])
    return None if out is None else out.sum(axis=1)


def _reads_only(expression: Expression, known: Array) -> bool:
    used = np.zeros(len(known), dtype=bool)
    mark(expression.terms, used)
    return not (used & ~known).any()
