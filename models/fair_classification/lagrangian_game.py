"""The game of learner and auditor over the Lagrangian: plays, best mixture, and proved bounds."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Trace
from forcopt.games import GameEnd, Measurement
from forcopt.learning import Hypothesis, OracleTimeout
from forcopt.models.fair_classification.lagrangian import HypothesisPool, Lagrangian
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Outcome
from forcopt.status import Status

_ENDED = {
    "gap": "the gap is within the accuracy",
    "rounds": "all rounds were played",
}


class Auditor(Protocol):
    """Prices the inequalities of the constraint."""

    def play(self) -> Array:
        """The next prices, at least 0; shape ``(r,)``."""

    def learn(self, gain: Array) -> None:
        """Learn the excess of each inequality in this round."""


class LagrangianGame:
    """The repeated game of an auditor against the learner's best responses; a `TwoPlayerGame`.

    Parameters
    ----------
    problem : FairClassification
        The problem.
    auditor : Auditor
        Plays prices.
    bound : float
        B, on the sum of the auditor's prices.
    repair : bool
        Whether to return the best mixture of all classifiers met, rather than the average play.
    backend : str
        Solves the linear programs of the mixture.
    trace : Trace
        The clock of the run.
    lagrangian : Lagrangian, optional
        The game's payoff; the problem's by default.

    Attributes
    ----------
    met : HypothesisPool
        The classifiers.
    upper : float
        The least penalised error of a mixture found so far, ``error + bound * largest excess``.
    lower : float
        The greatest lower bound that prices have proved; relative to the oracle if that is not exact.
    kept : Array
        The prices that belong to the inequalities of the problem's own Lagrangian.
    """

    def __init__(
        self,
        problem: FairClassification,
        auditor: Auditor,
        *,
        bound: float,
        repair: bool,
        backend: str,
        trace: Trace,
        lagrangian: Lagrangian | None = None,
    ) -> None:
        self.problem, self.auditor, self.bound = problem, auditor, bound
        self.repair, self.backend, self.trace = repair, backend, trace
        self.lagrangian = problem.lagrangian if lagrangian is None else lagrangian
        self.oracle, self.calls = problem.oracle.fresh(), 0
        self.oracle.deadline = trace.deadline
        self.met = HypothesisPool(self.lagrangian)
        if repair:
            for constant in self.oracle.constants():
                self.met.add(constant)
        self.upper, self.lower = np.inf, -np.inf
        self.weights: Array = np.zeros(0)
        self.prices: Array = np.zeros(self.lagrangian.size)
        self.total: Array = np.zeros(self.lagrangian.size)
        self.plays = 0
        self.kept: Array = np.arange(self.lagrangian.size)

    def prepare(self, rounds: int) -> None:
        """Nothing depends on the number of rounds to come."""

    def step(self) -> None:
        """The auditor prices, the learner answers, the auditor learns the excess of the answer."""
        prices = self.auditor.play().copy()
        answer = self._ask(prices)
        if answer is None:  # out of time
            return
        self.total += prices
        self.plays += 1
        place = self.met.add(answer, plays=1)
        lagrangian = self.lagrangian
        slack = lagrangian.slack @ lagrangian.best_slack(prices)
        self.auditor.learn(self.met.activities[place] + slack - lagrangian.bounds)

    def measure(self) -> Measurement:
        """The gap between the penalised error of the mixture and the bound that prices prove."""
        if self.plays:
            self._prove(self.total / self.plays)
        if self.repair and self.met.hypotheses:
            weights, prices = self.met.repaired(self.oracle, self.bound, self.backend, self.trace.deadline)
            if prices is not None:
                self._prove(prices)
        elif self.plays:
            weights = self.met.averaged
        else:
            return Measurement(np.inf, self.lower, np.inf)
        upper = self.lagrangian.penalized(self.met.predicted(weights), self.bound)
        if upper < self.upper or not self.repair:  # the theorems are about averages
            self.upper, self.weights = upper, weights
        return Measurement(self.upper, self.lower, max(self.upper - self.lower, 0.0))

    def _prove(self, prices: Array) -> None:
        """A lower bound from prices; the answer joins the classifiers met."""
        best = self._ask(prices)
        if best is None:
            return
        if self.repair:
            self.met.add(best)
        bound = self.lagrangian.value(best.predictions, prices)
        if bound > self.lower:
            self.lower, self.prices = bound, prices

    def _ask(self, prices: Array) -> Hypothesis | None:
        """The learner's best response; None once the time is used up."""
        self.calls += 1
        if self.calls > 1 and self.trace.over:
            return None
        try:
            return self.oracle.best(self.lagrangian.price(prices))
        except OracleTimeout:
            return None

    def outcome(self, end: GameEnd) -> Outcome:
        """The best mixture; with the proved bound if the oracle is exact."""
        why = _ENDED.get(end.reason) or self.trace.end
        if not len(self.weights):
            return Outcome(None, status=Status.LIMIT, iterations=end.rounds, message=why)
        weights = np.concatenate([self.weights, np.zeros(len(self.met.hypotheses) - len(self.weights))])
        budget = max(self.bound, float(self.prices.sum()))  # a linear program's prices may exceed the bound
        decision = self.problem.policy(weights, self.met.hypotheses, self.prices[self.kept], budget)
        exact = self.oracle.exact
        name = "duality gap" if exact else "duality gap, if the learner's fits are optimal,"
        return Outcome(
            decision,
            bound=self.lower if exact else None,
            status=Status.APPROXIMATE,
            iterations=end.rounds,
            message=(
                f"{why}: {name} {self.upper - self.lower:.3g} with multipliers of sum at most "
                f"{budget:.4g}; {self.calls} calls of the oracle"
            ),
            trace=self.trace.steps,
        )
