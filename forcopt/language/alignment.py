"""Alignment: operands side by side, axis by axis by name, and within an axis by label.

Every operation that takes two operands brings them into line here. The rule:

1. Axes with the same name meet, wherever they stand. The others meet from the right, as in numpy.
2. Where both of two axes that meet have labels, these must be the same, and their order does not matter.
3. An axis without labels goes by position; a table of pandas may do so only with its default labels 0, 1, ...
4. Axes with different names are crossed, if they share no label.
5. The result has the names and labels that its operands have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.array_utils import normalize_axis_tuple

from forcopt.arrays import Array, as_numbers, check_real
from forcopt.errors import DeclarationError
from forcopt.language.labels import Axes, Axis, axes_of_table, is_table, listed


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How the axes of an operand become those of a result.

    Attributes
    ----------
    sources : tuple[int | None, ...]
        For each axis of the result the operand's own, or None if it has none there.
    orders : tuple[Array | None, ...]
        For each axis of the result the positions to take, None for all as they are.
    axes : Axes, optional
        The labels of the operand once it is arranged.
    """

    sources: tuple[int | None, ...]
    orders: tuple[Array | None, ...]
    axes: Axes | None

    def move(self, ndim: int) -> Callable[[Array], Array]:
        """The rearrangement of arrays with one more, last, axis that is left alone."""
        kept = [own for own in self.sources if own is not None]
        first = next((i for i, own in enumerate(self.sources) if own is not None), len(self.sources))
        key = tuple(None if own is None else slice(None) for own in self.sources[first:])
        orders = [(at, order) for at, order in enumerate(self.orders[first:]) if order is not None]

        def moved(a: Array) -> Array:
            if kept != list(range(ndim)):
                a = a.transpose(*kept, ndim)
            a = a[key]
            for at, order in orders:
                a = a[(slice(None),) * at + (order,)]
            return a

        return moved

    @property
    def changes(self) -> bool:
        """Whether it does anything but leave room on the left."""
        kept = [own for own in self.sources if own is not None]
        first = len(self.sources) - len(kept)
        return list(self.sources[first:]) != list(range(len(kept))) or any(o is not None for o in self.orders)


@dataclass(slots=True)
class _Slot:
    """One axis of the result, while operands are added."""

    axis: Axis | None
    length: int
    table: bool = False  # whether only tables have given it labels


_Placed = dict[int, tuple[_Slot, Array | None]]
"""For each axis of an operand its slot, and the order in which its positions are taken."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One operand: its lengths, its labels, what it is, and what to call it."""

    shape: tuple[int, ...]
    axes: Axes | None
    table: bool
    symbolic: bool
    subject: str

    def place(self, slots: list[_Slot]) -> _Placed:
        """Bring the operand into line with those before it."""
        own = self.axes if self.axes is not None else (None,) * len(self.shape)
        mine, theirs = _keys(own), _keys([slot.axis for slot in slots])
        met = {j: slots[theirs.index(key)] for j, key in enumerate(mine) if key is not None and key in theirs}
        free = [slot for slot in slots if all(slot is not other for other in met.values())]
        crossed: list[_Slot] = []
        for j in reversed(range(len(own))):
            if j in met:
                continue
            last = free[-1].axis if free else None
            if free and (mine[j] is None or last is None or last.key is None):
                met[j] = free.pop()
                continue
            met[j] = _Slot(own[j], self.shape[j], self.table)
            if free:
                self._check_crossing(own[j], free)
                crossed.insert(0, met[j])
            else:
                slots.insert(0, met[j])
        slots.extend(crossed)
        return {j: (slot, self._merge(slot, own[j], self.shape[j])) for j, slot in met.items()}

    def _check_crossing(self, axis: Axis | None, free: Sequence[_Slot]) -> None:
        for other in (slot.axis for slot in free):
            if axis is None or other is None or other.key is None:
                continue
            if any(label in other.place for label in axis.labels):
                raise DeclarationError(
                    f"{self.subject} has an axis {axis.key!r}, and what it meets an axis {other.key!r} with "
                    "some of its labels: give both one name, or cross them by x[:, None]"
                )

    def _merge(self, slot: _Slot, axis: Axis | None, length: int) -> Array | None:
        """Let an axis meet a slot; the order in which its positions are taken, None for their own."""
        if slot.axis is axis and axis is not None:
            return None
        if slot.axis is not None and axis is not None:
            slot.table = slot.table and self.table
            return slot.axis.order_of(axis, self.subject)
        given = slot.axis if axis is None else axis
        if given is not None and (slot.table if axis is None else self.table):
            if given.is_default:
                given = None
            elif (self.symbolic and self.axes is None) if axis is None else slot.length > 1:
                raise no_labels_to_meet(self.subject, given)
        slot.table = slot.table if axis is None else self.table
        slot.length = max(length, slot.length)
        slot.axis = given if given is not None and len(given) == slot.length else None
        return None


def no_labels_to_meet(subject: str, axis: Axis) -> DeclarationError:
    """The error for a table beside an axis without labels."""
    return DeclarationError(
        f"{subject} has labels ({listed(axis.labels)}), but the other operand has none: declare the variable "
        "with index=, or pass .to_numpy() to go by position"
    )


def kept_label(axis: Axis | None, table: bool) -> Axis | None:
    """The axis that a result has; none where a table has only the labels that pandas gives by default."""
    return None if axis is None or (table and axis.key is None and axis.is_default) else axis


def _keys(axes: Sequence[Axis | None]) -> list[Any]:
    """The names of axes; None where there is none, or where two are the same."""
    keys = [None if axis is None else axis.key for axis in axes]
    return [None if key is None or keys.count(key) > 1 else key for key in keys]


def aligned(operands: Sequence[Any], subjects: str | Sequence[str]) -> tuple[list[Any], Axes | None]:
    """Bring operands into line, so that numpy's broadcasting is right for them.

    Parameters
    ----------
    operands : Sequence[Any]
        Expressions, constraints, tables of pandas, sparse matrices, or anything numpy reads.
    subjects : str or Sequence[str]
        What to call them in messages; one for all, or one for each.

    Returns
    -------
    list[Any], Axes | None
        The operands, rearranged, tables as arrays; and the axes of what is made of them.

    Raises
    ------
    DeclarationError
        Listing the labels that one side lacks, or naming axes that cannot be crossed.
    """
    values = [data.toarray() if sp.issparse(data) else data for data in operands]
    if all(getattr(data, "axes", None) is None and not is_table(data) for data in values):
        return values, None
    words = [subjects] * len(values) if isinstance(subjects, str) else subjects
    parts = []
    for i, data in enumerate(values):
        table = is_table(data)
        axes = axes_of_table(data) if table else getattr(data, "axes", None)
        values[i] = data.to_numpy() if table else data
        shape = values[i].shape if hasattr(values[i], "shape") else np.shape(values[i])
        parts.append(_Part(shape, axes, table, hasattr(data, "model"), words[i]))
    slots: list[_Slot] = []
    # Tables come after expressions, which say what they mean, and operands without labels last.
    order = sorted(range(len(parts)), key=lambda i: 2 if parts[i].axes is None else int(parts[i].table))
    placed = {i: parts[i].place(slots) for i in order}
    axes = tuple(kept_label(slot.axis, slot.table) for slot in slots)
    out = [arranged(data, _arrangement(slots, placed[i], parts[i].axes)) for i, data in enumerate(values)]
    return out, axes if any(axis is not None for axis in axes) else None


def _arrangement(slots: Sequence[_Slot], placed: _Placed, axes: Axes | None) -> Arrangement:
    source = {id(slot): (j, order) for j, (slot, order) in placed.items()}
    at = [source.get(id(slot), (None, None)) for slot in slots]
    kept = [
        None if j is None or axes is None or axes[j] is None else slot.axis if order is not None else axes[j]
        for slot, (j, order) in zip(slots, at, strict=True)
    ]
    left = tuple(kept[next((i for i, (j, _) in enumerate(at) if j is not None), len(at)) :])
    return Arrangement(
        tuple(j for j, _ in at),
        tuple(order for _, order in at),
        left if any(axis is not None for axis in left) else None,
    )


def arranged(data: Any, arrangement: Arrangement) -> Any:
    """Arrange an operand: an expression, a constraint, or an array."""
    if not arrangement.changes:
        return data
    if hasattr(data, "arranged"):
        return data.arranged(arrangement)
    values = np.asarray(data)
    return arrangement.move(values.ndim)(values[..., None])[..., 0]


def onto(value: Any, axes: Axes | None, shape: tuple[int, ...], subject: str) -> Any:
    """Bring a value into line with axes that are given, such as those of a variable for its bounds.

    Parameters
    ----------
    value : Any
        A table of pandas, a sparse matrix, or anything numpy reads; the last two go by position.
    axes : Axes, optional
        The labels.
    shape : tuple[int, ...]
        The lengths.
    subject : str
        What to call the value in messages.

    Raises
    ------
    DeclarationError
        Listing the labels that one side lacks, or naming an axis that the value alone has.
    """
    if not is_table(value):
        return value.toarray() if sp.issparse(value) else value
    slots = [_Slot(axis, n) for axis, n in zip(axes or (None,) * len(shape), shape, strict=True)]
    given, data, own = list(slots), value.to_numpy(), axes_of_table(value)
    placed = _Part(data.shape, own, True, False, subject).place(slots)
    for slot in slots if shape else ():
        if all(slot is not other for other in given):
            raise DeclarationError(f"{subject} has an axis {slot.axis and slot.axis.key!r} of its own")
    return arranged(data, _arrangement(slots, placed, own))


def positions(axis: Any, axes: Axes | None, subject: str) -> Any:
    """Turn names of axes into positions; numbers pass."""
    if isinstance(axis, str):
        names = [None if a is None else a.name for a in axes or ()]
        if names.count(axis) != 1:
            known = ", ".join(repr(name) for name in names if name) or "none"
            raise DeclarationError(f"{subject}: there is no one axis {axis!r}; the names are {known}")
        return names.index(axis)
    if isinstance(axis, tuple | list):
        return tuple(positions(part, axes, subject) for part in axis)
    return axis


Operand = Any
"""An expression, a number, or anything numpy reads as an array of numbers."""


def is_sparse(data: Any) -> bool:
    """Whether `data` is a sparse matrix or array of scipy."""
    return bool(sp.issparse(data))


def dense(data: Operand) -> Any:
    """Give an elementwise operand as something numpy reads."""
    return data.toarray() if is_sparse(data) else data


def matrix_operand(data: Any) -> Any:
    """Read one side of ``@``: a dense vector, or a canonical CSR matrix (which may share memory)."""
    subject = "the multiplying array"
    if not is_sparse(data) or data.ndim != 2:
        values = as_numbers(dense(data), subject)
        return sp.csr_array(values) if values.ndim == 2 else values
    check_real(data.dtype, subject)
    rows = sp.csr_array(data, dtype=float)
    if not np.isfinite(rows.data).all():
        entries = rows.tocoo()
        at = int(np.argmax(~np.isfinite(entries.data)))
        where = f"[{entries.row[at]}, {entries.col[at]}]"
        raise DeclarationError(f"{subject}{where} is {entries.data[at]}; it must be finite")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def normalized_axes(axes: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Read one or several axes of an array of that shape."""
    try:
        return tuple(int(a) for a in normalize_axis_tuple(axes, len(shape)))
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"axis {axes} does not fit shape {shape}: {error}") from None


def repeats_nothing(key: Any) -> bool:
    """Whether the type of an index shows that it picks no element twice."""
    return isinstance(key, int | np.integer | slice | EllipsisType | None) or (
        isinstance(key, np.ndarray) and key.dtype == bool
    )


def check_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """Check that two shapes fit ``@``.

    Raises
    ------
    DeclarationError
        Showing both shapes.
    """
    if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2):
        raise DeclarationError(f"@ takes one or two axes on each side, not shapes {left} and {right}")
    if left[-1] != right[0]:
        raise DeclarationError(f"@: shapes {left} and {right} do not match ({left[-1]} against {right[0]})")
