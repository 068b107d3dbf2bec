"""Players without regret: each plays a round, learns its gains or losses, and plays again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError


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
