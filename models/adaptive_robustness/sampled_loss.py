"""The adaptive robust loss, estimated by draws from the balls: a lower bound of the exact loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, check_choice
from forcopt.models.adaptive_robustness.adaptive_radii import adaptive_radii, capped, check_labels
from forcopt.models.adaptive_robustness.augmentation import check_fraction
from forcopt.models.adaptive_robustness.geometry import Norm, check_points, check_radii, draw_in_ball

__all__ = ["sampled_loss"]


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
    seed: int | np.random.Generator | None = None,
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
    if int(draws) != draws or draws < 1:
        raise DeclarationError(f"draws is {draws!r}; it must be a whole number, at least 1")
    if radii is None:
        size = check_fraction(c) * capped(adaptive_radii(X, y, norm), cap)
    else:
        size = check_radii(radii, len(X))
    predict = getattr(classifier, "predict", classifier)
    if not callable(predict):
        raise DeclarationError(f"classifier is {classifier!r}; it must be callable or have predict")
    rng = np.random.default_rng(seed)
    wrong = np.zeros((int(draws), len(X)), dtype=bool)
    for k in range(int(draws)):
        wrong[k] = np.asarray(predict(X + size[:, None] * draw_in_ball(X.shape, norm, rng))) != y
    if reduce == "mean":
        return float(wrong.mean())
    return float((wrong.any(axis=0) | (np.asarray(predict(X)) != y)).mean())
