"""Operations along named axes: picks, shifts, differences, windows, groups, unions of labels; all affine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, lists_by_key
from forcopt.errors import DeclarationError, require
from forcopt.language.alignment import Operand
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes, Axis, axes_of_table, is_table


def selected(x: Expression, labels: Mapping[str, Any]) -> Expression:
    """Pick by name of the axis and label, see `Expression.sel`."""
    key: list[Any] = [slice(None)] * x.ndim
    for name, label in labels.items():
        level = _level(x, name)
        if level is None:
            (at,) = x.axes_at(name)
            key[at] = label
        else:
            at, parts = level
            mask = np.array([part == label for part in parts], dtype=bool)
            if not mask.any():
                raise DeclarationError(f"sel: no label has {label!r} at the level {name!r}")
            key[at] = mask & key[at] if isinstance(key[at], np.ndarray) else mask
    return x.loc[tuple(key)] if labels else x


def _level(x: Expression, name: str) -> tuple[int, list[Any]] | None:
    """The axis whose labels have a level of that name, and that part of each label."""
    for at, axis in enumerate(x.axes or ()):
        if axis is not None and name in axis.levels:
            place = axis.levels.index(name)
            return at, [label[place] for label in axis.labels]
    return None


def renamed(x: Expression, names: Mapping[str, str]) -> Expression:
    """Give axes other names, see `Expression.rename`."""
    axes = list(x.axes or ())
    for old, new in names.items():
        (at,) = x.axes_at(old)
        axis = axes[at]
        assert axis is not None
        axes[at] = Axis(axis.labels, new, axis.levels)
    return x.labelled(tuple(axes) or None)


def align(*operands: Operand, join: Literal["outer", "inner", "left"]) -> list[Any]:
    """Bring operands with different labels to common ones; an entry that comes in is 0.

    Parameters
    ----------
    operands : Operand
        Expressions, series and frames. Their axes meet by name, those without one from the right.
    join : str
        ``"outer"`` keeps the labels of all operands, ``"inner"`` those that all have, ``"left"`` those of the
        first operand with the axis.

    Returns
    -------
    list[Any]
        The operands, each with the chosen labels in the order of their first occurrence.

    Raises
    ------
    DeclarationError
        For another `join`, and for an operand that is no expression, series or frame.

    Examples
    --------
    >>> import pandas as pd
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", index=["a", "b"])
    >>> y, need = fo.align(x, pd.Series({"b": 1.0, "c": 2.0}), join="outer")
    >>> [axis.labels for axis in y.axes], need.to_dict()
    ([['a', 'b', 'c']], {'a': 0.0, 'b': 1.0, 'c': 2.0})
    """
    require(join in ("outer", "inner", "left"), "align: join", join, "be 'outer', 'inner' or 'left'")
    met = lists_by_key((key, axis) for x in operands for key, _, axis in _keyed(x))
    chosen = {}
    for key, axes in met.items():
        labels = dict.fromkeys(axes[0].labels)
        for axis in axes[1:]:
            if join == "outer":
                labels |= dict.fromkeys(axis.labels)
            elif join == "inner":
                labels = {label: None for label in labels if label in axis.place}
        chosen[key] = Axis(list(labels), axes[0].name, axes[0].levels)
    out = []
    for x in operands:
        for key, at, axis in _keyed(x):
            x = _reindexed(x, at, axis, chosen[key])
        out.append(x)
    return out


def _keyed(x: Operand) -> list[tuple[Any, int, Axis]]:
    """The labelled axes of an operand: by what they meet others, where they are, and their labels."""
    if not isinstance(x, Expression) and not is_table(x):
        raise DeclarationError(f"align takes expressions, series and frames, not {x!r}")
    axes: Axes = axes_of_table(x) if is_table(x) else x.axes or ()
    held = [(at, axis) for at, axis in enumerate(axes) if axis is not None]
    return [(at - len(axes) if axis.key is None else axis.key, at, axis) for at, axis in held]


def _reindexed(x: Operand, at: int, axis: Axis, wanted: Axis) -> Any:
    if list(axis.labels) == list(wanted.labels):
        return x
    if len(axis.place) < len(axis):
        raise DeclarationError("align: the labels of a table repeat; each must occur once")
    if hasattr(type(x), "coords"):
        return x.reindex({x.dims[at]: wanted.index()}, fill_value=0)
    if not isinstance(x, Expression):  # by equality, as everywhere: pandas finds no 1 among truth values
        places = [axis.place.get(label, -1) for label in wanted.labels]
        found = x.set_axis(range(len(axis)), axis=at).reindex(places, axis=at, fill_value=0)
        return found.set_axis(wanted.index(), axis=at)
    rows = [(i, axis.place[label]) for i, label in enumerate(wanted.labels) if label in axis.place]
    to, of = np.array(rows, dtype=np.intp).reshape(-1, 2).T
    matrix = sp.csr_array((np.ones(len(to)), (to, of)), shape=(len(wanted), len(axis)))
    axes = list(x.axes or ())
    axes[at] = wanted
    return times(x, at, matrix, tuple(axes))


def where(mask: Any, x: Operand, other: Operand = 0.0) -> Any:
    """`x` where a mask is true, `other` elsewhere; affine, as `numpy.where`.

    Parameters
    ----------
    mask : Any
        Booleans: an array, a series or a frame, which meet `x` as in arithmetic.
    x, other : Operand
        Expressions or numbers.

    Returns
    -------
    Expression or Array
        The shape to which all broadcast.

    Raises
    ------
    DeclarationError
        For a mask that is not of booleans.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3, lower=2)
    >>> m.minimize(fo.where([True, False, True], x, 7).sum())
    >>> m.solve().objective
    11.0
    """
    values = mask if is_table(mask) else np.asarray(mask)
    if np.asarray(values).dtype != bool:
        raise DeclarationError(f"where: the mask {mask!r} is not of booleans")
    if not isinstance(x, Expression) and not isinstance(other, Expression):
        return np.where(values, x, other)
    chosen = values.astype(float)
    parts = ((x, chosen), (other, 1.0 - chosen))  # xarray takes no expression on the right
    return _plus(*(e * weight if isinstance(e, Expression) else weight * e for e, weight in parts))


def _plus(left: Operand, right: Operand) -> Any:
    return left + right if isinstance(left, Expression) else right + left


def shifted(x: Expression, steps: Mapping[str, int]) -> Expression:
    """Move the entries along axes, see `Expression.shift`."""
    for name, step in steps.items():
        (at,) = x.axes_at(name)
        _check_integer(step, "shift")
        count = x.shape[at]
        step = min(max(int(step), -count), count)
        rows = np.arange(max(step, 0), count + min(step, 0))
        matrix = sp.csr_array((np.ones(len(rows)), (rows, rows - step)), shape=(count, count))
        x = times(x, at, matrix, x.axes)
    return x


def difference(x: Expression, axis: str | int) -> Expression:
    """Each entry less the one before it, see `Expression.diff`."""
    (at,) = x.axes_at(axis)
    later = (slice(None),) * at + (slice(1, None),)
    before = (slice(None),) * at + (slice(None, -1),)
    rest = x.labelled(None)
    return (rest[later] - rest[before]).labelled(x[later].axes)


class Windows:
    """The windows that end at each entry of an axis; see `Expression.rolling`."""

    def __init__(self, x: Expression, at: int, width: int) -> None:
        self._x, self._at, self._width = x, at, width

    def sum(self) -> Expression:
        """The sum of each window; the first windows hold fewer entries."""
        n = self._x.shape[self._at]
        row, back = np.indices((n, min(self._width, n)))
        inside = back <= row
        at = (row[inside], (row - back)[inside])
        return times(self._x, self._at, sp.csr_array((np.ones(len(at[0])), at), shape=(n, n)), self._x.axes)


def windows(x: Expression, widths: Mapping[str, int]) -> Windows:
    """See `Expression.rolling`."""
    if len(widths) != 1:
        raise DeclarationError(f"rolling takes one axis, as in x.rolling(time=3), not {dict(widths)}")
    ((name, width),) = widths.items()
    _check_integer(width, "rolling")
    require(width >= 1, "rolling: the width", width, "be at least 1")
    return Windows(x, x.axes_at(name)[0], width)


class Groups:
    """The entries of an axis in groups; see `Expression.groupby`."""

    def __init__(self, x: Expression, at: int, codes: Array, axis: Axis) -> None:
        self._x, self._at, self._codes, self._axis = x, at, codes, axis

    def sum(self) -> Expression:
        """The sum of each group, with the groups as labels."""
        n = len(self._codes)
        matrix = sp.csr_array((np.ones(n), (self._codes, np.arange(n))), shape=(len(self._axis), n))
        axes = list(self._x.axes or (None,) * self._x.ndim)
        axes[self._at] = self._axis
        return times(self._x, self._at, matrix, tuple(axes))


def grouped(x: Expression, by: Any) -> Groups:
    """See `Expression.groupby`."""
    if isinstance(by, str):
        level = _level(x, by)
        if level is not None:
            return _groups(x, *level, by)
        raise DeclarationError(f"groupby: no axis has a level {by!r}")
    if not is_table(by) or by.ndim != 1:
        raise DeclarationError(f"groupby takes a series or the name of a level, not {by!r}")
    by = by.to_series() if hasattr(type(by), "to_series") else by  # an array of xarray
    (own,) = axes_of_table(by)
    axes = x.axes or (None,) * x.ndim
    keys = [None if axis is None else axis.key for axis in axes]
    if own.key is not None and keys.count(own.key) == 1:
        at = keys.index(own.key)
    else:
        fits = [i for i, n in enumerate(x.shape) if n == len(own) and _same(axes[i], own)]
        if len(fits) != 1:
            raise DeclarationError("groupby: the labels of the series are not those of one axis")
        (at,) = fits
    axis = axes[at]
    order = None if axis is None else axis.order_of(own, "groupby: the series")
    values = by.tolist() if order is None else [by.iloc[i] for i in order.tolist()]
    if by.isna().any():
        raise DeclarationError(
            f"groupby: the series has no group for the label {own.labels[int(by.isna().argmax())]!r}"
        )
    return _groups(x, at, values, "" if by.name is None else str(by.name))


def _same(axis: Axis | None, other: Axis) -> bool:
    return other.is_default if axis is None else set(axis.labels) == set(other.labels)


def _groups(x: Expression, at: int, values: list[Any], name: str) -> Groups:
    place = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return Groups(x, at, np.array([place[value] for value in values], dtype=np.intp), Axis(list(place), name))


def times(x: Expression, at: int, matrix: sp.csr_array, axes: Axes | None) -> Expression:
    """Multiply along one axis by a matrix; the result has the given axes."""
    order = (at, *(a for a in range(x.ndim) if a != at))
    moved = x.labelled(None).transpose(*order)
    flat: Expression = matrix @ moved.reshape(moved.shape[0], -1)
    out = flat.reshape(matrix.shape[0], *moved.shape[1:])
    return out.transpose(*np.argsort(order).tolist()).labelled(axes)


def _check_integer(value: Any, call: str) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise DeclarationError(f"{call}: {value!r} is no integer")
