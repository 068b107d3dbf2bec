"""Randomised policies: a probability of predicting 1 for each record, and draws from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from forcopt.arrays import Array


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
    >>> Coin().predict([[1.0], [2.0]], np.random.default_rng(1)).shape
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

    def predict_proba(self, X: Any) -> Array:
        """Give the probability of each class for each row of X, shape ``(n, 2)`` or ``(n, C)``."""
        chance = self.probability(X)
        return np.asarray(chance if chance.ndim == 2 else np.column_stack([1.0 - chance, chance]))

    def predict(self, X: Any, seed: int | np.random.Generator | None = None) -> Array:
        """Draw a prediction for each row of X, independently.

        Parameters
        ----------
        X : array_like
            Features, shape ``(n, d)``.
        seed : int or numpy.random.Generator, optional
            The source of randomness; the same int gives the same draws.

        Returns
        -------
        Array
            0 or 1, or the number of a class, for each record; int64 of shape ``(n,)``.
        """
        chance = self.probability(X)
        return chosen_classes(chance, np.random.default_rng(seed).random(len(chance)))


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

    Records that predict 1 with one probability p, and do so where their number is below p, are then sampled
    systematically in a random order: of m such records ``m p`` are drawn, up to 1, and each with probability
    p.

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

    References
    ----------
    Madow, W. G. (1949): On the theory of systematic sampling, II.

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
