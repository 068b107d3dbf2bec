"""Two-player zero-sum games: players without regret, and the loop that measures their gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from forcopt.arrays import Array, whole_number
from forcopt.clock import Trace
from forcopt.errors import DeclarationError, require


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
            require(np.isfinite(value) and value > 0, name, value, "be positive and finite")
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
        require(0 < rate < np.inf, "rate", rate, "be positive and finite")
        self._best, self.rate = best, rate
        self._total = np.zeros(dimension)
        self._rng = np.random.default_rng(seed)

    def play(self, count: int = 1) -> Array:
        """Draw `count` plays of this round, independently."""
        return self._best(self._total + self._rng.random((count, len(self._total))) / self.rate)

    def learn(self, loss: Array) -> None:
        """Learn the loss vector of the round."""
        self._total = self._total + loss


@dataclass(frozen=True)
class Measurement:
    """The value that one player has secured, and the bound that the other has proved.

    Attributes
    ----------
    objective : float
        The value of the best play found so far, for the minimiser.
    bound : float
        No play of the minimiser has a smaller value.
    gap : float
        The distance from a saddle point, at least 0, in the units of the accuracy.
    """

    objective: float
    bound: float
    gap: float


class TwoPlayerGame(Protocol):
    """A repeated game whose gap can be measured, by a best response of either player."""

    def prepare(self, rounds: int) -> None:
        """Expect this many rounds in all until the next measurement."""

    def step(self) -> None:
        """Play one round: both players play, and both learn."""

    def measure(self) -> Measurement:
        """Measure the gap of the plays so far, by best responses."""


@dataclass(frozen=True)
class GameEnd:
    """How a game ended.

    Attributes
    ----------
    rounds : int
        The number of rounds played.
    reason : str
        ``"gap"``, ``"rounds"``, ``"time"`` or ``"caller"``.
    measurement : Measurement
        The last one.
    """

    rounds: int
    reason: Literal["gap", "rounds", "time", "caller"]
    measurement: Measurement


def checkpoints(rounds: int, first: int = 1, factor: float = 1.5) -> Iterator[int]:
    """The rounds after which the gap is measured: geometrically fewer as the game goes on.

    Parameters
    ----------
    rounds : int
        The last round of the game, at least 1.
    first : int, default 1
        The first round to measure.
    factor : float, default 1.5
        Above 1: the ratio of a measured round to the one before.

    Yields
    ------
    int
        Rounds in rising order; `rounds` is the last.

    Examples
    --------
    >>> list(checkpoints(20))
    [1, 2, 3, 4, 6, 9, 13, 19, 20]
    >>> list(checkpoints(3000, first=500, factor=2))
    [500, 1000, 2000, 3000]
    """
    at = min(first, rounds)
    while at < rounds:
        yield at
        at = max(at + 1, int(factor * at))
    yield rounds


def run_game(
    game: TwoPlayerGame, *, rounds: int, accuracy: float, trace: Trace, first: int = 1, factor: float = 1.5
) -> GameEnd:
    """Play rounds until the measured gap is at most the accuracy.

    Parameters
    ----------
    game : TwoPlayerGame
        The players and their measurement.
    rounds : int
        The largest number of rounds, at least 1.
    accuracy : float
        The gap at which to stop.
    trace : Trace
        Its deadline is looked at after every round; it gets every measurement, and lets the caller stop.
    first : int, default 1
        The number of rounds before the first measurement.
    factor : float, default 1.5
        The growth of the number of rounds from one measurement to the next.

    Returns
    -------
    GameEnd
        The game is always measured after its last round, so that the measurement describes the result.

    Raises
    ------
    DeclarationError
        If `rounds` is not a whole number of at least 1.

    Examples
    --------
    Matching pennies, exponentiated gradient against best responses:

    >>> from forcopt.clock import Deadline
    >>> from forcopt.games import ExponentiatedGradient
    >>> class Pennies:
    ...     payoff = np.array([[2.0, 0.0], [0.0, 2.0]])
    ...     def __init__(self):
    ...         self.row, self.plays, self.answers = ExponentiatedGradient(2, 1.0, 0.02), [], []
    ...     def prepare(self, rounds): pass
    ...     def step(self):
    ...         self.plays.append(self.row.play())
    ...         self.answers.append(np.eye(2)[np.argmin(self.plays[-1] @ self.payoff)])
    ...         self.row.learn(self.payoff @ self.answers[-1])
    ...     def measure(self):
    ...         most = float((self.payoff @ np.mean(self.answers, axis=0)).max())
    ...         least = float((np.mean(self.plays, axis=0) @ self.payoff).min())
    ...         return Measurement(most, least, most - least)
    >>> run_game(Pennies(), rounds=1000, accuracy=0.1, trace=Trace(Deadline())).reason
    'gap'
    """
    rounds = whole_number(rounds, "rounds", 1)
    played = 0
    for until in checkpoints(rounds, first, factor):
        game.prepare(until)
        measured = played
        while played < until and not (played and trace.over):
            game.step()
            played += 1
        if played > measured:
            found = game.measure()
            trace.add(found.objective, found.bound)
            if found.gap <= accuracy:
                return GameEnd(played, "gap", found)
        if trace.over:
            return GameEnd(played, "caller" if trace.stopped else "time", found)
    return GameEnd(played, "rounds", found)
