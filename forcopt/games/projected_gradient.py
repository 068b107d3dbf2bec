"""Online gradient ascent within a box: a player who moves along its last gain."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.language.terms import Array

__all__ = ["ProjectedGradient"]


class ProjectedGradient:
    """Plays vectors in ``[0, bound]^size``, to maximise the sum of ``gain . x`` over the rounds.

    Each coordinate moves by `step` times its last gain, and stays within the box (Zinkevich 2003). If the
    gains are at most 1, the regret a coordinate after T rounds with ``step = bound / sqrt(T)`` is at most
    ``bound / sqrt(T)`` a round.

    Attributes:
        bound: on each coordinate.
        step: the learning rate.
        position: the next play, shape ``(size,)``; 0 at first.

    >>> player = ProjectedGradient(size=1, bound=1.0, step=0.5)
    >>> for gain in (1.0, 3.0, -1.0):
    ...     player.learn([gain])
    >>> player.play().tolist()
    [0.5]
    """

    def __init__(self, size: int, bound: float, step: float) -> None:
        for name, value in (("bound", bound), ("step", step)):
            if not (np.isfinite(value) and value > 0):
                raise DeclarationError(f"{name} is {value!r}; it must be positive and finite")
        self.bound, self.step = float(bound), float(step)
        self.position: Array = np.zeros(size)

    def play(self) -> Array:
        """The next play, shape ``(size,)``."""
        return self.position

    def learn(self, gain: Any) -> None:
        """Take note of what each coordinate gained per unit in this round, shape ``(size,)``."""
        self.position = np.clip(self.position + self.step * np.asarray(gain, dtype=float), 0.0, self.bound)
