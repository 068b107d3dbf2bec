"""Finite classes of classifiers on fixed records, numbered from 0."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.learning.hypotheses import Classifier, Hypotheses, Hypothesis, Oracle

__all__ = ["ListedHypotheses", "ListedOracle"]


class ListedHypotheses(Hypotheses):
    """A finite class of N classifiers on n records, numbered from 0, whose costs are all computed at once."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of classifiers, N."""

    @property
    @abstractmethod
    def records(self) -> int:
        """The number of records, n."""

    @abstractmethod
    def predictions(self, which: Array) -> Array:
        """The probabilities of predicting 1 of some classifiers, shape ``(len(which), n)``."""

    @abstractmethod
    def predict(self, which: Array, features: Any) -> Array:
        """The same for other records, shape ``(len(which), len(features))``."""

    @abstractmethod
    def total_costs(self, costs: Array) -> Array:
        """The cost of every classifier, where predicting 1 costs ``costs[..., i]`` on record i.

        Parameters
        ----------
        costs : Array
            Shape ``(..., n)``.

        Returns
        -------
        Array
            Shape ``(..., N)``.
        """

    def best(self, costs: Array) -> Array:
        """The classifier of the least total cost, shape ``(...)``: the oracle of cost-sensitive learning."""
        return np.asarray(self.total_costs(costs).argmin(axis=-1))

    @abstractmethod
    def constant_classifiers(self) -> Array:
        """The numbers of the classifiers that predict the same for every record."""

    @abstractmethod
    def classifier(self, number: int, features: Array) -> Classifier:
        """A classifier by its number, for records with these features and others."""

    def oracle(self, features: Array) -> ListedOracle:
        """The oracle compares all classifiers; the first of the best wins.

        Raises
        ------
        DeclarationError
            If the number of records differs.
        """
        if self.records != len(features):
            raise DeclarationError(
                f"hypotheses: the class is over {self.records} records; there are {len(features)}"
            )
        return ListedOracle(self, features)


class ListedOracle(Oracle):
    """Compares all classifiers of a listed class."""

    def __init__(self, listed: ListedHypotheses, features: Array) -> None:
        self.listed, self.features = listed, features

    def best(self, costs: Array) -> Hypothesis:
        """The first classifier of least cost."""
        return self._hypothesis(int(self.listed.best(costs)))

    def constants(self) -> list[Hypothesis]:
        """The constant classifiers of the class."""
        return [self._hypothesis(int(i)) for i in self.listed.constant_classifiers()]

    def all(self) -> list[Hypothesis]:
        """All classifiers."""
        return [self._hypothesis(i) for i in range(self.listed.count)]

    def _hypothesis(self, number: int) -> Hypothesis:
        predictions = self.listed.predictions(np.array([number]))[0].astype(np.int64)
        return Hypothesis(lambda: self.listed.classifier(number, self.features), predictions)
