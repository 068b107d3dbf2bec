"""Games of each level: projected gradient descent and the perturbed leader against the sorting auditor."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, Seed
from forcopt.clock import OnImprovement
from forcopt.errors import DeclarationError, require
from forcopt.games import GradientDescent, PerturbedLeader
from forcopt.models.lexifair.classification import LexifairClassification
from forcopt.models.lexifair.game import check_game, play_levels
from forcopt.models.lexifair.problem import Fit, Lexifair, check_delta
from forcopt.models.lexifair.regression import LexifairRegression
from forcopt.problem import Outcome


class Leader:
    """Plays mixtures of the classifiers that are best for randomly perturbed costs.

    The auditor must see the mixture: against single draws the play converges to another value.

    Parameters
    ----------
    problem : LexifairClassification
        Which.
    draws : int
        How many classifiers are mixed in each round.
    noise : float
        The perturbation, relative to Theorem 19.
    seed : int or numpy.random.Generator
        An int or a generator.
    """

    def __init__(self, problem: LexifairClassification, draws: int, noise: float, seed: Any) -> None:
        self.problem, self.draws, self.noise = problem, draws, noise
        self._rng = np.random.default_rng(seed)
        self._drawn: list[Array] = []
        self._met: dict[bytes, int] = {}
        self._made: list[Fit] = []
        # how much a weight of 1 on every group weighs on the heaviest record
        self._heaviest = heaviest(problem)

    def begin(self, penalty: float) -> None:
        """Forget the costs of the game before."""
        n = len(self.problem.labels)
        self._most = penalty * self._heaviest
        self._player = PerturbedLeader(self._best, n, rate=1.0, seed=self._rng)

    def horizon(self, rounds: int) -> None:
        """Choose the noise for a number of rounds."""
        n = len(self.problem.labels)
        self._player.rate = 1.0 / (self.noise * self._most * np.sqrt(n * rounds))

    def _best(self, costs: Array) -> Array:
        """The number, in the order met, of the best classifier for each row of costs."""
        found = []
        for best in self.problem.oracle.bests(costs):
            key = best.predictions.tobytes()
            if key not in self._met:
                self._met[key] = len(self._made)
                self._made.append(self.problem.fit([1.0], [best]))
            found.append(self._met[key])
        return np.array(found)

    def play(self) -> Array:
        """Group errors of the mixture drawn."""
        which = self._player.play(self.draws)
        self._drawn.append(which)
        return np.asarray(np.mean([self._made[k].losses for k in which.tolist()], axis=0))

    def learn(self, weights: Array) -> None:
        """Group weights are costs of records."""
        self._player.learn(weights @ self.problem.signed)

    def average(self) -> Fit:
        """The uniform mixture of all draws."""
        which, times = np.unique(np.concatenate(self._drawn), return_counts=True)
        self._drawn = []
        return self.problem.blend([self._made[k] for k in which.tolist()], times / times.sum())


def heaviest(problem: Lexifair) -> float:
    """The most that a record counts in the sum of all group means."""
    return float(np.abs(problem.averages).sum(axis=0).max())


def theorem_14(problem: Lexifair, level: int, alpha: float, delta: float) -> tuple[int, float, int]:
    """Rounds, penalty and draws a round with which a level of `ftpl` is alpha-fair, whatever happens.

    With the penalty ``B = (alpha + j) / alpha`` a gap of ``alpha / 2`` is enough (Theorem 12). Half of it is
    for the regret of both players: with ``M = B heaviest(problem)`` the perturbed leader's of Theorem 19,
    ``2 M n^(3/2) / sqrt(T)``, and gradient descent's on ``eta_j``, ``j (1 + B) / sqrt(T)``. The leader's law
    of a round is fixed by the rounds before, so that its regret is bounded whatever the auditor answers. The
    other half is for what the auditor sees, m draws in place of their law: by Hoeffding's inequality for K
    groups and T rounds, ``m = 8 (B j)^2 ln(2 K T / delta) / alpha^2`` are enough.

    Parameters
    ----------
    problem : LexifairClassification
        Of n records and K groups.
    level : int
        The level j.
    alpha : float
        The slack, positive.
    delta : float
        The probability of failure, strictly between 0 and 1.

    Returns
    -------
    tuple[int, float, int]
        T, B and m.

    References
    ----------
    Diana et al. (2021), Theorem 14, whose algorithm is in the full version alone; the constants follow from
    Theorems 12 and 19, and are not those of the paper.

    Examples
    --------
    >>> import forcopt as fo
    >>> theorem_14(fo.load("lexifair/thresholds"), level=1, alpha=0.5, delta=0.05)
    (252308, 3.0, 4962)
    """
    check_delta(delta)
    n, count, penalty = len(problem.labels), len(problem.groups), (alpha + level) / alpha
    regret = 2.0 * penalty * heaviest(problem) * n**1.5 + level * (1.0 + penalty)
    rounds = max(1, ceil((4.0 * regret / alpha) ** 2))
    draws = ceil(8.0 * (penalty * level) ** 2 * log(2.0 * count * rounds / delta) / alpha**2)
    return rounds, penalty, draws


ALPHA = 0.05
"""The slack of each level at which the perturbed leader stops."""


@LexifairClassification.algorithm(
    "ftpl", guarantee=lambda problem: ALPHA, cites="Diana et al. (2021), Theorems 14 and 19", rank="published"
)
def ftpl(
    problem: LexifairClassification,
    *,
    alpha: float = ALPHA,
    rounds: int = 20_000,
    draws: int = 20,
    noise: float = 0.1,
    time_limit: float | None = None,
    seed: Seed = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Perturbed cost-sensitive classification against the auditor, who answers the mixture of some draws.

    Each round costs `draws` calls of the oracle of the class. Levels, limits and stopping are as in
    ``no-regret``; the result mixes all draws of the second half of the rounds.

    Theorem 14: with the rounds and draws of `theorem_14` the mixture is (levels, alpha)-convex
    lexicographically fair with probability 1 - delta. The run stops once it has proved this of its mixture by
    multipliers, without a probability. ``s.guarantee`` is the slack that it has proved, infinite if the
    rounds end before, or for a class without an exact oracle.

    Parameters
    ----------
    alpha : float, default ALPHA
        The slack of each level at which to stop, a difference of error rates; positive.
    rounds : int, default 20000
        The largest number for each level.
    draws : int, default 20
        How many classifiers are drawn in each round.
    noise : float, default 0.1
        The perturbation, relative to Theorem 19, which is for the worst case.
    on_improvement : OnImprovement, optional
        Gets the first level's value and bound at each measurement.
    """
    problem.check_randomized("ftpl")
    check_game(alpha, rounds)
    require(draws >= 1, "draws", draws, "be at least 1")
    require(0 < noise < np.inf, "noise", noise, "be positive")
    leader = Leader(problem, draws, noise, seed)
    return play_levels(problem, leader, alpha, rounds, time_limit, on_improvement)


class _Space(NamedTuple):
    """Where the models lie: a start, the diameter, losses and gradients at a point, and the projection."""

    start: Array
    diameter: float
    losses: Callable[[Array], Array]
    gradient: Callable[[Array, Array], Array]
    project: Callable[[Array], Array]


def _ball(problem: LexifairRegression) -> _Space:
    """The coefficients within the radius."""
    X, labels, radius, loss = problem.features, problem.labels, problem.radius, problem.criterion
    if radius is None:
        raise DeclarationError("radius is None; 'no-regret' needs a bounded set of coefficients: give one")
    return _Space(
        np.zeros(X.shape[1]),
        2.0 * radius,
        lambda point: np.asarray(problem.averages @ loss.value(X @ point, labels)),
        lambda point, weights: np.asarray(((weights @ problem.averages) * loss.slope(X @ point, labels)) @ X),
        lambda point: np.asarray(point * (radius / max(float(np.linalg.norm(point)), radius))),
    )


def _simplex(problem: Any) -> _Space:
    """The probabilities of all classifiers, in which errors are linear."""
    table = problem.error_table

    def project(point: Array) -> Array:
        ordered = -np.sort(-point)
        excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(point) + 1)
        return np.asarray(np.maximum(point - excess[np.flatnonzero(ordered > excess)[-1]], 0.0))

    start = np.full(len(table), 1.0 / len(table))
    return _Space(
        start, float(np.sqrt(2.0)), lambda p: p @ table, lambda _, weights: table @ weights, project
    )


class Descent:
    """Plays parameters by projected gradient descent.

    Parameters
    ----------
    problem : Lexifair
        Of whose models; steps adapt to the gradients seen.
    """

    def __init__(self, problem: Lexifair) -> None:
        self.problem = problem
        self.space = space = _ball(problem) if isinstance(problem, LexifairRegression) else _simplex(problem)
        self._player = GradientDescent(space.start, space.project, diameter=space.diameter)
        self._point = space.start
        self._total, self._count = np.zeros_like(space.start), 0

    def begin(self, penalty: float) -> None:
        """Go on from the point at hand, with the steps at hand."""

    def horizon(self, rounds: int) -> None:
        """Not needed."""

    def play(self) -> Array:
        """Group losses at the point."""
        self._point = self._player.play()
        self._total += self._point
        self._count += 1
        return self.space.losses(self._point)

    def learn(self, weights: Array) -> None:
        """Step down the weighted loss."""
        self._player.learn(self.space.gradient(self._point, weights))

    def average(self) -> Fit:
        """The mean of the points played."""
        mean = self._total / self._count
        self._total, self._count = np.zeros_like(mean), 0
        return self.problem.fit_of(mean)


@LexifairRegression.algorithm("no-regret", cites="Diana et al. (2021), Algorithm 2", rank="published")
@LexifairClassification.algorithm(
    "no-regret", cites="Diana et al. (2021), Algorithm 2, Theorem 13", rank="published"
)
def no_regret(
    problem: Lexifair,
    *,
    alpha: float = 0.01,
    rounds: int = 20_000,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Gradient descent on the model against the auditor, who weighs the set of groups that loses too much.

    Each level is a game that ends when the slack that the average play proves of itself is below `alpha`.
    The steps adapt to the gradients, a level's limits are the model's true values, and the auditor's penalty
    follows from that instead of from L_M. Where it is left, see ``s.decision.levels``.

    Parameters
    ----------
    problem : Lexifair
        Which; a regression needs a radius.
    alpha : float, default 0.01
        The slack of each level at which to stop, in units of loss; positive.
    rounds : int, default 20000
        The largest number for each level.
    on_improvement : OnImprovement, optional
        Gets the first level's value and bound at each measurement.
    """
    problem.check_randomized("no-regret")
    check_game(alpha, rounds)
    return play_levels(problem, Descent(problem), alpha, rounds, time_limit, on_improvement)
