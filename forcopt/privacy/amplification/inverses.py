"""The largest epsilon, rate or size within a target loss."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from forcopt.privacy.amplification.loss import PrivacyLoss, check_epsilon

__all__ = [
    "largest_epsilon",
    "largest_rate",
    "largest_size",
]


def largest_epsilon(loss: Callable[[float], PrivacyLoss], target: float) -> float:
    """The largest epsilon for the mechanism with which the upper bound stays within a target.

    Parameters
    ----------
    loss : Callable[[float], PrivacyLoss]
        Gives the loss for an epsilon; nondecreasing.
    target : float
        The loss for the population, above 0.

    Returns
    -------
    float
        The epsilon, infinite if any would do.

    Examples
    --------
    >>> from forcopt.privacy.amplification import randomized_rounding
    >>> round(largest_epsilon(lambda e: randomized_rounding(e, 0.01), target=1.0), 6)
    1.905909
    """
    check_epsilon(target)
    high = target
    while loss(high).upper <= target:
        high *= 2
        if high > 300:
            return inf
    return _largest(loss, target, 0.0, high)


def largest_rate(loss: Callable[[float], PrivacyLoss], target: float) -> float:
    """The largest rate in [0, 1] whose upper bound stays within a target loss.

    Parameters
    ----------
    loss : Callable[[float], PrivacyLoss]
        Gives the loss for a rate; nondecreasing.
    target : float
        The loss for the population, above 0.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from forcopt.privacy.amplification import poisson_sample
    >>> round(largest_rate(lambda r: poisson_sample(1.0, r), target=0.1), 6)
    0.061207
    """
    check_epsilon(target)
    return 1.0 if loss(1.0).upper <= target else _largest(loss, target, 0.0, 1.0)


def largest_size(loss: Callable[[int], PrivacyLoss], target: float, most: int) -> int:
    """The largest size (of a sample, in records or clusters) whose upper bound stays within a target loss.

    Parameters
    ----------
    loss : Callable[[int], PrivacyLoss]
        Gives the loss for a size from 0 to `most`; nondecreasing, and 0 for size 0.
    target : float
        The loss for the population, above 0.
    most : int
        The largest size there is.

    Returns
    -------
    int
        From 0 to `most`.

    Examples
    --------
    >>> from forcopt.privacy.amplification import simple_random_sample
    >>> largest_size(lambda m: simple_random_sample(1.0, m, 100), target=0.1, most=100)
    6
    """
    check_epsilon(target)
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if loss(middle).upper <= target else (low, middle)
    return low


def _largest(loss: Callable[[float], PrivacyLoss], target: float, low: float, high: float) -> float:
    """Bisect until the interval holds no number between; `low` is always within the target."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return low
        low, high = (middle, high) if loss(middle).upper <= target else (low, middle)
