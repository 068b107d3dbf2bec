"""Matrices as lotteries over matchings (Birkhoff and von Neumann), and position weights over rankings."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.errors import DeclarationError, require_shape
from forcopt.notebook import table_html
from forcopt.numeric.tolerances import NO_ENTRY, NO_SLACK


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
    require_shape(left.ndim == 2 and left.size, "matrix has", left, "be (n, k), neither of them 0")
    check_entries(left, left < -tolerance, "matrix", "it must not be negative")
    left[left < NO_ENTRY] = 0.0
    sums = [left.sum(axis=1), left.sum(axis=0)]
    for side, values in zip(("row", "column"), sums, strict=True):
        if (values > 1 + tolerance).any():
            at = int(np.argmax(values))
            raise DeclarationError(f"{side} {at} of the matrix has the sum {values[at]:.12g}, above 1")
    matching = _Matching(left, [np.abs(values - 1) <= tolerance for values in sums])
    for values, tight in zip(sums, matching.tight, strict=True):
        values[tight] = 1.0
    weights: list[float] = []
    columns: list[Array] = []
    rest = 1.0
    # Errors of the sums, within the tolerance, can leave no matching for the last bit of probability.
    negligible = 10 * tolerance * max(left.shape)
    while rest > NO_ENTRY:
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
        if step > NO_ENTRY:
            weights.append(step)
            columns.append(matching.mate[0].copy())
        left[rows, chosen] -= step
        sums[0][rows] -= step
        sums[1][chosen] -= step
        rest -= step
        for i, j in zip(rows.tolist(), chosen.tolist(), strict=True):
            if left[i, j] <= NO_ENTRY:
                matching.remove(i, j)
        for at, which in enumerate(free):
            matching.tight[at][which[rest - sums[at][which] <= NO_ENTRY]] = True
    total = np.array(weights)
    return MatchingLottery(total / total.sum(), np.array(columns))


class _Matching:
    """A matching in the support of a matrix that covers the tight rows (side 0) and columns (side 1)."""

    def __init__(self, matrix: Array, tight: list[Array]) -> None:
        self.tight = tight
        self.mate = [np.full(size, -1) for size in matrix.shape]
        # Large entries first: terms get larger, so that there are fewer.
        self.near: list[list[dict[int, None]]] = [
            [dict.fromkeys(np.argsort(-row, kind="stable")[: (row > 0).sum()].tolist()) for row in m]
            for m in (matrix, matrix.T)
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


class RankingWeights(NamedTuple):
    """A lottery over rankings.

    Attributes
    ----------
    weights : Array
        The probabilities, shape ``(t,)``; their sum is 1.
    rankings : Array
        The entries in the order of their positions, the first position first; shape ``(t, n)``.
    """

    weights: Array
    rankings: Array


def decompose_permutahedron(point: Any, weights: Any, tolerance: float = 1e-9) -> RankingWeights:
    """Find a lottery over rankings in which each entry's expected weight of position is given.

    Parameters
    ----------
    point : array_like
        The expected weights, shape ``(n,)``. For all j, the j largest add up to at most the first j weights,
        and all to the same sum (the weights majorize the point).
    weights : array_like
        Of the positions, not rising; shape ``(n,)``, or fewer, which are filled up with zeros.
    tolerance : float, default 1e-9
        By this much, relative to the sum of the weights, majorization may fail.

    Returns
    -------
    RankingWeights
        At most n rankings (2 n if the point has rounding errors), with a mean of `point` to the tolerance.

    Raises
    ------
    DeclarationError
        For weights that rise, or a point that they do not majorize; it names the prefix.

    Notes
    -----
    The ranking that sorts the remaining point is a vertex of the smallest face that holds it. It is taken
    with the largest probability that keeps the remainder majorized by the remaining probability times the
    weights; then another prefix is tight, so that there are at most n steps. That probability is found by
    Newton's method on the most violated prefix, each step a sort. O(n² log n), times the few Newton steps.

    References
    ----------
    Rado: An inequality. Journal of the London Mathematical Society 27, 1952.
    Yasutake, Hatano, Kijima, Takimoto, Takeda: Online linear optimization over permutations. ISAAC 2011.

    Examples
    --------
    >>> lottery = decompose_permutahedron([0.75, 0.75], [1.0, 0.5])
    >>> lottery.weights.tolist(), lottery.rankings.tolist()
    ([0.5, 0.5], [[0, 1], [1, 0]])
    """
    left, given = as_numbers(point, "point").copy(), as_numbers(weights, "weights")
    if left.ndim != 1 or given.ndim != 1 or not 0 < len(given) <= len(left):
        raise DeclarationError(
            f"point has shape {left.shape} and weights {given.shape}; weights must be (k,), 1 <= k <= n"
        )
    w = np.zeros(len(left))
    w[: len(given)] = given
    if (np.diff(w) > 0).any():
        at = int(np.argmax(np.diff(w) > 0))
        raise DeclarationError(f"weights rise from position {at} to {at + 1}; they must not rise")
    sums = np.cumsum(w)
    unit = max(float(np.abs(w).sum()), np.finfo(float).tiny)
    over = np.cumsum(-np.sort(-left)) - sums
    if over.max() > tolerance * unit:
        raise DeclarationError(
            f"the {int(np.argmax(over)) + 1} largest entries of the point exceed the first weights by "
            f"{over.max():g}"
        )
    if abs(over[-1]) > tolerance * unit:
        raise DeclarationError(f"the sums of point and weights differ by {abs(over[-1]):g}")
    # a point that majorization misses by the tolerance is moved onto the nearest prefix sums: the smaller of
    # two concave functions is concave, so the entries keep their order
    largest = np.argsort(-left, kind="stable")
    totals = np.cumsum(left[largest])
    totals[-1] = sums[-1]
    left[largest] = np.diff(np.minimum(totals, sums), prepend=0.0)
    probabilities: list[float] = []
    rankings: list[Array] = []
    rest = 1.0
    for _ in range(2 * len(left)):
        order = np.argsort(-left, kind="stable")
        vertex = np.empty(len(left))
        vertex[order] = w
        step = rest
        for _ in range(100):
            trial = left - step * vertex
            sorted_ = np.argsort(-trial, kind="stable")
            excess = np.cumsum(trial[sorted_]) - (rest - step) * sums
            at = int(np.argmax(excess[:-1])) if len(left) > 1 else 0
            if len(left) == 1 or excess[at] <= NO_SLACK * unit:
                break
            # this prefix set allows step * (sums - vertex's sum) <= rest * sums - left's sum
            members = sorted_[: at + 1]
            room = float(sums[at] - vertex[members].sum())
            if room <= NO_SLACK * unit:
                break
            lower = float(rest * sums[at] - left[members].sum()) / room
            if not 0 < lower < step:
                break
            step = lower
        if step > 0:
            probabilities.append(step)
            rankings.append(order)
            left = left - step * vertex
            rest -= step
        if rest <= NO_SLACK or step <= 0:
            break
    found = np.array(probabilities)
    real = found > max(NO_SLACK, 0.1 * tolerance / len(left))  # a step of rounding alone brings nothing
    return RankingWeights(found[real] / found[real].sum(), np.array(rankings)[real])
