"""Draws from the uniform lottery where cohorts are too many to count: a Markov chain whose law is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.models.leximax_cohort.tolerances import WHOLE

_HEATS = np.arange(0.5, 6.25, 0.25)
"""Penalties for each missed place, tried until a tenth of the states meet all demands."""

_LOOKS = 200
"""States that are looked at for each penalty; the chain forgets its start meanwhile."""

_WANTED = 0.1

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


def draw_cohorts(
    problem: LeximaxCohort,
    draws: int = 1000,
    *,
    steps: int | None = None,
    seed: int | np.random.Generator | None = None,
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
    from forcopt.models.leximax_cohort.exchanges import walk  # it needs numba

    if not problem.is_whole or draws < 1:
        raise DeclarationError(f"size is {problem.size} and draws is {draws}; both must be whole, from 1 on")
    if reason := problem.infeasibility_reason():
        raise DeclarationError(reason)
    rng, n, (lower, upper) = np.random.default_rng(seed), len(problem.utilities), problem.bounds
    demands, homes = problem.classes, problem.household_rows
    table = sp.csc_array(sp.vstack([sp.csr_array(demands.members.reshape(-1, n)), homes]))
    least = np.concatenate([np.ceil(demands.least - WHOLE), np.zeros(homes.shape[0])])
    most = np.minimum(np.concatenate([np.floor(demands.most + WHOLE), np.ones(homes.shape[0])]), problem.size)
    free = rng.permutation(np.flatnonzero(upper > lower))
    forced, number = np.flatnonzero(lower > 0), round(problem.size - lower.sum())
    inside, outside = free[:number].copy(), free[number:].copy()
    steps = 10 * n if steps is None else steps
    counts = np.rint(table[:, np.concatenate([inside, forced])].sum(axis=1))
    facts = tuple(np.asarray(x, np.int64) for x in (table.indptr, table.indices, counts, least, most))

    def look(heat: float) -> bool:
        stays = not len(inside) or not len(outside)
        return bool(stays or walk(inside, outside, facts, heat, steps, rng) == 0)

    for heat in _HEATS.tolist():
        if np.mean([look(heat) for _ in range(_LOOKS)]) >= _WANTED:
            break
    members, looks = np.zeros((draws, n), dtype=np.int8), 0
    members[:, forced] = 1
    for row in members:
        while True:
            looks += 1
            if looks > _MOST_LOOKS * draws:
                raise DeclarationError(f"the chain met fewer than {draws} cohorts in {looks - 1} states")
            if look(heat):
                break
        row[inside] = 1
    batch = max(1, round(draws**0.5))
    means = members[: draws // batch * batch].reshape(-1, batch, n).mean(axis=1)
    spread, own = float(means.var(axis=0).sum()) * batch, float(members.var(axis=0).sum())
    return CohortDraws(members, draws / looks, draws * min(1.0, own / spread) if spread else float(draws))
