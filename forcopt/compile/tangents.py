"""Rows that bound cones from outside: where a cone begins, and where a point violates it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.compile.program import Cone, RowBlock, triangle


def first_tangents(cone: Cone) -> tuple[Array, Array]:
    """Rows that hold in a whole cone, for a first relaxation.

    ``t >= |x_i|`` for second-order cones; for semidefinite matrices ``M_ii >= 0`` and
    ``M_ii + M_jj >= 2 |M_ij|``.

    Returns
    -------
    cones, weights : Array
        As of `tangents`, for all cones of the block.
    """
    if cone.kind == "second_order":
        head = np.ones((2 * (cone.size - 1), 1))
        sides = np.eye(cone.size - 1)
        one = np.hstack([head, np.vstack([sides, -sides])])
    else:
        order = cone.order
        i, j = np.tril_indices(order, -1)
        units = np.eye(order)
        one = _squares(np.vstack([units, units[i] + units[j], units[i] - units[j]]))
    count = len(cone.offset) // cone.size
    return np.repeat(np.arange(count), len(one)), np.tile(one, (count, 1))


_SMALL = 100.0
"""Entries up to this size count in full: the rows of a model that read a cone are off by what it is off."""


def outside(cone: Cone, x: Array) -> Array:
    """By how much a point is outside each cone, relative to a hundredth of its size if that is above 1."""
    size = np.maximum(1.0, np.abs(cone.matrix @ x + cone.offset).reshape(-1, cone.size).max(axis=1))
    return np.asarray(cone.excess(x) * size / np.maximum(1.0, size / _SMALL))


def tangents(cone: Cone, x: Array, tolerance: float) -> tuple[Array, Array]:
    """Rows that hold in a cone and that a point violates.

    A second-order cone gets its tangent ``t >= x' v / |x|`` at v, a matrix M the row ``u' M u >= 0`` for each
    unit eigenvector u of a negative eigenvalue.

    Parameters
    ----------
    cone : Cone
        Second-order or semidefinite.
    x : Array
        The values of all columns.
    tolerance : float
        Violations up to this, as of `outside`, give no row.

    Returns
    -------
    cones : Array
        The cone of each row among those of the block, shape ``(k,)``.
    weights : Array
        Of the cone's entries, shape ``(k, size)``; the sum of the weighted entries is at least 0.

    References
    ----------
    M. A. Duran and I. E. Grossmann, "An outer-approximation algorithm for a class of mixed-integer nonlinear
    programs", *Mathematical Programming* 36 (1986). K. Krishnan and J. E. Mitchell, "A unifying framework for
    several cutting plane methods for semidefinite programming", *Optimization Methods and Software* 21
    (2006).
    """
    off = np.flatnonzero(outside(cone, x) > tolerance)
    entries = (cone.matrix @ x + cone.offset).reshape(-1, cone.size)[off]
    if cone.kind == "second_order":
        length = np.sqrt((entries[:, 1:] ** 2).sum(axis=1, keepdims=True))
        return off, np.hstack([np.ones((len(off), 1)), -entries[:, 1:] / length])
    values, vectors = np.linalg.eigh(entries[:, triangle(cone.order)])
    which, column = np.nonzero(values < 0)
    return off[which], _squares(vectors[which, :, column])


def _squares(vectors: Array) -> Array:
    """The weights of the lower triangle of M in ``u' M u``, a row for each vector."""
    rows, columns = np.tril_indices(vectors.shape[1])
    return np.asarray(vectors[:, rows] * vectors[:, columns] * np.where(rows == columns, 1.0, 2.0))


def as_rows(cone: Cone, cones: Array, weights: Array) -> RowBlock:
    """The rows over a program's columns for weights of the entries of cones."""
    count, size = len(cones), cone.size
    ends, at = np.arange(count + 1) * size, (cones[:, None] * size + np.arange(size)).ravel()
    by = sp.csr_array((weights.ravel(), at, ends), shape=(count, len(cone.offset)))
    matrix = sp.csr_array(by @ cone.matrix)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return RowBlock.of(matrix, -(by @ cone.offset), np.full(count, np.inf))
