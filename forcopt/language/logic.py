"""Logic: conjunctions and disjunctions of binaries, counts, equivalences, and disjunctions of constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers, broadcast_shapes
from forcopt.errors import DeclarationError
from forcopt.language.alignment import Operand, aligned
from forcopt.language.atom import Atom, apply_atom, broadcast_operands, reduced_axis_last
from forcopt.language.constraint import Condition, Constraint, implies, require_binary
from forcopt.language.expression import Expression
from forcopt.language.joins import stack
from forcopt.language.labels import is_table

ALL_OF = Atom("all_of", 0, (1,), lambda x, _: x.min(axis=-1), reduces=True, nonnegative=True, integral=True)


def negation(b: Expression) -> Expression:
    """``~b``: 1 where a binary expression is 0.

    Parameters
    ----------
    b : Expression
        Binary, of any shape.

    Returns
    -------
    Expression
        The shape of `b`.

    Raises
    ------
    DeclarationError
        If `b` is not binary.
    """
    require_binary(b, "the operand of ~")
    return 1 - b


def conjunction(left: Expression, right: Operand) -> Expression:
    """``left & right``: 1 where both binary expressions are 1."""
    return _both(left, right, "&")


def disjunction(left: Expression, right: Operand) -> Expression:
    """``left | right``: 1 where one of two binary expressions is 1, or both."""
    if isinstance(right, Expression):
        return 1 - _both(negation(left), negation(right), "|")
    return 1 - _both(negation(left), 1 - _zero_one(right, "|"), "|")


def _zero_one(values: Operand, sign: str) -> Any:
    """Check numbers; tables and arrays are given back as numbers that keep their labels."""
    numbers = as_numbers(values, f"an operand of {sign}")
    if not np.isin(numbers, (0.0, 1.0)).all():
        raise DeclarationError(f"an operand of {sign} must be binary or 0 and 1, not {values!r}")
    return values.astype(float) if is_table(values) else numbers


def _both(left: Expression, right: Operand, sign: str) -> Expression:
    require_binary(left, f"an operand of {sign}")
    if not isinstance(right, Expression):
        scaled: Expression = left * _zero_one(right, sign)
        return scaled
    require_binary(right, f"an operand of {sign}")
    left._same_model(right)
    return all_of(stack(broadcast_operands([left, right], sign), axis=-1), axis=-1)


def all_of(b: Expression, axis: int | str | None = None) -> Expression:
    """1 where all elements (along an axis) of a binary expression are 1; a binary expression.

    Becomes ``d + 1`` rows for d elements, see the bridge ``all_of_rows``.

    Parameters
    ----------
    b : Expression
        Binary, of any shape.
    axis : int or str, optional
        All elements by default.

    Returns
    -------
    Expression
        A scalar, or the shape of `b` without `axis`.

    Raises
    ------
    DeclarationError
        If `b` is not binary or has no elements.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> b = m.variable("b", 3, binary=True)
    >>> m.maximize(5 * fo.all_of(b) - b.sum())
    >>> m.solve().objective
    2.0
    """
    require_binary(b, "the argument of all_of")
    along = reduced_axis_last(b, axis, "all_of")
    if along.shape[-1] == 0:
        raise DeclarationError("all_of no elements")
    out: Expression = apply_atom(ALL_OF, along)
    return out


def any_of(b: Expression, axis: int | str | None = None) -> Expression:
    """1 where any element (along an axis) of a binary expression is 1; a binary expression.

    Parameters
    ----------
    b : Expression
        Binary, of any shape.
    axis : int or str, optional
        All elements by default.

    Returns
    -------
    Expression
        A scalar, or the shape of `b` without `axis`.

    Raises
    ------
    DeclarationError
        If `b` is not binary or has no elements.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> b = m.variable("b", 3, binary=True)
    >>> _ = m.subject_to(fo.any_of(b) == 1)
    >>> m.minimize(b.sum())
    >>> m.solve().objective
    1.0
    """
    require_binary(b, "the argument of any_of")
    return 1 - all_of(1 - b, axis)


def exactly(k: int, b: Expression) -> Constraint:
    """Require that k elements of a binary expression are 1.

    Parameters
    ----------
    k : int
        From 0 to the number of elements.
    b : Expression
        Binary, of any shape.

    Returns
    -------
    Constraint
        One row, for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If `b` is not binary or `k` is out of its range.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> b = m.variable("b", 4, binary=True)
    >>> _ = m.subject_to(fo.exactly(2, b))
    >>> m.maximize(b.sum())
    >>> m.solve().objective
    2.0
    """
    return _count(k, b, "exactly") == k


def at_most(k: int, b: Expression) -> Constraint:
    """Require that at most k elements of a binary expression are 1; see `exactly`.

    Parameters
    ----------
    k : int
        From 0 to the number of elements.
    b : Expression
        Binary, of any shape.

    Returns
    -------
    Constraint
        One row, for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If `b` is not binary or `k` is out of its range.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> b = m.variable("b", 4, binary=True)
    >>> _ = m.subject_to(fo.at_most(3, b))
    >>> m.maximize(b.sum())
    >>> m.solve().objective
    3.0
    """
    return _count(k, b, "at_most") <= k


def at_least(k: int, b: Expression) -> Constraint:
    """Require that at least k elements of a binary expression are 1; see `exactly`.

    Parameters
    ----------
    k : int
        From 0 to the number of elements.
    b : Expression
        Binary, of any shape.

    Returns
    -------
    Constraint
        One row, for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If `b` is not binary or `k` is out of its range.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> b = m.variable("b", 4, binary=True)
    >>> _ = m.subject_to(fo.at_least(3, b))
    >>> m.minimize(b.sum())
    >>> m.solve().objective
    3.0
    """
    return _count(k, b, "at_least") >= k


def _count(k: int, b: Expression, subject: str) -> Expression:
    if not isinstance(k, int | np.integer) or isinstance(k, bool):
        raise DeclarationError(f"{subject}(k, b): k is {k!r}; it must be an integer")
    require_binary(b, f"the second argument of {subject}")
    if not 0 <= k <= b.size:
        raise DeclarationError(f"{subject}: k is {k}; there are {b.size} elements")
    return b.sum()


def iff(b: Expression, other: Expression | Constraint) -> Any:
    """Require that a binary expression is 1 exactly where another is 1, or where a constraint holds.

    Parameters
    ----------
    b : Expression
        Binary.
    other : Expression or Constraint
        A binary expression, or a constraint on an integral expression (a real one has no least violation);
        broadcasts with `b`.

    Returns
    -------
    Any
        For `Model.subject_to`: a constraint, or several conditions that together are equivalent.

    Raises
    ------
    DeclarationError
        For a constraint on an expression that takes values between the integers.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, b = m.variable("x", lower=0, upper=9, integer=True), m.variable("b", binary=True)
    >>> _ = m.subject_to(fo.iff(b, x >= 4))
    >>> m.maximize(x - 10 * b)
    >>> m.solve().objective
    3.0
    """
    require_binary(b, "the first argument of iff")
    if isinstance(other, Expression):
        require_binary(other, "the second argument of iff")
        return b == other
    if not isinstance(other, Constraint):
        raise DeclarationError(f"iff needs a binary expression or a constraint, not {other!r}")
    e = other.expression
    b._same_model(e)
    if not e.model.is_integral(e - e.constant).all():
        raise DeclarationError(
            f"iff: {e._short()} takes values between the integers, where no row expresses 'just violated'; "
            "use implies(b, ...) and implies(1 - b, ...) with a margin"
        )
    e = Expression(e.model, e.shape, e.terms, np.zeros(()), e.axes)
    low, high = (np.reshape(bound, other.shape) for bound in other.row_bounds())
    low, high = np.ceil(low - _ROUNDING), np.floor(high + _ROUNDING)
    has_low, has_high = bool(np.isfinite(low).any()), bool(np.isfinite(high).any())
    if (has_low and not np.isfinite(low).all()) or (has_high and not np.isfinite(high).all()):
        raise DeclarationError("iff: some rows of the constraint have a bound that others lack; split them")
    below, above = e <= low - 1 if has_low else None, e >= high + 1 if has_high else None
    if below is None or above is None:
        reverse = below if below is not None else above
        if reverse is None:
            raise DeclarationError("iff: the constraint has no bound")
        return [implies(b, other), implies(1 - b, reverse)]
    return either([b == 1, other], [b == 0, below], [b == 0, above], elementwise=True)


_ROUNDING = 1e-9
"""By how much a bound may miss an integer that it means."""


@dataclass(eq=False)
class Disjunction(Condition):
    """At least one of several alternatives holds; made by `either`, or by ``|`` between constraints.

    Attributes
    ----------
    alternatives : Sequence[Sequence[Constraint]]
        Of each alternative the constraints that hold together.
    shape : tuple[int, ...]
        The shape to which all constraints broadcast, if every element chooses for itself; else ``()``.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> start = m.variable("start", 2, lower=0, upper=9, integer=True)
    >>> _ = m.subject_to((start[0] >= start[1] + 3) | (start[1] >= start[0] + 2))
    >>> m.minimize(start.sum())
    >>> m.solve()[start].tolist()
    [0.0, 2.0]
    """

    alternatives: Sequence[Sequence[Constraint]]
    shape: tuple[int, ...]

    kind = "disjunction"

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions of all constraints."""
        return tuple(c.expression for group in self.alternatives for c in group)

    def violation(self, point: Array) -> Array:
        """The least over the alternatives of their largest relative violation."""
        found = []
        for group in self.alternatives:
            parts = [c.relative_violation(point) for c in group]
            if self.shape:
                found.append(np.max([np.broadcast_to(p, self.shape) for p in parts], axis=0))
            else:
                found.append(np.array(max((float(p.max(initial=0.0)) for p in parts), default=0.0)))
        return np.asarray(np.min(found, axis=0))

    def check(self, place: str) -> None:
        """Check each constraint as if it stood alone."""
        for group in self.alternatives:
            for constraint in group:
                constraint.check(place)

    def __or__(self, other: Any) -> Disjunction:
        others = other.alternatives if isinstance(other, Disjunction) else [other]
        return either(*self.alternatives, *others)


def either(*alternatives: Constraint | Sequence[Constraint], elementwise: bool = False) -> Disjunction:
    """Require at least one of several alternatives.

    Parameters
    ----------
    alternatives : Constraint or Sequence[Constraint]
        Two or more; of a list or a tuple all constraints hold together.
    elementwise : bool, default False
        Whether each element of the constraints, which then broadcast to one shape, chooses for itself.

    Returns
    -------
    Disjunction
        A condition for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        For fewer than two alternatives, an empty one, or one that is not a constraint.

    Notes
    -----
    Backends without indicator rows need bounds on the variables of the constraints; see the bridge
    ``disjunction_implications``.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", lower=0, upper=10)
    >>> _ = m.subject_to(fo.either(x <= 2, x >= 7))
    >>> m.minimize(fo.abs(x - 5))
    >>> m.solve().objective
    2.0
    >>> _ = m.subject_to((x <= 1) | (x >= 9))
    >>> m.solve().objective
    4.0
    """
    groups: list[list[Constraint]] = []
    for alternative in alternatives:
        group: list[Any] = [*alternative] if isinstance(alternative, list | tuple) else [alternative]
        for constraint in group:
            if not isinstance(constraint, Constraint):
                raise DeclarationError(f"either needs constraints, or lists of them, not {constraint!r}")
        if not group:
            raise DeclarationError("either: an alternative is empty")
        groups.append(group)
    if len(groups) < 2:
        raise DeclarationError("either needs two or more alternatives")
    first = groups[0][0].expression
    for group in groups:
        for constraint in group:
            first._same_model(constraint.expression)
    shape: tuple[int, ...] = ()
    if elementwise:
        met, _ = aligned([c for group in groups for c in group], "a constraint of either")
        shape = broadcast_shapes([c.shape for c in met], "either")
        rest = iter(met)
        groups = [[next(rest) for _ in group] for group in groups]
    return Disjunction(groups, shape)
