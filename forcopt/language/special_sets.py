"""Conditions on several values together: semicontinuous values, special ordered sets, all different."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_bounds, as_numbers, check_order, spread
from forcopt.errors import DeclarationError
from forcopt.language.alignment import Operand
from forcopt.language.atom import Atom, apply_elementwise
from forcopt.language.atoms import maximum, minimum
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

    def violation(self, point: Array) -> Array:
        """The distance to the nearer of 0 and the interval, relative to its end where that is above 1."""
        x = self.expression.evaluate(point)
        outside = np.maximum(np.maximum(self.lower - x, x - self.upper), 0.0)
        size = np.where(np.isfinite(self.lower), np.abs(self.lower), 1.0)
        return np.asarray(np.minimum(np.abs(x), outside) / np.maximum(1.0, size))


@dataclass(eq=False)
class SpecialOrderedSet(Condition):
    """In each row at most one element (order 1) or two neighbours (order 2) differ from 0.

    Attributes
    ----------
    expression : Expression
        Shape ``(n, d)``: n sets.
    order : int
        1 or 2.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3, lower=0, upper=1)
    >>> _ = m.subject_to(fo.sos1(x))
    >>> m.maximize(x @ [1, 3, 2])
    >>> m.solve()[x].tolist()
    [0.0, 1.0, 0.0]
    """

    expression: Expression
    order: int

    kind = "special_ordered_set"

    def violation(self, point: Array) -> Array:
        """The largest size beyond the best allowed elements."""
        size = np.abs(self.expression.evaluate(point))
        count, dim = size.shape
        if dim <= self.order:
            return np.zeros(count)
        windows = (range(start, start + self.order) for start in range(dim - self.order + 1))
        return np.asarray(np.min([np.delete(size, window, axis=1).max(axis=1) for window in windows], axis=0))


@dataclass(eq=False)
class AllDifferent(Condition):
    """No two elements are equal; made by `all_different`.

    Attributes
    ----------
    expression : Expression
        Integral, shape ``(n,)``.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3, lower=1, upper=3, integer=True)
    >>> _ = m.subject_to(fo.all_different(x), x[0] >= x[1] + 2)
    >>> m.minimize(x[2])
    >>> m.solve()[x].tolist()
    [3.0, 1.0, 2.0]
    """

    expression: Expression

    kind = "all_different"

    def violation(self, point: Array) -> float:
        """How many elements repeat another."""
        values = np.round(self.expression.evaluate(point))
        return float(len(values) - len(np.unique(values)))


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
    words = "semicontinuous: lower", "semicontinuous: upper"
    low, high = as_bounds(x.aligned(lower, words[0]), x.aligned(upper, words[1]), "semicontinuous: ")
    wide = spread(low, shape, words[0]), spread(high, shape, words[1])
    check_order(*wide, shape, "semicontinuous")
    return Semicontinuous(x.ravel(), wide[0].reshape(-1), wide[1].reshape(-1))


def sos1(x: Expression) -> SpecialOrderedSet:
    """Require at most one element along the last axis to differ from 0.

    Parameters
    ----------
    x : Expression
        Shape ``(..., d)``: one set for each row of d elements.

    Returns
    -------
    SpecialOrderedSet
        A condition for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If `x` is a scalar or not an expression.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3, lower=0, upper=[1, 2, 3])
    >>> _ = m.subject_to(fo.sos1(x))
    >>> m.maximize(x.sum())
    >>> m.solve()[x].tolist()
    [0.0, 0.0, 3.0]
    """
    return _ordered(x, 1)


def sos2(x: Expression) -> SpecialOrderedSet:
    """Require at most two elements along the last axis, which must be neighbours, to differ from 0.

    Parameters
    ----------
    x : Expression
        Shape ``(..., d)``: one set for each row of d elements.

    Returns
    -------
    SpecialOrderedSet
        A condition for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If `x` is a scalar or not an expression.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 4, lower=0, upper=[3, 1, 2, 2])
    >>> _ = m.subject_to(fo.sos2(x))
    >>> m.maximize(x.sum())
    >>> m.solve().objective
    4.0
    """
    return _ordered(x, 2)


def _ordered(x: Expression, order: int) -> SpecialOrderedSet:
    if not _expression(x, f"sos{order}").ndim:
        raise DeclarationError(f"sos{order} needs an expression with an axis, not a scalar")
    return SpecialOrderedSet(x.reshape(-1, x.shape[-1]), order)


def all_different(x: Expression) -> AllDifferent:
    """Require that no two elements of an integer expression are equal.

    Parameters
    ----------
    x : Expression
        Integral and bounded; any shape.

    Returns
    -------
    AllDifferent
        A condition for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If `x` can take values between the integers.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3, lower=1, upper=5, integer=True)
    >>> _ = m.subject_to(fo.all_different(x))
    >>> m.minimize(x.sum())
    >>> m.solve().objective
    6.0
    """
    if not _expression(x, "all_different").model.is_integral(x).all():
        raise DeclarationError("all_different needs an expression that takes integers only")
    return AllDifferent(x.ravel())


Points = tuple[Array, Array]
"""Where the slope changes, rising, and the values there."""


def _value(x: Array, points: Points) -> Array:
    at, values = points
    slopes = np.diff(values) / np.diff(at)
    segment = np.clip(np.searchsorted(at, x, side="right") - 1, 0, len(slopes) - 1)
    rise = slopes[segment]
    return np.asarray(values[segment] + np.where(rise == 0, 0.0, rise * (x - at[segment])))


def _span(lower: Array, upper: Array, points: Points) -> tuple[Array, Array]:
    """The least and the greatest value between two ends: both lie at an end or where the slope changes."""
    inner = [np.clip(at, lower, upper) for at in points[0]]
    with np.errstate(invalid="ignore"):
        found = np.stack([_value(x, points) for x in (lower, upper, *inner)])
    return found.min(axis=0), found.max(axis=0)


PIECEWISE_LINEAR = Atom("piecewise_linear", 0, (0,), _value, span=_span)


def piecewise_linear(x: Operand, points: Operand, values: Operand, *, binaries: bool | None = None) -> Any:
    """The function through given points, linear between them, elementwise; the end slopes go on beyond them.

    Parameters
    ----------
    x : Operand
        An expression or numbers.
    points : Operand
        Two or more rising numbers, shape ``(k,)``.
    values : Operand
        The values there, shape ``(k,)``.
    binaries : bool, optional
        Whether to write it with binaries, which any constraint or objective may then use. By default only for
        a function that is neither convex nor concave; a convex one becomes ``k - 1`` rows for each element.

    Returns
    -------
    Expression or Array
        The shape of `x`.

    Raises
    ------
    DeclarationError
        For points that do not rise, or other lengths.

    Notes
    -----
    With binaries the argument needs bounds; see the bridge ``piecewise_linear_binaries``.

    Examples
    --------
    The first 10 units cost 5 each, later ones 2 each: concave, so that a minimum needs binaries.

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0, upper=30)
    >>> _ = m.subject_to(x.sum() >= 20)
    >>> m.minimize(fo.piecewise_linear(x, [0, 10, 20], [0, 50, 70], binaries=True).sum())
    >>> m.solve().objective
    70.0
    """
    at = as_numbers(points, "piecewise_linear: points")
    height = as_numbers(values, "piecewise_linear: values")
    if at.ndim != 1 or len(at) < 2 or at.shape != height.shape:
        raise DeclarationError(
            f"piecewise_linear: points and values have shapes {at.shape} and {height.shape}; they must be "
            "two or more numbers each, as many values as points"
        )
    if (np.diff(at) <= 0).any():
        first = int(np.argmax(np.diff(at) <= 0))
        raise DeclarationError(
            f"piecewise_linear: points[{first + 1}] is {at[first + 1]:g}, which is not above {at[first]:g}"
        )
    slopes = np.diff(height) / np.diff(at)
    convex, concave = (np.diff(slopes) >= 0).all(), (np.diff(slopes) <= 0).all()
    if binaries or not (convex or concave):
        if binaries is False:
            raise DeclarationError("piecewise_linear: a function neither convex nor concave needs binaries")
        return apply_elementwise(PIECEWISE_LINEAR, x, parameter=(at, height))
    if not isinstance(x, Expression):
        return _value(as_numbers(x, "the argument of piecewise_linear"), (at, height))[()]
    pieces = [float(s) * (x - float(a)) + float(v) for s, a, v in zip(slopes, at, height, strict=False)]
    if len(pieces) == 1:
        return pieces[0]
    return maximum(*pieces) if convex else minimum(*pieces)
