"""Exponentiated gradient: a player who spreads a budget over goods, more on goods that gained more."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["ExponentiatedGradient"]


class ExponentiatedGradient:
    """Play vectors ``x >= 0`` with ``sum(x) < bound`` that maximize the sum of ``gain . x`` over the rounds.

    Parameters
    ----------
    size : int
        The number of goods.
    bound : float
        On the sum of each play; positive.
    step : float
        The learning rate; positive.

    Attributes
    ----------
    bound, step : float
        The same.
    theta : Array
        `step` times the sum of the gains so far, shape ``(size,)``.

    Raises
    ------
    DeclarationError
        If `bound` or `step` is not positive and finite.

    Notes
    -----
    The play is ``x_k = bound exp(theta_k) / (1 + sum_j exp(theta_j))``. These are multiplicative weights [1]_
    with one more good that gains nothing, so that the budget need not be spent. The play is the best response
    to the gains so far with an entropy regularizer. If no gain is larger than 2, the average regret of T
    rounds is at most ``bound ln(size + 1) / (step T) + 4 step bound`` [2]_.

    References
    ----------
    .. [1] Freund, Schapire, "A decision-theoretic generalization of on-line learning and an application to
       boosting", Journal of Computer and System Sciences 55 (1997).
    .. [2] Jagielski et al., "Differentially private fair learning", ICML 2019, Lemma 4.2.

    Examples
    --------
    >>> player = ExponentiatedGradient(size=2, bound=3.0, step=1.0)
    >>> player.play().tolist()
    [1.0, 1.0]
    >>> player.learn(np.log([2.0, 1.0]))
    >>> player.play().round(6).tolist()
    [1.5, 0.75]
    """

    def __init__(self, size: int, bound: float, step: float) -> None:
        for name, value in (("bound", bound), ("step", step)):
            if not (np.isfinite(value) and value > 0):
                raise DeclarationError(f"{name} is {value!r}; it must be positive and finite")
        self.bound, self.step = float(bound), float(step)
        self.theta: Array = np.zeros(size)

    def play(self) -> Array:
        """The next play, shape ``(size,)``."""
        shift = max(0.0, float(self.theta.max(initial=0.0)))  # against overflow; the spare good has theta 0
        weight = np.exp(self.theta - shift)
        return np.asarray(self.bound * weight / (np.exp(-shift) + weight.sum()))

    def learn(self, gain: Any) -> None:
        """Learn the gain of a unit of each good in this round, shape ``(size,)``."""
        self.theta = self.theta + self.step * np.asarray(gain, dtype=float)
