"""Adaptive radii: the distance of each point to the nearest point with another label."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness.geometry import Norm, check_points, order_of

__all__ = ["adaptive_radii", "check_labels"]


def check_labels(labels: Any, count: int) -> Array:
    """Read labels, shape ``(count,)``, of any type.

    Raises
    ------
    DeclarationError
        For another shape, NaN, or types that cannot be compared.
    """
    y = np.asarray(labels)
    if y.shape != (count,):
        raise DeclarationError(f"labels: the shape is {y.shape}; it must be ({count},), one for each point")
    if y.dtype.kind == "f" and np.isnan(y).any():
        raise DeclarationError(f"labels[{int(np.argmax(np.isnan(y)))}] is nan; it must be a label")
    if y.dtype.kind == "O":
        try:
            np.unique(y)
        except TypeError:
            raise DeclarationError("labels: their types have no common order, such as None and 1") from None
    return y


def adaptive_radii(
    points: Any, labels: Any, norm: Norm = "l2", *, to: tuple[Any, Any] | None = None
) -> Array:
    """The distance of each point to the nearest point with another label.

    Parameters
    ----------
    points : array, shape (n, d)
    labels : array, shape (n,)
        Of any type, two labels or more.
    norm : {"l2", "linf"}
    to : (points, labels), optional
        The points to measure to; by default the points themselves.

    Returns
    -------
    array, shape (n,)
        Infinite where there is no point with another label; then there is a `UserWarning`.

    Raises
    ------
    DeclarationError
        For points that are not finite numbers or shapes that do not fit.

    Notes
    -----
    One KD-tree for each label: O(n log n) in low dimension. A point that has both labels gets 0.

    References
    ----------
    Chowdhury, Urner, Robustness should not be at odds with accuracy, FORC 2022, Definition 9.

    Examples
    --------
    >>> adaptive_radii([[-1, .9], [-1, 1.1], [1, .9], [1, 2]], [0, 1, 0, 1]).round(3).tolist()
    [0.2, 0.2, 1.1, 1.1]
    """
    X = check_points(points, "points")
    y = check_labels(labels, len(X))
    Z, z = (X, y) if to is None else (check_points(to[0], "to"), np.asarray(to[1]))
    if Z.shape[1] != X.shape[1]:
        raise DeclarationError(f"to: points have {Z.shape[1]} features; they must have {X.shape[1]}")
    if to is not None:
        z = check_labels(z, len(Z))
    radii, order = np.full(len(X), np.inf), order_of(norm)
    for label in np.unique(z):
        other = y != label
        if other.any():
            near = scipy.spatial.KDTree(Z[z == label]).query(X[other], p=order)[0]
            radii[other] = np.minimum(radii[other], near)
    if np.isinf(radii).any():
        warnings.warn(
            "some points have no point with another label: their adaptive radius is infinite", stacklevel=2
        )
    return radii


def capped(radii: Array, cap: float | None) -> Array:
    """Radii with a finite cap.

    Raises
    ------
    DeclarationError
        If a radius is infinite and there is no cap.
    """
    if cap is not None:
        limit = float(as_numbers(cap, "cap"))
        if limit < 0:
            raise DeclarationError(f"cap is {limit:g}; it must be at least 0")
        return np.minimum(radii, limit)
    if np.isinf(radii).any():
        raise DeclarationError("radii are infinite, as all points have one label; a cap is needed")
    return radii
