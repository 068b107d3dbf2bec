"""Follow the perturbed leader (Kalai and Vempala, 2005)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["PerturbedLeader"]


class PerturbedLeader:
    """Plays vectors of a set in {0, 1}^d against linear losses, by an oracle that minimises over it.

    Each play is the best vector for the sum of the losses so far, each perturbed by a fresh uniform number of
    [0, 1 / rate]. With losses in [-M, M]^d and the rate ``1 / (M sqrt(d T))`` the expected regret after T
    rounds is at most ``2 M d^(3/2) sqrt(T)`` (Diana et al., 2021, Theorem 19).

    Parameters
    ----------
    best : Callable[[Array], Array]
        The oracle: for costs of shape ``(m, d)`` a best vector each, in whatever form; the costs are those of
        the 1s.
    dimension : int
        D.
    rate : float
        Positive.
    seed : int or numpy.random.Generator, optional
        An int or a generator.

    Attributes
    ----------
    rate : float
        May be changed between rounds.

    Examples
    --------
    >>> leader = PerturbedLeader(lambda costs: costs.argmin(axis=1), 3, rate=10.0, seed=0)
    >>> leader.learn(np.array([5.0, 1.0, 3.0]))
    >>> leader.play(4).tolist()
    [1, 1, 1, 1]
    """

    def __init__(
        self,
        best: Callable[[Array], Array],
        dimension: int,
        *,
        rate: float,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not 0 < rate < np.inf:
            raise DeclarationError(f"rate is {rate}; it must be positive and finite")
        self._best, self.rate = best, rate
        self._total = np.zeros(dimension)
        self._rng = np.random.default_rng(seed)

    def play(self, count: int = 1) -> Array:
        """Draw `count` plays of this round, independently."""
        noise = self._rng.random((count, len(self._total))) / self.rate
        return self._best(self._total + noise)

    def learn(self, loss: Array) -> None:
        """Learn the loss vector of the round."""
        self._total = self._total + loss
