"""The columns of a model: blocks made together, and arrays over all of them that grow."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod
from operator import attrgetter
from operator import index as as_index
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_bounds, check_order, spread
from forcopt.errors import DeclarationError
from forcopt.language.alignment import onto
from forcopt.language.labels import Axes, describe_labels, read_axes
from forcopt.language.terms import Gather, Rows

if TYPE_CHECKING:
    from forcopt.language.expression import Expression
    from forcopt.language.relations import AtomRelation


_START = attrgetter("start")
_FIELDS: dict[str, type] = {"lower": float, "upper": float, "integer": np.int8, "curvature": np.int8}


@dataclass(slots=True)  # not frozen, which would take three times as long to make
class Block:
    """Consecutive columns that were made together: a variable, or the results of an atom; never changed."""

    name: str
    start: int
    shape: tuple[int, ...]
    lower: Array  # compact: broadcasts to the shape
    upper: Array
    integer: int | Array  # see Columns.integer; compact like the bounds
    curvature: int
    labels: Sequence[str] | None = None  # names of the columns, if they have their own
    axes: Axes | None = None  # the labels of the axes, if they have any

    @property
    def size(self) -> int:
        """The number of columns."""
        return prod(self.shape)


class Growing:
    """A one-dimensional array that grows in amortised constant time for each element.

    Examples
    --------
    >>> grown = Growing(np.array([1.0, 2.0]))
    >>> grown.extend((3,), 0.5)
    >>> grown.view.tolist()
    [1.0, 2.0, 0.5, 0.5, 0.5]
    """

    def __init__(self, start: Array) -> None:
        self._room = start  # never written to: the first extension moves to a larger array
        self._size = len(start)

    @property
    def view(self) -> Array:
        """The elements that were added until now. The view shares memory, but never changes."""
        return self._room[: self._size]

    def extend(self, shape: tuple[int, ...], values: Any) -> None:
        """Append values that broadcast to a shape, in C order."""
        size = self._size + prod(shape)
        if size > len(self._room):
            larger = np.empty(max(size, 2 * self._size), dtype=self._room.dtype)
            larger[: self._size] = self.view
            self._room = larger
        self._room[self._size : size].reshape(shape)[...] = values
        self._size = size


@dataclass(frozen=True, slots=True)
class Columns:
    """All columns of a model as arrays.

    Attributes
    ----------
    lower, upper : Array
        Float bounds.
    integer : Array
        int8; 0 continuous, 1 integer, 2 integer at some optimum without a demand (an implied integer:
        backends that only take integers may declare it so, others need not).
    curvature : Array
        int8; 1 where only convex uses are exact, -1 for concave, 0 for any.
    """

    lower: Array
    upper: Array
    integer: Array
    curvature: Array


_MOST = int(np.iinfo(np.int32).max)
_ONE = np.ones(1)
_ONE.flags.writeable = False


def consecutive(start: int, shape: tuple[int, ...]) -> Gather:
    """The linear part of an expression of that shape whose elements are the columns from `start` on."""
    if not shape:
        return Gather(np.array([start], np.int32), _ONE, True)
    columns = np.arange(start, start + prod(shape), dtype=np.int32).reshape(*shape, 1)
    return Gather(columns, np.ones((1,) * columns.ndim), True)


class ColumnStore:
    """All columns of a model, added in blocks; bounds and integrality can be changed and restored.

    Attributes
    ----------
    blocks : list[Block]
        In order; as the columns are now.
    count : int
        The number of columns.
    has_integer : bool
        Whether any column was declared integer.
    revision : int
        How often columns were changed.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.count = 0
        self.has_integer = False
        self.revision = 0
        self._declared: dict[int, Block] = {}  # changed blocks as first declared, by position
        self._grown = {f: Growing(np.empty(0, t)) for f, t in _FIELDS.items()}
        self._ranges = Growing(np.empty(0)), Growing(np.empty(0))

    def add(self, block: Block) -> None:
        """Add a block that starts where the columns end.

        Raises
        ------
        DeclarationError
            For more columns than 32-bit indices can number.
        """
        if self.count + block.size > _MOST:
            raise DeclarationError(f"{block.name}: a model holds at most {_MOST} columns")
        self.blocks.append(block)
        self.has_integer |= bool(block.integer if isinstance(block.integer, int) else np.any(block.integer))
        self.count += block.size

    def position(self, column: int) -> int:
        """The position of the block that holds a column."""
        return bisect_right(self.blocks, column, key=_START) - 1

    def name(self, column: int) -> str:
        """Name a column, such as ``x[1,2]`` or ``x[a]``."""
        block = self.blocks[self.position(column)]
        if block.labels is not None:
            return block.labels[column - block.start]
        return block.name + describe_labels(block.axes, block.shape, column - block.start)

    def arrays(self) -> Columns:
        """Give bounds, integrality and curvature of all columns as they are now."""
        new = self.blocks[bisect_left(self.blocks, len(self._grown["lower"].view), key=_START) :]
        for single, run in groupby(new, key=lambda block: block.shape == ()):
            blocks = list(run)
            for field, grown in self._grown.items():
                if single:  # many at once, since one by one takes longer than to declare them
                    grown.extend((len(blocks),), [getattr(block, field) for block in blocks])
                else:
                    for block in blocks:
                        grown.extend(block.shape, getattr(block, field))
        return Columns(**{field: grown.view for field, grown in self._grown.items()})

    def declared_ranges(self, atoms: Mapping[int, AtomRelation]) -> tuple[Array, Array]:
        """Give the declared bounds; bounds on atoms' results follow from their arguments.

        Parameters
        ----------
        atoms : Mapping[int, AtomRelation]
            By the first column of the result.
        """
        if not atoms and not self._declared:
            columns = self.arrays()
            return columns.lower, columns.upper
        least, greatest = self._ranges
        for position in range(bisect_left(self.blocks, len(least.view), key=_START), len(self.blocks)):
            block = self._declared.get(position, self.blocks[position])
            relation = atoms.get(block.start) if block.size else None
            if relation is None:
                low, high, shape = block.lower, block.upper, block.shape
            else:
                ends = [interval(a, least.view, greatest.view) for a in relation.arguments]
                low, high = relation.atom.bounds(ends, relation.parameter)
                shape = relation.result.shape
            least.extend(shape, low)
            greatest.extend(shape, high)
        return least.view, greatest.view

    def ranges(self, atoms: Mapping[int, AtomRelation]) -> tuple[Array, Array]:
        """As `declared_ranges`, tightened to the bounds that changed columns have now."""
        low, high = self.declared_ranges(atoms)
        if not self._declared:
            return low, high
        low, high = low.copy(), high.copy()
        for position in self._declared:
            block = self.blocks[position]
            place = slice(block.start, block.start + block.size)
            low[place].reshape(block.shape)[...] = block.lower
            high[place].reshape(block.shape)[...] = block.upper
        return low, high

    def declared(self, position: int) -> Block:
        """A block as it was declared."""
        return self._declared.get(position, self.blocks[position])

    def change(self, position: int, **fields: Any) -> None:
        """Give a block other bounds or another integrality; arrays that were given out stay as they are."""
        self.revision += 1
        block = self.blocks[position]
        self.arrays()  # the arrays below must hold every block
        self._declared.setdefault(position, block)
        self.blocks[position] = replace(block, **fields)
        place = slice(block.start, block.start + block.size)
        for field, values in fields.items():
            array = self._grown[field].view.copy()
            array[place].reshape(block.shape)[...] = values
            self._grown[field] = Growing(array)
        self._forget_if_restored(position)

    def redeclare(self, position: int, lower: Array, upper: Array) -> None:
        """Give a block other declared bounds; entries that were changed keep theirs."""
        declared, block = self.declared(position), self.blocks[position]
        now = {}
        for field, values in (("lower", lower), ("upper", upper)):
            kept, was = getattr(block, field), getattr(declared, field)
            now[field] = values if block is declared else np.where(kept == was, values, kept)
        self.change(position, **now)
        self._declared[position] = replace(declared, lower=lower, upper=upper)
        self._ranges = Growing(np.empty(0)), Growing(np.empty(0))
        self._forget_if_restored(position)

    def _forget_if_restored(self, position: int) -> None:
        if position not in self._declared:
            return
        changed, original = self.blocks[position], self._declared[position]
        if all(
            np.array_equal(getattr(changed, f), getattr(original, f)) for f in ("lower", "upper", "integer")
        ):
            self.blocks[position] = self._declared.pop(position)


def _ends(columns: Array, values: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    low, high = lower[columns], upper[columns]
    positive = values > 0
    with np.errstate(invalid="ignore"):  # 0 * inf is masked below
        a, b = values * low, values * high
    zero = values == 0
    return (np.where(zero, 0.0, np.where(positive, a, b)), np.where(zero, 0.0, np.where(positive, b, a)))


def _per_row(rows: Rows, entries: Array, reduce: np.ufunc, empty: float | bool) -> Array:
    out = np.full(len(rows.indptr) - 1, empty)
    filled = np.diff(rows.indptr) > 0
    if entries.size:
        out[filled] = reduce.reduceat(entries, rows.indptr[:-1][filled])
    return out


def _only_gather(expression: Expression) -> Gather | None:
    """The linear part, if it is held in one piece that repeats no column in an element."""
    term = expression.terms[0] if len(expression.terms) == 1 else None
    return term if isinstance(term, Gather) and (term.distinct or term.width == 1) else None


def interval(expression: Expression, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Bounds on each element of `expression`, for columns within `lower` and `upper` (which may be infinite).

    Columns that an element repeats are merged first, so that ``x - x`` is 0.
    """
    term = _only_gather(expression)
    if term is not None:
        low, high = _ends(term.columns, term.values, lower, upper)
        a, b = low.sum(axis=-1), high.sum(axis=-1)
    else:
        rows = expression.linear_rows()
        low, high = _ends(rows.indices, rows.data, lower, upper)
        a = _per_row(rows, low, np.add, 0.0).reshape(expression.shape)
        b = _per_row(rows, high, np.add, 0.0).reshape(expression.shape)
    return np.asarray(a + expression.constant), np.asarray(b + expression.constant)


def product_interval(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
    """Bounds on the products of numbers between two pairs of ends, which may be infinite."""
    with np.errstate(invalid="ignore"):
        corners = np.stack([a * b for a in left for b in right])
    corners = np.where(np.isnan(corners), 0.0, corners)  # 0 times an infinite bound
    return corners.min(axis=0), corners.max(axis=0)


def integral(expression: Expression, integer: Array) -> Array:
    """Whether each element can only be an integer, given which columns are (a boolean array)."""
    term = _only_gather(expression)
    if term is not None:
        whole = term.values == np.round(term.values)
        linear = (integer[term.columns] & whole | (term.values == 0)).all(axis=-1)
    else:
        rows = expression.linear_rows()
        entries = integer[rows.indices] & (rows.data == np.round(rows.data))
        linear = _per_row(rows, entries, np.logical_and, True).reshape(expression.shape)
    return np.asarray(linear & (expression.constant == np.round(expression.constant)))


def read_shape(shape: Any, index: Any, kind: str, name: str) -> tuple[tuple[int, ...], Axes | None]:
    """Read a shape, or the index in its place, and the labels of the axes.

    Parameters
    ----------
    shape : Any
        An integer or several; ``()`` if the index gives it.
    index : Any
        See `Model.variable`.
    kind, name : str
        For messages.

    Raises
    ------
    DeclarationError
        For a shape that is negative, not of integers, or not that of the index.
    """
    if index is None and isinstance(shape, tuple) and not shape:
        return (), None
    subject = f"{kind} {name}".rstrip()
    lengths = list(shape) if np.iterable(shape) else [shape]
    try:
        if any(isinstance(n, bool) for n in lengths):
            raise TypeError
        full = tuple(as_index(n) for n in lengths)
    except TypeError:
        raise DeclarationError(f"{subject}: shape {shape!r} must be an integer or several") from None
    if any(n < 0 for n in full):
        raise DeclarationError(f"{subject}: shape {full} has a negative length")
    if index is None:
        return full, None
    axes = _index_axes(index, f"{subject}: ")
    sizes = tuple(a if isinstance(a, int) else len(a) for a in axes)
    if full not in ((), sizes):
        raise DeclarationError(f"{subject}: shape {full} does not fit the index of shape {sizes}")
    return sizes, tuple(None if isinstance(a, int) else a for a in axes)


def _index_axes(index: Any, subject: str) -> tuple[Any, ...]:
    if isinstance(index, tuple):
        return tuple(
            a if isinstance(a, int) else read_axes([*a] if isinstance(a, tuple) else a, subject)[0]
            for a in index
        )
    return read_axes(index, subject)


def read_block(
    name: str,
    start: int,
    shape: tuple[int, ...],
    axes: Axes | None,
    lower: Any,
    upper: Any,
    integer: Any = False,
    binary: Any = False,
    labels: Sequence[str] | None = None,
    *,
    kind: str = "variable",
) -> Block:
    """Read bounds, integrality and names of columns; see `Model.variable` for the parameters.

    `kind` is "variable" or "parameter", for messages.

    Raises
    ------
    DeclarationError
        For labels that repeat, and for bounds that are NaN, crossed, of another shape, or beyond 0 and 1 for
        a binary variable.
    """
    if shape == () and labels is None and type(integer) is bool and type(binary) is bool and not binary:
        ends = _plain_bounds(lower, upper)
        if ends is not None:
            return Block(name, start, shape, *ends, int(integer), 0)
    subject = f"{kind} {name}"
    lower, upper, integer, binary = (
        onto(given, axes, shape, f"{subject}: {which}")
        for which, given in (("lower", lower), ("upper", upper), ("integer", integer), ("binary", binary))
    )
    low, high = as_bounds(lower, upper, f"{subject}: ")
    whole = _booleans(integer, f"{subject}: integer")
    zero_one = _booleans(binary, f"{subject}: binary")
    for which, values in (("lower", low), ("upper", high), ("integer", whole), ("binary", zero_one)):
        spread(values, shape, f"{subject}: {which}")
    if zero_one.any():
        for which, bound, beyond in (
            ("lower", low, np.isfinite(low) & (low < 0)),
            ("upper", high, np.isfinite(high) & (high > 1)),
        ):
            if (zero_one & beyond).any():
                worst = float(bound[beyond].flat[0])
                raise DeclarationError(
                    f"{subject}: {which} is {worst:g}, but a binary variable is 0 or 1; "
                    "write integer=True for other integers"
                )
        low = np.where(zero_one, np.maximum(low, 0.0), low)
        high = np.where(zero_one, np.minimum(high, 1.0), high)
        whole = whole | zero_one
    check_order(low, high, shape, subject)
    if labels is not None:
        labels = _check_labels(labels, shape, name)
    return Block(name, start, shape, low, high, whole.astype(np.int8), 0, labels, axes)


def _plain_bounds(lower: Any, upper: Any) -> tuple[Any, Any] | None:
    """The bounds of one column, if they are plain numbers in order; the common case of a scalar, quickly."""
    if type(lower) in (int, float) and type(upper) in (int, float):
        low, high = float(lower), float(upper)
        if low <= high and low != np.inf and high != -np.inf:
            return np.float64(low), np.float64(high)
    return None


def _booleans(given: Any, subject: str) -> Array:
    """Read booleans, or the numbers 0 and 1 for them."""
    values = np.asarray(given)
    if values.dtype == bool:
        return values
    if values.dtype.kind not in "iu" or not np.isin(values, (0, 1)).all():
        raise DeclarationError(f"{subject} is {given!r}; it must be True, False, or an array of these")
    return values.astype(bool)


def _check_labels(given: Sequence[str], shape: tuple[int, ...], name: str) -> list[str]:
    if isinstance(given, str) or not np.iterable(given):
        raise DeclarationError(f"variable {name}: labels {given!r} must be a sequence of strings")
    count, labels = prod(shape), list(given)
    if len(labels) != count:
        raise DeclarationError(f"variable {name}: {len(labels)} labels for shape {shape}")
    for label in labels:
        if not isinstance(label, str):
            raise DeclarationError(f"variable {name}: the label {label!r} must be a string")
    if len(set(labels)) < count:
        twice = next(label for i, label in enumerate(labels) if labels.index(label) != i)
        raise DeclarationError(f"variable {name}: the label {twice!r} occurs twice")
    return labels
