"""The game of each level: a learner against the auditor, until the gap that is measured is small enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError, require
from forcopt.games import GradientDescent, Measurement, run_game
from forcopt.models.lexifair.problem import Fit, Lexifair, Multipliers, most_violated, prove, sums_of_largest
from forcopt.models.lexifair.tolerances import LEAST_LOSS
from forcopt.problem import Outcome
from forcopt.status import Status

FIRST = 500
"""The rounds before the gap is measured first; the number doubles each time."""


class Learner(Protocol):
    """Plays models; each level is a new game, in which it may keep its state."""

    def begin(self, penalty: float) -> None:
        """Start a game in which the weights of the groups are 0 or `penalty`."""

    def horizon(self, rounds: int) -> None:
        """Expect this number of rounds in all until the next measurement."""

    def play(self) -> Array:
        """Play; gives the group losses of the play, shape ``(K,)``."""

    def learn(self, weights: Array) -> None:
        """The loss of the round is the weighted sum of the group losses."""

    def average(self) -> Fit:
        """The average of the plays since it was last asked."""


Assess = Callable[["LevelGame"], Measurement]
"""Measures a game at its present averages."""


class LevelGame:
    """The game of level j: equations (3) and (4), with the auditor of Algorithm 1; a `TwoPlayerGame`.

    Averages are taken over the plays since the last measurement.

    Parameters
    ----------
    learner : Learner
        Plays models.
    groups : int
        K.
    limits : Array
        ``η_1, ..., η_{j-1}``.
    penalty : float
        B, the auditor's weight of a violated set.
    eta : GradientDescent
        Plays ``η_j``.
    assess : Callable[[LevelGame], Measurement]
        Measures the average play, see `average`.

    Attributes
    ----------
    losses : Array
        Of the last play, shape ``(K,)``.
    """

    def __init__(
        self,
        learner: Learner,
        groups: int,
        limits: Array,
        penalty: float,
        eta: GradientDescent,
        assess: Assess,
    ) -> None:
        self.learner, self.penalty, self.eta, self.assess = learner, penalty, eta, assess
        self.limits = np.append(limits, 0.0)
        self.losses = np.zeros(groups)
        self._forget()

    def _forget(self) -> None:
        self._weights, self._prices, self._eta = np.zeros(len(self.losses)), np.zeros(len(self.limits)), 0.0
        self._since = 0

    def prepare(self, rounds: int) -> None:
        """Let the learner choose its noise for this number of rounds."""
        self.learner.horizon(rounds)

    def step(self) -> None:
        """One round: the learner plays a model, the auditor weighs the worst set, both learn."""
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
        self.eta.learn(np.array([1.0 - self.penalty * (len(chosen) == len(self.limits))]))
        self._since += 1

    def measure(self) -> Measurement:
        """The measurement of the average play."""
        return self.assess(self)

    def average(self) -> tuple[Fit, float, Array, Array]:
        """The average play since it was last asked: model, ``η_j``, group weights and prices by size."""
        out = self._eta / self._since, self._weights / self._since, self._prices / self._since
        self._forget()
        return self.learner.average(), *out


def check_game(alpha: float, rounds: int) -> None:
    """Check the data that every game needs.

    Raises
    ------
    DeclarationError
        Naming the option.
    """
    require(0 < alpha < np.inf, "alpha", alpha, "be positive and finite")
    whole = isinstance(rounds, int | np.integer) and rounds >= 1
    require(whole, "rounds", rounds, "be a whole number of at least 1")


def play_levels(
    problem: Lexifair,
    learner: Learner,
    alpha: float,
    rounds: int,
    limit: float | None,
    report: OnImprovement | None,
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
        The problem.
    learner : Learner
        Plays models.
    alpha : float
        The slack of each level at which to stop, in units of loss.
    rounds : int
        The largest number for each level.
    time_limit : float
        Seconds for all levels together, looked at after every round.
    on_improvement : OnImprovement
        Gets the first level's value and bound at each measurement.
    """
    if getattr(problem, "constraint", None) is not None:
        raise DeclarationError("the games of the levels know no constraint; use column-generation")
    trace = Trace(Deadline(limit), report)
    count = len(problem.groups)
    respond = problem.responder(trace.deadline)
    best = respond(np.full(count, 1.0 / count), np.zeros(0))
    proofs: list[list[Multipliers]] = []
    played: list[int] = []
    message = ""
    for level in range(1, problem.level_count + 1):
        totals = sums_of_largest(best.losses)
        # the model at hand meets the limits, so that eta_j need be no larger than its sum
        most = max(float(totals[level - 1]), LEAST_LOSS)
        penalty = (alpha + most) / alpha
        learner.begin(penalty)
        eta = GradientDescent(np.array([most / 2]), between(most), diameter=most)
        proofs.append([])
        played.append(0)
        slack = np.inf

        def assess(game: LevelGame) -> Measurement:
            nonlocal best, slack
            model, _, weights, prices = game.average()
            found = Multipliers.of(respond, weights, prices)
            if found is not None:
                proofs[-1].append(found)
            for candidate in (best, model):
                levels = prove(sums_of_largest(candidate.losses), proofs, played, problem.floor)
                worst = max(level.alpha for level in levels)
                if worst < slack or candidate is best:
                    best, slack = candidate, worst
            first = prove(sums_of_largest(best.losses), proofs, played, problem.floor)[0].bound
            return Measurement(float(best.losses.max()), first, slack)

        game = LevelGame(learner, count, totals[: level - 1], penalty, eta, assess)
        # earlier levels give way as later ones are played: leave them room
        target = alpha * (1.0 + level / problem.level_count) / 2.0
        end = run_game(game, rounds=rounds, accuracy=target, trace=trace, first=FIRST, factor=2)
        played[-1] = end.rounds
        if end.reason != "gap":
            message = message or f"level {level} was left after {end.rounds} rounds at slack {slack:.2g}"
        if end.reason in ("time", "caller"):
            message += f": {trace.end}"
            break
    levels = prove(sums_of_largest(best.losses), proofs, played, problem.floor)
    done = len(levels) == problem.level_count and problem.exact
    decision, bound = replace(problem.decide(best), levels=levels), levels[0].bound if problem.exact else None
    worst = max(level.alpha for level in levels) if done else np.inf
    status = Status.APPROXIMATE
    return Outcome(decision, bound, status, sum(played), message, trace.steps, guarantee=worst)


def between(most: float) -> Callable[[Array], Array]:
    """The projection to [0, most]."""
    return lambda eta: np.clip(eta, 0.0, most)
