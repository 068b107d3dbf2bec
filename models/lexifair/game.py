"""The game of each level: a learner against the auditor, until the gap that is measured is small enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Improvement
from forcopt.errors import DeclarationError
from forcopt.games import GradientDescent
from forcopt.models.lexifair.auditor import most_violated
from forcopt.models.lexifair.levels import Multipliers, prove, sums_of_largest
from forcopt.models.lexifair.problem import GroupModel, Lexifair
from forcopt.problem import Outcome

__all__ = ["Learner", "LevelGame", "between", "check_game", "play_levels"]

_FIRST = 500
"""After so many rounds the gap is measured first; then after twice as many each time."""


class Learner(Protocol):
    """Who plays models; each level is a new game, in which it may keep what it has."""

    def begin(self, penalty: float) -> None:
        """Start a game in which the weights of the groups are 0 or `penalty`."""

    def horizon(self, rounds: int) -> None:
        """The game will have so many rounds in all, as far as is known."""

    def play(self) -> Array:
        """Play; gives the group losses of the play, shape ``(K,)``."""

    def learn(self, weights: Array) -> None:
        """The loss of the round is the weighted sum of the group losses."""

    def average(self) -> GroupModel:
        """The average of the plays since it was last asked."""


class LevelGame:
    """The game of level j: equations (3) and (4), with the auditor of Algorithm 1.

    Parameters
    ----------
    learner : Learner
        Who plays models.
    groups : int
        K.
    limits : Array
        ``η_1, ..., η_{j-1}``.
    penalty : float
        B, how much the auditor weighs a violated set.
    eta : GradientDescent
        Plays ``η_j``.

    Attributes
    ----------
    rounds
        Played so far.
    losses
        Of the last play.
    """

    def __init__(
        self, learner: Learner, groups: int, limits: Array, penalty: float, eta: GradientDescent
    ) -> None:
        self.learner, self.penalty, self.eta = learner, penalty, eta
        self.limits = np.append(limits, 0.0)
        self.rounds = 0
        self.losses = np.zeros(groups)
        self._forget()

    def _forget(self) -> None:
        self._weights, self._prices, self._eta = np.zeros(len(self.losses)), np.zeros(len(self.limits)), 0.0
        self._since = 0

    def run(self, rounds: int) -> None:
        """Play more rounds."""
        level = len(self.limits)
        for _ in range(rounds):
            self.losses = self.learner.play()
            self.limits[-1] = self.eta.play()[0]
            self._eta += self.limits[-1]
            chosen = most_violated(self.losses, self.limits)
            weights = np.zeros(len(self.losses))
            weights[chosen] = self.penalty
            self._weights += weights
            if len(chosen):
                self._prices[len(chosen) - 1] += self.penalty
            self.learner.learn(weights)
            # the derivative in eta_j of equation (6): 1 less the multipliers of the sets of size j
            self.eta.learn(np.array([1.0 - self.penalty * (len(chosen) == level)]))
        self.rounds += rounds
        self._since += rounds

    def average(self) -> tuple[GroupModel, float, Array, Array]:
        """The average play since it was last asked: model, ``η_j``, group weights and prices by size."""
        out = self._eta / self._since, self._weights / self._since, self._prices / self._since
        self._forget()
        return self.learner.average(), *out


def check_game(alpha: float, rounds: int) -> None:
    """Check what every game needs.

    Raises
    ------
    DeclarationError
        Naming the option.
    """
    if not 0 < alpha < np.inf:
        raise DeclarationError(f"alpha is {alpha!r}; it must be positive and finite")
    if rounds < 1:
        raise DeclarationError(f"rounds is {rounds!r}; it must be at least 1")


def play_levels(
    problem: Lexifair,
    learner: Learner,
    *,
    alpha: float,
    rounds: int,
    time_limit: float | None,
    on_improvement: Callable[[Improvement], bool | None] | None,
) -> Outcome:
    """Play the levels in turn, each until its measured gap is small.

    Averages are taken over the second half of the rounds, and measured whenever their number has doubled: the
    average multipliers prove a bound on the optimum (by one weighted fit), the average model has losses. The
    theorem's number of rounds, of the order of ``1 / alpha^4``, is never needed. The next level is played
    with the sums that the model truly has as limits, so that this model meets them: with the learner's
    average of ``η_j`` instead, as printed, no model may.

    Parameters
    ----------
    problem : Lexifair
        Which.
    learner : Learner
        Who plays models.
    alpha : float
        The slack of each level at which to stop, in units of loss.
    rounds : int
        At most so many for each level.
    time_limit : float
        Seconds for all levels together, looked at whenever the gap is measured.
    on_improvement : Callable[[Improvement], bool | None]
        Told of the first level's value and bound whenever they are measured.
    """
    began = time.perf_counter()

    def elapsed() -> float:
        return time.perf_counter() - began

    count = len(problem.groups)
    best = problem.best_response(np.full(count, 1.0 / count))
    proofs: list[list[Multipliers]] = []
    played: list[int] = []
    trace: list[Improvement] = []
    message = ""
    stop = False
    for level in range(1, problem.level_count + 1):
        totals = sums_of_largest(best.losses)
        # the model at hand meets the limits, so that eta_j need be no larger than its sum
        most = max(float(totals[level - 1]), 1e-12)
        penalty = (alpha + most) / alpha
        learner.begin(penalty)
        eta = GradientDescent(np.array([most / 2]), between(most), diameter=most)
        game = LevelGame(learner, count, totals[: level - 1], penalty, eta)
        proofs.append([])
        played.append(0)
        # earlier levels give way as later ones are played: leave them room
        target = alpha * (1.0 + level / problem.level_count) / 2.0
        slack = np.inf
        while not stop:
            more = min(max(game.rounds, _FIRST), rounds - game.rounds)
            learner.horizon(game.rounds + more)
            game.run(more)
            played[-1] = game.rounds
            model, _, weights, prices = game.average()
            found = Multipliers.of(problem, weights, prices)
            if found is not None:
                proofs[-1].append(found)
            for candidate in (best, model):
                levels = prove(sums_of_largest(candidate.losses), proofs, played)
                worst = max(found.alpha for found in levels)
                if worst < slack or candidate is best:
                    best, slack = candidate, worst
            if level == 1:
                trace.append(Improvement(elapsed(), float(best.losses.max()), levels[0].bound))
                stop = on_improvement is not None and bool(on_improvement(trace[-1]))
            if slack <= target:
                break
            if game.rounds >= rounds or (time_limit is not None and elapsed() > time_limit):
                message = message or f"level {level} was left after {game.rounds} rounds at slack {slack:.2g}"
                break
        if stop:
            break
    levels = prove(sums_of_largest(best.losses), proofs, played)
    return Outcome(
        replace(best, levels=levels),
        bound=levels[0].bound,
        iterations=sum(played),
        message=message,
        trace=trace,
    )


def between(most: float) -> Callable[[Array], Array]:
    """The projection to [0, most]."""
    return lambda eta: np.clip(eta, 0.0, most)
