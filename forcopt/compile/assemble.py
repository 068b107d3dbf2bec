"""Fill the sparse rows of many expressions into one set of arrays, each written once and in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.compile.program import RowBlock, StageCost
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.relations import AtomRelation
from forcopt.language.terms import Gather, apart
from forcopt.memory import claim_memory

Row = tuple[Expression, Array, Array]
"""An affine expression and the flat bounds of its linear part."""


_FEW = 4
"""Up to this many single-column terms are compared with the rest of their row instead of sorting it."""

_MOVED = -1
"""Marks the place of an entry that was merged into another; its value is zero."""


def _repeats(gathers: Sequence[Gather]) -> bool:
    """Return whether a row might repeat a column, by a test that does not read every entry."""
    return any(not g.distinct and g.width > 1 for g in gathers) or not apart(gathers)


def _merge_singles(columns: Array, values: Array, singles: Sequence[int]) -> bool:
    """Merge single-column terms into equal columns of their rows, in place; return whether there were any.

    Parameters
    ----------
    columns, values : Array
        One row for each element, shape ``(n, width)``.
    singles : Sequence[int]
        Where in the rows the single-column terms stand; the others repeat nothing among themselves.
    """
    found = False
    for single in singles:
        same = columns == columns[:, single, None]
        same[:, single] = False
        rows = np.flatnonzero(same.any(axis=1))
        if rows.size:
            found = True
            values[rows, same[rows].argmax(axis=1)] += values[rows, single]
            values[rows, single] = 0.0
            columns[rows, single] = _MOVED
    return found


def assemble(rows: Sequence[Row]) -> RowBlock:
    """Give the rows of all expressions as one block: no column twice in a row, no explicit zero.

    Runs in time linear in the coefficients; a row in which columns repeat costs a sort.
    """
    count = sum(e.size for e, _, _ in rows)
    most = sum(e.coefficient_count for e, _, _ in rows)
    if most > np.iinfo(np.int32).max:
        raise DeclarationError(f"{most} coefficients; at most {np.iinfo(np.int32).max} can be passed")
    claim_memory(12 * most + 20 * count)
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
    starts = np.cumsum([0, *(g.width for g in gathers)])
    singles = [int(at) for at, g in zip(starts, gathers, strict=False) if g.width == 1]
    repeats = _repeats(gathers)
    merge = repeats and len(singles) <= _FEW and not _repeats([g for g in gathers if g.width > 1])
    if len(gathers) < len(expression.terms) or (repeats and not merge) or not gathers:
        rows = expression.linear_rows()
        indices[: rows.indices.size] = rows.indices
        data[: rows.data.size] = rows.data
        ends[:] = rows.indptr[1:]
        return int(rows.data.size)
    width = int(starts[-1])
    size, total = expression.size, expression.size * width
    columns = indices[:total].reshape(*expression.shape, width)
    values = data[:total].reshape(*expression.shape, width)
    for start, g in zip(starts, gathers, strict=False):
        columns[..., start : start + g.width] = g.columns
        values[..., start : start + g.width] = g.values
    merged = merge and _merge_singles(columns.reshape(size, width), values.reshape(size, width), singles)
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
    claim_memory(8 * columns)
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


def with_squares(stage: StageCost, squares: Sequence[AtomRelation], weights: Array) -> StageCost:
    """Move ``weight * |F x + g|^2`` from result columns into the quadratic part.

    Parameters
    ----------
    stage : StageCost
        Its quadratic part is kept.
    squares : Sequence[AtomRelation]
        Sums of squares.
    weights : Array
        For each column its weight in the objective.
    """
    cost, offset, width = stage.cost.copy(), stage.offset, len(stage.cost)
    hessian = sp.csc_array((width, width)) if stage.quadratic is None else stage.quadratic
    for square in squares:
        cost[square.result_columns] = 0.0
        inside = square.arguments[0]
        factor = inside.ravel().linear_rows().matrix(width)
        constant = inside.constant.reshape(-1)
        weight = np.repeat(weights[square.result_columns], inside.shape[1])
        weighted = sp.csr_array(factor.multiply(weight[:, None]))
        hessian = hessian + 2.0 * (factor.T @ weighted)
        cost += 2.0 * (weighted.T @ constant)
        offset += float(weight @ (constant * constant))
    return replace(stage, cost=cost, offset=offset, quadratic=sp.csc_array(hessian))
