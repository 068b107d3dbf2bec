"""What the games of learner and auditor share: plays, the duality gap, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Improvement
from forcopt.models.fair_classification.decision import RandomizedClassifier
from forcopt.models.fair_classification.hypotheses import Hypothesis
from forcopt.models.fair_classification.hypothesis_pool import HypothesisPool
from forcopt.models.fair_classification.lagrangian import Lagrangian
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["GapTracker"]


class GapTracker:
    """The plays of a game so far, and what they prove.

    Attributes
    ----------
    met
        The classifiers.
    upper
        The least penalised error of a mixture found so far, ``error + bound * largest excess``.
    lower
        The greatest lower bound that prices have proved; relative to the oracle if that is not exact.
    stopped
        Whether the gap, the time or the caller says so.
    """

    def __init__(
        self,
        problem: FairClassification,
        bound: float,
        repair: bool,
        backend: str,
        time_limit: float | None,
        on_improvement: Callable[[Improvement], bool | None] | None,
        game: Lagrangian | None = None,
    ) -> None:
        self.problem, self.bound, self.repair, self.backend = problem, bound, repair, backend
        self.game = problem.lagrangian if game is None else game
        self.time_limit, self.on_improvement = time_limit, on_improvement
        self.began = time.perf_counter()
        self.oracle, self.calls = problem.oracle.fresh(), 0
        self.met = HypothesisPool(self.game)
        if repair:
            for constant in self.oracle.constants():
                self.met.add(constant)
        self.upper, self.lower = np.inf, -np.inf
        self.weights: Array = np.zeros(0)
        self.prices: Array = np.zeros(self.game.size)
        self.total: Array = np.zeros(self.game.size)
        self.plays = 0
        self.next_check = 1
        self.stopped = False
        self.kept: Array = np.arange(self.game.size)
        """Which of the prices belong to the inequalities of the problem's own Lagrangian."""
        self.trace: list[Improvement] = []

    def respond(self, prices: Array) -> int:
        """Let the learner answer the auditor's prices, as a play; gives the place of the classifier."""
        self.total += prices
        self.plays += 1
        found = self._ask(prices)
        self._overtime()
        return self.met.add(found, plays=1)

    def is_due(self, t: int) -> bool:
        """Whether the gap should be computed after this round: in rounds 1, 2, 3, 4, 6, 9, 13, ..."""
        if t < self.next_check:
            return False
        self.next_check = max(t + 1, int(1.5 * t))
        return True

    def certify(self, accuracy: float) -> None:
        """Compute the gap of the mixture so far, and stop if it is at most `accuracy`."""
        self._prove(self.total / self.plays)
        if self.repair:
            weights, prices = self.met.repaired(self.oracle, self.bound, self.backend)
            self._prove(prices)
        else:
            weights = self.met.averaged
        upper = self.game.penalized(self.met.predicted(weights), self.bound)
        if upper < self.upper or not self.repair:  # averages are what the theorem speaks of, also if worse
            self.upper, self.weights = upper, weights
        now = Improvement(time.perf_counter() - self.began, self.upper, self.lower)
        self.trace.append(now)
        asked = self.on_improvement is not None and bool(self.on_improvement(now))
        self.stopped = self.stopped or asked or self.upper - self.lower <= accuracy
        self._overtime()

    def _prove(self, prices: Array) -> None:
        """A lower bound from prices; the answer joins the classifiers met."""
        best = self._ask(prices)
        if self.repair:
            self.met.add(best)
        bound = self.game.value(best.predictions, prices)
        if bound > self.lower:
            self.lower, self.prices = bound, prices

    def _ask(self, prices: Array) -> Hypothesis:
        self.calls += 1
        return self.oracle.best(self.game.price(prices))

    def _overtime(self) -> None:
        if self.time_limit is not None and time.perf_counter() - self.began > self.time_limit:
            self.stopped = True

    def outcome(self, rounds: int) -> Outcome:
        """The mixture, with the bound if the oracle is exact."""
        if not len(self.weights):
            self.certify(0.0)
        weights = np.concatenate([self.weights, np.zeros(len(self.met.hypotheses) - len(self.weights))])
        prices = self.prices[self.kept]
        decision = RandomizedClassifier.of(weights, self.met.hypotheses, prices, self.bound)
        exact = self.oracle.exact
        which = "duality gap" if exact else "duality gap, as far as the learner can tell,"
        return Outcome(
            decision,
            bound=self.lower if exact else None,
            status=Status.APPROXIMATE,
            iterations=rounds,
            message=(
                f"{which} {self.upper - self.lower:.3g} with multipliers of sum at most {self.bound:.4g}; "
                f"{self.calls} calls of the oracle"
            ),
            trace=self.trace,
        )
