"""Proofs about the levels of a model: multipliers of a round, and the slack that they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array

if TYPE_CHECKING:
    from forcopt.models.lexifair.problem import Lexifair

__all__ = ["Level", "Multipliers", "prove", "sums_of_largest"]


def sums_of_largest(losses: Array) -> Array:
    """The largest loss, the sum of the two largest, and so on: ``P_1, ..., P_K``.

    Examples
    --------
    >>> sums_of_largest(np.array([0.25, 1.0, 0.5])).tolist()
    [1.0, 1.5, 1.75]
    """
    return np.asarray(np.cumsum(-np.sort(-losses)))


@dataclass(frozen=True)
class Level:
    """The proved slack of level j of a model.

    Attributes
    ----------
    total : float
        The sum of the j largest group losses.
    bound : float
        No model of the class that has no larger sums at the levels before has a smaller sum here.
    rounds : int
        How many it took: solved masters, or steps of the game.
    """

    total: float
    bound: float
    rounds: int

    @property
    def alpha(self) -> float:
        """The realised slack: by how much the level may be from its optimum given the levels before."""
        return max(self.total - self.bound, 0.0)


@dataclass(frozen=True, eq=False)
class Multipliers:
    """A proof that level j cannot be low, by Lagrange multipliers on sets of groups.

    With multipliers ``λ_C >= 0`` on the sets C of up to j groups, which sum to 1 over size j, every model
    with sums ``P_1, ..., P_{j-1}`` up to ``η_1, ..., η_{j-1}`` has
    ``P_j >= min_h sum_k w_k L_k(h) - sum_{r<j} Λ_r η_r``, where w_k sums the multipliers of the sets with k
    and Λ_r the sum over sets of size r: equation (4) of the paper with the index of (7) corrected.

    Attributes
    ----------
    prices : Array
        ``Λ_1, ..., Λ_{j-1}``.
    minimum : float
        The least weighted loss.
    """

    prices: Array
    minimum: float

    def bound(self, totals: Array) -> float:
        """The bound on ``P_j`` for models whose sums at the levels before are at most `totals`."""
        return self.minimum - float(self.prices @ totals[: len(self.prices)])

    @classmethod
    def of(cls, problem: Lexifair, weights: Array, prices: Array) -> Multipliers | None:
        """Find the least weighted loss for multipliers of which only the sums are known.

        Parameters
        ----------
        problem : Lexifair
            Whose class of models.
        weights : Array
            Of the groups, shape ``(K,)``, not negative.
        prices : Array
            ``Λ_1, ..., Λ_j``.

        Returns
        -------
        Multipliers
            None if no set of size j has a multiplier. Weights that are too large for the prices (by a
            solver's rounding) are scaled down until they are consistent.
        """
        weights, prices = np.maximum(weights, 0.0), np.maximum(prices, 0.0)
        if prices[-1] <= 0.0:
            return None
        # Sets C with these prices exist if and only if the i largest weights never sum to more than this.
        sizes = np.arange(1, len(prices) + 1)
        most = np.minimum.outer(np.arange(1, len(weights) + 1), sizes) @ prices
        largest = sums_of_largest(weights)
        positive = largest > 0
        scale = min(1.0, float((most[positive] / largest[positive]).min(initial=1.0)))
        weights = scale * weights / prices[-1]
        best = problem.best_response(weights)
        return cls(prices[:-1] / prices[-1], float(weights @ best.losses))


def prove(totals: Array, proofs: Sequence[Sequence[Multipliers]], rounds: Sequence[int]) -> tuple[Level, ...]:
    """Combine the proofs of all rounds for a model with sums `totals`.

    Parameters
    ----------
    totals : Array
        ``P_1, ..., P_K`` of the model.
    proofs : Sequence[Sequence[Multipliers]]
        For each level the multipliers found.
    rounds : Sequence[int]
        For each level.
    """
    bounds = [max((m.bound(totals) for m in found), default=0.0) for found in proofs]
    return tuple(
        # sums of losses are not negative, and rise with j
        Level(float(total), max(bound, 0.0), count)
        for total, bound, count in zip(totals, bounds, rounds, strict=False)
    )
