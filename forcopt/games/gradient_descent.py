"""Online projected gradient descent (Zinkevich, 2003)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["GradientDescent"]


class GradientDescent:
    """Plays points of a convex set against convex losses whose gradients it is told one by one.

    With the fixed rate ``D / (G sqrt(T))``, T rounds, gradients no longer than G and a set no wider than D,
    the regret is at most ``G D sqrt(T)`` (Diana et al., 2021, Theorem 18). Without a rate, that of round t is
    ``D / sqrt(sum of the squared lengths so far)`` (Streeter and McMahan, 2010), which needs neither T nor G:
    the regret is at most ``3/2 D sqrt(sum of the squared lengths)``.

    Parameters
    ----------
    start : Array
        The first point.
    project : Callable[[Array], Array]
        To the set.
    rate : float, optional
        Of all steps.
    diameter : float, optional
        D, if there is no rate; positive.

    Examples
    --------
    >>> player = GradientDescent(np.zeros(1), lambda x: np.clip(x, 0, 1), rate=0.5)
    >>> for _ in range(3):
    ...     player.learn(np.array([-1.0]))
    >>> player.play().tolist()
    [1.0]
    """

    def __init__(
        self,
        start: Array,
        project: Callable[[Array], Array],
        *,
        rate: float | None = None,
        diameter: float | None = None,
    ) -> None:
        given = diameter if rate is None else rate
        if given is None or (rate is not None and diameter is not None) or not 0 < given < np.inf:
            raise DeclarationError(
                f"rate is {rate} and diameter {diameter}; one of them must be given, positive and finite"
            )
        self._point = np.array(start, dtype=float)
        self._project, self._rate, self._diameter = project, rate, diameter
        self._squares = 0.0

    def play(self) -> Array:
        """The next play."""
        return self._point

    def learn(self, gradient: Array) -> None:
        """Learn the gradient of the loss at the point that was played, and step."""
        rate = self._rate
        if rate is None:
            assert self._diameter is not None
            self._squares += float(np.square(gradient).sum())
            rate = self._diameter / np.sqrt(self._squares) if self._squares > 0 else 0.0
        self._point = self._project(self._point - rate * gradient)
