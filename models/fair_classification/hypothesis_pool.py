"""The classifiers that a method has met, and the best mixture of them."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import BackendError
from forcopt.language.model import Model
from forcopt.learning import Hypothesis, Oracle
from forcopt.loops.solution import ModelSolution
from forcopt.models.fair_classification.lagrangian import Lagrangian
from forcopt.status import Status

__all__ = ["WORTH_RECALLING", "HypothesisPool"]

WORTH_RECALLING = 1e-6
"""By how much a classifier that the oracle remembers must improve the error to be taken up."""

GRACE = 0.5
"""Seconds that the last mixture gets once the time is used up, so that a short run is not left unfair."""


class HypothesisPool:
    """Hypotheses that differ on the records, with the Lagrangian's data of each.

    Attributes
    ----------
    hypotheses
        In the order of their first appearance.
    counts
        How often each was played.
    errors
        Of each.
    activities
        ``rows @ predictions`` of each, shape ``(r,)``.
    """

    def __init__(self, lagrangian: Lagrangian) -> None:
        self.lagrangian = lagrangian
        self.hypotheses: list[Hypothesis] = []
        self.counts: list[int] = []
        self.errors: list[float] = []
        self.activities: list[Array] = []
        self._place: dict[bytes, int] = {}

    def add(self, found: Hypothesis, plays: int = 0) -> int:
        """Add a hypothesis if it is new, count its plays, and return its place."""
        key = np.packbits(found.predictions.astype(bool)).tobytes()
        at = self._place.setdefault(key, len(self.hypotheses))
        if at == len(self.hypotheses):
            self.hypotheses.append(found)
            self.counts.append(0)
            self.errors.append(self.lagrangian.error(found.predictions))
            self.activities.append(self.lagrangian.activity(found.predictions))
        self.counts[at] += plays
        return at

    @property
    def averaged(self) -> Array:
        """The weight of each if all plays weigh the same."""
        return np.array(self.counts) / sum(self.counts)

    def predicted(self, weights: Array) -> Array:
        """The probability that each record is predicted 1 by a mixture."""
        used = np.flatnonzero(weights)
        stacked = np.array([self.hypotheses[k].predictions for k in used], dtype=float)
        return np.asarray(np.clip(weights[used] @ stacked, 0.0, 1.0))

    def repaired(
        self, oracle: Oracle, bound: float, backend: str, deadline: Deadline
    ) -> tuple[Array, Array | None]:
        """The fair mixture of least error, and its multipliers.

        If no mixture of these is fair: the mixture of least error plus `bound` times the largest excess.
        Hypotheses that the oracle remembers join the pool where they improve the mixture. Once the deadline
        has passed and no mixture was found within half a second, it is the average play (or the first
        hypothesis, if there were no plays) without multipliers.

        Raises
        ------
        BackendError
            If the linear program cannot be solved.

        References
        ----------
        Agarwal et al. (2018) and Jung et al. (2021) average the plays; this linear program over the plays is
        never worse.
        """
        game = self.lagrangian
        best: tuple[Array, Array | None] | None = None
        while True:
            solution, weights, multipliers = self._mix(None, backend, deadline)
            if solution.status is Status.INFEASIBLE:
                solution, weights, multipliers = self._mix(bound, backend, deadline)
            if solution.status is not Status.OPTIMAL:
                if not deadline.passed:
                    raise BackendError(
                        f"mixing {len(self.hypotheses)} classifiers failed: {solution.message}"
                    )
                return best or (self.averaged if sum(self.counts) else self._first(), None)
            best = weights, multipliers
            known = len(self.hypotheses)
            for found in () if deadline.passed else oracle.recall(game.price(multipliers)):
                if game.value(found.predictions, multipliers) < solution.objective - WORTH_RECALLING:
                    self.add(found)
            if len(self.hypotheses) == known:
                return best

    def _first(self) -> Array:
        return np.asarray(np.eye(1, len(self.hypotheses))[0])

    def _mix(
        self, penalty: float | None, backend: str, deadline: Deadline
    ) -> tuple[ModelSolution, Array, Array]:
        game = self.lagrangian
        model = Model("mixture")
        weight = model.variable("weight", len(self.hypotheses), lower=0.0)
        slack = model.variable("slack", len(game.low), lower=game.low, upper=game.high)
        goal = weight @ np.array(self.errors)
        model.subject_to(weight.sum() == 1, name="mixture")
        left = model.lift(np.zeros(game.size)) + np.array(self.activities).T @ weight + game.slack @ slack
        if penalty is not None:
            excess = model.variable("excess", lower=0.0)
            left, goal = left - excess, goal + penalty * excess
        fair = model.subject_to(left <= game.bounds, name="fairness")
        model.minimize(goal)
        left = deadline.left
        solution = model.solve(backend, time_limit=None if left is None else max(left, GRACE))
        if solution.status is not Status.OPTIMAL:
            return solution, np.zeros(0), np.zeros(0)
        multipliers = np.maximum(-solution.dual(fair), 0.0)
        weights = np.maximum(solution[weight], 0.0)
        return solution, weights / weights.sum(), multipliers
