"""Labels of axes: names that stand for positions, and the alignment of pandas objects by them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from math import prod
from typing import Any

import numpy as np

from forcopt.arrays import Array, is_missing
from forcopt.errors import DeclarationError, required

_SHOWN = 8
"""How many labels a message lists."""


class Axis:
    """The labels of one axis, looked up in constant time.

    Attributes
    ----------
    labels : Sequence[Any]
        One for each position; no two are equal.
    name : str
        The name of the axis in frames; empty if it has no name.
    levels : tuple[str, ...]
        The names of the parts of its labels, if these are tuples of named levels.
    """

    __slots__ = ("_place", "labels", "levels", "name")

    def __init__(self, labels: Sequence[Any], name: str = "", levels: tuple[str, ...] = ()) -> None:
        self.labels = labels
        self.name = name
        self.levels = levels
        self._place: dict[Any, int] | None = None

    @property
    def place(self) -> dict[Any, int]:
        """The position of each label; made when it is first asked for."""
        if self._place is None:
            self._place = {label: i for i, label in enumerate(self.labels)}
        return self._place

    @property
    def key(self) -> Any:
        """The name by which it meets other axes, first that of its levels; None if it has none."""
        return self.levels or self.name or None

    @property
    def is_default(self) -> bool:
        """Whether the labels are those that pandas gives where there are none."""
        return list(self.labels) == list(range(len(self.labels)))

    def __len__(self) -> int:
        return len(self.labels)

    def position(self, key: Any, subject: str) -> Any:
        """The position of a label, or the positions of a list of labels; slices and masks are returned.

        Raises
        ------
        DeclarationError
            Listing the labels that do not exist.
        """
        if isinstance(key, slice):
            ends = [None if end is None else self.position(end, subject) for end in (key.start, key.stop)]
            return slice(ends[0], None if ends[1] is None else ends[1] + 1, key.step)
        if isinstance(key, np.ndarray) and key.dtype == bool:
            return key
        try:
            if key in self.place:
                return self.place[key]
        except TypeError:  # a list is no label
            pass
        if isinstance(key, str | bytes | tuple) or not np.iterable(key):
            key = [key]
            self._refuse(key, subject)
        wanted = list(key)
        self._refuse(wanted, subject)
        return np.array([self.place[label] for label in wanted], dtype=np.intp)

    def _refuse(self, wanted: Sequence[Any], subject: str) -> None:
        missing = [label for label in wanted if label not in self.place]
        if missing:
            raise DeclarationError(f"{subject} has no label {listed(missing)}; it has {listed(self.labels)}")

    def take(self, key: Any) -> Axis | None:
        """The axis of a part, by a slice, a mask or an array of positions; None if a label would repeat."""
        if isinstance(key, slice):
            return self if key == slice(None) else Axis(self.labels[key], self.name, self.levels)
        positions = np.arange(len(self))[key]
        if len(np.unique(positions)) < len(positions):
            return None
        return Axis([self.labels[i] for i in positions.tolist()], self.name, self.levels)

    def order_of(self, other: Axis, subject: str) -> Array | None:
        """The position in another axis of each label of this one; None if both are the same, in one order.

        Raises
        ------
        DeclarationError
            Listing the labels that one lacks.
        """
        theirs = other.labels
        if theirs is self.labels or (len(theirs) == len(self) and list(self.labels) == list(theirs)):
            return None
        if len(other.place) < len(theirs):
            raise DeclarationError(f"{subject}: its labels repeat; each must occur once")
        missing = [label for label in self.labels if label not in other.place]
        unknown = [label for label in theirs if label not in self.place]
        if missing or unknown:
            words = [f"is missing {listed(missing)}"] * bool(missing)
            words += [f"has labels that the variable lacks: {listed(unknown)}"] * bool(unknown)
            mine, given = list(self.labels), list(theirs)
            moved = len(mine) > 1 and (mine[1:] == given[:-1] or mine[:-1] == given[1:])
            hint = "; x.shift and x.diff take the entry before" if moved else ""
            raise DeclarationError(f"{subject} {' and '.join(words)}{hint}")
        return np.array([other.place[label] for label in self.labels], dtype=np.intp)

    def index(self) -> Any:
        """A `pandas.Index` of the labels."""
        pd = required("pandas", "an index")

        if self.levels or (len(self) and all(isinstance(label, tuple) for label in self.labels)):
            return pd.MultiIndex.from_tuples(list(self.labels), names=self.levels or None)
        return pd.Index(list(self.labels), name=self.name or None)


Axes = tuple[Axis | None, ...]
"""The labels of each axis of an expression, None for an axis without."""


def listed(labels: Sequence[Any]) -> str:
    """The first labels, for a message."""
    shown = ", ".join(repr(label) for label in list(labels)[:_SHOWN])
    return shown + (f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else "")


def read_axes(index: Any, subject: str) -> Axes:
    """Read the ``index=`` of a variable.

    Parameters
    ----------
    index : Any
        The labels of one axis (a list, a `pandas.Index`, or a frame of which each row is a label), a tuple
        with the labels of each axis (an int for an axis without labels), or a mapping from the name of each
        axis to its labels.
    subject : str
        The name of the labels in messages.

    Raises
    ------
    DeclarationError
        For labels that repeat or cannot be hashed.
    """
    if isinstance(index, Mapping):
        given = [(str(name), labels) for name, labels in index.items()]
    else:
        given = [("", labels) for labels in (index if isinstance(index, tuple) else (index,))]
    return tuple(_read_axis(labels, name, subject) for name, labels in given)


def _read_axis(labels: Any, name: str, subject: str) -> Axis:
    if isinstance(labels, Axis):
        return labels
    if is_table(labels) and labels.ndim == 2:  # such as the ends of arcs: one label for each row
        labels = labels.set_index([*labels.columns]).index
    if hasattr(type(labels), "to_index"):  # a coordinate of xarray
        labels = labels.to_index()
    if isinstance(labels, str | bytes | Set) or not np.iterable(labels):
        raise DeclarationError(
            f"{subject}: index {labels!r} must be a sequence of labels (a tuple gives one for each axis)"
        )
    if getattr(labels, "nlevels", 1) > 1:
        axis = _axis_of_index(labels)
        axis = Axis(axis.labels, name, axis.levels)
    else:
        label_name = getattr(labels, "name", None)
        given = labels.tolist() if hasattr(labels, "tolist") else list(labels)
        axis = Axis(given, name or (str(label_name) if label_name is not None else ""))
    try:
        distinct = len(axis.place)
    except TypeError as error:
        raise DeclarationError(f"{subject}: a label of its index cannot be looked up: {error}") from None
    missing = [label for label in axis.labels if label is not None and is_missing(label)]
    if missing:
        raise DeclarationError(f"{subject}: {missing[0]!r} cannot be a label of its index")
    if distinct < len(axis):
        first = next(label for i, label in enumerate(axis.labels) if axis.place[label] != i)
        raise DeclarationError(f"{subject}: the label {first!r} occurs twice in its index")
    return axis


def is_table(value: Any) -> bool:
    """Whether `value` is a series or a frame of pandas, or an array of xarray."""
    kind = type(value)  # expressions explain the attributes that they lack, which takes time
    return hasattr(kind, "to_numpy") and (hasattr(kind, "index") or hasattr(kind, "coords"))


def axes_of_table(table: Any) -> tuple[Axis, ...]:
    """The labels of a series, a frame or an array of xarray."""
    if hasattr(type(table), "coords"):
        return tuple(_axis_of_index(table.get_index(name), str(name)) for name in table.dims)
    indices = [table.index, table.columns] if table.ndim == 2 else [table.index]
    return tuple(_axis_of_index(index) for index in indices)


def _axis_of_index(index: Any, name: str = "") -> Axis:
    names = getattr(index, "names", (None,))
    if getattr(index, "nlevels", 1) > 1:
        levels = tuple(str(name) for name in names) if all(name is not None for name in names) else ()
        return Axis(index.tolist(), "", levels)
    return Axis(index.tolist(), name or ("" if index.name is None else str(index.name)))


def tidy(axes: Sequence[Axis | None]) -> Axes | None:
    """The axes as a tuple; None if none has labels."""
    return tuple(axes) if any(axis is not None for axis in axes) else None


def product_index(axes: Axes | None, shape: tuple[int, ...]) -> Any:
    """A `pandas.Index` of the entries of an array in C order, with a level for each of several axes."""
    pd = required("pandas", "an index")

    held = zip(axes or (None,) * len(shape), shape, strict=True)
    parts = [pd.RangeIndex(n) if axis is None else axis.index() for axis, n in held]
    if len(parts) <= 1:
        return parts[0] if parts else pd.RangeIndex(1)
    taken = [part.take(at) for part, at in zip(parts, np.indices(shape).reshape(len(shape), -1), strict=True)]
    levels = [part.get_level_values(i) for part in taken for i in range(part.nlevels)]
    return pd.MultiIndex.from_arrays(levels, names=[level.name for level in levels])


def describe_labels(axes: Axes | None, shape: tuple[int, ...], flat: int) -> str:
    """Name an entry of an array by its labels, such as ``[a,2]``; nothing for a scalar."""
    if not shape:
        return ""
    at = np.unravel_index(flat, shape)
    if axes is None:
        return f"[{','.join(str(int(i)) for i in at)}]"
    words = [str(int(i)) if a is None else _text(a.labels[int(i)]) for a, i in zip(axes, at, strict=True)]
    return f"[{','.join(words)}]"


def flat_position(text: str, axes: Axes | None, shape: tuple[int, ...]) -> int | None:
    """The entry that `describe_labels` names by a text; None if there is none."""
    if axes is None:
        try:
            return int(np.ravel_multi_index(tuple(int(i) for i in text[1:-1].split(",")), shape))
        except ValueError:
            return None
    found = [i for i in range(prod(shape)) if describe_labels(axes, shape, i) == text]
    return found[0] if found else None


def _text(label: Any) -> str:
    return ",".join(map(str, label)) if isinstance(label, tuple) else str(label)


def pick(key: tuple[Any, ...], axes: Axes, every: bool) -> tuple[tuple[Any, ...], Axes | None]:
    """Turn labels of an index into positions, and give the axes of the part.

    Parameters
    ----------
    key : tuple[Any, ...]
        The parts of the index.
    axes : Axes
        Of the indexed object.
    every : bool
        Whether all parts are labels (``x.loc``), or only strings and lists of them (``x[...]``).
    """
    alone = axes[0] if len(axes) == 1 and len(key) > 1 and all(isinstance(k, Hashable) for k in key) else None
    if alone is not None and (every or any(isinstance(k, str) for k in key)):
        return (alone.position(key, "the axis"),), None  # a label that is a tuple
    used = sum(_width(part) for part in key)
    if used > len(axes):
        return key, None
    at = next((i for i, part in enumerate(key) if part is Ellipsis), len(key))
    key = (*key[:at], *(slice(None),) * (len(axes) - used), *key[at + 1 :])
    parts: list[Any] = []
    left: list[Axis | None] = []
    picked: list[tuple[int, int]] = []  # the parts that are numbers or arrays, and the axes left of them
    arrays: list[tuple[Array, Axis | None]] = []
    number = 0
    for part in key:
        axis = axes[number] if part is not None and number < len(axes) else None
        if is_table(part):
            order = None if axis is None else axis.order_of(axes_of_table(part)[0], "the index")
            values = part.to_numpy()
            if values.dtype.kind not in "biu":
                raise DeclarationError(
                    f"the index is a table of {values.dtype}; it must hold truth values or positions, "
                    "and miss none"
                )
            part = values if order is None else values[order]
        elif axis is not None and (every or _is_label(part)):
            part = axis.position(part, f"axis {number}" + (f" ({axis.name})" if axis.name else ""))
        number += _width(part)
        parts.append(part)
        if part is None or isinstance(part, slice):
            left.append(None if axis is None else axis.take(part))
            continue
        picked.append((len(parts), len(left)))
        if not isinstance(part, int | np.integer):
            arrays.append((np.asarray(part), axis))
    if arrays:
        # As numpy has it: one axis for each of the arrays, in place, or in front if slices stand between.
        where = picked[0][1] if picked[-1][0] - picked[0][0] == len(picked) - 1 else 0
        left[where:where] = _axes_of_arrays(arrays)
    return tuple(parts), tidy(left)


def _axes_of_arrays(arrays: Sequence[tuple[Array, Axis | None]]) -> Sequence[Axis | None]:
    """The axes that picking by arrays makes: labelled, if one flat array picks from a labelled axis."""
    values, axis = arrays[0]
    if len(arrays) == 1 and values.ndim == 1 and axis is not None:
        return [axis.take(values)]
    return [None] * max(a.ndim if a.dtype != bool else 1 for a, _ in arrays)


def _width(part: Any) -> int:
    """How many axes a part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1


def _is_label(part: Any) -> bool:
    return isinstance(part, str) or (
        isinstance(part, list | tuple) and len(part) > 0 and isinstance(part[0], str)
    )
