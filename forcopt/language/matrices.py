"""Matrices of expressions: the semidefinite condition, and symmetric matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.language.alignment import Operand
from forcopt.language.constraint import Condition
from forcopt.language.expression import Expression
from forcopt.language.joins import block, facing

_SAME = 1e-10
"""Entries of a matrix are the same if they differ by no more, relative to the largest."""


@dataclass(eq=False)
class Semidefinite(Condition):
    """Every matrix is symmetric and has no negative eigenvalue; made by `semidefinite`.

    Attributes
    ----------
    expression : Expression
        Shape ``(k, n, n)``: k matrices.
    shape : tuple[int, ...]
        As declared: ``(k, n, n)``, or ``(n, n)`` for one matrix.
    """

    expression: Expression
    shape: tuple[int, ...]

    kind = "semidefinite"

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The matrices."""
        return (self.expression,)

    def violation(self, point: Array) -> Array:
        """Minus the least eigenvalue, or the asymmetry, relative to the largest entry if that is above 1."""
        matrices = self.expression.evaluate(point)
        turned = matrices.transpose(0, 2, 1)
        with np.errstate(invalid="ignore"):
            size = np.maximum(1.0, np.abs(matrices).max(axis=(1, 2)))
            askew = np.abs(matrices - turned).max(axis=(1, 2))
        finite = np.asarray(np.isfinite(matrices).all(axis=(1, 2), keepdims=True))
        safe = np.where(finite, matrices + turned, 0.0)
        least = 0.5 * np.linalg.eigvalsh(safe)[:, 0]
        worst = np.maximum(np.maximum(-least, askew), 0.0) / size
        return np.where(finite[:, 0, 0], worst, np.inf)


def semidefinite(matrix: Operand, imaginary: Operand = None) -> Semidefinite:
    """Require a symmetric (Hermitian) matrix to be positive semidefinite.

    Parameters
    ----------
    matrix : Operand
        Square, shape ``(n, n)`` or ``(k, n, n)`` for k matrices. Entries across the diagonal that are not the
        same expression are required to be equal.
    imaginary : Operand, optional
        The imaginary part of a complex Hermitian matrix, of the same shape and antisymmetric: ``A + iB`` is
        semidefinite exactly if the real symmetric matrix ``[[A, -B], [B, A]]`` of twice the order is.

    Returns
    -------
    Semidefinite
        A condition for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If it holds no variable, or is not square.

    Notes
    -----
    One semidefinite cone of order n for each matrix; an interior-point step costs O(n**6) where the matrix
    is dense in n**2 / 2 free entries.

    References
    ----------
    L. Lovasz, "On the Shannon capacity of a graph", IEEE Transactions on Information Theory 25 (1979), for
    the example.

    Examples
    --------
    The theta number of the pentagon is the root of 5.

    >>> import forcopt as fo
    >>> m = fo.Model("theta")
    >>> X = fo.symmetric(m.variable("X", 15))
    >>> _ = m.subject_to(fo.semidefinite(X), fo.trace(X) == 1)
    >>> _ = m.subject_to([X[i, (i + 1) % 5] == 0 for i in range(5)])
    >>> m.maximize(X.sum())
    >>> round(m.solve().objective ** 2, 4)
    5.0
    """
    if imaginary is not None:
        matrix = block([[matrix, -1.0 * _operand(imaginary)], [imaginary, matrix]])
    if not isinstance(matrix, Expression):
        raise DeclarationError(f"semidefinite needs an expression, not {type(matrix).__name__}")
    if matrix.ndim not in (2, 3) or matrix.shape[-1] != matrix.shape[-2] or not matrix.size:
        raise DeclarationError(
            f"semidefinite needs a square matrix, or several of shape (k, n, n), not shape {matrix.shape}"
        )
    matrix = facing(matrix, "semidefinite")
    return Semidefinite(matrix.reshape(-1, *matrix.shape[-2:]), matrix.shape)


def symmetric(entries: Operand) -> Any:
    """The symmetric matrix with given entries of its lower triangle, row by row; affine.

    Parameters
    ----------
    entries : Operand
        Shape ``(n (n + 1) / 2,)``: entries (0, 0), (1, 0), (1, 1), (2, 0), ...

    Returns
    -------
    Expression or Array
        Shape ``(n, n)``.

    Raises
    ------
    DeclarationError
        For another number of entries.

    Examples
    --------
    >>> symmetric([1, 2, 3]).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    data = _operand(entries)
    order = int(np.sqrt(2 * data.size))
    if data.ndim != 1 or order * (order + 1) // 2 != data.size:
        raise DeclarationError(f"symmetric takes n (n + 1) / 2 entries, not shape {data.shape}")
    place = np.zeros((order, order), dtype=np.int64)
    rows, columns = np.tril_indices(order)
    place[rows, columns] = place[columns, rows] = np.arange(data.size)
    return data[place]


def asymmetric_entries(matrices: Expression) -> tuple[Array, Array, Array]:
    """Where entries across the diagonal are different expressions.

    Parameters
    ----------
    matrices : Expression
        Shape ``(k, n, n)``.

    Returns
    -------
    which, rows, columns : Array
        Positions of such entries below the diagonal.
    """
    order = matrices.shape[1]
    i, j = np.tril_indices(order, -1)
    below, above = matrices[:, i, j].ravel(), matrices[:, j, i].ravel()
    apart = below - above
    rows = apart.linear_rows()
    size = max(
        float(np.abs(m).max(initial=0.0))
        for m in (below.linear_rows().data, above.linear_rows().data, below.constant, above.constant)
    )
    far = np.abs(apart.constant) > _SAME * size
    owner = np.repeat(np.arange(below.size), np.diff(rows.indptr))
    far[owner[np.abs(rows.data) > _SAME * size]] = True
    which, at = np.divmod(np.flatnonzero(far), len(i))
    return which, i[at], j[at]


def _operand(x: Operand) -> Any:
    return x if isinstance(x, Expression) else as_numbers(x.toarray() if sp.issparse(x) else x, "the matrix")
