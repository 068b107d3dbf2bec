"""Exponentiated gradient: a player who spreads a budget over goods, more on those that gained more."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["ExponentiatedGradient"]


class ExponentiatedGradient:
    """Plays vectors ``x >= 0`` with ``sum(x) < bound``, to maximise the sum of ``gain . x`` over the rounds.

    ``x_k = bound exp(theta_k) / (1 + sum_j exp(theta_j))`` where theta is `step` times the sum of all gains
    so far: the multiplicative weights of Freund and Schapire (1997), with one more good that gains nothing,
    so that the budget need not be spent. It is the best response to the gains so far, regularised by entropy.
    If no gain is larger than 2, the regret after T rounds is at most
    ``bound ln(size + 1) / (step T) + 4 step bound`` a round (Jagielski et al. 2019, Lemma 4.2).

    Attributes
    ----------
    bound : float
        On the sum of each play.
    step : float
        The learning rate.
    theta
        `step` times the gains so far, shape ``(size,)``.

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
        """Take note of what each good gained per unit in this round, shape ``(size,)``."""
        self.theta = self.theta + self.step * np.asarray(gain, dtype=float)
