"""The columns of a model: blocks made together, and arrays over all of them that grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.language.terms import Gather

__all__ = ["Block", "Columns", "Growing", "consecutive"]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive columns that were made together: a variable, or the results of an atom."""

    name: str
    start: int
    shape: tuple[int, ...]
    lower: Array  # compact: broadcasts to the shape
    upper: Array
    integer: int | Array  # see Columns.integer; compact like the bounds
    curvature: int
    labels: Sequence[str] | None = None  # names of the columns, if they have their own

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
        """The elements so far; shares memory, but never changes."""
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
        int8; 0 continuous, 1 integer, 2 integer at some optimum without being told (an implied integer:
        backends that only take integers may declare it so, others need not).
    curvature : Array
        int8; 1 where only convex uses are exact, -1 for concave, 0 for any.
    """

    lower: Array
    upper: Array
    integer: Array
    curvature: Array


def consecutive(start: int, shape: tuple[int, ...]) -> Gather:
    """The linear part of an expression of that shape whose elements are the columns from `start` on."""
    columns = np.arange(start, start + prod(shape), dtype=np.int32).reshape(*shape, 1)
    return Gather(columns, np.ones((1,) * columns.ndim), True)
