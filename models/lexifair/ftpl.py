"""Follow the perturbed leader against the sorting auditor (Theorem 14)."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import OnImprovement
from forcopt.errors import DeclarationError
from forcopt.games import PerturbedLeader
from forcopt.models.lexifair.classification import LexifairClassification
from forcopt.models.lexifair.game import check_game, play_levels
from forcopt.models.lexifair.problem import GroupModel
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

    def __init__(
        self,
        problem: LexifairClassification,
        draws: int,
        noise: float,
        seed: int | np.random.Generator | None,
    ) -> None:
        self.problem, self.draws, self.noise = problem, draws, noise
        self._rng = np.random.default_rng(seed)
        self._drawn: list[Array] = []
        # how much a weight of 1 on every group weighs on the heaviest record
        self._heaviest = float(np.asarray(problem.averages.sum(axis=0)).max())

    def begin(self, penalty: float) -> None:
        """Forget the costs of the game before."""
        n = len(self.problem.labels)
        self._most = penalty * self._heaviest
        self._player = PerturbedLeader(self.problem.hypotheses.best, n, rate=1.0, seed=self._rng)

    def horizon(self, rounds: int) -> None:
        """Choose the noise for a number of rounds."""
        n = len(self.problem.labels)
        self._player.rate = 1.0 / (self.noise * self._most * np.sqrt(n * rounds))

    def play(self) -> Array:
        """Group errors of the mixture drawn."""
        which = self._player.play(self.draws)
        self._drawn.append(which)
        return np.asarray(self.problem.error_table[which].mean(axis=0))

    def learn(self, weights: Array) -> None:
        """Group weights are costs of records."""
        self._player.learn(self.problem.record_costs(weights)[0])

    def average(self) -> GroupModel:
        """The uniform mixture of all draws."""
        which, times = np.unique(np.concatenate(self._drawn), return_counts=True)
        self._drawn = []
        return self.problem.mixture(which, times / times.sum())


@LexifairClassification.algorithm("ftpl", cites="Diana et al. (2021), Theorems 14 and 19", rank="published")
def ftpl(
    problem: LexifairClassification,
    *,
    alpha: float = 0.05,
    rounds: int = 20_000,
    draws: int = 20,
    noise: float = 0.1,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Perturbed cost-sensitive classification against the auditor, who answers the mixture of some draws.

    Each round costs `draws` calls of the oracle of the class. Levels, limits and stopping are as in
    ``no-regret``; the result mixes all draws of the second half of the rounds (see `sparsify`).

    Parameters
    ----------
    alpha : float, default 0.05
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
    if draws < 1:
        raise DeclarationError(f"draws is {draws!r}; it must be at least 1")
    if not 0 < noise < np.inf:
        raise DeclarationError(f"noise is {noise!r}; it must be positive")
    return play_levels(
        problem,
        Leader(problem, draws, noise, seed),
        alpha=alpha,
        rounds=rounds,
        time_limit=time_limit,
        on_improvement=on_improvement,
    )
