"""Values that are 0 or within bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_bounds, check_order
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Condition
from forcopt.language.expression import Expression


@dataclass(eq=False)
class Semicontinuous(Condition):
    """Each element is 0 or between `lower` and `upper`; made by `semicontinuous`.

    Attributes
    ----------
    expression : Expression
        Shape ``(n,)``.
    lower, upper : Array
        Shape ``(n,)``.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0, upper=10)
    >>> _ = m.subject_to(fo.semicontinuous(x, 3, 10), x.sum() >= 4)
    >>> m.minimize(x.sum())
    >>> sorted(m.solve()[x].tolist())
    [0.0, 4.0]
    """

    expression: Expression
    lower: Array
    upper: Array

    kind = "semicontinuous"

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expression."""
        return (self.expression,)

    def violation(self, point: Array) -> Array:
        """The distance to the nearer of 0 and the interval, relative to its end where that is above 1."""
        x = self.expression.evaluate(point)
        outside = np.maximum(np.maximum(self.lower - x, x - self.upper), 0.0)
        size = np.where(np.isfinite(self.lower), np.abs(self.lower), 1.0)
        return np.asarray(np.minimum(np.abs(x), outside) / np.maximum(1.0, size))


def _expression(x: Any, subject: str) -> Expression:
    if not isinstance(x, Expression):
        raise DeclarationError(f"{subject} needs an expression, not {x!r}")
    return x


def semicontinuous(x: Expression, lower: Any, upper: Any = np.inf) -> Semicontinuous:
    """Require each element to be 0 or between `lower` and `upper`.

    Parameters
    ----------
    x : Expression
        Any shape; 0 must be within its bounds for that choice to exist.
    lower, upper : Any
        Numbers that broadcast to the shape. Where one is infinite, the bounds of the variables limit it.

    Returns
    -------
    Semicontinuous
        A condition for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If the bounds do not broadcast, or a lower one exceeds its upper one.

    Examples
    --------
    A machine stands still or makes at least 5.

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0, upper=10)
    >>> _ = m.subject_to(fo.semicontinuous(x, 5), x.sum() >= 3)
    >>> m.minimize(x.sum())
    >>> m.solve().objective
    5.0
    """
    shape = _expression(x, "semicontinuous").shape
    low, high = as_bounds(
        x.aligned(lower, "semicontinuous: lower"),
        x.aligned(upper, "semicontinuous: upper"),
        "semicontinuous: ",
    )
    try:
        wide = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    except ValueError:
        raise DeclarationError(
            f"semicontinuous: lower and upper have shapes {low.shape} and {high.shape}, "
            f"which do not broadcast to {shape}"
        ) from None
    check_order(*wide, shape, "semicontinuous")
    return Semicontinuous(x.ravel(), wide[0].reshape(-1), wide[1].reshape(-1))
