"""Expected weights of positions as a lottery over rankings: a point of the permutahedron decomposed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError

__all__ = ["RankingWeights", "decompose_permutahedron"]

_TINY = 1e-12


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
            if len(left) == 1 or excess[at] <= _TINY * unit:
                break
            # this prefix set allows step * (sums - vertex's sum) <= rest * sums - left's sum
            members = sorted_[: at + 1]
            room = float(sums[at] - vertex[members].sum())
            if room <= _TINY * unit:
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
        if rest <= _TINY or step <= 0:
            break
    found = np.array(probabilities)
    real = found > max(_TINY, 0.1 * tolerance / len(left))  # a step of rounding alone brings nothing
    return RankingWeights(found[real] / found[real].sum(), np.array(rankings)[real])
