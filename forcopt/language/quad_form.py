"""Quadratic forms of a semidefinite matrix, as sums of squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers
from forcopt.errors import CurvatureError, DeclarationError
from forcopt.language.atom import SUM_SQUARES, apply_atom, reduced_axis_last
from forcopt.language.operands import Operand

__all__ = ["quad_form"]


def quad_form(x: Operand, matrix: Operand) -> Any:
    """``x' P x`` for a symmetric semidefinite P (dense or sparse); convex if P >= 0, concave if P <= 0.

    Parameters
    ----------
    x : Operand
        An expression or numbers with n elements.
    matrix : Operand
        Symmetric, shape ``(n, n)``; an array or a scipy sparse array.

    Returns
    -------
    Expression or Array
        A scalar.

    Raises
    ------
    CurvatureError
        If P is neither positive nor negative semidefinite.
    DeclarationError
        If the matrix has another shape or is not symmetric.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.quad_form([1, 2], [[2, 1], [1, 3]]).round(6))
    18.0
    """
    flat = reduced_axis_last(x, None, "quad_form")
    size = len(flat)
    if np.shape(matrix) != (size, size):
        raise DeclarationError(f"quad_form: x has {size} elements, the matrix shape {np.shape(matrix)}")
    sparse = sp.csr_array(matrix, dtype=float) if sp.issparse(matrix) else None
    if sparse is not None and sparse.nnz == np.count_nonzero(sparse.diagonal()):
        values, vectors = as_numbers(sparse.diagonal(), "the diagonal of the matrix of quad_form"), None
    elif sparse is not None and (factor := _sparse_factor(sparse)) is not None:
        sign, root = factor
        return sign * apply_atom(SUM_SQUARES, root @ flat, parameter=(sign * sparse, root), label="quad_form")
    else:
        values, vectors = _eigen(matrix if sparse is None else sparse.toarray())
    scale = float(np.abs(values).max(initial=0.0))
    if scale == 0.0:
        return 0.0 * flat.sum()
    sign = 1.0 if values.max() >= -values.min() else -1.0
    if (sign * values).min() < -1e-9 * scale:
        raise CurvatureError(
            f"quad_form: the matrix is indefinite (eigenvalues from {values.min():g} to {values.max():g}), "
            "so the form is neither convex nor concave"
        )
    keep = np.flatnonzero(sign * values > 1e-14 * scale)
    along = flat[keep] if vectors is None else vectors.T[keep] @ flat
    scales = np.sqrt(sign * values[keep])
    root = sp.csr_array(
        sp.diags_array(scales)
        @ (sp.eye_array(size, format="csr")[keep] if vectors is None else vectors.T[keep])
    )
    form = (
        sp.csr_array(sp.diags_array(sign * values))
        if vectors is None
        else sp.csr_array(sign * _dense(matrix))
    )
    return sign * apply_atom(SUM_SQUARES, scales * along, parameter=(form, root), label="quad_form")


def _dense(matrix: Operand) -> Array:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=float)


def _sparse_factor(matrix: sp.csr_array) -> tuple[float, sp.csr_array] | None:
    """A sign s and a sparse F with ``s F' F`` equal to the matrix up to rounding, or None if none is found.

    An LDL' factorization that keeps to the diagonal, of the matrix plus a tiny multiple of the identity.
    """
    from scipy.sparse.linalg import splu

    size, scale = matrix.shape[0], float(np.abs(matrix.data).max(initial=0.0))
    if not np.isfinite(scale) or scale == 0.0:
        return None
    sign = 1.0 if matrix.diagonal().sum() >= 0 else -1.0
    target = sp.csc_array(sign * matrix + 1e-13 * scale * sp.eye_array(size))
    try:
        lu = splu(target, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # singular
        return None
    pivots = lu.U.diagonal()
    if pivots.min() <= 0 or (lu.perm_r != lu.perm_c).any():
        return None
    root = sp.csr_array(sp.diags_array(np.sqrt(pivots)) @ lu.L.T)[:, lu.perm_c]
    error = np.abs((root.T @ root - sign * matrix).data).max(initial=0.0)
    return (sign, root) if error <= 1e-10 * scale else None


def _eigen(matrix: Operand) -> tuple[Array, Array | None]:
    """Eigenvalues and orthonormal eigenvectors (None for the unit vectors) of a symmetric matrix."""
    dense = as_numbers(matrix, "the matrix of quad_form")
    slack = np.abs(dense - dense.T) - 1e-10 * np.abs(dense).max(initial=0.0)
    if slack.max(initial=0.0) > 0:
        i, j = (int(k) for k in np.unravel_index(int(slack.argmax()), dense.shape))
        raise DeclarationError(
            f"quad_form: the matrix must be symmetric; its entries [{i}, {j}] and [{j}, {i}] are "
            f"{dense[i, j]:g} and {dense[j, i]:g}"
        )
    diagonal = np.diag(dense)
    if np.count_nonzero(dense) == np.count_nonzero(diagonal):
        return diagonal, None
    values, vectors = np.linalg.eigh(dense)
    return values, vectors
