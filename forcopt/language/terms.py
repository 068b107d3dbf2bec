"""How the linear part of an expression is held: lazily, as views, until a program is filled.

An expression of shape ``S`` is a constant plus a sum of terms. A `Gather` holds the same number ``w`` of
coefficients for every element, as a column array of shape ``S + (w,)``: a variable is one with ``w = 1``, a
row sum of an m-by-n variable has shape ``(m,)`` and ``w = n``. Slicing, broadcasting, transposing, scaling
and summing are numpy views of it, without copies. `Rows` (compressed sparse rows) holds the result of a
sparse matrix product. Terms are only merged when a program is filled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array

Rearrange = Callable[[Array], Array]


def compact(values: Array) -> Array:
    """Shrink every broadcast axis (stride zero) to length one, so that scaling costs no more than it must."""
    return values[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in values.strides)]


@dataclass(frozen=True, slots=True)
class Gather:
    """The same number ``w`` of coefficients for every element.

    Attributes
    ----------
    columns : Array
        int32, shape ``S + (w,)``.
    values : Array
        Broadcastable to the shape of `columns` (same number of axes, broadcast axes of length one).
    distinct : bool
        No column occurs twice in the whole array.
    """

    columns: Array
    values: Array
    distinct: bool

    @property
    def width(self) -> int:
        """The number of coefficients of each element."""
        return int(self.columns.shape[-1])

    def rearrange(self, move: Rearrange, keeps_distinct: bool) -> Gather:
        """Apply a rearrangement of the leading axes, such as indexing or transposing."""
        columns = move(self.columns)
        if self.values.size == 1:
            values = self.values.reshape((1,) * columns.ndim)
        else:
            values = compact(move(np.broadcast_to(self.values, self.columns.shape)))
        return Gather(columns, values, self.distinct and keeps_distinct)

    def scale(self, factor: Array) -> Gather:
        """Multiply by `factor`, compact and with as many axes as the expression."""
        return Gather(self.columns, self.values * factor[..., None], self.distinct)

    def merge_last_axis(self) -> Gather:
        """Sum over the last axis of the expression: its elements become coefficients."""
        *lead, count, width = self.columns.shape
        columns = self.columns.reshape(*lead, count * width)
        if self.values.size == 1:
            values = self.values.reshape((1,) * columns.ndim)
        else:
            inner = np.broadcast_to(self.values, (*self.values.shape[:-2], count, width))
            values = inner.reshape(*inner.shape[:-2], count * width)
        return Gather(columns, values, self.distinct)

    def left_multiply(self, matrix: sp.csr_array) -> Rows:
        """Give ``matrix @ element``, for an expression of shape ``(n,)``."""
        picked = matrix.indices
        columns = self.columns[picked]
        factor = self.values if len(self.values) == 1 else self.values[picked]
        values = np.broadcast_to(matrix.data[:, None] * factor, columns.shape)
        return Rows(matrix.indptr * self.width, columns.reshape(-1), values.reshape(-1), self.distinct)

    def rows(self) -> Rows:
        """Give the same as compressed sparse rows."""
        indptr = np.arange(prod(self.columns.shape[:-1]) + 1, dtype=np.int32) * np.int32(self.width)
        values = np.broadcast_to(self.values, self.columns.shape).astype(float).reshape(-1)
        return Rows(indptr, self.columns.reshape(-1), values, self.distinct or self.width <= 1)

    def dot(self, point: Array) -> Array:
        """Evaluate at `point`, the values of all columns; shape ``S``."""
        found = self.values * point[self.columns]
        return np.asarray(found[..., 0] if self.width == 1 else found.sum(axis=-1))


@dataclass(frozen=True, slots=True)
class Rows:
    """Compressed sparse rows, one for each element in C order; `distinct` if no row repeats a column."""

    indptr: Array
    indices: Array
    data: Array
    distinct: bool
    _held: list[sp.csr_array] = field(default_factory=list, repr=False, compare=False)

    def matrix(self, columns: int | None = None) -> sp.csr_array:
        """Give the rows as a scipy matrix of the least (or a given) number of columns; do not change it."""
        if columns is None:
            columns = int(self.indices.max()) + 1 if self.indices.size else 1
        shape = (len(self.indptr) - 1, columns)
        if self._held and self._held[0].shape == shape:
            return self._held[0]
        found = sp.csr_array((self.data, self.indices, self.indptr), shape=shape)
        if not found.has_canonical_format:
            # Scipy sorts and merges in place, as in `abs`, and other rows may share the indices.
            return found.copy()
        self._held[:] = [found]
        return found

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Rows:
        """Hold a scipy matrix; it must not repeat a column within a row."""
        return cls(matrix.indptr, matrix.indices, matrix.data, True)

    def take(self, index: Array) -> Rows:
        """Pick rows by position."""
        taken = self.matrix()[index]
        return Rows(taken.indptr, taken.indices, taken.data, self.distinct)

    def scale(self, factor: Array) -> Rows:
        """Multiply each row by its entry of the flat array `factor`, or all by one number."""
        by = factor if factor.size == 1 else np.repeat(factor, np.diff(self.indptr))
        return Rows(self.indptr, self.indices, self.data * by, self.distinct)

    def left_multiply(self, matrix: sp.csr_array) -> Rows:
        """Give ``matrix @ rows``."""
        product = sp.csr_array(matrix @ self.matrix())
        return Rows(product.indptr, product.indices, product.data, True)

    def merge_groups(self, groups: int, count: int) -> Rows:
        """Sum every `count` consecutive rows, `groups` times."""
        indptr = self.indptr[::count] if count else np.zeros(groups + 1, np.int32)
        return Rows(indptr, self.indices, self.data, False)

    def dot(self, point: Array) -> Array:
        """Evaluate at `point`; a flat array."""
        return np.asarray(self.matrix(len(point)) @ point)


Term = Gather | Rows


def merged(terms: Sequence[Term], count: int) -> Rows:
    """Merge terms into one sparse row for each of `count` elements, each column at most once, no zeros."""
    parts = [t.rows() if isinstance(t, Gather) else t for t in terms]
    if not parts:
        rows = Rows(np.zeros(count + 1, np.int32), np.zeros(0, np.int32), np.zeros(0), True)
    elif len(parts) == 1 and parts[0].distinct:
        rows = parts[0]
    else:
        place = [np.repeat(np.arange(count, dtype=np.int32), np.diff(p.indptr)) for p in parts]
        indices = np.concatenate([p.indices for p in parts])
        width = int(indices.max(initial=0)) + 1
        data = np.concatenate([p.data for p in parts])
        rows = Rows.of(sp.coo_array((data, (np.concatenate(place), indices)), shape=(count, width)).tocsr())
    if not rows.data.all():
        # A copy, since the arrays may belong to an expression; scipy removes zeros in place.
        matrix = sp.csr_array(rows.matrix(), copy=True)
        matrix.eliminate_zeros()
        rows = Rows.of(matrix)
    return rows


_MANY = 32
"""A sum of more terms than this merges the last ones."""


def joined(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms of a sum, not many: the last ones are merged once they are as many as those before.

    Each coefficient is merged a logarithmic number of times, so that adding one by one takes linear time but
    for that factor.
    """
    if len(terms) <= _MANY:
        return terms
    start, width = len(terms), 0
    while start and isinstance(term := terms[start - 1], Gather) and term.width <= 2 * max(width, 1):
        start, width = start - 1, width + term.width
    held = [term for term in terms[start:] if isinstance(term, Gather)]
    return terms if len(held) < 2 else (*terms[:start], side_by_side(held))


def side_by_side(terms: Sequence[Gather]) -> Gather:
    """The sum of terms of one shape as one."""
    columns = np.concatenate([t.columns for t in terms], axis=-1)
    full = [
        t.values if t.values.shape == t.columns.shape else np.broadcast_to(t.values, t.columns.shape)
        for t in terms
    ]
    distinct = all(t.distinct for t in terms) and len(np.unique(columns)) == columns.size
    return Gather(columns, np.concatenate(full, axis=-1), distinct)


def apart(gathers: Sequence[Gather]) -> bool:
    """Whether the least and greatest columns of the gathers show that no two share a column."""
    spans = sorted((int(g.columns.min()), int(g.columns.max())) for g in gathers if g.columns.size)
    return all(left[1] < right[0] for left, right in pairwise(spans))


def mark(terms: Sequence[Term], used: Array) -> None:
    """Set the entries of the boolean array `used` that belong to columns of the terms."""
    for term in terms:
        used[term.columns if isinstance(term, Gather) else term.indices] = True
