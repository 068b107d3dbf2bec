"""Learn criteria from drawn agents whose edges are seen (Theorem 8)."""

from __future__ import annotations

from math import ceil, log

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.strategic.greedy_deletion import largest_gaming_free_set
from forcopt.models.strategic.learning import Learned, Population, check_rates
from forcopt.models.strategic.problem import OpenCriteria

__all__ = ["full_information_samples", "learn_full_information"]


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
    population: Population,
    epsilon: float,
    delta: float,
    *,
    samples: int | None = None,
    seed: int | np.random.Generator | None = None,
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
    if samples is not None and samples < 0:
        raise DeclarationError(f"samples is {samples}; it must not be negative")
    size = needed if samples is None else samples
    drawn = population.sample(size, np.random.default_rng(seed))
    is_open, _ = largest_gaming_free_set(drawn)
    return Learned(OpenCriteria(np.flatnonzero(is_open).tolist()), size, 1)
