"""Scalar sums of columns in Python's lists: what a model is made of that is written term by term."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.language.expression import Expression
from forcopt.language.terms import Gather, Rows, Term

if TYPE_CHECKING:
    from forcopt.language.model import Model


_LARGE = 1e300
_NUMBERS = frozenset((int, float, np.float64, np.int64))


class Scalar(Expression):
    """A sum of columns times coefficients, and a number; arrays of them are made when they are asked for.

    ``total + x`` appends to the lists of ``total`` if these end where it ends, so that a sum of n terms that
    are added one by one takes time and memory linear in n. Every sum reads its own part of the lists.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, y = m.variable("x"), m.variable("y")
    >>> total = 2 * x + 1
    >>> total - y
    <expression of shape (), 2 coefficients: 2 x - y + 1>
    >>> total
    <expression of shape (), 1 coefficients: 2 x + 1>
    """

    __slots__ = ("columns", "number", "values", "width")

    shape = ()
    axes = None

    columns: list[int]
    values: list[float]
    width: int
    number: float

    def __new__(
        cls, model: Model, columns: list[int], values: list[float], width: int, number: float
    ) -> Scalar:
        """Hold the first `width` entries of the lists."""
        self: Scalar = object.__new__(cls)
        self.model = model
        self.columns = columns
        self.values = values
        self.width = width
        self.number = number
        return self

    def __init__(self, *parts: Any) -> None:
        pass

    def __reduce__(self) -> tuple[Any, ...]:
        return Scalar, (self.model, *self.entries(), self.width, self.number)

    def entries(self) -> tuple[list[int], list[float]]:
        """Its own part of the lists."""
        return self.columns[: self.width], self.values[: self.width]

    def plain(self) -> Scalar:
        """Itself."""
        return self

    def linear(self) -> Scalar:
        """The same without its number."""
        return Scalar(self.model, self.columns, self.values, self.width, 0.0)

    def added(self, other: Any, sign: float) -> Scalar | None:
        """The sum with a number or another scalar times `sign`; None if that is not in lists."""
        if type(other) in _NUMBERS and -_LARGE < other < _LARGE:
            number = self.number + sign * float(other)
            return Scalar(self.model, self.columns, self.values, self.width, number)
        if not isinstance(other, Expression) or other.shape:
            return None
        columns, values = self.columns, self.values
        if len(columns) != self.width:
            columns, values = self.entries()
        own = other.extend(columns, values, sign)
        if own is None:
            return None
        self._same_model(other)
        return Scalar(self.model, columns, values, len(columns), self.number + sign * own)

    def gathered(self, terms: Iterator[Any]) -> tuple[Scalar, Any]:
        """The sum with numbers and scalars, and the first term that is neither; 0 if there is none."""
        columns, values = self.entries()
        number = self.number
        for term in terms:
            if type(term) in _NUMBERS and -_LARGE < term < _LARGE:
                number += float(term)
                continue
            own = term.extend(columns, values, 1.0) if isinstance(term, Expression) else None
            if own is None:
                break
            self._same_model(term)
            number += own
        else:
            term = 0.0
        return Scalar(self.model, columns, values, len(columns), number), term

    def extend(self, columns: list[int], values: list[float], sign: float) -> float:
        """Append its entries times `sign`; the number that is left."""
        if self.width == 1:
            columns.append(self.columns[0])
            values.append(sign * self.values[0])
        else:
            more, weights = self.entries()
            columns += more
            values += weights if sign == 1 else [sign * value for value in weights]
        return self.number

    def scaled(self, other: Any) -> Scalar | None:
        """The product with a number; None for anything else."""
        if type(other) not in _NUMBERS or not -_LARGE < other < _LARGE:
            return None
        by = float(other)
        columns, values = self.entries()
        return Scalar(self.model, columns, [by * value for value in values], self.width, by * self.number)

    def __getattr__(self, name: str) -> Any:
        if name == "constant":
            self.constant = np.array(self.number)
            return self.constant
        if name == "terms":
            self.terms = self._gathered()
            return self.terms
        return super().__getattr__(name)  # type: ignore[misc]

    def _gathered(self) -> tuple[Term, ...]:
        if not self.width:
            return ()
        columns, values = self.entries()
        return (Gather(np.array(columns, np.int32), np.array(values), len(set(columns)) == self.width),)


def is_single_row(expression: Expression) -> bool:
    """Whether `single_rows` takes the expression."""
    return isinstance(expression, Scalar) or (
        expression.shape == () and all(isinstance(term, Gather) for term in expression.terms)
    )


def single_rows(expressions: Sequence[Expression]) -> Rows:
    """The linear parts of scalar expressions as sparse rows, in order."""
    ends, size, distinct = np.zeros(len(expressions) + 1, dtype=np.int32), 0, True
    columns: list[int] = []
    values: list[float] = []
    chunks: list[tuple[Any, Any]] = []
    for row, expression in enumerate(expressions, 1):
        if isinstance(expression, Scalar):
            more, weights = expression.entries()
            columns += more
            values += weights
            size += expression.width
            distinct &= expression.width < 2 or len(set(more)) == expression.width
        else:
            chunks.append((columns, values))
            columns, values = [], []
            for term in expression.terms:
                assert isinstance(term, Gather)
                chunks.append((term.columns, np.broadcast_to(term.values, term.columns.shape)))
                size += term.width
                distinct &= term.distinct and len(expression.terms) == 1
        ends[row] = size
    chunks.append((columns, values))
    indices = np.concatenate([np.array(part, dtype=np.int32) for part, _ in chunks])
    return Rows(ends, indices, np.concatenate([np.array(part, dtype=float) for _, part in chunks]), distinct)
