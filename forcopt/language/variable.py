"""Decision variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forcopt.language.columns import consecutive
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes
from forcopt.notebook import facts_html

if TYPE_CHECKING:
    from forcopt.language.model import Model

__all__ = ["Variable"]


class Variable(Expression):
    """A decision variable of a model; an expression like any other.

    Attributes
    ----------
    name : str
        Unique in its model.
    start : int
        Its first column; the others follow in C order.
    integer : bool
        Whether all its values are integers.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> m.variable("x", shape=(2, 3), lower=0)
    <variable x of shape (2, 3)>
    >>> m.variable("y", index=["a", "b"], binary=True)["b"]
    <expression of shape (), 1 coefficients: y[b]>
    """

    __slots__ = ("integer", "name", "start")

    def __init__(
        self,
        model: Model,
        name: str,
        shape: tuple[int, ...],
        start: int,
        integer: bool,
        axes: Axes | None = None,
    ) -> None:
        super().__init__(model, shape, (consecutive(start, shape),), np.zeros(()), axes)
        self.name = name
        self.start = start
        self.integer = integer

    def __repr__(self) -> str:
        kind = "integer " if self.integer else ""
        return f"<{kind}variable {self.name} of shape {self.shape}>"

    def _repr_html_(self) -> str:
        columns = self.model.columns()
        own = slice(self.start, self.start + self.size)
        facts = {"kind": "integer" if self.integer else "continuous", "shape": self.shape}
        for name, bounds in (("lower", columns.lower[own]), ("upper", columns.upper[own])):
            low, high = (bounds.min(), bounds.max()) if self.size else (0.0, 0.0)
            facts[name] = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        return facts_html(f"variable {self.name}", facts)
