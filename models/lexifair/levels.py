"""Levels of a model: the auditor's best response (Algorithm 1), proofs, and how many records generalise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

if TYPE_CHECKING:
    from forcopt.models.lexifair.problem import Lexifair

__all__ = ["Level", "Multipliers", "most_violated", "prove", "records_needed", "sums_of_largest"]


def most_violated(losses: Array, limits: Array) -> Array:
    """The set of groups whose total loss exceeds the limit for sets of its size by the most.

    Among sets of one size the set of the largest losses is the worst, so that the prefixes of the sorted
    losses suffice: O(K log K) for exponentially many multipliers, of which at most one is not 0.

    Parameters
    ----------
    losses : Array
        Of the K groups.
    limits : Array
        ``η_1, ..., η_j`` for sets of 1, ..., j groups.

    Returns
    -------
    Array
        The groups, worst first; none if no limit is exceeded (a tie is no violation).

    References
    ----------
    Diana et al. (2021), Algorithm 1 and Fact 11.

    Examples
    --------
    >>> most_violated(np.array([0.2, 0.7, 0.5]), np.array([0.6, 1.3])).tolist()
    [1]
    >>> most_violated(np.array([0.2, 0.7, 0.5]), np.array([0.8, 1.0])).tolist()
    [1, 2]
    """
    order = np.argsort(-losses, kind="stable")
    excess = np.cumsum(losses[order])[: len(limits)] - limits
    worst = int(excess.argmax())
    return order[: worst + 1] if excess[worst] > 0 else order[:0]


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


def records_needed(models: int, groups: int, levels: int, alpha: float, delta: float) -> int:
    """Records that each group needs, for slacks that hold on the sample to grow by at most `alpha`.

    With probability 1 - `delta` every model's error in every group is within
    ``beta = sqrt(ln(2 N K / delta) / (2 n))`` of that in the population (Hoeffding, and a union over N models
    and K groups; by linearity for mixtures, too). A model with slacks of at most a on the sample then has
    slacks of at most ``a + 2 levels beta`` in the population (Theorem 15; slacks that may depend on the
    model). Corollary 16 states the order for infinite classes, without a constant.

    Parameters
    ----------
    models : int
        N, in the class; losses are in [0, 1].
    groups : int
        K.
    levels : int
        That matter.
    alpha : float
        Positive.
    delta : float
        The probability of failure, strictly between 0 and 1.

    Returns
    -------
    int
        Of each group.

    Examples
    --------
    >>> records_needed(models=12, groups=3, levels=3, alpha=0.1, delta=0.05)
    13091
    """
    for name, count in (("models", models), ("groups", groups), ("levels", levels)):
        if count < 1:
            raise DeclarationError(f"{name} is {count!r}; it must be at least 1")
    if not alpha > 0:
        raise DeclarationError(f"alpha is {alpha!r}; it must be positive")
    if not 0 < delta < 1:
        raise DeclarationError(f"delta is {delta!r}; it must be strictly between 0 and 1")
    return ceil(2 * levels**2 * log(2 * models * groups / delta) / alpha**2)
