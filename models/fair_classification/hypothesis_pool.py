"""The classifiers that a method has met, and the best mixture of them."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import BackendError
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.fair_classification.hypotheses import Hypothesis, Oracle
from forcopt.models.fair_classification.lagrangian import Lagrangian
from forcopt.status import Status

__all__ = ["WORTH_RECALLING", "HypothesisPool"]

WORTH_RECALLING = 1e-6
"""By how much a classifier that the oracle remembers must improve the error to be taken up."""


class HypothesisPool:
    """Hypotheses that differ on the records, with what the Lagrangian needs to know of each.

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
        """Take a hypothesis in, if it is new, and count so many plays of it; gives its place."""
        key = np.packbits(found.predictions.astype(bool)).tobytes()
        at = self._place.setdefault(key, len(self.hypotheses))
        if at == len(self.hypotheses):
            self.hypotheses.append(found)
            self.counts.append(0)
            self.errors.append(self.lagrangian.error(found.predictions))
            self.activities.append(self.lagrangian.rows @ found.predictions)
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

    def repaired(self, oracle: Oracle, bound: float, backend: str) -> tuple[Array, Array]:
        """The fair mixture of least error, and its multipliers.

        If no mixture of these is fair: that of least error plus `bound` times the largest excess. What the
        oracle remembers joins the collection where it improves the mixture.

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
        while True:
            said, weights, multipliers = self._mix(None, backend)
            if said.status is Status.INFEASIBLE:
                said, weights, multipliers = self._mix(bound, backend)
            if said.status is not Status.OPTIMAL:
                raise BackendError(f"mixing {len(self.hypotheses)} classifiers failed: {said.message}")
            known = len(self.hypotheses)
            for found in oracle.recall(game.price(multipliers)):
                if game.value(found.predictions, multipliers) < said.objective - WORTH_RECALLING:
                    self.add(found)
            if len(self.hypotheses) == known:
                return weights, multipliers

    def _mix(self, penalty: float | None, backend: str) -> tuple[ModelSolution, Array, Array]:
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
        said = model.solve(backend)
        if said.point is None:
            return said, np.zeros(0), np.zeros(0)
        multipliers = np.maximum(-said.dual(fair), 0.0)
        weights = np.maximum(said[weight], 0.0)
        return said, weights / weights.sum(), multipliers
