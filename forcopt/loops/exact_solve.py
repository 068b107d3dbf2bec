"""Square sparse systems over the rationals, block by block.

A maximum matching and the strongly connected components permute the matrix into block triangular form. A
small block is solved by dense exact elimination. A large one is solved by a floating-point LU factorization
whose residuals are exact integers: each step adds bits to all values, until they are recognized as fractions
and the equations hold exactly (Wan, 2006).

References
----------
Z. Wan. An algorithm to solve integer linear systems exactly using numerical methods. Journal of Symbolic
Computation 41(6), 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from graphlib import TopologicalSorter
from math import lcm
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.rationals import fmpq, solve_dense

Rational = Any
Sparse = list[dict[int, Rational]]

_DENSE = 60
"""Blocks of at most so many rows are solved by dense elimination."""

_LARGEST_DENSE = 1500
"""Larger blocks are left unsolved where the factorization is too inaccurate."""

_DIGIT, _LEAST_DIGIT = 45, 20
"""The most bits of a step's values, and the least for which machine words are used."""

_WORD = 62
"""The bits of integers in machine words."""

_LEAST_GAIN = 4
"""A factorization that yields fewer bits a step is given up."""

_RANGE = 1000
"""The bits of the residuals that floating-point numbers span."""

_FIRST_TRY, _TRY_GROWTH = 256, 1.5
"""The bits after which fractions are looked for, and by how much this number grows."""

_SURE = 20
"""A value counts as an integer if its distance to one is at most two to the minus this."""


@dataclass(frozen=True, eq=False)
class BlockTriangles:
    """A square matrix in block triangular form.

    Attributes
    ----------
    blocks : list of (list[int], list[int])
        The rows and the columns of each block. The rows have entries in no columns of later blocks.
    """

    blocks: list[tuple[list[int], list[int]]]

    @property
    def largest(self) -> int:
        """The number of rows of the largest block."""
        return max((len(rows) for rows, _ in self.blocks), default=0)

    def transposed(self) -> BlockTriangles:
        """The form of the transposed matrix."""
        return BlockTriangles([(columns, rows) for rows, columns in reversed(self.blocks)])


def block_triangles(matrix: Sparse) -> BlockTriangles | None:
    """Permute a square matrix into block triangular form; None if it is singular by its pattern.

    Examples
    --------
    >>> from forcopt.rationals import fmpq
    >>> one = fmpq(1)
    >>> block_triangles([{0: one, 1: one}, {1: one}]).blocks
    [([1], [1]), ([0], [0])]
    """
    n = len(matrix)
    if not n:
        return BlockTriangles([])
    pattern = _pattern(matrix)
    row_of = sp.csgraph.maximum_bipartite_matching(pattern, perm_type="row")
    if (row_of < 0).any():
        return None
    column_of = np.empty(n, dtype=np.int64)
    column_of[row_of] = np.arange(n)
    needs = pattern[:, column_of]  # row i needs the values that rows k with an entry here determine
    count, label = sp.csgraph.connected_components(needs, connection="strong")
    members: list[list[int]] = [[] for _ in range(count)]
    for i, block in enumerate(label.tolist()):
        members[block].append(i)
    return BlockTriangles([(members[b], column_of[members[b]].tolist()) for b in _ordered(needs, label)])


def _pattern(matrix: Sparse) -> Any:
    indptr = np.cumsum([0] + [len(row) for row in matrix])
    indices = np.fromiter((j for row in matrix for j in row), dtype=np.int32, count=int(indptr[-1]))
    return sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(matrix), len(matrix)))


def _ordered(needs: Any, label: Array) -> list[int]:
    """The blocks, each after those that it needs."""
    entries = needs.tocoo()
    pairs = np.stack([label[entries.row], label[entries.col]])
    pairs = np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)
    sorter = TopologicalSorter({block: set[int]() for block in range(int(label.max()) + 1)})
    for user, used in pairs.T.tolist():
        sorter.add(user, used)
    return list(sorter.static_order())


def solve_blocks(matrix: Sparse, target: list[Rational], form: BlockTriangles) -> list[Rational] | None:
    """Solve a square system exactly.

    Parameters
    ----------
    matrix : list of dict
        The coefficients of each row by column.
    target : list of Rational
        The right-hand sides.
    form : BlockTriangles
        Of the matrix.

    Returns
    -------
    list of Rational or None
        The solution; None if a block is singular, or ill-conditioned and too large.
    """
    x: list[Rational | None] = [None] * len(matrix)
    for rows, columns in form.blocks:
        left = [
            target[i] - sum((a * x[j] for j, a in matrix[i].items() if x[j] is not None), fmpq(0))
            for i in rows
        ]
        if len(rows) == 1:
            pivot = matrix[rows[0]][columns[0]]
            if not pivot:
                return None
            x[columns[0]] = left[0] / pivot
            continue
        place = {j: k for k, j in enumerate(columns)}
        block = [{place[j]: a for j, a in matrix[i].items() if j in place} for i in rows]
        found = lifted(block, left) if len(rows) > _DENSE else None
        if found is None:
            if len(rows) > _LARGEST_DENSE:
                return None
            found = solve_dense([[row.get(j, fmpq(0)) for j in range(len(rows))] for row in block], left)
        if found is None:
            return None
        for j, value in zip(columns, found, strict=True):
            x[j] = value
    return x


class _Integers:
    """A sparse matrix of integers without empty rows; in machine words if its products with digits fit."""

    def __init__(self, rows: list[dict[int, int]]) -> None:
        self.starts = np.cumsum([0] + [len(row) for row in rows])[:-1]
        self.columns = np.array([j for row in rows for j in row], dtype=np.int64)
        room = 60 - max(sum(abs(a) for a in row.values()) for row in rows).bit_length()
        self.kind: Any = np.int64 if room >= _LEAST_DIGIT else object
        self.digit = min(room, _DIGIT) if room >= _LEAST_DIGIT else _DIGIT
        self.entries: Array = np.array([a for row in rows for a in row.values()], dtype=self.kind)

    def __call__(self, digits: Array) -> Array:
        """The product with a vector."""
        return np.add.reduceat(self.entries * digits.astype(self.kind)[self.columns], self.starts)


def lifted(matrix: Sparse, target: list[Rational]) -> list[Rational] | None:
    """Solve a square system by a floating-point LU factorization with exact residuals.

    Parameters
    ----------
    matrix : list of dict
        The coefficients of each row by column; no row is empty.
    target : list of Rational
        The right-hand sides.

    Returns
    -------
    list of Rational or None
        The solution, which satisfies the equations exactly; None if the matrix is too ill-conditioned for
        floating-point numbers.

    Examples
    --------
    >>> from forcopt.rationals import fmpq
    >>> two, three = fmpq(2), fmpq(3)
    >>> lifted([{0: three, 1: two}, {0: two, 1: three}], [fmpq(1), fmpq(0)])
    [3/5, -2/5]
    """
    if not any(target):
        return [fmpq(0)] * len(matrix)
    scales = [lcm(*(int(a.denominator) for a in row.values())) for row in matrix]
    rows = [{j: int(a * s) for j, a in row.items()} for row, s in zip(matrix, scales, strict=True)]
    right = [b * s for b, s in zip(target, scales, strict=True)]
    common = lcm(*(int(b.denominator) for b in right))
    goal = [int(b * common) for b in right]
    solver = _solver(rows)
    if solver is None:
        return None
    largest = sum(sum(a * a for a in row.values()).bit_length() for row in rows)  # Hadamard, twice
    enough = largest + 2 * max(abs(b) for b in goal).bit_length() + 64
    product = _Integers(rows)
    residual = np.array(goal, dtype=object)
    # goal * 2^bits = rows @ x + residual, always
    x, bits, tried = [0] * len(rows), 0, _FIRST_TRY
    digits: list[tuple[int, Array]] = []
    while True:
        step = _step(product, solver, residual)
        if step is None:
            return None
        residual, by, digit = step
        bits += by
        digits.append((by, digit))
        if not residual.any():
            x = _appended(x, digits)
            return [fmpq(v, common * 2**bits) for v in x]
        if bits >= min(tried, enough):
            x, digits = _appended(x, digits), []
            tried = int(_TRY_GROWTH * bits)
            found = _fractions(x, bits)
            if found is not None and _solves(rows, found, goal):
                values, q = found
                return [fmpq(v, q * common) for v in values]
            if bits >= enough:
                return None


def _solver(rows: list[dict[int, int]]) -> Any:
    """A function that solves the system in floating point, rows and columns scaled by powers of two."""
    n = len(rows)
    indptr = np.cumsum([0] + [len(row) for row in rows])
    indices = np.array([j for row in rows for j in row])
    heights = np.array([max(abs(a) for a in row.values()).bit_length() for row in rows])
    data = np.array(
        [a / 2**top for row, top in zip(rows, heights.tolist(), strict=True) for a in row.values()]
    )
    scaled = sp.csr_array((data, indices, indptr), shape=(n, n)).tocsc()
    peak = np.zeros(n)
    np.maximum.at(peak, indices, np.abs(data))
    if (peak == 0).any():
        return None
    across = np.exp2(-np.floor(np.log2(peak)))
    try:
        factors = sp.linalg.splu(sp.csc_matrix(scaled.multiply(across[None, :])))
    except RuntimeError:  # singular
        return None

    def solve(residual: Array) -> tuple[Array, int]:
        """Values and an exponent of two by which they are to be multiplied."""
        excess = max(_length(residual) - _RANGE, 0)
        right = np.ldexp((residual >> excess).astype(float), -heights)
        shift = int(np.frexp(np.abs(right).max())[1])
        return across * factors.solve(np.ldexp(right, -shift)), excess + shift

    return solve


def _step(product: _Integers, solver: Any, residual: Array) -> tuple[Array, int, Array] | None:
    """The next digits: the new residual, by how many bits they are finer, and the digits."""
    values, shift = solver(residual)
    top = np.abs(values).max()
    if not np.isfinite(top) or top == 0:
        return None
    by = product.digit - shift - int(np.ceil(np.log2(top)))
    digits = np.rint(np.ldexp(values, shift + by)).astype(np.int64)
    moved = product(digits)
    if by < 0:  # the values may be large at first
        digits, moved, by = digits.astype(object) << -by, moved.astype(object) << -by, 0
    wide = residual.astype(object) if by > _WORD else residual
    after = (wide << by) - moved  # words may overflow on the way, but not in the difference
    left = _length(after)
    if _length(residual) + by - left < _LEAST_GAIN:
        return None
    return after.astype(product.kind) if left < _WORD else after, by, digits


def _length(values: Array) -> int:
    """The bits of the largest integer."""
    return int(np.abs(values).max()).bit_length()


def _appended(x: list[int], digits: list[tuple[int, Array]]) -> list[int]:
    """The values with more digits."""
    for by, digit in digits:
        x = [(v << by) + d for v, d in zip(x, digit.tolist(), strict=True)]
    return x


def _fractions(x: list[int], bits: int) -> tuple[list[int], int] | None:
    """Integers and their common denominator, near the values ``x / 2**bits``; None if there are none."""
    whole, q, values = 2**bits, 1, []
    for v in x:
        scaled = v * q
        nearest = (scaled + whole // 2) >> bits
        if abs(scaled - (nearest << bits)) << _SURE > whole:
            room = max(bits // 2 - q.bit_length() - _SURE, 0)
            more = Fraction(scaled, whole).limit_denominator(2**room).denominator
            q *= more
            nearest = (v * q + whole // 2) >> bits
            if more == 1 or abs(v * q - (nearest << bits)) << _SURE > whole:
                return None
        values.append((v, q))
    return [(v * q + whole // 2) >> bits for v, _ in values], q


def _solves(rows: list[dict[int, int]], found: tuple[list[int], int], goal: list[int]) -> bool:
    values, q = found
    return all(sum(a * values[j] for j, a in row.items()) == q * b for row, b in zip(rows, goal, strict=True))
