"""Classes of binary classifiers: what a learner may choose from, and the best of them for given costs."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import field_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Declared, Numbers
from forcopt.errors import DeclarationError

__all__ = ["Hypotheses", "Predictions", "Stumps"]


class Hypotheses(Declared):
    """A finite class of classifiers on n records, numbered from 0."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many classifiers there are, N."""

    @property
    @abstractmethod
    def records(self) -> int:
        """How many records there are, n."""

    @abstractmethod
    def predictions(self, which: Array) -> Array:
        """The probabilities of predicting 1 of some classifiers, shape ``(len(which), n)``."""

    @abstractmethod
    def predict(self, which: Array, features: Any) -> Array:
        """The same for other records, shape ``(len(which), len(features))``."""

    @abstractmethod
    def total_costs(self, costs: Array) -> Array:
        """What every classifier costs, if predicting 1 costs ``costs[..., i]`` on record i; ``(..., N)``."""

    def best(self, costs: Array) -> Array:
        """The classifier of the least total cost, shape ``(...)``: the oracle of cost-sensitive learning."""
        return np.asarray(self.total_costs(costs).argmin(axis=-1))


class Predictions(Hypotheses):
    """Classifiers that are given by what they predict on the records.

    Attributes
    ----------
    table : Numbers
        Probabilities of predicting 1, shape ``(N, n)``; usually 0 or 1.
    """

    table: Numbers

    @field_validator("table")
    @classmethod
    def _are_probabilities(cls, table: Array) -> Array:
        if table.ndim != 2 or table.size == 0:
            raise DeclarationError(f"the shape is {table.shape}; it must be (classifiers, records)")
        if table.min() < 0 or table.max() > 1:
            at = [int(i) for i in np.argwhere((table < 0) | (table > 1))[0]]
            raise DeclarationError(f"the array{at} is {table[tuple(at)]:g}; it must be from 0 to 1")
        return table

    @property
    def count(self) -> int:
        """How many rows the table has."""
        return len(self.table)

    @property
    def records(self) -> int:
        """How many columns the table has."""
        return int(self.table.shape[1])

    def predictions(self, which: Array) -> Array:
        """Rows of the table."""
        return self.table[which]

    def predict(self, which: Array, features: Any) -> Array:
        """Nothing is known of other records.

        Raises
        ------
        DeclarationError
            Always.
        """
        raise DeclarationError("classifiers given as a table of predictions cannot predict other records")

    def total_costs(self, costs: Array) -> Array:
        """One product of matrices."""
        return costs @ self.table.T


class Stumps(Hypotheses):
    """All thresholds on one feature, in both directions: ``x_j > t`` or ``x_j <= t``; and the two constants.

    Classifiers are numbered by feature, then by threshold from the smallest value on, each with its
    complement after all: number i < N / 2 says ``x_j > t_i``, number ``N / 2 + i`` the opposite. Number 0 is
    "never", number N / 2 "always". Thresholds lie midway between neighbouring values.

    Attributes
    ----------
    features : Numbers
        Shape ``(n, d)``.
    """

    features: Numbers

    @field_validator("features")
    @classmethod
    def _is_matrix(cls, features: Array) -> Array:
        if features.ndim != 2 or features.size == 0:
            raise DeclarationError(f"the shape is {features.shape}; it must be (records, features)")
        return features

    @cached_property
    def _thresholds(self) -> tuple[Array, Array]:
        """The feature and the threshold of each upward classifier."""
        columns = [np.unique(column) for column in self.features.T]
        middles = [(v[1:] + v[:-1]) / 2 for v in columns]
        feature = np.repeat(np.arange(len(middles)), [len(m) for m in middles])
        return np.append(0, feature), np.concatenate([[np.inf], *middles])

    @cached_property
    def _order(self) -> tuple[Array, Array]:
        """Records by feature from the largest value down, and how many are above each threshold."""
        order = np.argsort(-self.features, axis=0, kind="stable")
        feature, threshold = self._thresholds
        above = np.zeros(len(threshold), dtype=np.int64)
        for j in range(self.features.shape[1]):
            of = feature == j
            values = np.sort(self.features[:, j])
            above[of] = len(values) - np.searchsorted(values, threshold[of], side="right")
        return order, above

    @property
    def count(self) -> int:
        """Twice the number of thresholds, and the constants."""
        return 2 * len(self._thresholds[1])

    @property
    def records(self) -> int:
        """How many rows the features have."""
        return len(self.features)

    def predictions(self, which: Array) -> Array:
        """What the classifiers say on the records."""
        return self.predict(which, self.features)

    def predict(self, which: Array, features: Any) -> Array:
        """Compare one feature with one threshold for each classifier."""
        feature, threshold = self._thresholds
        up = np.asarray(which) % len(threshold)
        says = threshold[up][:, None] < as_numbers(features, "features")[:, feature[up]].T
        return np.asarray(np.where((np.asarray(which) >= len(threshold))[:, None], ~says, says), dtype=float)

    def total_costs(self, costs: Array) -> Array:
        """Prefix sums of the costs in the order of each feature: O(n d) for each row of costs."""
        order, above = self._order
        feature, _ = self._thresholds
        flat = costs.reshape(-1, costs.shape[-1])
        half = self.count // 2
        out = np.empty((len(flat), 2 * half))
        for j in range(order.shape[1]):
            of = np.flatnonzero(feature == j)
            sums = np.cumsum(flat[:, order[:, j]], axis=1)
            out[:, of] = np.where(above[of] > 0, sums[:, above[of] - 1], 0.0)
        out[:, half:] = flat.sum(axis=1, keepdims=True) - out[:, :half]
        return out.reshape(*costs.shape[:-1], self.count)

    def describe(self, which: int) -> str:
        """Say in words which classifier it is, with feature numbers."""
        feature, threshold = self._thresholds
        up = which % len(threshold)
        if np.isinf(threshold[up]):
            return "never" if which == up else "always"
        return f"x{feature[up]} {'>' if which == up else '<='} {threshold[up]:g}"
