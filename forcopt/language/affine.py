"""Affine functions of numpy that an expression has no method for."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.operands import Operand, normalized_axes

__all__ = ["cumsum", "diag", "trace"]


def cumsum(x: Operand, axis: int | None = None) -> Any:
    """The cumulative sums along an axis, as `numpy.cumsum`; affine.

    Parameters
    ----------
    x : Operand
        An expression or numbers.
    axis : int, optional
        All elements in C order by default.

    Returns
    -------
    Expression or Array
        The shape of `x`; flat without `axis`.

    Notes
    -----
    Element k holds the coefficients of k + 1 elements, so that n elements cost n (n + 1) / 2 coefficients. A
    long horizon is cheaper with a variable of its own: ``stock[1:] == stock[:-1] + flow[1:]``.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3)
    >>> fo.cumsum(x)[2]
    <expression of shape (), 3 coefficients: x[0] + x[1] + x[2]>
    """
    if not isinstance(x, Expression):
        return np.cumsum(as_numbers(x, "the argument of cumsum"), axis=axis)
    if axis is None:
        return _sums(x.ravel())
    (at,) = normalized_axes(axis, x.shape)
    order = (at, *(a for a in range(x.ndim) if a != at))
    moved = x.transpose(*order)
    out = _sums(moved.reshape(moved.shape[0], -1)).reshape(moved.shape)
    return out.transpose(*np.argsort(order).tolist())


def _sums(x: Expression) -> Expression:
    out: Expression = sp.csr_array(np.tri(len(x))) @ x
    return out


def diag(x: Operand) -> Any:
    """The diagonal of a matrix, or the square matrix that has a vector as its diagonal; affine.

    Parameters
    ----------
    x : Operand
        A vector, shape ``(n,)``, or a matrix, shape ``(p, q)``.

    Returns
    -------
    Expression or Array
        Shape ``(n, n)`` for a vector, ``(min(p, q),)`` for a matrix.

    Raises
    ------
    DeclarationError
        For an expression that is neither a vector nor a matrix.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", (3, 3))
    >>> fo.diag(x)[1]
    <expression of shape (), 1 coefficients: x[1,1]>
    >>> fo.diag(x[0]).shape
    (3, 3)
    """
    if not isinstance(x, Expression):
        return np.diag(as_numbers(x, "the argument of diag"))
    if x.ndim == 2:
        at = np.arange(min(x.shape))
        return x[at, at]
    if x.ndim != 1:
        raise DeclarationError(f"diag takes a vector or a matrix, not shape {x.shape}")
    n = len(x)
    place = sp.csr_array((np.ones(n), (np.arange(n) * (n + 1), np.arange(n))), shape=(n * n, n))
    return (place @ x).reshape(n, n)


def trace(x: Operand) -> Any:
    """The sum of the diagonal of a matrix; affine.

    Parameters
    ----------
    x : Operand
        A matrix, shape ``(p, q)``.

    Returns
    -------
    Expression or Array
        A scalar.

    Raises
    ------
    DeclarationError
        If `x` is not a matrix.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", (2, 2))
    >>> fo.trace(x)
    <expression of shape (), 2 coefficients: x[0,0] + x[1,1]>
    """
    if len(np.shape(x) if not isinstance(x, Expression) else x.shape) != 2:
        raise DeclarationError("trace takes a matrix")
    return diag(x).sum()
