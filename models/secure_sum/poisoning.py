"""The exact effect of liars on rates of a table of counts that was summed securely."""

from __future__ import annotations

from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np
import scipy

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError

__all__ = ["poisoned_disparity", "poisoned_rate"]

ANGLES = 64


def poisoned_rate(counts: Any, numerator: Any, denominator: Any, radius: float) -> tuple[float, float]:
    """The least and the largest rate of a table that liars shift.

    Parameters
    ----------
    counts : array_like
        The table of the honest clients, of any shape.
    numerator, denominator : array_like
        Weights of the cells, of the same shape: the rate is ``sum(numerator * counts) / sum(denominator *
        counts)``.
    radius : float
        The largest Euclidean norm of the shift. With m liars it is ``m * rho``, except with probability
        ``m * soundness``: the sum of m vectors of norm at most rho is any vector of norm at most m rho.

    Returns
    -------
    tuple[float, float]
        Both are attained by a real shift.

    Raises
    ------
    DeclarationError
        For other shapes, a negative radius, or a denominator that a shift makes 0.

    Notes
    -----
    The rate reaches t if ``(n - t d) . c + radius |n - t d| >= 0``. Both ends are the roots of the quadratic
    equation ``((n - t d) . c)^2 = radius^2 |n - t d|^2``. O(cells).

    Examples
    --------
    >>> low, high = poisoned_rate([60, 40], [1, 0], [1, 1], radius=5.0)
    >>> round(low, 6), round(high, 6)
    (0.564353, 0.636652)
    """
    c, n, d = (as_numbers(v, "counts") for v in (counts, numerator, denominator))
    if not c.shape == n.shape == d.shape:
        raise DeclarationError(
            f"counts have shape {c.shape}, the weights {n.shape} and {d.shape}; all three must be equal"
        )
    if not 0 <= radius < np.inf:
        raise DeclarationError(f"radius is {radius!r}; it must be at least 0")
    top, bottom, square = float((n * c).sum()), float((d * c).sum()), radius**2
    a = bottom**2 - square * float((d * d).sum())
    if not (bottom > 0 and a > 0):
        raise DeclarationError(f"radius is {radius:g}; a shift of that norm makes the denominator 0")
    b = top * bottom - square * float((n * d).sum())
    root = sqrt(max(b**2 - a * (top**2 - square * float((n * n).sum())), 0.0))
    return (b - root) / a, (b + root) / a


def poisoned_disparity(
    counts: Any, first: tuple[Any, Any], second: tuple[Any, Any], radius: float
) -> tuple[float, float]:
    """The least and the largest difference of two rates over different cells.

    Parameters
    ----------
    counts : array_like
        The table of the honest clients.
    first, second : tuple of two array_like
        Numerator and denominator of each rate, see `poisoned_rate`. No cell has a weight in both rates.
    radius : float
        See `poisoned_rate`.

    Returns
    -------
    tuple[float, float]
        Of the first rate less the second one. The shift is divided between their cells in all ways: a search
        over one angle.

    Raises
    ------
    DeclarationError
        For a cell in both rates, and as `poisoned_rate`.

    Examples
    --------
    >>> table = [[60, 40], [30, 70]]
    >>> first = [[1, 0], [0, 0]], [[1, 1], [0, 0]]
    >>> second = [[0, 0], [1, 0]], [[0, 0], [1, 1]]
    >>> [round(x, 6) for x in poisoned_disparity(table, first, second, radius=5.0)]
    [0.248251, 0.353281]
    """
    weights = [as_numbers(w, "weights") for w in (*first, *second)]
    used = [(abs(weights[i]) + abs(weights[i + 1])) > 0 for i in (0, 2)]
    if used[0].shape == used[1].shape and (used[0] & used[1]).any():
        raise DeclarationError("a cell has a weight in both rates; they must be over different cells")

    def ends(angle: float) -> Array:
        one = poisoned_rate(counts, *first, radius * cos(angle))
        two = poisoned_rate(counts, *second, radius * sin(angle))
        return np.array([one[0] - two[1], two[0] - one[1]])  # both are to be least

    angles = np.linspace(0, pi / 2, ANGLES + 1)
    seen = np.array([ends(a) for a in angles])
    found = []
    for side in (0, 1):
        at = int(seen[:, side].argmin())
        near = float(angles[max(at - 1, 0)]), float(angles[min(at + 1, ANGLES)])
        best = scipy.optimize.minimize_scalar(
            lambda a, side=side: ends(a)[side], bounds=near, method="bounded", options={"xatol": 1e-10}
        )
        found.append(min(float(best.fun), float(seen[at, side])))
    return found[0], -found[1]
