"""Parameters: data of a model that may change between solves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_numbers, refuse_entry
from forcopt.errors import DeclarationError
from forcopt.language.variable import Declared

if TYPE_CHECKING:
    from forcopt.language.model import Model

__all__ = ["Parameter"]


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
