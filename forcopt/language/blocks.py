"""Read the declaration of a variable or a parameter: shape, labels, bounds and integrality."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index as as_index
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_bounds, check_order
from forcopt.errors import DeclarationError
from forcopt.language.alignment import onto
from forcopt.language.columns import Block
from forcopt.language.labels import Axes, read_axes

__all__ = ["read_block", "read_shape"]


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
        if values.ndim > len(shape) or any(
            m not in (1, n) for m, n in zip(values.shape[::-1], shape[::-1], strict=False)
        ):
            raise DeclarationError(
                f"{subject}: {which} has shape {values.shape}, which does not broadcast to {shape}"
            )
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
