"""The bounds for `two-step` as its paper states them: Mozannar, Ohannessian, Srebro (2020)."""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.privacy import RandomizedResponse

__all__ = ["PrintedBounds", "printed_bounds"]


class PrintedBounds(NamedTuple):
    """The tolerances of Mozannar et al. (2020), and their stated bounds.

    Attributes
    ----------
    first_tolerance : float
        alpha_n of the first step.
    second_tolerance : float
        alpha_t of the second.
    first_disparity : float
        After the first step (Lemma 2).
    second_disparity : float
        After the second (Lemma 9 and Theorem 1).
    error : float
        Of the second above the error of the best fair classifier (Theorem 1).
    known_disparity : float
        After the first step alone if all these records report their true group (Lemma 3).
    """

    first_tolerance: float
    second_tolerance: float
    first_disparity: float
    second_disparity: float
    error: float
    known_disparity: float


def printed_bounds(
    *,
    epsilon: float,
    groups: int,
    records: int,
    smallest: float,
    bound: float,
    beta: float = 0.05,
    complexity: float = 0.0,
) -> PrintedBounds:
    """Formulas as printed, to see how far from use they are; `disparity_bound` is proved.

    Theorem 1's error rests on a false inequality (equation (36)), Lemma 9 on a Hoeffding bound with the range
    C of a debiased record, which is ``(e^epsilon + groups - 1) / (e^epsilon - 1)``, not C.

    Parameters
    ----------
    epsilon : float
        Of the channel.
    groups : int
        K.
    records : int
        N.
    smallest : float
        The share of the smallest cell (group, label), P.
    bound : float
        B of the first step.
    beta : float, default 0.05
        The probability of failure; delta in the paper.
    complexity : float, default 0.0
        The Rademacher complexity of the hypotheses.

    Examples
    --------
    >>> b = printed_bounds(epsilon=1.0, groups=2, records=10_000, smallest=0.1, bound=100)
    >>> round(b.first_tolerance, 4), round(b.second_tolerance, 2), round(b.first_disparity, 1)
    (0.1772, 37.87, 1006.8)
    """
    if not (0 < smallest <= 1 and 0 < beta < 1 and records >= 1 and bound > 0):
        raise DeclarationError(
            f"smallest is {smallest:g}, beta {beta:g}, records {records} and bound {bound:g}; the first two "
            "must be shares, the others positive"
        )
    k = groups
    c = float(np.diag(RandomizedResponse(epsilon).inverse(k))[0])
    first = 2 * sqrt(log(64 * k / beta) / (records * smallest))
    final = sqrt(log(64 / beta) / (2 * records)) * 8 * k * c**2 / smallest**2
    factor = 5 * c / smallest**2
    noise = sqrt(2 * log(64 * k / beta) / (records * smallest))
    return PrintedBounds(
        first_tolerance=first,
        second_tolerance=final / 2,
        first_disparity=factor * (2 / bound + 6 * complexity + 10 * noise),
        second_disparity=final,
        error=factor * (2 / bound + 10 * complexity + 18 * k * noise),
        known_disparity=2 / bound + 6 * complexity + 10 * sqrt(2 * log(32 * k / beta) / (records * smallest)),
    )
