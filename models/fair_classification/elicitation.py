"""How many records and pairs an elicited constraint needs to hold in the population."""

from __future__ import annotations

from collections.abc import Callable
from math import e, log
from typing import NamedTuple

from forcopt.arrays import least_whole
from forcopt.errors import require


class LogChances(NamedTuple):
    """Natural logarithms of the two terms whose sum bounds a probability; above 0 they say nothing.

    Attributes
    ----------
    records : float
        That the records are not like the population.
    pairs : float
        That the pairs shown are not like all pairs of records.
    """

    records: float
    pairs: float


def elicitation_failure(records: int, pairs: int, dimension: int, epsilon: float) -> LogChances:
    """Bound the chance that the mean violation of pairs misleads about the population.

    Parameters
    ----------
    records : int
        The number n of records, at least half of `dimension`.
    pairs : int
        The number m of pairs that were shown.
    dimension : int
        The VC dimension d of the class, at least 1.
    epsilon : float
        Half of the difference between the violation on the pairs and in the population, for some mixture.

    Returns
    -------
    LogChances
        Of the terms ``8 g^k exp(-n epsilon^2 / 32)`` with ``k = ln(2 n^2) / (8 epsilon^2) + 1``, and
        ``g^k' exp(-8 m epsilon^2)`` with ``k' = 2 ln(2 m) / epsilon^2 + 1``, for ``g = (2 e n / d)^d``.

    Raises
    ------
    DeclarationError
        For numbers outside of their ranges.

    Notes
    -----
    The bound says nothing of a study of the paper's size: with 5829 records, a class of dimension 9 and an
    epsilon of 0.1 both logarithms are above 10,000.

    References
    ----------
    Jung et al. (2021), Theorem 2.

    Examples
    --------
    >>> [round(term, 3) for term in elicitation_failure(5829, 5829, dimension=1, epsilon=0.5)]
    [60.356, -10871.288]
    """
    sizes = ("records", 2 * records, dimension), ("pairs", pairs, 1), ("dimension", dimension, 1)
    for name, value, least in sizes:
        require(value >= least, name, value, f"be at least {least}")
    require(epsilon > 0, "epsilon", epsilon, "be positive")
    growth = dimension * log(2 * e * records / dimension)
    first = log(2 * records**2) / (8 * epsilon**2) + 1
    second = 2 * log(2 * pairs) / epsilon**2 + 1
    of_records = log(8) + growth * first - records * epsilon**2 / 32
    return LogChances(of_records, growth * second - 8 * pairs * epsilon**2)


def elicitation_sample(dimension: int, epsilon: float, delta: float) -> tuple[int, int]:
    """The least records, and then the least pairs, with which Theorem 2 fails with probability delta at most.

    Each of the two terms is at most half of `delta`.

    Parameters
    ----------
    dimension : int
        The VC dimension of the class, at least 1.
    epsilon : float
        See `elicitation_failure`.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    tuple[int, int]
        The numbers of records and of pairs.

    Examples
    --------
    >>> elicitation_sample(dimension=1, epsilon=0.5, delta=0.05)
    (16959, 301)
    """
    require(0 < delta < 1, "delta", delta, "be strictly between 0 and 1")
    enough = log(delta / 2)
    n = _least(lambda n: elicitation_failure(n, 1, dimension, epsilon).records <= enough, dimension)
    return n, _least(lambda m: elicitation_failure(n, m, dimension, epsilon).pairs <= enough, 1)


def _least(holds: Callable[[int], bool], low: int) -> int:
    """The least number above `low` from which on a rule holds that fails at first, by bisection."""
    return least_whole(holds, low + 1, MOST)


MOST = 2**60
"""No study has as many records or pairs."""
