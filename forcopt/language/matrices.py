"""Matrices of expressions: the semidefinite condition, and atoms of eigenvalues and singular values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.language.alignment import Operand
from forcopt.language.atom import Atom, apply_atom
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

    def violation(self, point: Array) -> Array:
        """Minus the least eigenvalue, or the asymmetry, relative to the largest entry if that is above 1."""
        matrices = self.expression.evaluate(point)
        turned = matrices.transpose(0, 2, 1)
        with np.errstate(invalid="ignore"):
            size = np.maximum(1.0, np.abs(matrices).max(axis=(1, 2)))
            askew = np.abs(matrices - turned).max(axis=(1, 2))
        finite = np.asarray(np.isfinite(matrices).all(axis=(1, 2), keepdims=True))
        least = 0.5 * np.linalg.eigvalsh(np.where(finite, matrices + turned, 0.0))[:, 0]
        return np.where(finite[:, 0, 0], np.maximum(np.maximum(-least, askew), 0.0) / size, np.inf)


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
    place = np.zeros((order, order), dtype=np.intp)
    rows, columns = np.tril_indices(order)
    place[rows, columns] = place[columns, rows] = np.arange(data.size)
    return data[place]


def _eigenvalues(x: Array) -> Array:
    """Of flat symmetric matrices, shape ``(..., n)``; NaN where an entry is not finite."""
    order = round(x.shape[-1] ** 0.5)
    known = np.isfinite(x).all(axis=-1, keepdims=True)
    matrices = np.where(known, x, 0.0).reshape(*x.shape[:-1], order, order)
    return np.where(known, np.linalg.eigvalsh(matrices), np.nan)


def _nuclear_norm_value(x: Array, shape: tuple[int, int]) -> Any:
    known = np.isfinite(x).all(axis=-1, keepdims=True)
    matrices = np.where(known, x, 0.0).reshape(*x.shape[:-1], *shape)
    return np.where(known, np.linalg.svd(matrices, compute_uv=False), np.nan).sum(axis=-1)


def _log_det_value(x: Array, _: None) -> Any:
    return np.log(np.maximum(_eigenvalues(x), 0.0)).sum(axis=-1)


LAMBDA_MAX = Atom("lambda_max", 1, (0,), lambda x, _: _eigenvalues(x)[..., -1], reduces=True)
NUCLEAR_NORM = Atom("nuclear_norm", 1, (0,), _nuclear_norm_value, reduces=True, nonnegative=True)
LOG_DET = Atom("log_det", -1, (0,), _log_det_value, reduces=True)


def lambda_max(matrix: Operand) -> Any:
    """The largest eigenvalue of a symmetric matrix; convex.

    Parameters
    ----------
    matrix : Operand
        Symmetric and affine, shape ``(..., n, n)``; one value for each matrix.

    Returns
    -------
    Expression or Array
        Shape ``(...)``.

    Raises
    ------
    DeclarationError
        If it is not symmetric: `symmetric` and ``(M + M.T) / 2`` are.

    Notes
    -----
    Becomes one semidefinite cone of order n.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.lambda_max([[2, 1], [1, 2]]).round(6))
    3.0
    >>> m = fo.Model()
    >>> x = m.variable("x")
    >>> m.minimize(fo.lambda_max(fo.symmetric(fo.stack([x, 1, 2 - x]))))
    >>> round(m.solve().objective, 5)
    2.0
    """
    return apply_atom(LAMBDA_MAX, _flat(_symmetric(matrix, "lambda_max")), label="lambda_max")


def lambda_min(matrix: Operand) -> Any:
    """The least eigenvalue of a symmetric matrix; concave. See `lambda_max`.

    Parameters
    ----------
    matrix : Operand
        Symmetric and affine, shape ``(..., n, n)``; one value for each matrix.

    Returns
    -------
    Expression or Array
        Shape ``(...)``.

    Raises
    ------
    DeclarationError
        If it is not symmetric.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.lambda_min([[2, 1], [1, 2]]).round(6))
    1.0
    """
    return -apply_atom(LAMBDA_MAX, _flat(-1.0 * _symmetric(matrix, "lambda_min")), label="lambda_min")


def nuclear_norm(matrix: Operand) -> Any:
    """The sum of the singular values of a matrix; convex.

    Parameters
    ----------
    matrix : Operand
        Affine, shape ``(..., p, q)``; one value for each matrix.

    Returns
    -------
    Expression or Array
        Shape ``(...)``.

    Notes
    -----
    Becomes one semidefinite cone of order p + q, with (p + q) (p + q + 1) / 2 - p q new columns.

    References
    ----------
    M. Fazel, H. Hindi and S. Boyd, "A rank minimization heuristic with application to minimum order system
    approximation", American Control Conference (2001), Lemma 1.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.nuclear_norm([[3, 0], [0, -4]]).round(6))
    7.0
    """
    data = _operand(matrix)
    if data.ndim < 2 or 0 in data.shape:
        raise DeclarationError(f"nuclear_norm takes a matrix, not shape {data.shape}")
    return apply_atom(NUCLEAR_NORM, _flat(data), parameter=data.shape[-2:], label="nuclear_norm")


def log_det(matrix: Operand) -> Any:
    """The logarithm of the determinant of a positive definite matrix; concave, minus infinity elsewhere.

    Parameters
    ----------
    matrix : Operand
        Symmetric and affine, shape ``(..., n, n)``; one value for each matrix.

    Returns
    -------
    Expression or Array
        Shape ``(...)``.

    Raises
    ------
    DeclarationError
        If it is not symmetric.

    Notes
    -----
    Becomes one semidefinite cone of order 2 n and n exponential cones, with n (n + 3) / 2 new columns.

    References
    ----------
    A. Ben-Tal and A. Nemirovski, *Lectures on Modern Convex Optimization*, SIAM (2001), section 4.2.

    Examples
    --------
    >>> import forcopt as fo, numpy as np
    >>> float(fo.log_det(np.diag([1.0, np.e])).round(6))
    1.0
    >>> m = fo.Model()
    >>> x = m.variable("x", 2)
    >>> _ = m.subject_to(x.sum() == 4)
    >>> m.maximize(fo.log_det(fo.diag(x)))
    >>> m.solve()[x].round(3).tolist()
    [2.0, 2.0]
    """
    return apply_atom(LOG_DET, _flat(_symmetric(matrix, "log_det")), label="log_det")


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
    i, j = np.tril_indices(matrices.shape[1], -1)
    below, above = matrices[:, i, j].ravel(), matrices[:, j, i].ravel()
    apart = below - above
    rows = apart.linear_rows()
    size = max(
        float(np.abs(m).max(initial=0.0))
        for m in (below.linear_rows().data, above.linear_rows().data, below.constant, above.constant)
    )
    far = np.abs(apart.constant) > _SAME * size
    far[np.repeat(np.arange(below.size), np.diff(rows.indptr))[np.abs(rows.data) > _SAME * size]] = True
    which, at = np.divmod(np.flatnonzero(far), len(i))
    return which, i[at], j[at]


def _operand(x: Operand) -> Any:
    return x if isinstance(x, Expression) else as_numbers(x.toarray() if sp.issparse(x) else x, "the matrix")


def _symmetric(matrix: Operand, label: str) -> Any:
    data = _operand(matrix)
    if data.ndim < 2 or data.shape[-1] != data.shape[-2] or not data.size:
        raise DeclarationError(f"{label} takes a square matrix, not shape {data.shape}")
    if isinstance(data, Expression):
        data = facing(data, label)
    several = data.reshape(-1, *data.shape[-2:])
    if isinstance(several, Expression):
        _, *apart = asymmetric_entries(several)
    else:
        _, *apart = np.nonzero(np.abs(several - several.transpose(0, 2, 1)) > _SAME * np.abs(several).max())
    if apart[0].size:
        i, j = (int(at[0]) for at in apart)
        raise DeclarationError(
            f"{label}: the matrix must be symmetric; its entries [{i}, {j}] and [{j}, {i}] differ: "
            "write fo.symmetric(entries) or (M + M.T) / 2"
        )
    return data


def _flat(data: Any) -> Any:
    return data.reshape(*data.shape[:-2], data.shape[-2] * data.shape[-1])
