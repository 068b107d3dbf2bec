"""Affine functions of numpy that an expression has no method for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError
from forcopt.language.alignment import positions
from forcopt.language.expression import Expression
from forcopt.language.operands import Operand

__all__ = ["cumsum", "diag", "facing", "sum", "trace"]


def cumsum(x: Operand, axis: int | str | None = None) -> Any:
    """The cumulative sums along an axis, as `numpy.cumsum`; affine.

    Parameters
    ----------
    x : Operand
        An expression or numbers.
    axis : int or str, optional
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
        return np.cumsum(as_numbers(x, "the argument of cumsum"), axis=positions(axis, None, "cumsum"))
    if axis is None:
        return _sums(x.ravel()).labelled(x.axes if x.ndim == 1 else None)
    (at,) = x.axes_at(axis)
    order = (at, *(a for a in range(x.ndim) if a != at))
    moved = x.labelled(None).transpose(*order)
    out = _sums(moved.reshape(moved.shape[0], -1)).reshape(moved.shape)
    return out.transpose(*np.argsort(order).tolist()).labelled(x.axes)


def _sums(x: Expression) -> Expression:
    out: Expression = sp.csr_array(np.tri(len(x))) @ x
    return out


def sum(terms: Iterable[Operand] | Operand) -> Any:
    """The sum of many expressions and numbers in linear time, as Python's ``sum``; affine terms stay affine.

    Parameters
    ----------
    terms : Iterable[Operand] or Operand
        A list or a generator; of one expression or array all elements are summed.

    Returns
    -------
    Expression, Array or float
        What adding them one by one gives; 0 for none.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = {city: m.variable(city, lower=0) for city in ("Oslo", "Rome")}
    >>> fo.sum(2 * x[city] for city in x)
    <expression of shape (), 2 coefficients: 2 Oslo + 2 Rome>
    """
    if isinstance(terms, Expression | np.ndarray):
        return terms.sum()
    return reduce(add, terms, 0.0)


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
        rows, columns = x.axes or (None, None)
        return facing(x, "diag")[at, at].labelled((rows,) if rows and columns else None)
    if x.ndim != 1:
        raise DeclarationError(f"diag takes a vector or a matrix, not shape {x.shape}")
    n = len(x)
    place = sp.csr_array((np.ones(n), (np.arange(n) * (n + 1), np.arange(n))), shape=(n * n, n))
    return (place @ x).reshape(n, n).labelled(x.axes and x.axes * 2)


def facing(x: Expression, subject: str) -> Expression:
    """A matrix, or several, with the columns in the order of the labels of the rows, if both have labels."""
    rows, columns = (x.axes or (None,) * x.ndim)[-2:]
    if rows is None or columns is None:
        return x
    order = rows.order_of(columns, f"{subject}: the last axis")
    return x if order is None else x[..., order]


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
