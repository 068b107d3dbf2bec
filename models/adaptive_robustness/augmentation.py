"""Augmentation: draws from the adaptive balls, with the label of their center."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness.adaptive_radii import adaptive_radii, capped, check_labels
from forcopt.models.adaptive_robustness.geometry import Norm, check_points, check_radii, draw_in_ball

__all__ = ["Augmented", "augment", "check_fraction"]


class Augmented(NamedTuple):
    """Augmented rows: unpack it as ``points, labels, columns``.

    Attributes
    ----------
    points : array, shape (N, d)
    labels : array, shape (N,)
    columns : dict
        The columns that were carried along, and ``"weights"``: the weight of each row, its point's weight
        divided by the number of its rows.
    source : array, shape (N,)
        The point that each row was drawn from.
    """

    points: Array
    labels: Array
    columns: dict[str, Array]
    source: Array


def check_fraction(c: Any) -> float:
    """Read the fraction c of the adaptive radius; warns above one half, where balls of two labels overlap.

    Raises
    ------
    DeclarationError
        If it is not positive.
    """
    fraction = float(as_numbers(c, "the fraction c"))
    if fraction <= 0:
        raise DeclarationError(f"the fraction c is {fraction:g}; it must be positive")
    if fraction > 0.5:
        warnings.warn(
            f"the fraction c is {fraction:g}, above 1/2: balls of different labels overlap", stacklevel=3
        )
    return fraction


def augment(
    points: Any,
    labels: Any,
    c: float = 0.5,
    draws: int = 4,
    *,
    keep_original: bool = True,
    norm: Norm = "l2",
    radii: Any = None,
    cap: float | None = None,
    seed: int | np.random.Generator | None = None,
    **columns: Any,
) -> Augmented:
    """Draw points uniformly from each point's ball of radius c times its adaptive radius.

    Parameters
    ----------
    points : array, shape (n, d)
    labels : array, shape (n,)
    c : float
        The fraction of the adaptive radius; up to 1/2 balls of different labels are disjoint.
    draws : int
        How many for each point, at least 1.
    keep_original : bool
        Keep the points themselves, before their draws; the consistency proof of Theorem 12 needs them.
    norm : {"l2", "linf"}
    radii : number or array, shape (n,), optional
        Fixed radii in place of c times the adaptive ones.
    cap : float, optional
        The largest adaptive radius; needed if all points have one label.
    seed : int or Generator, optional
    **columns : arrays, shape (n, ...)
        Carried along, such as ``groups=``; ``weights=`` is divided among a point's rows.

    Returns
    -------
    Augmented
        Rows point by point: the original first, if kept, then its draws.

    Raises
    ------
    DeclarationError
        For ``draws < 1``, ``c <= 0``, shapes that do not fit, negative weights, and infinite radii without
        a `cap`.

    References
    ----------
    Chowdhury, Urner, FORC 2022, Definition 11. As printed it omits the originals; its proof needs them.

    Examples
    --------
    >>> rows = augment([[0.0], [1.0]], [0, 1], c=0.5, draws=2, seed=0, groups=["a", "b"])
    >>> rows.labels.tolist(), rows.columns["groups"].tolist()
    ([0, 0, 0, 1, 1, 1], ['a', 'a', 'a', 'b', 'b', 'b'])
    >>> bool((abs(rows.points[1:3]) < 0.5).all())
    True
    """
    X = check_points(points, "points")
    y = check_labels(labels, len(X))
    if isinstance(draws, bool) or int(draws) != draws or draws < 1:
        raise DeclarationError(f"draws is {draws!r}; it must be a whole number, at least 1")
    if radii is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if cap is not None else "default")
            adaptive = adaptive_radii(X, y, norm)
        size = check_fraction(c) * capped(adaptive, cap)
    else:
        size = check_radii(radii, len(X))
    rng, m = np.random.default_rng(seed), int(draws)
    moved = draw_in_ball((len(X) * m, X.shape[1]), norm, rng).reshape(len(X), m, -1)
    moved = X[:, None] + size[:, None, None] * moved
    if keep_original:
        moved = np.concatenate([X[:, None], moved], axis=1)
    each = moved.shape[1]
    source = np.repeat(np.arange(len(X)), each)
    given = {name: np.asarray(column) for name, column in columns.items()}
    for name, column in given.items():
        if column.ndim < 1 or len(column) != len(X):
            raise DeclarationError(f"{name}: the shape is {column.shape}; it must start with {len(X)}")
    weights = as_numbers(given.pop("weights", np.ones(len(X))), "weights")
    if weights.min() < 0:
        raise DeclarationError(f"weights: the least is {weights.min():g}; it must be at least 0")
    carried = {name: column[source] for name, column in given.items()}
    carried["weights"] = weights[source] / each
    return Augmented(moved.reshape(-1, X.shape[1]), y[source], carried, source)
