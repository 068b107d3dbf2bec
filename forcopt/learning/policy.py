"""Randomised policies: a probability of predicting 1 for each record, and draws from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError


class RandomizedPolicy(ABC):
    """Predicts 1 for each record with a probability that depends on the record's features.

    A subclass defines `probability`; draws and scikit-learn's ``predict_proba`` follow from it.

    Examples
    --------
    >>> import numpy as np
    >>> from forcopt.learning import RandomizedPolicy
    >>> class Coin(RandomizedPolicy):
    ...     def probability(self, records):
    ...         return np.full(len(records), 0.5)
    >>> Coin().predict_proba([[1.0], [2.0]]).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    >>> Coin().draw([[1.0], [2.0]], np.random.default_rng(1)).shape
    (2,)
    """

    @abstractmethod
    def probability(self, records: Any) -> Array:
        """Give the probability of predicting 1.

        Parameters
        ----------
        records : array_like
            Features, shape ``(n, d)``.

        Returns
        -------
        Array
            Numbers from 0 to 1, shape ``(n,)``. A policy with C classes, above two, gives the probability of
            each, shape ``(n, C)``.
        """

    def draw(self, records: Any, rng: int | np.random.Generator | None = None) -> Array:
        """Draw a prediction for each record, independently.

        Parameters
        ----------
        records : array_like
            Features, shape ``(n, d)``.
        rng : int or numpy.random.Generator, optional
            The source of randomness; the same int gives the same draws.

        Returns
        -------
        Array
            0 or 1, or the number of a class, for each record; int64 of shape ``(n,)``.
        """
        chance = self.probability(records)
        return chosen_classes(chance, np.random.default_rng(rng).random(len(chance)))

    def predict_proba(self, X: Any) -> Array:
        """Give the probability of each class for each row of X, shape ``(n, 2)`` or ``(n, C)``."""
        chance = self.probability(X)
        return np.asarray(chance if chance.ndim == 2 else np.column_stack([1.0 - chance, chance]))

    def predict(self, X: Any, seed: int | np.random.Generator | None = None) -> Array:
        """Draw a prediction for each row of X, as `draw` does; scikit-learn's name for it."""
        return self.draw(X, seed)


def mixed(weights: Array, rows: Array) -> Array:
    """The weighted sum of rows, in one order: BLAS adds in another order for one record."""
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights, rows, strict=True):
        total += weight * row
    return total


def chosen_classes(chance: Array, numbers: Array) -> Array:
    """The class that a number in [0, 1) chooses for each record.

    Parameters
    ----------
    chance : Array
        The probability of 1, shape ``(n,)``, or of each class, shape ``(n, C)``.
    numbers : Array
        Uniform in [0, 1), shape ``(n,)``.

    Returns
    -------
    Array
        The class of each record, int64 of shape ``(n,)``.
    """
    if chance.ndim == 1:
        return np.asarray(numbers < chance, dtype=np.int64)
    ends = np.cumsum(chance, axis=1)
    last = np.max(np.where(chance > 0, np.arange(chance.shape[1]), 0), axis=1)
    return np.asarray(np.minimum((numbers[:, None] * ends[:, -1:] >= ends).sum(axis=1), last))


def systematic_numbers(strata: Array, rng: np.random.Generator) -> Array:
    """Draw a number for each record, so that those of a stratum are spread evenly.

    Parameters
    ----------
    strata : Array
        The number of each record's stratum, from 0; shape ``(n,)``.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    Array
        Uniform in [0, 1) for each record, shape ``(n,)``. The m numbers of a stratum are
        ``(u + k) / m`` for k = 0, ..., m - 1 in a random order, with one uniform u per stratum: an interval
        of length l holds m l of them, up to 1.

    Examples
    --------
    >>> numbers = systematic_numbers(np.zeros(1000, dtype=int), np.random.default_rng(0))
    >>> int((numbers < 0.3).sum())
    300
    """
    sizes = np.bincount(strata)
    order = np.lexsort((rng.random(len(strata)), strata))
    place = np.arange(len(strata)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    numbers = np.empty(len(strata))
    numbers[order] = (place + np.repeat(rng.random(len(sizes)), sizes)) / np.repeat(sizes, sizes)
    return numbers


def systematic_draw(probability: Array, strata: Array, rng: np.random.Generator) -> Array:
    """Draw 0 or 1 for each record, so that each stratum has its expected number of 1s, up to rounding.

    Each stratum is sampled systematically in a random order: its records are laid end to end as intervals of
    the length of their probabilities, and the records that hold one of the points ``u, u + 1, u + 2, ...``
    are drawn, with one uniform number u per stratum. Strata are independent of each other.

    Parameters
    ----------
    probability : Array
        Of drawing 1, shape ``(n,)``.
    strata : Array
        The number of each record's stratum, from 0; shape ``(n,)``.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    Array
        0 or 1, int64 of shape ``(n,)``. Record i is 1 with exactly the given probability, and the number of
        1s in a stratum differs from the sum of its probabilities by less than 1.

    Notes
    -----
    O(n log n). Within a stratum of equal probabilities the 1s are a simple random sample without
    replacement, so the share of 1s of any subset of the stratum varies less than with independent draws.

    References
    ----------
    Madow, W. G. (1949): On the theory of systematic sampling, II.

    Examples
    --------
    >>> drawn = systematic_draw(np.full(1000, 0.3), np.zeros(1000, dtype=int), np.random.default_rng(0))
    >>> int(drawn.sum())
    300
    """
    if probability.shape != strata.shape:
        raise DeclarationError(
            f"probability has shape {probability.shape} and strata {strata.shape}; they must be the same"
        )
    count = len(probability)
    order = np.lexsort((rng.random(count), strata))
    ends = np.round(np.cumsum(probability[order]), 9)  # equal probabilities must sum to whole numbers
    first = np.searchsorted(strata[order], np.arange(int(strata.max(initial=-1)) + 1))
    before = np.append(0.0, ends)[first]
    stratum = strata[order]
    start = rng.random(len(first))
    upper = np.floor(ends - before[stratum] + start[stratum])
    lower = np.where(np.isin(np.arange(count), first), 0.0, np.append(0.0, upper[:-1]))
    drawn = np.zeros(count, dtype=np.int64)
    drawn[order] = upper > lower
    return drawn
