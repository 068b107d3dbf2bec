"""Operations along one named axis: picking, shifts, differences, windows, sums of groups; all affine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes, Axis, axes_of_table, is_table

__all__ = ["Groups", "Windows", "difference", "grouped", "selected", "shifted", "windows"]


def selected(x: Expression, labels: Mapping[str, Any]) -> Expression:
    """Pick by name of the axis and label, see `Expression.sel`."""
    key: list[Any] = [slice(None)] * x.ndim
    for name, label in labels.items():
        (at,) = x.axes_at(name)
        key[at] = label
    return x.loc[tuple(key)] if labels else x


def shifted(x: Expression, steps: Mapping[str, int]) -> Expression:
    """Move the entries along axes, see `Expression.shift`."""
    for name, step in steps.items():
        (at,) = x.axes_at(name)
        _check_integer(step, "shift")
        count = x.shape[at]
        step = min(max(int(step), -count), count)
        rows = np.arange(max(step, 0), count + min(step, 0))
        matrix = sp.csr_array((np.ones(len(rows)), (rows, rows - step)), shape=(count, count))
        x = _times(x, at, matrix, x.axes)
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
        matrix = sp.csr_array((np.ones(len(at[0])), at), shape=(n, n))
        return _times(self._x, self._at, matrix, self._x.axes)


def windows(x: Expression, widths: Mapping[str, int]) -> Windows:
    """See `Expression.rolling`."""
    if len(widths) != 1:
        raise DeclarationError(f"rolling takes one axis, as in x.rolling(time=3), not {dict(widths)}")
    ((name, width),) = widths.items()
    _check_integer(width, "rolling")
    if width < 1:
        raise DeclarationError(f"rolling: the width is {width}; it must be at least 1")
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
        return _times(self._x, self._at, matrix, tuple(axes))


def grouped(x: Expression, by: Any) -> Groups:
    """See `Expression.groupby`."""
    if isinstance(by, str):
        for at, axis in enumerate(x.axes or ()):
            if axis is not None and by in axis.levels:
                place = axis.levels.index(by)
                return _groups(x, at, [label[place] for label in axis.labels], by)
        raise DeclarationError(f"groupby: no axis has a level {by!r}")
    if not is_table(by) or by.ndim != 1:
        raise DeclarationError(f"groupby takes a series or the name of a level, not {by!r}")
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
    return _groups(x, at, values, "" if by.name is None else str(by.name))


def _same(axis: Axis | None, other: Axis) -> bool:
    return other.is_default if axis is None else set(axis.labels) == set(other.labels)


def _groups(x: Expression, at: int, values: list[Any], name: str) -> Groups:
    place = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return Groups(x, at, np.array([place[value] for value in values], dtype=np.intp), Axis(list(place), name))


def _times(x: Expression, at: int, matrix: sp.csr_array, axes: Axes | None) -> Expression:
    """Multiply along one axis by a matrix; the result has the given axes."""
    order = (at, *(a for a in range(x.ndim) if a != at))
    moved = x.labelled(None).transpose(*order)
    flat: Expression = matrix @ moved.reshape(moved.shape[0], -1)
    out = flat.reshape(matrix.shape[0], *moved.shape[1:])
    return out.transpose(*np.argsort(order).tolist()).labelled(axes)


def _check_integer(value: Any, call: str) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise DeclarationError(f"{call}: {value!r} is no integer")
