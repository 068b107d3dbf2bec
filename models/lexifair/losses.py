"""Convex losses of a prediction: squared, logistic, absolute, quantile and Poisson."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from forcopt.arrays import Array, check_entries
from forcopt.language import atoms
from forcopt.language.expression import Expression
from forcopt.models.lexifair.tolerances import DECREASE, SMALLEST

LossName = Literal["squared", "logistic", "absolute", "quantile", "poisson"]


@dataclass(frozen=True)
class Loss:
    """A loss that is convex in the score s of a record with label y, at least 0.

    Attributes
    ----------
    value : Callable[[Array, Array], Array]
        The loss of scores and labels.
    slope : Callable[[Array, Array], Array]
        A subgradient in the scores.
    bend : Callable[[Array, Array], Array] or None
        The second derivative; None for a loss with kinks.
    write : Callable[[Expression, Array], Expression]
        The loss as a convex expression.
    """

    value: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    bend: Callable[[Array, Array], Array] | None
    write: Callable[[Any, Array], Expression]


def _sign(y: Array) -> Array:
    return 2.0 * y - 1.0


def _offset(y: Array) -> Array:
    """What makes the least Poisson loss 0."""
    return np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0)) - y, 0.0)


def pinball(quantile: float) -> Loss:
    """The quantile loss: ``quantile * (y - s)`` below the label, ``(1 - quantile) * (s - y)`` above.

    Examples
    --------
    >>> pinball(0.9).value(np.array([1.0, 3.0]), np.array([2.0, 2.0])).round(6).tolist()
    [0.9, 0.1]
    """
    return Loss(
        value=lambda s, y: np.maximum(quantile * (y - s), (1.0 - quantile) * (s - y)),
        slope=lambda s, y: np.where(s < y, -quantile, np.where(s > y, 1.0 - quantile, 0.0)),
        bend=None,
        write=lambda s, y: atoms.maximum(quantile * (y - s), (1.0 - quantile) * (s - y)),
    )


LOSSES: dict[str, Loss] = {
    "squared": Loss(
        value=lambda s, y: np.square(s - y),
        slope=lambda s, y: 2.0 * (s - y),
        bend=lambda s, y: np.full_like(s, 2.0),
        write=lambda s, y: (s - y) ** 2,
    ),
    "logistic": Loss(
        value=lambda s, y: np.logaddexp(0.0, -_sign(y) * s),
        slope=lambda s, y: -_sign(y) / (1.0 + np.exp(np.clip(_sign(y) * s, -700.0, 700.0))),
        bend=lambda s, y: 0.25 / np.cosh(np.clip(s / 2.0, -350.0, 350.0)) ** 2,
        write=lambda s, y: atoms.logistic(-_sign(y) * s),
    ),
    "absolute": Loss(
        value=lambda s, y: np.abs(s - y),
        slope=lambda s, y: np.sign(s - y),
        bend=None,
        write=lambda s, y: atoms.abs(s - y),
    ),
    "poisson": Loss(
        value=lambda s, y: np.exp(np.minimum(s, 700.0)) - y * s + _offset(y),
        slope=lambda s, y: np.exp(np.minimum(s, 700.0)) - y,
        bend=lambda s, y: np.exp(np.minimum(s, 700.0)),
        write=lambda s, y: atoms.exp(s) - y * s + _offset(y),
    ),
}


def loss_of(name: LossName, quantile: float, labels: Array) -> Loss:
    """The loss by its name.

    Raises
    ------
    DeclarationError
        For labels that the loss does not take.
    """
    rule = {"logistic": "0 or 1", "poisson": "at least 0"}.get(name, "")
    wrong = (labels != 0) & (labels != 1) if name == "logistic" else labels < 0
    check_entries(labels, wrong & bool(rule), "labels", f"with loss {name!r} it must be {rule}")
    return pinball(quantile) if name == "quantile" else LOSSES[name]


def newton(loss: Loss, X: Array, y: Array, weights: Array, start: Array, penalty: float = 0.0) -> Array:
    """Coefficients of the least ``sum weights * loss(X @ theta, y) + penalty / 2 |theta|^2``.

    Newton's method with halved steps; the shortest step where the curvature vanishes.

    Parameters
    ----------
    loss : Loss
        With a second derivative.
    X, y, weights : Array
        Shapes ``(n, d)``, ``(n,)``, ``(n,)``; weights are not negative.
    start : Array
        Shape ``(d,)``.
    penalty : float, default 0.0
        At least 0.
    """
    assert loss.bend is not None
    theta = start

    def worth(at: Array) -> float:
        return float(weights @ loss.value(X @ at, y)) + penalty / 2.0 * float(at @ at)

    now = worth(theta)
    for _ in range(STEPS):
        score = X @ theta
        slope = X.T @ (weights * loss.slope(score, y)) + penalty * theta
        bend = (X * (weights * loss.bend(score, y))[:, None]).T @ X + penalty * np.eye(len(theta))
        step = np.linalg.lstsq(bend, -slope)[0]
        promised = -float(slope @ step)
        if promised <= DECREASE * max(now, DECREASE):
            break
        size = 1.0
        while worth(theta + size * step) > now - size * promised / 4.0 and size > SMALLEST:
            size /= 2.0
        theta = theta + size * step
        now = worth(theta)
    return theta


STEPS = 200
"""Of Newton's method, at most."""
