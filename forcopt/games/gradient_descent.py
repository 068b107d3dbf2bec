"""Online projected gradient descent (Zinkevich, 2003)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["GradientDescent"]


class GradientDescent:
    """Play points of a convex set against convex losses, by the gradient of each loss.

    Parameters
    ----------
    start : Array
        The first point.
    project : Callable[[Array], Array]
        The projection onto the set.
    rate : float, optional
        The length of every step per unit of gradient; positive.
    diameter : float, optional
        The diameter D of the set, if there is no rate; positive.

    Raises
    ------
    DeclarationError
        If not exactly one of `rate` and `diameter` is given, or if it is not positive and finite.

    Notes
    -----
    Let T be the number of rounds and G the largest length of a gradient. With the rate ``D / (G sqrt(T))``
    the regret is at most ``G D sqrt(T)`` [1]_. Without a rate, the rate of a round is
    ``D / sqrt(sum of the squared lengths so far)`` [2]_. It depends neither on T nor on G, and the regret is
    at most ``3/2 D sqrt(sum of the squared lengths)``.

    References
    ----------
    .. [1] Diana et al., "Lexicographically fair learning: algorithms and generalization", FORC 2021,
       Theorem 18.
    .. [2] Streeter, McMahan, "Less regret via online conditioning", arXiv:1002.4862 (2010).

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
