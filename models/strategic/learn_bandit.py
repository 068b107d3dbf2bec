"""Learn criteria from the choices of drawn agents and their later qualification (Algorithm 2, Theorem
9)."""

from __future__ import annotations

from math import ceil, log

import numpy as np

from forcopt.models.strategic.learning import Learned, Population, check_rates
from forcopt.models.strategic.problem import OpenCriteria

__all__ = ["bandit_batch", "learn_bandit"]


def bandit_batch(criteria: int, epsilon: float, delta: float) -> int:
    """The size of a batch in Algorithm 2: ``ln(m / delta) / epsilon``; at most `criteria` batches are needed.

    Examples
    --------
    >>> bandit_batch(10, epsilon=0.1, delta=0.05)
    53
    """
    check_rates(epsilon=epsilon, delta=delta)
    return ceil(log(max(criteria, 1) / delta) / epsilon)


def learn_bandit(
    population: Population,
    epsilon: float,
    delta: float,
    *,
    online: bool = False,
    seed: int | np.random.Generator | None = None,
) -> Learned:
    """Publish criteria to batches of agents; withdraw one that somebody games on, until a batch shows no
    gaming.

    With probability at least 1 - `delta`, the result has true positives of at least OPT - `epsilon` (see
    `learn_full_information`) and false positives of at most `epsilon`. Uses at most `criteria` batches.

    Parameters
    ----------
    population : Population
        To draw from; only the criterion that an agent meets, and whether it qualifies, are looked at.
    epsilon, delta : float
        Above 0, at most 1.
    online : bool, default False
        Withdraw a criterion as soon as somebody games on it, without waiting for the end of the batch.
    seed : int or numpy.random.Generator, optional
        An int or a generator.

    Returns
    -------
    Learned
        The open criteria, and the numbers of agents and of batches.

    Examples
    --------
    >>> from forcopt.models.strategic import StrategicClassification
    >>> edges = [(0, 0, 1, 1), (1, 1, 1, 0)]
    >>> p = StrategicClassification(agents=2, criteria=2, edges=edges, weights=[0.9, 0.1])
    >>> learn_bandit(p, epsilon=0.1, delta=0.05, seed=1)
    Learned(decision=OpenCriteria({0}), samples=74, rounds=2)
    """
    batch = bandit_batch(population.criteria, epsilon, delta)
    rng = np.random.default_rng(seed)
    published, samples, rounds = set(range(population.criteria)), 0, 0
    while published:
        seen = population.sample(batch, rng).simulate(published)
        rounds += 1
        gamers = np.flatnonzero(seen.false_positive)
        if not gamers.size:
            samples += batch
            break
        samples += int(gamers[0]) + 1 if online else batch
        published.remove(int(seen.choice[gamers[0]]))
    return Learned(OpenCriteria(published), samples, rounds)
