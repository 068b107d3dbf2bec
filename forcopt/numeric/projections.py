"""Euclidean projections onto a simplex and onto a box with a fixed weighted sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError

__all__ = ["project_box", "project_capped_simplex", "project_simplex"]


def project_simplex(point: Any, total: float = 1.0) -> Array:
    """Project onto the simplex ``{x >= 0, x.sum() = total}``.

    Parameters
    ----------
    point : array_like
        Shape ``(..., n)``; each row is projected by itself.
    total : float, default 1.0
        The sum, at least 0.

    Returns
    -------
    Array
        The nearest points, of the shape of `point`.

    Raises
    ------
    DeclarationError
        For an empty row, entries that are not finite, or a negative total.

    Notes
    -----
    The projection is ``max(point - level, 0)`` for one level, by the optimality conditions. If the j largest
    entries stay positive, the level is ``(their sum - total) / j``; j is the largest number for which the
    j-th largest entry is above that level. O(n log n) a row.

    References
    ----------
    Held, Wolfe, Crowder: Validation of subgradient optimization. Mathematical Programming 6, 1974.

    Examples
    --------
    >>> project_simplex([0.5, 1.0, -1.0]).tolist()
    [0.25, 0.75, 0.0]
    """
    x = as_numbers(point, "point")
    if x.ndim < 1 or not x.shape[-1]:
        raise DeclarationError(f"point has shape {x.shape}; its last axis must have at least one entry")
    if not (total >= 0 and np.isfinite(total)):
        raise DeclarationError(f"total is {total}; it must be a finite number >= 0")
    x -= x.max(axis=-1, keepdims=True)  # the projection stays the same; large entries would lose the total
    falling = -np.sort(-x, axis=-1)
    levels = (np.cumsum(falling, axis=-1) - total) / np.arange(1, x.shape[-1] + 1)
    last = np.maximum((falling > levels).sum(axis=-1, keepdims=True) - 1, 0)
    return np.asarray(np.maximum(x - np.take_along_axis(levels, last, axis=-1), 0.0))


def project_capped_simplex(point: Any, total: float, cap: Any = 1.0) -> Array:
    """Project onto the capped simplex ``{0 <= x <= cap, x.sum() = total}``.

    Parameters
    ----------
    point : array_like
        Shape ``(n,)``.
    total : float
        The sum, between 0 and the sum of the caps.
    cap : array_like, default 1.0
        One number at least 0, or one for each entry.

    Returns
    -------
    Array
        The nearest point, shape ``(n,)``.

    Raises
    ------
    DeclarationError
        As for `project_box`.

    See Also
    --------
    project_box : the general case, with the algorithm.

    Examples
    --------
    >>> project_capped_simplex([2.0, 0.5, 0.1], total=2).round(9).tolist()
    [1.0, 0.7, 0.3]
    """
    return project_box(point, 0.0, cap, total)


def project_box(point: Any, lower: Any, upper: Any, total: float, weights: Any = 1.0) -> Array:
    """Project onto the box with a sum ``{lower <= x <= upper, weights @ x = total}``.

    Parameters
    ----------
    point : array_like
        Shape ``(n,)``.
    lower, upper : array_like
        Finite bounds, one number or one for each entry.
    total : float
        The weighted sum; between the sums of the bounds, up to 1e-9 relative.
    weights : array_like, default 1.0
        Positive; one number or one for each entry.

    Returns
    -------
    Array
        The nearest point, shape ``(n,)``. Its sum is `total` up to rounding.

    Raises
    ------
    DeclarationError
        If the set is empty, naming the total and the sums of the bounds, or for other bad input.

    Notes
    -----
    By the optimality conditions ``x = clip(point - level * weights, lower, upper)`` for one level, the
    multiplier of the sum. The sum falls piecewise linearly in the level and bends where an entry meets a
    bound. The algorithm sorts the bends, finds the neighboring pair around the level by bisection, and solves
    the linear equation between them. O(n log n).

    References
    ----------
    Helgason, Kennington, Lall: A polynomially bounded algorithm for a singly constrained quadratic program.
    Mathematical Programming 18, 1980.

    Examples
    --------
    >>> project_box([3.0, 0.0, 0.0], lower=[0, 1, 0], upper=[2, 5, 5], total=4).round(9).tolist()
    [2.0, 1.0, 1.0]
    """
    x = as_numbers(point, "point")
    if x.ndim != 1 or not x.size:
        raise DeclarationError(f"point has shape {x.shape}; it must be (n,) with n >= 1")
    read = [
        as_numbers(given, name) for given, name in ((lower, "lower"), (upper, "upper"), (weights, "weights"))
    ]
    for values, name in zip(read, ("lower", "upper", "weights"), strict=True):
        if values.shape not in ((), (1,), x.shape):
            raise DeclarationError(f"{name} has shape {values.shape}; it must be one number or {x.shape}")
    low, high, w = (np.broadcast_to(values, x.shape) for values in read)
    if (low > high).any():
        at = int(np.argmax(low > high))
        raise DeclarationError(f"lower[{at}] is {low[at]:g}, above upper[{at}], {high[at]:g}")
    if (w <= 0).any():
        at = int(np.argmax(w <= 0))
        raise DeclarationError(f"weights[{at}] is {w[at]:g}; it must be above 0")
    least, most = float(w @ low), float(w @ high)
    margin = 1e-9 * max(float(w @ np.maximum(np.abs(low), np.abs(high))), abs(total))
    if not least - margin <= total <= most + margin:
        raise DeclarationError(f"total is {total:g}; between the bounds it can be {least:g} to {most:g}")
    if total <= least:
        return np.array(low)
    if total >= most:
        return np.array(high)
    x = x - (w @ x - total) / (w @ w) * w  # the projection stays the same; large entries would lose the total
    enters, leaves = (x - high) / w, (x - low) / w  # between these levels an entry is between its bounds
    bends = np.unique(np.concatenate([enters, leaves]))
    first, last = 0, len(bends) - 1  # the sum is most at bends[0] and least at bends[-1]
    while last - first > 1:
        middle = (first + last) // 2
        reached = float(w @ np.clip(x - bends[middle] * w, low, high))
        first, last = (middle, last) if reached >= total else (first, middle)
    free = (enters <= bends[first]) & (leaves >= bends[last])
    fixed = np.where(leaves <= bends[first], low, high)
    if not free.any():  # the sum is constant between the two bends
        return np.asarray(np.clip(x - bends[first] * w, low, high))
    level = (float(w[free] @ x[free]) + float(w[~free] @ fixed[~free]) - total) / float(w[free] @ w[free])
    found = np.where(free, np.clip(x - level * w, low, high), fixed)
    # entries of a large point lose digits; their sum is known
    step = (total - float(w @ found)) / float(w[free] @ w[free])
    return np.where(free, np.clip(found + step * w, low, high), found)
