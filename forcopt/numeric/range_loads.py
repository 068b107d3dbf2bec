"""Loads on a line: add to a range, read the largest of a range, and first fit; compiled."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.compiled import njit


class RangeLoads:
    """Whole loads on points ``0 .. points - 1`` of a line, for one or several resources, in a segment tree.

    Parameters
    ----------
    points : int
        At least 1.
    budgets : Array
        The largest load that each resource allows, integers, shape ``(R,)``.

    Notes
    -----
    `fit` takes O(R log points).

    Examples
    --------
    >>> loads = RangeLoads(6, np.array([10]))
    >>> loads.fit(0, 4, np.array([4])), loads.fit(1, 5, np.array([4])), loads.fit(0, 2, np.array([4]))
    (True, True, False)
    >>> loads.loads().tolist()
    [[4, 8, 8, 8, 8, 4]]
    """

    def __init__(self, points: int, budgets: Array) -> None:
        self.points = points
        self.budgets = np.asarray(budgets, dtype=np.int64)
        self._size = 1 << max(points - 1, 0).bit_length()
        shape = (len(self.budgets), 2 * self._size)
        self._largest, self._added = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def largest(self, first: int, last: int) -> Array:
        """The largest load of each resource among points ``first .. last``, shape ``(R,)``."""
        size = self._size
        rooms = zip(self._largest, self._added, strict=True)
        return np.array([_read(t, d, size, first, last) for t, d in rooms])

    def add(self, first: int, last: int, costs: Array) -> None:
        """Add to the points ``first .. last``."""
        for t, d, cost in zip(self._largest, self._added, costs, strict=True):
            _add(t, d, self._size, first, last, int(cost))

    def fit(self, first: int, last: int, costs: Array) -> bool:
        """Add if no load then exceeds its budget; returns whether it did."""
        return bool(self.first_fit(np.array([first]), np.array([last]), costs[:, None])[0])

    def first_fit(self, first: Array, last: Array, costs: Array, order: Array | None = None) -> Array:
        """Go through ranges and add each one that fits.

        Parameters
        ----------
        first, last : Array
            Ends of each range, shape ``(Q,)``.
        costs : Array
            Of each range, integers, shape ``(R, Q)``.
        order : Array, optional
            The numbers of the ranges in the order to try them; by default as given.

        Returns
        -------
        Array
            Whether each range was added, shape ``(Q,)``.
        """
        took = np.zeros(len(first), dtype=bool)
        tried = np.arange(len(first)) if order is None else order
        ends = np.asarray(first, np.int64), np.asarray(last, np.int64)
        given = np.ascontiguousarray(costs, np.int64)
        _first_fit((self._largest, self._added, self._size), self.budgets, ends, given, tried, took)
        return took

    def loads(self) -> Array:
        """All loads, shape ``(R, points)``."""
        at = np.arange(self.points) + self._size
        total = self._largest[:, at].copy()
        while at[0] > 1:
            at = at >> 1
            total += self._added[:, at]
        return total


@njit(cache=True)
def _read(largest, added, size, first, last):  # type: ignore[no-untyped-def]  # pragma: no cover
    left, right = first + size, last + size
    a, b = largest[left], largest[right]
    while left >> 1 != right >> 1:
        if left & 1 == 0:
            a = max(a, largest[left ^ 1])
        if right & 1 == 1:
            b = max(b, largest[right ^ 1])
        left >>= 1
        right >>= 1
        a += added[left]
        b += added[right]
    a = max(a, b)
    left >>= 1
    while left > 0:
        a += added[left]
        left >>= 1
    return a


@njit(cache=True)
def _add(largest, added, size, first, last, value):  # type: ignore[no-untyped-def]  # pragma: no cover
    left, right = first + size, last + size
    largest[left] += value
    if left != right:
        largest[right] += value
    while left >> 1 != right >> 1:
        if left & 1 == 0:
            largest[left ^ 1] += value
            added[left ^ 1] += value
        if right & 1 == 1:
            largest[right ^ 1] += value
            added[right ^ 1] += value
        left >>= 1
        right >>= 1
        largest[left] = max(largest[2 * left], largest[2 * left + 1]) + added[left]
        largest[right] = max(largest[2 * right], largest[2 * right + 1]) + added[right]
    left >>= 1
    while left > 0:
        largest[left] = max(largest[2 * left], largest[2 * left + 1]) + added[left]
        left >>= 1


@njit(cache=True)
def _first_fit(tree, budgets, ranges, costs, order, took):  # type: ignore[no-untyped-def]  # pragma: no cover
    largest, added, size = tree
    first, last = ranges
    for j in order:  # the tree holds the loads of the ranges that were taken so far
        fits = True
        for r in range(len(budgets)):
            if _read(largest[r], added[r], size, first[j], last[j]) > budgets[r] - costs[r, j]:
                fits = False
                break
        if fits:
            took[j] = True
            for r in range(len(budgets)):
                _add(largest[r], added[r], size, first[j], last[j], costs[r, j])
