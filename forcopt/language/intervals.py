"""Interval arithmetic: the range of an affine expression, given bounds on the columns."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.language.expression import Expression
from forcopt.language.terms import Gather, Rows

__all__ = ["integral", "interval"]


def _ends(columns: Array, values: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    low, high = lower[columns], upper[columns]
    positive = values > 0
    with np.errstate(invalid="ignore"):  # 0 * inf is masked below
        a, b = values * low, values * high
    zero = values == 0
    return (
        np.where(zero, 0.0, np.where(positive, a, b)),
        np.where(zero, 0.0, np.where(positive, b, a)),
    )


def _per_row(rows: Rows, entries: Array, reduce: np.ufunc, empty: float | bool) -> Array:
    out = np.full(len(rows.indptr) - 1, empty)
    filled = np.diff(rows.indptr) > 0
    if entries.size:
        out[filled] = reduce.reduceat(entries, rows.indptr[:-1][filled])
    return out


def _only_gather(expression: Expression) -> Gather | None:
    """The linear part, if it is held in one piece that repeats no column in an element."""
    term = expression.terms[0] if len(expression.terms) == 1 else None
    return term if isinstance(term, Gather) and (term.distinct or term.width == 1) else None


def interval(expression: Expression, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Bounds on each element of `expression`, for columns within `lower` and `upper` (which may be infinite).

    Columns that an element repeats are merged first, so that ``x - x`` is 0.
    """
    term = _only_gather(expression)
    if term is not None:
        low, high = _ends(term.columns, term.values, lower, upper)
        a, b = low.sum(axis=-1), high.sum(axis=-1)
    else:
        rows = expression.linear_rows()
        low, high = _ends(rows.indices, rows.data, lower, upper)
        a = _per_row(rows, low, np.add, 0.0).reshape(expression.shape)
        b = _per_row(rows, high, np.add, 0.0).reshape(expression.shape)
    return np.asarray(a + expression.constant), np.asarray(b + expression.constant)


def integral(expression: Expression, integer: Array) -> Array:
    """Whether each element can only be an integer, given which columns are (a boolean array)."""
    term = _only_gather(expression)
    if term is not None:
        whole = term.values == np.round(term.values)
        linear = (integer[term.columns] & whole | (term.values == 0)).all(axis=-1)
    else:
        rows = expression.linear_rows()
        entries = integer[rows.indices] & (rows.data == np.round(rows.data))
        linear = _per_row(rows, entries, np.logical_and, True).reshape(expression.shape)
    return np.asarray(linear & (expression.constant == np.round(expression.constant)))
