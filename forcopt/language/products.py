"""Products of two expressions: with a parameter, with a binary, or of any two; and quadratic forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers, broadcast_shapes
from forcopt.errors import CurvatureError, DeclarationError
from forcopt.language.alignment import Operand, onto
from forcopt.language.atom import SUM_SQUARES, apply_atom, reduced_axis_last
from forcopt.language.columns import product_interval
from forcopt.language.constraint import is_binary, require_binary
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes, Axis, is_table
from forcopt.language.relations import Multiplication, ParameterProduct, Product
from forcopt.language.terms import mark


def product(binary: Expression, factor: Operand) -> Expression:
    """``binary * factor``, elementwise with broadcasting, for a binary expression; affine in the model.

    ``*`` gives the same; this function also checks that its first argument is binary. Backends without
    products need bounds on `factor`, see the bridge ``product_rows``.

    Parameters
    ----------
    binary : Expression
        Each element is 0 or 1 by its type and bounds.
    factor : Operand
        An affine expression or numbers; broadcasts with `binary`.

    Returns
    -------
    Expression
        The common shape.

    Raises
    ------
    DeclarationError
        If `binary` is not binary.
    CurvatureError
        If an argument is not affine.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, b = m.variable("x", lower=0, upper=4), m.variable("b", binary=True)
    >>> m.maximize(fo.product(b, x) - 3 * b)
    >>> m.solve().objective
    1.0
    """
    require_binary(binary, "the first argument of product")
    if isinstance(factor, Expression):
        binary.model.lift(factor, "the second argument of product")
    out: Expression = binary * factor
    return out


def multiplied(left: Expression, right: Expression, axes: Axes | None = None) -> Expression:
    """The elementwise product of two expressions that are in line; the result has the given axes.

    Raises
    ------
    CurvatureError
        If an expression is not affine; only a parameter that is not negative may scale it then.
    """
    model = left.model
    shape = broadcast_shapes([left.shape, right.shape], "multiplying")
    first, second = left.broadcast_to(shape).labelled(axes), right.broadcast_to(shape).labelled(axes)
    known = model.parametric_columns()
    for scale, factor in ((first, second), (second, first)):
        if known is not None and _reads_only(scale, known):
            return _scaled(scale, factor, known)
    for part in (first, second):
        model.check_curvature(part, 0, "inside a product")
    for scale, factor in ((first, second), (second, first)):
        if is_binary(scale).all():
            return _related(Product, "product", scale, factor)
    return _related(Multiplication, "product", first, second)


def multiplied_matrices(left: Expression, right: Expression) -> Expression:
    """``left @ right`` of vectors or matrices that are in line and share no constant."""
    left, right = left.labelled(None), right.labelled(None)
    if left.ndim == 1:
        return multiplied(left if right.ndim == 1 else left[:, None], right).sum(axis=0)
    if right.ndim == 1:
        return multiplied(left, right).sum(axis=-1)
    return multiplied(left[:, :, None], right[None, :, :]).sum(axis=1)


def _scaled(scale: Expression, factor: Expression, known: Array) -> Expression:
    """The product of expressions of one shape of which the first reads parameters only."""
    model, curvature = scale.model, 0
    if not model.is_affine(factor):
        low, high = model.span_of(scale)
        if (low < 0).any():
            if (high <= 0).all():
                return -_scaled(-scale, factor, known)
            raise CurvatureError(
                f"a product of the parameter {scale._short()} and {factor._short()}: the parameter may be "
                "negative; declare it with lower=0"
            )
        curvature = model.curvature(factor, "inside a product with a parameter")
    result = _related(ParameterProduct, "scaled", scale, factor, curvature)
    if _reads_only(factor, known):
        model.note_parametric(result)
    return result


def _related(
    relation: type[Product], label: str, scale: Expression, factor: Expression, curvature: int = 0
) -> Expression:
    """New columns for the product of expressions of one shape, and the relation that ties them to it."""
    model = scale.model
    lower, upper = product_interval(model.span_of(scale), model.span_of(factor))
    if relation is Multiplication:
        apart = scale - factor
        square = (np.diff(apart.linear_rows().indptr) == 0).reshape(scale.shape) & (apart.constant == 0)
        lower = np.where(square, np.maximum(lower, 0.0), lower)
    integral = bool((model.is_integral(scale) & model.is_integral(factor)).all())
    result = model.add_columns(label, scale.shape, lower, upper, curvature, integral, scale.axes)
    model.relations.append(relation(*(e.labelled(None).ravel() for e in (result, scale, factor))))
    return result


def _reads_only(expression: Expression, known: Any) -> bool:
    """Whether an expression reads no other columns than those that parameters determine."""
    used = np.zeros(len(known), dtype=bool)
    mark(expression.terms, used)
    return not (used & ~known).any()


def quad_form(x: Operand, matrix: Operand, *, nonconvex: bool = False) -> Any:
    """``x' P x`` for a symmetric semidefinite P (dense or sparse); convex if P >= 0, concave if P <= 0.

    Parameters
    ----------
    x : Operand
        An expression or numbers with n elements.
    matrix : Operand
        Symmetric, shape ``(n, n)``; an array or a scipy sparse array.
    nonconvex : bool, default False
        Take any symmetric matrix, and write the value itself, which any constraint or objective may use, as
        products of the elements. Few backends take these, such as SCIP; see `Model.solve` for relaxations.

    Returns
    -------
    Expression or Array
        A scalar.

    Raises
    ------
    CurvatureError
        If P is neither positive nor negative semidefinite, unless `nonconvex` is set.
    DeclarationError
        If the matrix has another shape or is not symmetric.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.quad_form([1, 2], [[2, 1], [1, 3]]).round(6))
    18.0
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=-1, upper=2)
    >>> m.minimize(fo.quad_form(x, [[0, 1], [1, 1]], nonconvex=True))
    >>> round(m.solve("scip").objective, 6)
    -3.0
    """
    flat = reduced_axis_last(x, None, "quad_form")
    size = len(flat)
    if is_table(matrix):
        # Both axes of the frame mean the same, so that their names say nothing.
        unnamed = matrix.rename_axis(index=None, columns=None)
        axes = None if getattr(flat, "axes", None) is None else (Axis(flat.axes[0].labels),) * 2
        matrix = onto(unnamed, axes, (size, size), "the matrix of quad_form")
    if np.shape(matrix) != (size, size):
        raise DeclarationError(f"quad_form: x has {size} elements, the matrix shape {np.shape(matrix)}")
    if sp.issparse(matrix):
        held = sp.csr_array(matrix, dtype=float)
        if not np.isfinite(held.data).all():
            as_numbers(held.toarray(), "the matrix of quad_form")
    else:
        held = sp.csr_array(as_numbers(matrix, "the matrix of quad_form"))
    if not held.count_nonzero():
        return 0.0 * flat.sum()
    if nonconvex:
        _check_symmetric(held, _units(held))
        half = sp.coo_array(sp.triu(held))
        rows, columns = half.coords
        return (half.data * np.where(rows == columns, 1.0, 2.0)) @ (flat[rows] * flat[columns])
    if held.count_nonzero() == np.count_nonzero(held.diagonal()):
        sign, root = _diagonal_factor(held)
    else:
        units = _units(held)
        _check_symmetric(held, units)
        scaled = _in_units(held, units)
        sign, root = (_sparse_factor(scaled) if sp.issparse(matrix) else None) or _dense_factor(scaled, held)
        root = sp.csr_array(root.multiply(units))
    return sign * apply_atom(SUM_SQUARES, root @ flat, parameter=(sign * held, root), label="quad_form")


_DUST = 1e-14
"""Eigenvalues this small, relative to the largest, are rounding."""


def _units(matrix: sp.csr_array) -> Array:
    """Powers of two by which rows and columns are divided for a diagonal near 1.

    A matrix is semidefinite if and only if the scaled one is, whose rounding errors compare with 1.
    """
    row_max = abs(matrix).max(axis=1).toarray().reshape(-1)
    diagonal = np.abs(matrix.diagonal())
    size = np.where(diagonal > _DUST * row_max, diagonal, row_max)
    return np.asarray(np.exp2(np.round(np.log2(np.where(size > 0, size, 1.0)) / 2)))


def _in_units(matrix: sp.csr_array, units: Array) -> sp.csr_array:
    return sp.csr_array(matrix.multiply(1 / units[:, None]).multiply(1 / units))


def _check_symmetric(matrix: sp.csr_array, units: Array) -> None:
    apart, scaled = sp.coo_array(_in_units(abs(matrix - matrix.T), units)), _in_units(matrix, units)
    if apart.nnz and apart.data.max() > 1e-10 * np.abs(scaled.data).max():
        worst = int(apart.data.argmax())
        i, j = sorted((int(apart.coords[0][worst]), int(apart.coords[1][worst])))
        raise DeclarationError(
            f"quad_form: the matrix must be symmetric; its entries [{i}, {j}] and [{j}, {i}] are "
            f"{matrix[i, j]:g} and {matrix[j, i]:g}"
        )


def _sign(values: Array, dust: float, matrix: sp.csr_array) -> float:
    """1 if no eigenvalue is negative, -1 if none is positive, up to `dust` times the largest."""
    sign = 1.0 if values.max() >= -values.min() else -1.0
    if (sign * values).min() < -dust * np.abs(values).max():
        diagonal = len(values) == np.count_nonzero(matrix.diagonal()) == matrix.count_nonzero()
        found = values if diagonal else np.linalg.eigvalsh(matrix.toarray())
        raise CurvatureError(
            f"quad_form: the matrix is indefinite (eigenvalues from {found.min():g} to {found.max():g}), "
            "so the form is neither convex nor concave; nonconvex=True takes it all the same"
        )
    return sign


def _diagonal_factor(matrix: sp.csr_array) -> tuple[float, sp.csr_array]:
    """As `_sparse_factor`; the diagonal shows the eigenvalues without rounding."""
    values = matrix.diagonal()
    sign = _sign(values, _DUST, matrix)
    keep = np.flatnonzero(sign * values > 0)
    roots = np.sqrt(sign * values[keep])
    return sign, sp.csr_array((roots, (np.arange(len(keep)), keep)), shape=(len(keep), len(values)))


def _dense_factor(scaled: sp.csr_array, matrix: sp.csr_array) -> tuple[float, sp.csr_array]:
    """As `_sparse_factor`, by the eigenvalues of the scaled matrix."""
    values, vectors = np.linalg.eigh(scaled.toarray())
    sign = _sign(values, 1e-9, matrix)
    keep = sign * values > _DUST * np.abs(values).max()
    return sign, sp.csr_array(np.sqrt(sign * values[keep])[:, None] * vectors.T[keep])


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
