"""Draws from the uniform lottery where cohorts are too many to count: a Markov chain whose law is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logit

from forcopt.arrays import Array, Seed
from forcopt.errors import DeclarationError
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.models.leximax_cohort.tolerances import CLOSE, WHOLE

_HEATS = np.arange(0.5, 6.25, 0.25)
"""Penalties for each missed place, tried until a tenth of the states meet all demands."""

_LOOKS = 200
"""States that are looked at for each penalty; the chain forgets its start meanwhile."""

_WANTED = 0.1

_FOLLOW = 0.3
"""Log odds that a candidate gains for each member that it falls short of its chance."""

_MOST_LOOKS = 1000
"""For each draw: then cohorts are too rare."""


class CohortDraws(NamedTuple):
    """Cohorts drawn by `draw_cohorts`.

    Attributes
    ----------
    members : Array
        1 for the members of each cohort, shape ``(draws, n)``.
    kept : float
        The share of the chain's states that met all demands.
    effective : float
        The number of independent draws whose means vary as much as those of these, from means of batches.
    """

    members: Array
    kept: float
    effective: float


class CohortChain:
    """A Markov chain over sets of the size, which exchanges one member a step and penalises missed demands.

    Parameters
    ----------
    problem : LeximaxCohort
        With a whole size.
    rng : np.random.Generator
        Of all steps.
    steps : int
        Between two states that are looked at.
    chances : Array, optional
        Of each candidate, shape ``(n,)``. A demand that these chances meet without slack becomes an equality.
        The weights follow the chances: a candidate who was drawn too rarely becomes more likely.

    Notes
    -----
    Weights that follow a mean are persistent contrastive divergence (Tieleman, ICML 2008), the stochastic
    ascent of the maximum-entropy law with these chances.
    """

    def __init__(
        self, problem: LeximaxCohort, rng: np.random.Generator, steps: int, chances: Array | None = None
    ) -> None:
        n, (lower, upper), quotas = len(problem.utilities), problem.bounds, problem.classes
        homes, self.weights = problem.household_rows, np.zeros(n)
        table = sp.csc_array(sp.vstack([sp.csr_array(quotas.members.reshape(-1, n)), homes]))
        least = np.concatenate([np.ceil(quotas.least - WHOLE), np.zeros(homes.shape[0])])
        most = np.concatenate([np.floor(quotas.most + WHOLE), np.ones(homes.shape[0])])
        most = np.minimum(most, problem.size)
        if chances is not None:
            lower, upper, mean = chances > 1 - CLOSE, chances > CLOSE, table @ chances
            full, short = mean > most - WHOLE, mean < least + WHOLE
            least, most = np.where(full, most, least), np.where(short, least, most)
            self.weights = logit(np.clip(chances, CLOSE, 1 - CLOSE))
        self.rng, self.steps, self.heat, self.chances = rng, steps, 0.0, chances
        free = rng.permutation(np.flatnonzero(upper > lower))
        self.forced, number = np.flatnonzero(lower > 0), round(problem.size - lower.sum())
        self.inside, self.outside = free[:number].copy(), free[number:].copy()
        counts = np.rint(table[:, self.members].sum(axis=1))
        facts = (table.indptr, table.indices, counts, least, most)
        self.demands = tuple(np.asarray(x, np.int64) for x in facts)

    @property
    def members(self) -> Array:
        """The positions of the members of the current state."""
        return np.concatenate([self.inside, self.forced])

    def look(self) -> bool:
        """Walk to the next state; tell whether it meets all demands."""
        from forcopt.models.leximax_cohort.exchanges import walk  # it needs numba

        found = True
        if len(self.inside) and len(self.outside):
            state = (self.inside, self.outside, self.weights)
            found = walk(*state, self.demands, self.heat, self.steps, self.rng) == 0
        if found and self.chances is not None:
            self.weights += _FOLLOW * self.chances
            self.weights[self.members] -= _FOLLOW
        return bool(found)

    def settle(self) -> bool:
        """Raise the penalty until enough states meet all demands; tell whether any does."""
        for heat in _HEATS.tolist():
            self.heat = heat
            share = np.mean([self.look() for _ in range(_LOOKS)])
            if share >= _WANTED:
                break
        return bool(share > 0)


def draw_cohorts(
    problem: LeximaxCohort, draws: int = 1000, *, steps: int | None = None, seed: Seed = None
) -> CohortDraws:
    """Draw cohorts, each feasible one with the same probability, by a Markov chain.

    A state is any set of the size with the forced and without the forbidden candidates. A step exchanges a
    random member and a random other candidate (Metropolis); each place by which a quota or a household is
    missed makes a state less likely by a constant factor. Every set can be reached, and feasible sets have
    equal weights: in the limit, the states that are feasible are uniform among all feasible cohorts. How fast
    the chain comes near its limit is not proved; `CohortDraws.effective` estimates it.

    Parameters
    ----------
    problem : LeximaxCohort
        With a whole size. The objective does not count.
    draws : int, default 1000
        How many cohorts.
    steps : int, optional
        Between two states that are looked at; ten for each candidate by default.
    seed : int or numpy.random.Generator, optional
        Of the chain.

    Returns
    -------
    CohortDraws
        ``PublicLottery(problem, d.members, d.members.mean(axis=0))`` makes a public lottery of them.

    Raises
    ------
    DeclarationError
        If no cohort satisfies the demands, or if the chain meets none in 1,000 states for each draw.

    Notes
    -----
    O(draws * steps * features). Where the method ``"uniform"`` can count the cohorts, its draws are exact.

    References
    ----------
    Metropolis, Rosenbluth, Rosenbluth, Teller, Teller: Equation of state calculations by fast computing
    machines. Journal of Chemical Physics 21, 1953.

    Examples
    --------
    >>> from forcopt.models.leximax_cohort import random_panel
    >>> p = random_panel(200, 24, features=6, levels=3, seed=1)
    >>> drawn = draw_cohorts(p, 50, seed=2)
    >>> drawn.members.shape, p.evaluate(drawn.members[0].astype(float)).feasible
    ((50, 200), True)
    """
    if not problem.is_whole or draws < 1:
        raise DeclarationError(f"size is {problem.size} and draws is {draws}; both must be whole, from 1 on")
    if reason := problem.infeasibility_reason():
        raise DeclarationError(reason)
    n = len(problem.utilities)
    chain = CohortChain(problem, np.random.default_rng(seed), 10 * n if steps is None else steps)
    chain.settle()
    members, looks = np.zeros((draws, n), dtype=np.int8), 0
    for row in members:
        while True:
            looks += 1
            if looks > _MOST_LOOKS * draws:
                raise DeclarationError(f"the chain met fewer than {draws} cohorts in {looks - 1} states")
            if chain.look():
                break
        row[chain.members] = 1
    batch = max(1, round(draws**0.5))
    means = members[: draws // batch * batch].reshape(-1, batch, n).mean(axis=1)
    spread, own = float(means.var(axis=0).sum()) * batch, float(members.var(axis=0).sum())
    return CohortDraws(members, draws / looks, draws * min(1.0, own / spread) if spread else float(draws))
