"""Labels of axes: names that stand for positions, and the alignment of pandas objects by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = [
    "Axes",
    "Axis",
    "align",
    "align_rows",
    "combine",
    "describe_labels",
    "fitting",
    "is_pandas",
    "read_axes",
    "split_key",
]

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
    """

    __slots__ = ("_place", "labels", "name")

    def __init__(self, labels: Sequence[Any], name: str = "") -> None:
        self.labels = labels
        self.name = name
        self._place: dict[Any, int] | None = None

    @property
    def place(self) -> dict[Any, int]:
        """The position of each label; made when it is first asked for."""
        if self._place is None:
            self._place = {label: i for i, label in enumerate(self.labels)}
        return self._place

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
            if key != slice(None):
                raise DeclarationError(f"{subject}: a slice of labels is not defined; list the labels")
            return key
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
            raise DeclarationError(
                f"{subject} has no label {_listed(missing)}; it has {_listed(self.labels)}"
            )

    def take(self, key: Any) -> Axis | None:
        """The axis of a part, by a slice, a mask or an array of positions; None if a label would repeat."""
        if isinstance(key, slice):
            return self if key == slice(None) else Axis(self.labels[key], self.name)
        positions = np.arange(len(self))[key]
        if len(np.unique(positions)) < len(positions):
            return None
        return Axis([self.labels[i] for i in positions.tolist()], self.name)

    def order_of(self, labels: Any, subject: str) -> Array | None:
        """The position in `labels` of each label of this axis; None if both are the same, in one order.

        Raises
        ------
        DeclarationError
            Listing the labels that one lacks.
        """
        theirs = labels.labels if isinstance(labels, Axis) else list(labels)
        if theirs is self.labels or (len(theirs) == len(self) and list(self.labels) == list(theirs)):
            return None
        other = labels if isinstance(labels, Axis) else Axis(theirs)
        if len(other.place) < len(theirs):
            raise DeclarationError(f"{subject}: its labels repeat; each must occur once")
        missing = [label for label in self.labels if label not in other.place]
        unknown = [label for label in theirs if label not in self.place]
        if missing or unknown:
            words = [f"is missing {_listed(missing)}"] * bool(missing)
            words += [f"has labels that the variable lacks: {_listed(unknown)}"] * bool(unknown)
            raise DeclarationError(f"{subject} {' and '.join(words)}")
        return np.array([other.place[label] for label in self.labels], dtype=np.intp)

    def index(self) -> Any:
        """A `pandas.Index` of the labels."""
        import pandas as pd

        name = self.name or None
        if len(self) and all(isinstance(label, tuple) for label in self.labels):
            return pd.MultiIndex.from_tuples(list(self.labels))
        return pd.Index(list(self.labels), name=name)


Axes = tuple[Axis | None, ...]
"""The labels of each axis of an expression, None for an axis without."""


def _listed(labels: Sequence[Any]) -> str:
    shown = ", ".join(repr(label) for label in list(labels)[:_SHOWN])
    return shown + (f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else "")


def read_axes(index: Any, subject: str) -> Axes:
    """Read the ``index=`` of a variable.

    Parameters
    ----------
    index : Any
        The labels of one axis (a list, a `pandas.Index`), a tuple with the labels of each axis (an int for an
        axis without labels), or a mapping from the name of each axis to its labels.
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
    if isinstance(labels, str | bytes | Set) or not np.iterable(labels):
        raise DeclarationError(
            f"{subject}: index {labels!r} must be a sequence of labels (a tuple gives one for each axis)"
        )
    label_name = getattr(labels, "name", None)
    listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    axis = Axis(listed, name or (str(label_name) if label_name is not None else ""))
    try:
        distinct = len(axis.place)
    except TypeError as error:
        raise DeclarationError(f"{subject}: a label of its index cannot be looked up: {error}") from None
    missing = [label for label in listed if label != label]
    if missing:
        raise DeclarationError(f"{subject}: {missing[0]!r} cannot be a label of its index")
    if distinct < len(listed):
        first = next(label for i, label in enumerate(listed) if axis.place[label] != i)
        raise DeclarationError(f"{subject}: the label {first!r} occurs twice in its index")
    return axis


def is_pandas(value: Any) -> bool:
    """Whether `value` is a series or a frame of pandas."""
    return hasattr(value, "to_numpy") and hasattr(value, "index")


def align(value: Any, axes: Axes | None, shape: tuple[int, ...], subject: str) -> Array:
    """Give the numbers of a series or a frame in the order of the labels of the axes that it meets.

    A series meets the last axis, a frame the last two, as in numpy's broadcasting. An axis without labels
    takes only the default labels 0, 1, 2, ... of pandas.

    Raises
    ------
    DeclarationError
        Listing the labels that one side lacks.
    """
    data: Array = value.to_numpy()
    indices = [value.index, value.columns] if data.ndim == 2 else [value.index]
    for back, labels in enumerate(reversed(indices), 1):
        if back > len(shape):
            continue
        axis = axes[-back] if axes is not None else None
        at = data.ndim - back
        if axis is None:
            _check_default(labels, subject)
        elif (order := axis.order_of(labels.tolist(), subject)) is not None:
            data = np.take(data, order, axis=at)
    return data


def align_rows(data: Any, axis: Axis | None, subject: str) -> Array:
    """Give the numbers of a series or a frame, its rows in the order of the labels of an axis."""
    values: Array = data.to_numpy()
    if axis is None:
        _check_default(data.index, subject)
        return values
    order = axis.order_of(data.index.tolist(), subject)
    return values if order is None else values[order]


def _check_default(labels: Any, subject: str) -> None:
    if list(labels) != list(range(len(labels))):
        raise DeclarationError(
            f"{subject} has labels ({_listed(list(labels))}), but the other operand has none: declare the "
            "variable with index=, or pass .to_numpy() to go by position"
        )


def combine(left: Axes | None, right: Axes | None, ndim: int, subject: str) -> tuple[Axes | None, list[Any]]:
    """The axes of a sum of two expressions, and for each axis how to reorder the right one (None: not).

    Raises
    ------
    DeclarationError
        If two axes that meet have different labels.
    """
    if left is None and right is None:
        return None, []
    first = (None,) * (ndim - len(left or ())) + (left or ())
    second = (None,) * (ndim - len(right or ())) + (right or ())
    out: list[Axis | None] = []
    orders: list[Any] = []
    for a, b in zip(first, second, strict=True):
        both = a is not None and b is not None and a is not b and not (len(a) == 1 or len(b) == 1)
        orders.append(a.order_of(b, subject) if both and a is not None else None)
        out.append(b if a is None or (len(a) == 1 and b is not None) else a)
    return tuple(out), orders


def fitting(axes: Axes | None, shape: tuple[int, ...]) -> Axes | None:
    """Return the axes whose labels fit the shape; None if there are none."""
    if axes is None:
        return None
    kept = tuple(a if a is not None and len(a) == n else None for a, n in zip(axes, shape, strict=True))
    return kept if any(a is not None for a in kept) else None


def describe_labels(axes: Axes | None, shape: tuple[int, ...], flat: int) -> str:
    """Name an entry of an array by its labels, such as ``[a,2]``; nothing for a scalar."""
    if not shape:
        return ""
    at = np.unravel_index(flat, shape)
    if axes is None:
        return f"[{','.join(str(int(i)) for i in at)}]"
    words = [str(int(i)) if a is None else _text(a.labels[int(i)]) for a, i in zip(axes, at, strict=True)]
    return f"[{','.join(words)}]"


def _text(label: Any) -> str:
    return ",".join(map(str, label)) if isinstance(label, tuple) else str(label)


def split_key(key: tuple[Any, ...], axes: Axes, every: bool) -> tuple[tuple[Any, ...], Axes | None]:
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
    first = axes[0] if len(axes) == 1 else None
    if first is not None and len(key) > 1 and (every or any(isinstance(k, str) for k in key)):
        return (first.position(key, "the axis"),), None  # a label that is a tuple
    if len(key) > len(axes) or any(k is None or k is Ellipsis for k in key):
        return key, None
    parts: list[Any] = []
    left: list[Axis | None] = []
    fancy = 0
    for number, part in enumerate(key):
        axis = axes[number]
        if axis is not None and (every or _is_label(part)):
            part = axis.position(part, f"axis {number}" + (f" ({axis.name})" if axis.name else ""))
        parts.append(part)
        if isinstance(part, int | np.integer):
            continue
        if isinstance(part, slice):
            left.append(axis.take(part) if axis is not None else None)
            continue
        array = np.asarray(part)
        fancy += 1
        left.append(axis.take(array) if axis is not None and array.ndim == 1 else None)
        if array.ndim != 1:
            fancy = 2
    if fancy > 1 or (fancy and any(isinstance(p, int | np.integer) for p in parts)):
        return tuple(parts), None
    return tuple(parts), (*left, *axes[len(key) :])


def _is_label(part: Any) -> bool:
    return isinstance(part, str) or (
        isinstance(part, list | tuple) and len(part) > 0 and isinstance(part[0], str)
    )
