"""Criteria learned from agents' moves."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import Any, Protocol

import numpy as np

from forcopt.arrays import Seed
from forcopt.errors import require
from forcopt.models.strategic.criteria import largest_gaming_free_set
from forcopt.models.strategic.problem import OpenCriteria, StrategicClassification


class Population(Protocol):
    """A distribution of agents.

    `StrategicClassification` is one: its weights are then the probabilities of its agents.
    """

    @property
    def criteria(self) -> int:
        """The number of criteria."""

    def sample(self, size: int, rng: np.random.Generator) -> StrategicClassification:
        """Draw `size` agents independently; the criteria stay the same."""


@dataclass(frozen=True)
class Learned:
    """The result of learning.

    Attributes
    ----------
    decision : OpenCriteria
        The criteria to publish.
    samples : int
        The number of drawn agents.
    rounds : int
        The number of published sets of criteria during learning.
    """

    decision: OpenCriteria
    samples: int
    rounds: int


def check_rates(**rates: Any) -> None:
    """Check that rates are above 0 and at most 1.

    Raises
    ------
    DeclarationError
        Naming the rate.
    """
    for name, rate in rates.items():
        require(0 < rate <= 1, name, rate, "be above 0 and at most 1")


def full_information_samples(criteria: int, epsilon: float, delta: float) -> int:
    """How many agents suffice by Theorem 8: ``(m ln 2 + ln(1 / delta)) / epsilon``.

    Examples
    --------
    >>> full_information_samples(10, epsilon=0.1, delta=0.05)
    100
    """
    check_rates(epsilon=epsilon, delta=delta)
    return ceil((criteria * log(2) + log(1 / delta)) / epsilon)


def learn_full_information(
    population: Population, epsilon: float, delta: float, *, samples: int | None = None, seed: Seed = None
) -> Learned:
    """Run greedy deletion on drawn agents.

    Let OPT be the largest true positive mass without false positives. With probability at least 1 - `delta`,
    the result has true positives of at least OPT - `epsilon` and false positives of at most `epsilon`. The
    sum of both is at least OPT for certain: the optimal set is gaming-free on every sample.

    Parameters
    ----------
    population : Population
        To draw from.
    epsilon, delta : float
        Above 0, at most 1.
    samples : int, optional
        How many agents to draw; Theorem 8's number by default.
    seed : int or numpy.random.Generator, optional
        An int or a generator.

    Returns
    -------
    Learned
        The open criteria, and the number of agents.

    Examples
    --------
    >>> from forcopt.models.strategic import StrategicClassification
    >>> edges = [(0, 0, 1, 1), (1, 1, 1, 0)]
    >>> p = StrategicClassification(agents=2, criteria=2, edges=edges, weights=[0.9, 0.1])
    >>> learn_full_information(p, epsilon=0.1, delta=0.05, seed=1)
    Learned(decision=OpenCriteria({0}), samples=44, rounds=1)
    """
    needed = full_information_samples(population.criteria, epsilon, delta)
    require(samples is None or samples >= 0, "samples", samples, "not be negative")
    size = needed if samples is None else samples
    is_open, _ = largest_gaming_free_set(population.sample(size, np.random.default_rng(seed)))
    return Learned(OpenCriteria(np.flatnonzero(is_open).tolist()), size, 1)


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
    population: Population, epsilon: float, delta: float, *, online: bool = False, seed: Seed = None
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
