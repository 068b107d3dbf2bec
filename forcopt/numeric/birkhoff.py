"""The Birkhoff-von Neumann decomposition: a doubly (sub)stochastic matrix as a lottery over matchings."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.notebook import table_html

__all__ = ["MatchingLottery", "birkhoff"]

_TINY = 1e-13
"""Entries and slacks up to this count as zero."""


class MatchingLottery(NamedTuple):
    """A lottery over matchings of rows with columns.

    Attributes
    ----------
    weights : Array
        The probabilities, shape ``(t,)``; their sum is 1.
    columns : Array
        The column of each row, -1 for none; shape ``(t, n)``.

    Examples
    --------
    >>> import numpy as np
    >>> from forcopt.numeric import birkhoff
    >>> lottery = birkhoff(np.array([[0.5, 0.5], [0.5, 0.5]]))
    >>> lottery.weights.tolist(), sorted(lottery.columns.tolist())
    ([0.5, 0.5], [[0, 1], [1, 0]])
    >>> lottery.mean(2).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    weights: Array
    columns: Array

    def _repr_html_(self) -> str:
        order = np.argsort(-self.weights, kind="stable")
        rows = [(f"{self.weights[i]:.4f}", ", ".join(map(str, self.columns[i]))) for i in order]
        return table_html(f"lottery over {len(rows)} matchings", ("probability", "column of each row"), rows)

    def mean(self, columns: int) -> Array:
        """The matrix of the probabilities that a row has a column, shape ``(n, columns)``."""
        found = np.zeros((self.columns.shape[1], columns))
        for weight, chosen in zip(self.weights, self.columns, strict=True):
            rows = np.flatnonzero(chosen >= 0)
            found[rows, chosen[rows]] += weight
        return found

    def sample(self, rng: np.random.Generator) -> Array:
        """Draw a matching: the column of each row, -1 for none; shape ``(n,)``."""
        return np.array(self.columns[rng.choice(len(self.weights), p=self.weights)])


def birkhoff(matrix: Any, tolerance: float = 1e-9) -> MatchingLottery:
    """Write a matrix with row and column sums of at most 1 as a convex combination of matchings.

    Parameters
    ----------
    matrix : array_like
        At least 0, with row and column sums of at most 1; shape ``(n, k)``, any n and k.
    tolerance : float, default 1e-9
        By this much entries may be negative and sums above 1. A row or column whose sum is this close to 1
        is matched in every term.

    Returns
    -------
    MatchingLottery
        At most as many terms as the matrix has nonzero entries plus rows and columns with a sum below 1,
        plus one. For n candidates and k positions that are all filled: at most nonzeros + n + 1. Its mean is
        the matrix, to 1e-9 if the sums of 1 are exact to 1e-10.

    Raises
    ------
    DeclarationError
        Naming the entry, row or column that breaks a bound.

    Notes
    -----
    Call a row or column tight if its remaining sum equals the remaining probability. A matching in the
    support that covers all tight rows and columns exists (Birkhoff; Mendelsohn and Dulmage for both sides at
    once). It is taken with the largest probability that leaves entries nonnegative and no row or column with
    more than the remaining probability. Then an entry vanishes, or another row or column becomes tight, which
    bounds the terms. The matching is kept and repaired along alternating paths found by breadth-first
    search: O(nonzeros) a repair.

    References
    ----------
    Birkhoff: Tres observaciones sobre el algebra lineal. Univ. Nac. Tucuman Rev. Ser. A 5, 1946.
    Mendelsohn, Dulmage: Some generalizations of the problem of distinct representatives. Canadian Journal of
    Mathematics 10, 1958.

    Examples
    --------
    >>> lottery = birkhoff([[0.5, 0.25], [0.25, 0.5], [0.25, 0.25]])
    >>> for weight, columns in zip(lottery.weights, lottery.columns):
    ...     print(weight, columns)
    0.5 [ 0  1 -1]
    0.25 [ 1 -1  0]
    0.25 [-1  0  1]
    """
    left = as_numbers(matrix, "matrix")
    if left.ndim != 2 or not left.size:
        raise DeclarationError(f"matrix has shape {left.shape}; it must be (n, k), neither of them 0")
    if (left < -tolerance).any():
        i, j = (int(at) for at in np.argwhere(left < -tolerance)[0])
        raise DeclarationError(f"matrix[{i}, {j}] is {left[i, j]:g}; it must not be negative")
    left[left < _TINY] = 0.0
    sums = [left.sum(axis=1), left.sum(axis=0)]
    for side, values in zip(("row", "column"), sums, strict=True):
        if (values > 1 + tolerance).any():
            at = int(np.argmax(values))
            raise DeclarationError(
                f"{side} {at} of the matrix has the sum {values[at]:.12g}; at most 1 is allowed"
            )
    matching = _Matching(left, [np.abs(values - 1) <= tolerance for values in sums])
    for values, tight in zip(sums, matching.tight, strict=True):
        values[tight] = 1.0
    weights: list[float] = []
    columns: list[Array] = []
    rest = 1.0
    # Errors of the sums, within the tolerance, can leave no matching for the last bit of probability.
    negligible = 10 * tolerance * max(left.shape)
    while rest > _TINY:
        if not matching.repair():
            if rest > negligible:
                raise DeclarationError(
                    f"the matrix is no mean of matchings to {tolerance:g}: probability {rest:g} is left"
                )
            break
        rows = np.flatnonzero(matching.mate[0] >= 0)
        chosen = matching.mate[0][rows]
        free = [np.flatnonzero(mate < 0) for mate in matching.mate]
        step = min(rest, float(left[rows, chosen].min(initial=rest)))
        for values, which in zip(sums, free, strict=True):
            step = min(step, rest - float(values[which].max(initial=0.0)))
        step = max(step, 0.0)
        if step > _TINY:
            weights.append(step)
            columns.append(matching.mate[0].copy())
        left[rows, chosen] -= step
        sums[0][rows] -= step
        sums[1][chosen] -= step
        rest -= step
        for i, j in zip(rows.tolist(), chosen.tolist(), strict=True):
            if left[i, j] <= _TINY:
                matching.remove(i, j)
        for at, which in enumerate(free):
            matching.tight[at][which[rest - sums[at][which] <= _TINY]] = True
    total = np.array(weights)
    return MatchingLottery(total / total.sum(), np.array(columns))


class _Matching:
    """A matching in the support of a matrix that covers the tight rows (side 0) and columns (side 1)."""

    def __init__(self, matrix: Array, tight: list[Array]) -> None:
        self.tight = tight
        self.mate = [np.full(size, -1) for size in matrix.shape]
        # Large entries first: terms get larger, so that there are fewer.
        self.near = [
            [
                {int(j): None for j in order[: int((row > 0).sum())]}
                for row, order in zip(m, orders, strict=True)
            ]
            for m, orders in (
                (matrix, np.argsort(-matrix, axis=1, kind="stable")),
                (matrix.T, np.argsort(-matrix.T, axis=1, kind="stable")),
            )
        ]

    def remove(self, row: int, column: int) -> None:
        """Take a matched entry out of the support."""
        del self.near[0][row][column], self.near[1][column][row]
        self.mate[0][row] = self.mate[1][column] = -1

    def repair(self) -> bool:
        """Cover all tight rows and columns; False if that is impossible."""
        return all(
            self._cover(side, int(at))
            for side in (0, 1)
            for at in np.flatnonzero(self.tight[side] & (self.mate[side] < 0))
            if self.mate[side][at] < 0
        )

    def _cover(self, side: int, start: int) -> bool:
        """Match one vertex along an alternating path; all that were covered and are tight stay covered."""
        own, other = self.mate[side], self.mate[1 - side]
        came = {}  # the vertex of `side` from which a vertex of the other side was reached
        queue, seen = deque([start]), {start}
        while queue:
            at = queue.popleft()
            for to in self.near[side][at]:
                if to in came:
                    continue
                came[to] = at
                held = int(other[to])
                if held >= 0 and self.tight[side][held]:
                    if held not in seen:
                        seen.add(held)
                        queue.append(held)
                    continue
                if held >= 0:
                    own[held] = -1
                while True:  # along the path, back to the start
                    before = came[to]
                    former = int(own[before])
                    own[before], other[to] = to, before
                    if before == start:
                        return True
                    to = former
        return False
