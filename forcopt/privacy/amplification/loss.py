"""The loss of a sampling design, and the checks that all designs share."""

from __future__ import annotations

from math import exp, expm1, isfinite, log, log1p
from numbers import Real
from typing import Any, NamedTuple, get_args

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, check_choice
from forcopt.privacy.relations import SampleRelation

__all__ = [
    "PrivacyLoss",
    "amplified",
    "amplified_by_log",
    "check_epsilon",
    "check_rate",
    "check_sizes",
    "known",
    "lessened",
    "log_mean",
    "size_law",
    "swapped",
    "whole_number",
    "whole_numbers",
]


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
    return log1p(share * expm1(epsilon)) if epsilon < 700 else float(np.logaddexp(0, epsilon + log(share)))


def amplified_by_log(log_share: float, epsilon: float) -> float:
    """`amplified` for a share given by its logarithm, also where the share underflows."""
    if epsilon < 700 and log_share > -700:
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
    if not (number and isfinite(epsilon) and epsilon > 0):
        raise DeclarationError(f"epsilon is {epsilon!r}; it must be positive and finite")


def check_rate(rate: float) -> None:
    """Refuse a rate outside of [0, 1]."""
    if not 0 <= rate <= 1:
        raise DeclarationError(f"rate is {rate}; it must be from 0 to 1")


def whole_number(value: Any, name: str) -> int:
    """A number that must be whole: a fraction would be another design, so it is not cut.

    Parameters
    ----------
    value : Any
        A number.
    name : str
        The field, for the message.

    Returns
    -------
    int
        The same number.

    Raises
    ------
    DeclarationError
        For a fraction; the message has the name and the value.

    Examples
    --------
    >>> whole_number(3.0, "size")
    3
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not isfinite(value) or value != int(value):
        raise DeclarationError(f"{name} is {value!r}; it must be a whole number")
    return int(value)


def check_sizes(size: int, population: int) -> None:
    """Refuse a sample that is larger than the population."""
    size, population = whole_number(size, "size"), whole_number(population, "population")
    if population < 1:
        raise DeclarationError(f"population is {population}; it must be at least 1")
    if not 0 <= size <= population:
        raise DeclarationError(f"size is {size}; it must be from 0 to {population}, the population")


def size_law(law: Any) -> Array:
    """The probabilities of the sizes 0..n, checked."""
    t = as_numbers(law, "law")
    if t.ndim != 1 or len(t) < 2:
        raise DeclarationError(f"law has shape {t.shape}; it must give the probabilities of 0..n, n >= 1")
    if (t < 0).any() or abs(t.sum() - 1) > 1e-9:
        raise DeclarationError(f"law sums to {t.sum():g}; it must be nonnegative and sum to 1")
    return t


def whole_numbers(values: Any, name: str) -> Array:
    """Nonnegative whole numbers, checked."""
    n = as_numbers(values, name)
    if n.ndim != 1 or not len(n) or (n < 0).any() or (n != np.round(n)).any():
        raise DeclarationError(f"{name} must be a list of whole numbers, none negative; they are {values}")
    return n.astype(np.int64)
