"""Fill the sparse rows of many expressions into one set of arrays, each written once and in place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from forcopt.compile.program import RowBlock
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.terms import Array, Gather

__all__ = ["Row", "assemble", "cost_vector"]

Row = tuple[Expression, Array, Array]
"""An affine expression and the flat bounds of its linear part."""


def _overlap(gathers: Sequence[Gather]) -> bool:
    """Whether a row might repeat a column, judged without looking at every entry."""
    if any(not g.distinct and g.width > 1 for g in gathers):
        return True
    spans = sorted((int(g.columns.min()), int(g.columns.max())) for g in gathers if g.columns.size)
    return any(right[0] <= left[1] for left, right in pairwise(spans))


def _merge_equal(columns: Array, values: Array) -> bool:
    """Merge equal columns among the few entries of each row, in place; say whether there were any."""
    found = False
    width = columns.shape[1]
    for a in range(width):
        for b in range(a + 1, width):
            same = columns[:, a] == columns[:, b]
            if same.any():
                found = True
                values[same, a] += values[same, b]
                values[same, b] = 0.0
    return found


_FEW = 4
"""Rows of up to this many single-column terms are compared pair by pair instead of sorted."""


def assemble(rows: Sequence[Row]) -> RowBlock:
    """Give the rows of all expressions as one block: no column twice in a row, no explicit zero.

    Runs in time linear in the coefficients; a row in which columns repeat costs a sort.
    """
    count = sum(e.size for e, _, _ in rows)
    most = sum(e.coefficient_count for e, _, _ in rows)
    if most > np.iinfo(np.int32).max:
        raise DeclarationError(
            f"{most} coefficients are too many; at most {np.iinfo(np.int32).max} can be passed"
        )
    indptr = np.zeros(count + 1, dtype=np.int32)
    indices = np.empty(most, dtype=np.int32)
    data = np.empty(most)
    lower, upper = np.empty(count), np.empty(count)
    row = at = 0
    for expression, low, high in rows:
        size = expression.size
        lower[row : row + size] = low
        upper[row : row + size] = high
        ends = indptr[row + 1 : row + size + 1]
        written = _fill(expression, ends, indices[at:], data[at:])
        ends += at
        at += written
        row += size
    return RowBlock(indptr, indices[:at], data[:at], lower, upper)


def _fill(expression: Expression, ends: Array, indices: Array, data: Array) -> int:
    """Write an expression's rows from the start of the arrays; give the number of coefficients written."""
    gathers = [t for t in expression.terms if isinstance(t, Gather)]
    few = len(gathers) <= _FEW and all(g.width == 1 for g in gathers)
    overlap = _overlap(gathers)
    if len(gathers) < len(expression.terms) or (overlap and not few) or not gathers:
        rows = expression.linear_rows()
        indices[: rows.indices.size] = rows.indices
        data[: rows.data.size] = rows.data
        ends[:] = rows.indptr[1:]
        return int(rows.data.size)
    width = sum(g.width for g in gathers)
    size, total = expression.size, expression.size * width
    columns = indices[:total].reshape(*expression.shape, width)
    values = data[:total].reshape(*expression.shape, width)
    start = 0
    for g in gathers:
        columns[..., start : start + g.width] = g.columns
        values[..., start : start + g.width] = g.values
        start += g.width
    merged = overlap and _merge_equal(columns.reshape(size, width), values.reshape(size, width))
    if not merged and all(g.values.all() for g in gathers):
        ends[:] = np.arange(1, size + 1, dtype=np.int32) * np.int32(width)
        return total
    keep = data[:total] != 0
    left = int(keep.sum())
    ends[:] = np.cumsum(keep.reshape(size, width).sum(axis=1))
    indices[:left] = indices[:total][keep]
    data[:left] = data[:total][keep]
    return left


def cost_vector(expression: Expression, columns: int) -> Array:
    """The coefficients of a scalar expression as a dense vector."""
    cost = np.zeros(columns)
    for term in expression.terms:
        if isinstance(term, Gather):
            flat = term.columns.reshape(-1)
            values = np.broadcast_to(term.values, term.columns.shape).reshape(-1)
        else:
            flat, values = term.indices, term.data
        if term.distinct:
            cost[flat] += values
        else:
            np.add.at(cost, flat, values)
    return cost
