"""Decision stumps: all thresholds on single features, in both directions."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Name, Numbers
from forcopt.errors import DeclarationError
from forcopt.learning.finite import ListedHypotheses, ListedOracle
from forcopt.learning.hypotheses import Classifier, Constant
from forcopt.learning.names import take_names
from forcopt.learning.thresholds import Threshold, middles

__all__ = ["Stumps"]


class Stumps(ListedHypotheses):
    """All thresholds on one feature, in both directions: ``x_j > t`` or ``x_j <= t``; and the two constants.

    Classifiers are numbered by feature, then by threshold from the smallest value on, each with its
    complement after all: number i < N / 2 is ``x_j > t_i``, number ``N / 2 + i`` the opposite. Number 0 is
    "never", number N / 2 "always". Thresholds lie midway between neighbouring values.

    Attributes
    ----------
    features : Numbers
        Shape ``(n, d)``.
    feature_names : tuple[str, ...], optional
        Of the d features; those of a frame by default.

    Examples
    --------
    >>> from forcopt.learning import Stumps
    >>> stumps = Stumps(features=[[1.0], [2.0], [3.0]])
    >>> stumps.count, stumps.describe(1)
    (6, 'x0 > 1.5')
    >>> stumps.records
    3
    """

    features: Numbers
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _names_features(cls, data: Any) -> Any:
        return take_names(data)

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
        cuts = [np.where(middles(v) < v[1:], middles(v), v[:-1]) for v in columns]
        feature = np.repeat(np.arange(len(cuts)), [len(c) for c in cuts])
        return np.append(0, feature), np.concatenate([[np.inf], *cuts])

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
        """The predictions of the classifiers on the records."""
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
        """Describe the classifier in words, with feature numbers."""
        feature, threshold = self._thresholds
        up = which % len(threshold)
        if np.isinf(threshold[up]):
            return "never" if which == up else "always"
        return f"x{feature[up]} {'>' if which == up else '<='} {threshold[up]:g}"

    def constant_classifiers(self) -> Array:
        """ "Never" and "always"."""
        return np.array([0, self.count // 2])

    def classifier(self, number: int, features: Array) -> Classifier:
        """A threshold, or a constant."""
        feature, threshold = self._thresholds
        up = number % len(threshold)
        above = number == up
        if np.isinf(threshold[up]):
            return Constant(int(not above))
        return Threshold(int(feature[up]), float(np.nextafter(threshold[up], np.inf)), above)

    def oracle(self, features: Array) -> ListedOracle:
        """The oracle for the records whose features the class was declared with.

        Raises
        ------
        DeclarationError
            For other features.
        """
        if not np.array_equal(self.features, features):
            raise DeclarationError("hypotheses: the stumps and the problem have different features")
        return super().oracle(features)
