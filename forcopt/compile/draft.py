"""A model on its way to a program: bridges add columns, rows and relations to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.errors import UnboundedExpressionError
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression, describe_entry
from forcopt.language.intervals import integral, interval
from forcopt.language.model import Model
from forcopt.language.terms import Array, Gather

__all__ = ["Draft"]


class Draft:
    """What bridges write to.

    Attributes:
        model: where it comes from; it is not changed.
        lower, upper, integer: arrays over all columns, the model's own first.
        rows: rows that bridges added.
        relations: what is still to be rewritten or taken by the backend.
        applied: names of the bridges applied, each once.
    """

    def __init__(self, model: Model) -> None:
        columns = model.columns()
        self.model = model
        self.lower: Array = columns.lower
        self.upper: Array = columns.upper
        self.integer: Array = columns.integer
        self.rows: list[Constraint] = []
        self.relations: list[Any] = list(model.relations)
        self.applied: dict[str, None] = {}
        self._added: list[tuple[int, str, tuple[int, ...]]] = []

    def column(
        self,
        label: str,
        shape: int | tuple[int, ...],
        lower: Any = -np.inf,
        upper: Any = np.inf,
        *,
        integer: bool = False,
        implied_integer: bool = False,
    ) -> Expression:
        """Add columns and give the expression that reads them.

        Args:
            label: for names in files and messages.
            shape: of the expression.
            lower, upper: numbers that broadcast to the shape.
            integer: only integers.
            implied_integer: integer at some optimum without being told.
        """
        full = (shape,) if isinstance(shape, int) else shape
        size = int(np.prod(full, dtype=np.int64))
        start = len(self.lower)
        self.lower = np.concatenate([self.lower, np.broadcast_to(lower, full).reshape(-1)])
        self.upper = np.concatenate([self.upper, np.broadcast_to(upper, full).reshape(-1)])
        kind = 1 if integer else 2 if implied_integer else 0
        self.integer = np.concatenate([self.integer, np.full(size, kind, dtype=np.int8)])
        self._added.append((start, label, full))
        columns = np.arange(start, start + size, dtype=np.int32).reshape(*full, 1)
        gather = Gather(columns, np.ones((1,) * columns.ndim), True)
        return Expression(self.model, full, (gather,), np.zeros(()))

    def row(self, constraint: Constraint) -> None:
        """Add rows."""
        self.rows.append(constraint)

    def relation(self, relation: Any) -> None:
        """Add a relation, for the backend or a further bridge."""
        self.relations.append(relation)

    def interval(self, expression: Expression) -> tuple[Array, Array]:
        """Bounds on each element of an expression."""
        return interval(expression, self.lower, self.upper)

    def finite_interval(self, expression: Expression, bridge: str) -> tuple[Array, Array]:
        """The same, where a bridge needs them finite.

        Raises:
            UnboundedExpressionError: naming the first column that lacks a bound.
        """
        lower, upper = self.interval(expression)
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            column, side = self._culprit(expression, lower)
            raise UnboundedExpressionError(
                f"{bridge} needs bounds on {expression._short()}: variable {self.name_of(column)} "
                f"has no {side} bound; give it one, or use a backend that takes the constraint as it is"
            )
        return lower, upper

    def _culprit(self, expression: Expression, lower: Array) -> tuple[int, str]:
        rows = expression.linear_rows()
        for column in rows.indices:
            if not np.isfinite(self.lower[column]):
                return int(column), "lower"
            if not np.isfinite(self.upper[column]):
                return int(column), "upper"
        raise AssertionError("an infinite interval comes from an infinite bound")

    def is_integral(self, expression: Expression) -> bool:
        """Whether all elements can only take integer values."""
        return bool(integral(expression, self.integer > 0).all())

    def name_of(self, column: int) -> str:
        """Name a column of the model or one that a bridge added."""
        if column < self.model.column_count:
            return self.model.column_name(column)
        for start, label, shape in reversed(self._added):
            if column >= start:
                return f"{label}@{start}" + describe_entry(shape, column - start).replace(" ", "")
        raise IndexError(column)
