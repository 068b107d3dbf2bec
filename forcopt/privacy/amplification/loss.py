"""The loss of a sampling design, and its inverses: the largest epsilon, rate or size within a target."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, expm1, inf, isfinite, log, log1p
from typing import Any, NamedTuple, get_args

import numpy as np

from forcopt.arrays import Array, as_numbers, least_whole, whole_number
from forcopt.errors import DeclarationError, check_choice, require, require_shape
from forcopt.privacy.losses import SampleRelation
from forcopt.privacy.tolerances import EXPONENT, LAW_SUM


class PrivacyLoss(NamedTuple):
    """Bounds on the loss of a sampling design.

    Attributes
    ----------
    lower : float
        Attained by some mechanism.
    upper : float
        No mechanism loses more.
    exact : float
        The loss itself, where it is known.
    source : str
        The theorem.

    Examples
    --------
    >>> from forcopt.privacy import SimpleRandomSample
    >>> loss = SimpleRandomSample(size=10).loss(1.0, 100)
    >>> round(loss.exact, 4), loss.source
    (0.1586, 'Theorem 2')
    """

    lower: float
    upper: float
    exact: float | None
    source: str


def amplified(share: float, epsilon: float) -> float:
    """``log(1 + share * (e^epsilon - 1))``, also where e^epsilon overflows."""
    if share == 0:
        return 0.0
    if epsilon < EXPONENT:
        return log1p(share * expm1(epsilon))
    return float(np.logaddexp(0, epsilon + log(share)))


def amplified_by_log(log_share: float, epsilon: float) -> float:
    """`amplified` for a share given by its logarithm, also where the share underflows."""
    if epsilon < EXPONENT and log_share > -EXPONENT:
        return log1p(exp(log_share) * expm1(epsilon))
    return float(np.logaddexp(0.0, epsilon + log_share))


def lessened(share: float, epsilon: float) -> float:
    """``-log(1 - share * (1 - e^-epsilon))``, also where e^-epsilon is lost beside 1."""
    change = share * expm1(-epsilon)
    return -log1p(change) if change > -0.5 else epsilon - amplified(1 - share, epsilon)


def swapped(epsilon: float, mechanism: SampleRelation) -> float:
    """The mechanism's loss under a substitution."""
    check_choice("mechanism", mechanism, *get_args(SampleRelation))
    return 2 * epsilon if mechanism == "add_remove" else epsilon


def known(loss: float, source: str) -> PrivacyLoss:
    """An exact loss."""
    return PrivacyLoss(loss, loss, loss, source)


def log_mean(sizes: Array, probabilities: Array, population: int, tilt: float, extra: float) -> float:
    """The logarithm of the mean density if each record counts `tilt`, and one of them `extra` more."""
    share = np.asarray(sizes) / population
    with np.errstate(divide="ignore"):
        drawn = np.logaddexp(np.log1p(-share), np.log(share) + extra)  # also where e^extra vanishes
    logs = np.log(probabilities) + tilt * sizes + drawn
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


def check_epsilon(epsilon: Any) -> None:
    """Refuse a loss that is not positive and finite."""
    number = isinstance(epsilon, int | float | np.integer | np.floating)
    require(number and isfinite(epsilon) and (epsilon > 0), "epsilon", epsilon, "be positive and finite")


def check_rate(rate: float) -> None:
    """Refuse a rate outside of [0, 1]."""
    require(0 <= rate <= 1, "rate", rate, "be from 0 to 1")


def check_sizes(size: int, population: int) -> None:
    """Refuse a sample that is larger than the population."""
    size, population = whole_number(size, "size"), whole_number(population, "population", 1)
    require(0 <= size <= population, "size", size, f"be from 0 to {population}, the population")


def size_law(law: Any) -> Array:
    """The probabilities of the sizes 0..n, checked."""
    t = as_numbers(law, "law")
    require_shape(t.ndim == 1 and len(t) >= 2, "law has", t, "give the probabilities of 0..n, n >= 1")
    if (t < 0).any() or abs(t.sum() - 1) > LAW_SUM:
        raise DeclarationError(f"law sums to {t.sum():g}; it must be nonnegative and sum to 1")
    return t


def whole_numbers(values: Any, name: str) -> Array:
    """Nonnegative whole numbers, checked."""
    n = as_numbers(values, name)
    if n.ndim != 1 or not len(n) or (n < 0).any() or (n != np.round(n)).any():
        raise DeclarationError(f"{name} must be a list of whole numbers, none negative; they are {values}")
    return n.astype(np.int64)


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
    return least_whole(lambda size: loss(size).upper > target, 1, most + 1) - 1


def _largest(loss: Callable[[float], PrivacyLoss], target: float, low: float, high: float) -> float:
    """Bisect until the interval holds no number between; `low` is always within the target."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return low
        low, high = (middle, high) if loss(middle).upper <= target else (low, middle)


def noisy_statistic(
    values: Any, probabilities: Any, other_values: Any, other_probabilities: Any, scale: float
) -> float:
    """The exact loss of releasing a random number with Laplace noise, between two laws of that number.

    With the values of a statistic over all samples of two neighbouring populations, this is the real privacy
    loss of that statistic under the design.

    Parameters
    ----------
    values, probabilities : Any
        Of the number under one population, shape ``(a,)``.
    other_values, other_probabilities : Any
        Under the other, shape ``(b,)``.
    scale : float
        Of the noise.

    Returns
    -------
    float
        The larger of both directions. Between two values of the statistic the ratio of the densities is
        monotone, so that only the values need a look: O((a + b)^2).

    Examples
    --------
    >>> round(noisy_statistic([14], [1.0], [15], [1.0], scale=2.0), 9)
    0.5
    """
    require(isfinite(scale) and scale > 0, "scale", scale, "be positive and finite")
    laws = []
    for name, points, weights in (
        ("probabilities", values, probabilities),
        ("other_probabilities", other_values, other_probabilities),
    ):
        at, p = as_numbers(points, "values").ravel(), as_numbers(weights, name).ravel()
        if at.shape != p.shape or (p < 0).any() or abs(p.sum() - 1) > LAW_SUM:
            raise DeclarationError(f"{name} must be {len(at)} nonnegative numbers that sum to 1")
        laws.append((at[p > 0], np.log(p[p > 0])))
    kinks = np.unique(np.concatenate([laws[0][0], laws[1][0]]))
    one, other = (np.logaddexp.reduce(logs - np.abs(kinks[:, None] - v) / scale, axis=1) for v, logs in laws)
    return float(np.abs(one - other).max())
