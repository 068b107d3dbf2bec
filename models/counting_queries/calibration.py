"""The least size of a law that keeps a budget: the exact profile is met to ten digits."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np
import scipy

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.problem import CountingQueries
from forcopt.privacy.losses import GaussianLoss
from forcopt.privacy.noises import Noise

__all__ = ["gaussian_shift", "least_size"]

LEAST = -1e3
"""Logarithms of delta are cut off here, so that root finding sees finite numbers."""


def gaussian_shift(epsilon: float, delta: float) -> float:
    """The mu of Gaussian differential privacy that gives exactly (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        Above 0 and below 1; the search is on its logarithm.

    Returns
    -------
    float
        The shift of a Gaussian of standard deviation 1; relative error about 1e-14.

    References
    ----------
    Balle and Wang (2018), Theorem 8; Dong, Roth and Su (2022), Corollary 2.13.

    Examples
    --------
    >>> round(gaussian_shift(1.0, 1e-5), 6)
    0.268051
    """
    target = log(delta)

    def over(log_mu: float) -> float:
        return max(GaussianLoss(exp(log_mu)).log_delta(epsilon), -1e9) - target

    low = high = log(epsilon / (1 + sqrt(-2 * target)))
    while over(low) > 0:
        low -= 1.0
    while over(high) < 0:
        high += 1.0
    return exp(float(scipy.optimize.brentq(over, low, high, xtol=1e-14)))


def least_size(
    problem: CountingQueries,
    law: Callable[[float], Noise],
    start: float,
    deadline: Deadline,
    tolerance: float = 1e-11,
) -> float:
    """The least size of a family of laws that is private enough.

    Parameters
    ----------
    problem : CountingQueries
        With delta above 0.
    law : callable
        The law of a size; delta falls as it grows.
    start : float
        A guess.
    deadline : Deadline
        The clock of the run.
    tolerance : float
        Of the logarithm of the size.

    Returns
    -------
    float
        A size that keeps the budget; about 8 evaluations of the profile from a good guess.

    Raises
    ------
    TimeoutError
        Once the time limit has passed.
    DeclarationError
        If no size up to e^40 times the guess is private enough.

    Examples
    --------
    >>> from forcopt.models import CountingQueries
    >>> from forcopt.privacy import Gaussian
    >>> p = CountingQueries(queries=16, epsilon=1.0, delta=1e-5)
    >>> scale = least_size(p, lambda s: Gaussian(scale=s), start=10.0, deadline=Deadline())
    >>> round(scale, 6), round(4 / gaussian_shift(1.0, 1e-5), 6)
    (14.922527, 14.922527)
    """
    target = log(problem.delta)
    seen: dict[float, float] = {}

    def over(log_size: float) -> float:
        if log_size not in seen:
            if deadline.passed:
                raise TimeoutError(f"{deadline.end} during the calibration")
            seen[log_size] = max(problem.log_delta(law(exp(log_size))), LEAST) - target
        return seen[log_size]

    slope = -max(1.0, (problem.epsilon / gaussian_shift(problem.epsilon, problem.delta)) ** 2)
    low = high = log(start)
    step = float(np.clip(-over(low) / slope, -0.7, 0.7)) or tolerance
    for k in range(80):
        there = low + step * (1.05 if k == 0 else 1.7**k)
        if over(there) * over(high) <= 0:
            low, high = sorted((there, high))
            break
        high = there
        if abs(there - log(start)) > 40:
            raise DeclarationError(
                f"no size of {type(law(start)).__name__} gives delta {problem.delta:g} at epsilon "
                f"{problem.epsilon:g}"
            )
    root = float(scipy.optimize.brentq(over, low, high, xtol=tolerance, rtol=1e-15)) if low < high else low
    grow = tolerance
    while over(root) > 0:
        root, grow = root + grow, 2 * grow
    return exp(root)
