"""Follow the perturbed leader (Kalai and Vempala, 2005)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["PerturbedLeader"]


class PerturbedLeader:
    """Play vectors of a set in {0, 1}^d against linear losses, by an oracle that minimizes over the set.

    Parameters
    ----------
    best : Callable[[Array], Array]
        The oracle: for costs of the ones, shape ``(m, d)``, it gives m best vectors, in any form.
    dimension : int
        The dimension d.
    rate : float
        The inverse of the largest perturbation; positive.
    seed : int or numpy.random.Generator, optional
        The source of the perturbations.

    Attributes
    ----------
    rate : float
        The same; it may change between rounds.

    Raises
    ------
    DeclarationError
        If `rate` is not positive and finite.

    Notes
    -----
    Each play is a best vector for the sum of the losses so far plus a fresh uniform number of [0, 1 / rate]
    in each entry [1]_. With losses in [-M, M]^d and the rate ``1 / (M sqrt(d T))`` the expected regret after
    T rounds is at most ``2 M d^(3/2) sqrt(T)`` [2]_.

    References
    ----------
    .. [1] Kalai, Vempala, "Efficient algorithms for online decision problems", Journal of Computer and
       System Sciences 71 (2005).
    .. [2] Diana et al., "Lexicographically fair learning: algorithms and generalization", FORC 2021,
       Theorem 19.

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
