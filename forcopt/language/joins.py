"""Joins of expressions, and other affine functions of numpy that an expression has no method for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import as_numbers, broadcast_shapes
from forcopt.errors import DeclarationError
from forcopt.language.alignment import Operand, aligned, normalized_axes, positions
from forcopt.language.along import times
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes, Axis, tidy
from forcopt.language.scalar import Scalar
from forcopt.language.terms import Gather, Rows, apart


def concatenate(parts: Iterable[Operand], axis: int | str = 0) -> Expression:
    """Join expressions (and arrays) along an axis that exists, as `numpy.concatenate`.

    Parameters
    ----------
    parts : Iterable[Operand]
        At least one is an expression; their shapes differ along `axis` only.
    axis : int or str, default 0
        An axis of the parts; a name counts in the first part that has labels.

    Returns
    -------
    Expression
        The parts one after the other along `axis`.

    Raises
    ------
    DeclarationError
        If no part is an expression, or the shapes do not fit.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, y = m.variable("x", 2), m.variable("y", 3)
    >>> fo.concatenate([x, 2 * y]).shape
    (5,)
    """
    parts = list(parts)
    model = next((p.model for p in parts if isinstance(p, Expression)), None)
    if model is None:
        raise DeclarationError("concatenate needs at least one expression; use numpy for arrays")
    exprs = [
        model.lift(p, "a joined expression" if isinstance(p, Expression) else "the joined array")
        for p in parts
    ]
    at: int = positions(axis, next((e.axes for e in exprs if e.axes is not None), None), "concatenate")
    exprs, axes = _in_line(exprs, at)
    try:
        constant = np.concatenate([e.constant for e in exprs], axis=at)
    except ValueError:
        raise DeclarationError(f"cannot join shapes {[e.shape for e in exprs]} along axis {axis}") from None
    at = at % constant.ndim
    joined = _joined_gathers(exprs, at)
    if joined is not None:
        return Expression(model, constant.shape, (joined,), constant, axes)
    offsets = np.cumsum([0] + [e.size for e in exprs])
    order = np.concatenate(
        [np.arange(a, a + e.size).reshape(e.shape) for a, e in zip(offsets[:-1], exprs, strict=True)], axis=at
    ).reshape(-1)
    merged_rows = [e.linear_rows() for e in exprs]
    width = 1 + max((int(r.indices.max()) for r in merged_rows if r.indices.size), default=0)
    rows = Rows.of(sp.csr_array(sp.vstack([r.matrix(width) for r in merged_rows], format="csr"))).take(order)
    return Expression(model, constant.shape, (rows,), constant, axes)


def _in_line(parts: Sequence[Expression], axis: int) -> tuple[list[Expression], Axes | None]:
    """Give parts the order of labels of the first in all axes but one, which has the labels of all."""
    ndim = parts[0].ndim
    if all(part.axes is None for part in parts) or not -ndim <= axis < ndim:
        return list(parts), None
    at, out = axis % ndim, list(parts)
    lead = next(part for part in parts if part.axes is not None)
    for i, part in enumerate(parts):
        if part.axes is None or part.ndim != ndim:
            continue
        out[i] = _like(part, lead.axes or (), at)
    axes = list(lead.axes or ())
    axes[at] = _one_after_another([part.axes[at] if part.axes is not None else None for part in out])
    return out, tidy(axes)


def _like(part: Expression, wanted: Axes, at: int) -> Expression:
    """A part with its axes in the order of the wanted names, and labels in their order but along one axis."""
    names = [None if a is None else a.key for a in part.axes or ()]
    keys = [None if a is None else a.key for a in wanted]
    if names != keys and None not in names and sorted(map(str, names)) == sorted(map(str, keys)):
        part = part.transpose(*(names.index(name) for name in keys))
    for number, (mine, theirs) in enumerate(zip(wanted, part.axes or (), strict=True)):
        if number != at and mine is not None and theirs is not None:
            order = mine.order_of(theirs, f"axis {number} of a joined part")
            part = part if order is None else part[(slice(None),) * number + (order,)]
    return part


def _one_after_another(along: Sequence[Axis | None]) -> Axis | None:
    """The labels of all, the name of the first; None if one has none, or a label would repeat."""
    known = [axis for axis in along if axis is not None]
    labels = [label for axis in known for label in axis.labels]
    if len(known) < len(along) or len(set(labels)) < len(labels):
        return None
    return Axis(labels, known[0].name, known[0].levels)


def _joined_gathers(exprs: Sequence[Expression], axis: int) -> Gather | None:
    """One gather for all parts, if each is held in one of the same width or is constant (then with zeros)."""
    zero = Gather(np.zeros(1, np.int32), np.zeros(1), False)
    held: list[Gather] = []
    for e in exprs:
        term = e.terms[0] if e.terms else zero
        if len(e.terms) > 1 or not isinstance(term, Gather):
            return None
        held.append(term)
    widths = {term.width for term in held if term is not zero}
    if len(widths) != 1:
        return None
    shapes = [(*e.shape, *widths) for e in exprs]
    columns = [np.broadcast_to(t.columns, shape) for t, shape in zip(held, shapes, strict=True)]
    values = [np.broadcast_to(t.values, shape) for t, shape in zip(held, shapes, strict=True)]
    distinct = all(term.distinct for term in held) and apart(held)
    return Gather(np.concatenate(columns, axis=axis), np.concatenate(values, axis=axis), distinct)


def stack(parts: Iterable[Operand], axis: int = 0) -> Expression:
    """Join expressions of one shape along a new axis, as `numpy.stack`.

    Parameters
    ----------
    parts : Iterable[Operand]
        At least one is an expression; all have one shape.
    axis : int, default 0
        The position of the new axis in the result.

    Returns
    -------
    Expression
        One more axis than the parts have.

    Raises
    ------
    DeclarationError
        If the shapes differ, or no part is an expression.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3)
    >>> fo.stack([x.sum(), x[0] - x[1]]).shape
    (2,)
    """
    parts = list(parts)
    met, axes = aligned(parts, "a joined part")
    if axes is not None:
        same = broadcast_shapes([p.shape if isinstance(p, Expression) else np.shape(p) for p in met], "stack")
        parts = [
            p.broadcast_to(same).labelled(axes) if isinstance(p, Expression) else np.broadcast_to(p, same)
            for p in met
        ]
    shapes = {p.shape if isinstance(p, Expression) else np.shape(p) for p in parts}
    if len(shapes) != 1:
        raise DeclarationError(f"stack needs one or more parts of one shape, not {sorted(shapes)}")
    (where,) = normalized_axes(axis, (*shapes.pop(), len(parts)))
    index = (slice(None),) * where + (None,)
    raised = [p[index] if isinstance(p, Expression) else np.expand_dims(p, where) for p in parts]
    return concatenate(raised, where)


def block(parts: Sequence[Sequence[Operand]]) -> Expression:
    """Join matrices (expressions and arrays) given as rows of blocks, as `numpy.block`.

    Parameters
    ----------
    parts : Sequence[Sequence[Operand]]
        Rows of matrices: equal heights in a row, equal total widths of the rows.

    Returns
    -------
    Expression
        Shape ``(sum of the heights, width of a row)``.

    Raises
    ------
    DeclarationError
        If no part is an expression, or the shapes do not fit.

    Examples
    --------
    >>> import forcopt as fo, numpy as np
    >>> m = fo.Model()
    >>> X = m.variable("X", (2, 2))
    >>> fo.block([[X, np.ones((2, 1))], [np.ones((1, 2)), [[1]]]]).shape
    (3, 3)
    """
    rows = [
        concatenate(row, axis=-1)
        if any(isinstance(part, Expression) for part in row)
        else np.concatenate([np.asarray(part) for part in row], axis=-1)
        for row in parts
    ]
    return concatenate(rows, axis=-2)


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
        x, axis = x.ravel(), 0
    (at,) = x.axes_at(axis)
    return times(x, at, sp.csr_array(np.tri(x.shape[at])), x.axes)


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
    left, total = iter(terms), 0.0
    for term in left:
        total = total + term
        if isinstance(total, Scalar):
            total = add(*total.gathered(left))
    return total


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
