"""Adaptive radii: distances to other labels, draws from the balls, the loss of draws, and sample sizes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from forcopt.arrays import Array, Seed, as_numbers, check_entries, whole_number
from forcopt.errors import DeclarationError, check_choice, require
from forcopt.models.adaptive_robustness import geometry
from forcopt.models.adaptive_robustness.geometry import Norm, check_points, draw_in_ball
from forcopt.models.adaptive_robustness.tolerances import WHOLE


def check_labels(labels: Any, count: int) -> Array:
    """Read labels, shape ``(count,)``, of any type.

    Raises
    ------
    DeclarationError
        For another shape, NaN, or types that cannot be compared.
    """
    y = np.asarray(labels)
    require(y.shape == (count,), "labels: the shape", y.shape, f"be ({count},)")
    if y.dtype.kind == "f" and np.isnan(y).any():
        raise DeclarationError(f"labels[{int(np.argmax(np.isnan(y)))}] is nan; it must be a label")
    if y.dtype.kind == "O":
        try:
            np.unique(y)
        except TypeError:
            raise DeclarationError("labels: their types have no common order") from None
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
    Z = X if to is None else check_points(to[0], "to")
    z = y if to is None else check_labels(to[1], len(Z))
    if Z.shape[1] != X.shape[1]:
        raise DeclarationError(f"to: points have {Z.shape[1]} features; they must have {X.shape[1]}")
    radii, order = np.full(len(X), np.inf), geometry.order_of(norm)
    for label in np.unique(z):
        other = y != label
        if other.any():
            near = scipy.spatial.KDTree(Z[z == label]).query(X[other], p=order)[0]
            radii[other] = np.minimum(radii[other], near)
    if np.isinf(radii).any():
        warnings.warn("points have an infinite radius where no point has another label", stacklevel=2)
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
        require(limit >= 0, "cap", limit, "be at least 0")
        return np.minimum(radii, limit)
    if np.isinf(radii).any():
        raise DeclarationError("radii are infinite, as all points have one label; a cap is needed")
    return radii


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
        warnings.warn(f"the fraction c is {fraction:g}, above 1/2: balls overlap", stacklevel=3)
    return fraction


def _sizes(X: Array, y: Array, c: float, norm: Norm, radii: Any, cap: float | None) -> Array:
    """The radius of each point's ball: as given, or the fraction c of its adaptive radius."""
    if radii is not None:
        return geometry.check_radii(radii, len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if cap is not None else "default")
        adaptive = adaptive_radii(X, y, norm)
    return check_fraction(c) * capped(adaptive, cap)


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
    seed: Seed = None,
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
    m = whole_number(draws, "draws", 1)
    size = _sizes(X, y, c, norm, radii, cap)
    rng = np.random.default_rng(seed)
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
    check_entries(weights, weights < 0, "weights", "it must be at least 0")
    carried = {name: column[source] for name, column in given.items()}
    carried["weights"] = weights[source] / each
    return Augmented(moved.reshape(-1, X.shape[1]), y[source], carried, source)


def sampled_loss(
    classifier: Callable[[Array], Any] | Any,
    points: Any,
    labels: Any,
    c: float = 0.5,
    draws: int = 10,
    *,
    reduce: Literal["any", "mean"] = "any",
    norm: Norm = "l2",
    radii: Any = None,
    cap: float | None = None,
    seed: Seed = None,
) -> float:
    """Estimate the c-adaptive robust loss from draws in each point's ball.

    Parameters
    ----------
    classifier : object with ``predict``, or callable
    points : array, shape (n, d)
    labels : array, shape (n,)
    c : float
        The fraction of the adaptive radius.
    draws : int
        How many points of each ball. With one seed, fewer draws are the first of more.
    reduce : {"any", "mean"}
        A point counts if it or any draw is misclassified (the loss as defined), or by the share of its draws
        that are (as the printed tables do).
    norm : {"l2", "linf"}
    radii : number or array, shape (n,), optional
        The radii of the balls, in place of c times the adaptive ones.
    cap : float, optional
        The largest adaptive radius.
    seed : int or Generator, optional

    Returns
    -------
    float
        Never above the exact loss.

    References
    ----------
    Chowdhury, Urner, FORC 2022, section 6. The text has "any"; the digits of Tables 1 and 2 are means.

    Examples
    --------
    >>> inside = lambda X: (X[:, 0] > 0.9).astype(int)
    >>> sampled_loss(inside, [[0.0], [1.0]], [0, 1], c=0.5, draws=50, seed=0)
    0.5
    """
    X = check_points(points, "points")
    y = check_labels(labels, len(X))
    check_choice("reduce", reduce, "any", "mean")
    draws = whole_number(draws, "draws", 1)
    size = _sizes(X, y, c, norm, radii, cap)
    predict = getattr(classifier, "predict", classifier)
    require(callable(predict), "classifier", classifier, "be callable or have predict")
    rng = np.random.default_rng(seed)
    wrong = np.zeros((draws, len(X)), dtype=bool)
    for k in range(draws):
        wrong[k] = np.asarray(predict(X + size[:, None] * draw_in_ball(X.shape, norm, rng))) != y
    lost = wrong if reduce == "mean" else wrong.any(axis=0) | (np.asarray(predict(X)) != y)
    return float(lost.mean())


def nn_sample_size(d: int, phi_inverse: float, eps: float, delta: float, *, as_printed: bool = False) -> int:
    """The sample size at which 1-nearest-neighbour on augmented data has excess error at most eps.

    Parameters
    ----------
    d : int
        The dimension.
    phi_inverse : float
        The largest radius whose margin rate is at most the allowed error: ``margin_rate(...).inverse(eps)``.
        Infinite if there is one label only: then 1 point is enough.
    eps, delta : float
        Error and probability of failure, in (0, 1).
    as_printed : bool
        The formula as printed, whose conclusion holds with 2 eps. By default it is taken at eps/2 (and
        `phi_inverse` should be that of eps/2), so that eps is right.

    Returns
    -------
    int
        ``3**d * d**(d/2) / (e * phi_inverse**d * eps * delta)``, rounded up.

    Raises
    ------
    DeclarationError
        For arguments outside of these ranges.

    Notes
    -----
    The number of cells is ``ceil(3 sqrt(d) / phi_inverse)**d`` in truth; the formula leaves the ceiling out
    `as_printed`, and takes it otherwise.

    References
    ----------
    Chowdhury, Urner, FORC 2022, Theorem 12 and Lemma 13.

    Examples
    --------
    >>> nn_sample_size(2, 0.1, 0.1, 0.1, as_printed=True)
    66219
    """
    d = whole_number(d, "d", 1)
    for name, value in (("eps", eps), ("delta", delta)):
        require(0 < float(as_numbers(value, name)) < 1, name, value, "be between 0 and 1")
    require(phi_inverse > 0, "phi_inverse", phi_inverse, "be positive")
    if math.isinf(phi_inverse):
        return 1
    side = 3 * math.sqrt(d) / phi_inverse
    if d * math.log(max(side, 1.0)) > 600:
        raise DeclarationError(f"d is {d} and phi_inverse {phi_inverse:g}; the sample size is above 10^260")
    if as_printed:
        return math.ceil(side**d / (math.e * eps * delta) - WHOLE)
    # the side of the cells, a share of phi_inverse / sqrt(d), is rounded so that they cover the unit cube
    cells = int(math.ceil(side - WHOLE) ** d)
    return math.ceil(cells / (math.e * eps / 2 * delta) - WHOLE)
