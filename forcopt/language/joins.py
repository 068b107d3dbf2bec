"""Expressions joined into one: along an axis that exists, or along a new one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import broadcast_shapes
from forcopt.errors import DeclarationError
from forcopt.language.alignment import aligned, positions
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes, Axis, tidy
from forcopt.language.operands import Operand, normalized_axes
from forcopt.language.terms import Gather, Rows, apart

__all__ = ["block", "concatenate", "stack"]


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
    lead = next((e.axes for e in exprs if e.axes is not None), None)
    at: int = positions(axis, lead, "concatenate")
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
        [np.arange(a, a + e.size).reshape(e.shape) for a, e in zip(offsets[:-1], exprs, strict=True)],
        axis=at,
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
    along = [part.axes[at] if part.axes is not None else None for part in out]
    axes = list(lead.axes or ())
    axes[at] = _one_after_another(along)
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
    return concatenate(
        [p[index] if isinstance(p, Expression) else np.expand_dims(p, where) for p in parts], where
    )


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
