"""Thresholds on one feature, decision stumps, cuts of a learner's score and offsets of several scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, Self

import numpy as np
from pydantic import Field, ModelWrapValidatorHandler, field_validator, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Name, Numbers
from forcopt.errors import DeclarationError, require
from forcopt.learning.finite import ListedHypotheses, ListedOracle
from forcopt.learning.hypotheses import (
    Classifier,
    Constant,
    Hypotheses,
    Hypothesis,
    Oracle,
    as_cells,
    constants,
    costs_by_class,
    take_names,
)
from forcopt.learning.tolerances import ROUNDING


class Thresholds(Hypotheses):
    """All cuts of one feature: 1 from some value on, or below some value.

    The oracle is exact: one sort, then cumulative sums, O(n) a call.

    Attributes
    ----------
    column : int, default 0
        Which feature.
    direction : Literal["above", "below", "both"], default "both"
        Predict 1 ``"above"`` the cut, ``"below"`` it, or ``"both"`` kinds.

    Examples
    --------
    >>> X = np.array([[3.0], [1.0], [2.0]])
    >>> Thresholds().oracle(X).best(np.array([-2.0, 1.0, -1.0])).classifier
    x0 >= 1.5
    """

    column: int = Field(default=0, ge=0)
    direction: Literal["above", "below", "both"] = "both"

    def oracle(self, features: Array) -> ThresholdOracle:
        """The oracle for these records."""
        if self.column >= features.shape[1]:
            raise DeclarationError(
                f"hypotheses: column is {self.column}; there are {features.shape[1]} features"
            )
        return ThresholdOracle(features[:, self.column], self.column, self.direction)


@dataclass(frozen=True)
class Threshold:
    """Predicts 1 where ``x[column] >= cut``, or where it is less.

    Attributes
    ----------
    column : int
        The column of X, from 0.
    cut : float
        In the unit of the column.
    above : bool
        True to predict 1 from `cut` on, False to predict 1 below it.

    Examples
    --------
    >>> Threshold(0, 2.0, True).predict([[1], [2]]).tolist()
    [0, 1]
    """

    column: int
    cut: float
    above: bool

    def predict(self, X: Any) -> Array:
        """0 or 1 for each row of X."""
        return np.asarray((as_numbers(X, "X")[:, self.column] >= self.cut) == self.above, dtype=np.int64)

    def __repr__(self) -> str:
        return f"x{self.column} {'>=' if self.above else '<'} {self.cut:.6g}"


def middles(distinct: Array) -> Array:
    """A number above each of rising values but the last, and at most the next one: midway if there is one.

    Examples
    --------
    >>> middles(np.array([1.0, 2.0, np.nextafter(2.0, 3.0)])).tolist()
    [1.5, 2.0000000000000004]
    """
    return between(distinct[:-1], distinct[1:])


def between(low: Array, high: Array) -> Array:
    """The cuts between two neighbouring scores: midway, or the higher one if no float lies between them.

    Whoever has a score of at least the cut is above it, so that the higher score always is and the lower one
    never.
    """
    middle = low / 2 + high / 2  # their sum may overflow
    return np.asarray(np.where(middle > low, middle, high))


def levels(scores: Array, rounding: float = 0.0) -> tuple[Array, Array, Array]:
    """The distinct scores, where those that differ by rounding count as one.

    Parameters
    ----------
    scores : Array
        Shape ``(n,)``.
    rounding : float, default 0.0
        Neighbours are one level if they differ by at most this share of the larger size; of scores with both
        signs, which are differences of larger numbers, the mean size is added.

    Returns
    -------
    tuple[Array, Array, Array]
        The lowest and the highest score of each level, rising, and the number of each score's level.

    Examples
    --------
    >>> low, high, place = levels(np.array([0.3, 0.1 + 0.2, 0.5]), 1e-12)
    >>> low.tolist(), place.tolist()
    ([0.3, 0.5], [0, 0, 1])
    """
    values, place = np.unique(scores, return_inverse=True)
    size = np.maximum(np.abs(values[:-1]), np.abs(values[1:]))
    with np.errstate(over="ignore", invalid="ignore"):
        if values[0] < 0 < values[-1]:
            size = size + np.abs(scores).mean()
        apart = np.diff(values) > rounding * size
    first, last = np.append(True, apart), np.append(apart, True)
    return values[first], values[last], np.append(0, np.cumsum(apart))[place]


class ThresholdOracle(Oracle):
    """Sorted values, with a cut between any two that differ."""

    def __init__(self, values: Array, column: int, direction: str) -> None:
        self.column, self.direction = column, direction
        distinct, self.place = np.unique(values, return_inverse=True)
        self.cuts = middles(distinct)
        """Between neighbours; cut k has the first k + 1 distinct values below it."""
        self.above = [a for a in (True, False) if direction in ("both", "above" if a else "below")]

    def best(self, costs: Array) -> Hypothesis:
        """The best cut; a constant if none is better."""
        sums = np.cumsum(np.bincount(self.place, costs, len(self.cuts) + 1))
        cut = [sums[-1] - sums[:-1] if above else sums[:-1] for above in self.above]
        return self._numbered(int(np.argmin(np.concatenate([[0.0, sums[-1]], *cut]))))

    def constants(self) -> list[Hypothesis]:
        """Both: a cut beyond either end."""
        return constants(len(self.place))

    def all(self) -> list[Hypothesis]:
        """The constants and all cuts."""
        return [self._numbered(k) for k in range(2 + len(self.above) * len(self.cuts))]

    def _numbered(self, number: int) -> Hypothesis:
        if number < 2:
            return self.constants()[number]
        kind, k = divmod(number - 2, len(self.cuts))
        predictions = ((self.place > k) == self.above[kind]).astype(np.int64)
        return Hypothesis(Threshold(self.column, float(self.cuts[k]), self.above[kind]), predictions)


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

    @model_validator(mode="wrap")
    @classmethod
    def _names_features(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        made = validate(take_names(data))
        if isinstance(data, dict) and hasattr(data.get("features"), "iloc"):
            made.__dict__["_labelled"] = data["features"].iloc[:, :0]  # for `check_label_order`
        return made

    @field_validator("features")
    @classmethod
    def _is_matrix(cls, features: Array) -> Array:
        require(features.ndim == 2 and features.size, "the shape", features.shape, "be (records, features)")
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


DIGITS = 12
"""Of a cost, as a share of all costs; further ones are rounding."""


class Cuts:
    """The classifiers that predict 1 where a score is at least some value; the best costs one pass.

    Cuts lie midway between neighbouring `levels` of the score.

    Parameters
    ----------
    scores : Array
        Of the records, shape ``(n,)``.
    make : Callable[[float], Classifier]
        Gives the classifier that cuts the score at a value.
    """

    def __init__(self, scores: Array, make: Callable[[float], Classifier]) -> None:
        self.make = make
        self.low, self.high, self.place = levels(scores, ROUNDING)

    def best(self, costs: Array) -> tuple[float, Hypothesis]:
        """The cut of least cost, and that cost."""
        at = np.bincount(self.place, costs, len(self.low))
        above = np.append(np.cumsum(at[::-1])[::-1], 0.0)  # entry k: predict 1 from the k-th value on
        k = int(np.argmin(above))
        return float(above[k]), Hypothesis(lambda: self._cut(k), (self.place >= k).astype(np.int64))

    def _cut(self, k: int) -> Classifier:
        if k in (0, len(self.low)):
            return Constant(int(k == 0))
        return self.make(float(between(self.high[k - 1], self.low[k])))


class Family(Protocol):
    """Classifiers over one score, such as `Cuts`."""

    def best(self, costs: Array, /) -> tuple[float, Hypothesis]:
        """A classifier of low cost, and that cost."""


def lowest_cut(scores: Array, costs: Array, rounding: float = 0.0) -> float:
    """The number t for which predicting 1 where a score is at least t costs least.

    It lies between two `levels` of scores, or a unit beyond all of them. Of costs that differ by rounding
    alone the first counts.
    """
    low, high, place = levels(scores, rounding)
    above = np.append(np.cumsum(np.bincount(place, costs, len(low))[::-1])[::-1], 0.0)
    k = int(np.argmin(np.round(above / (np.abs(costs).sum() or 1.0), DIGITS)))
    last = max(high[-1] + 2.0, np.nextafter(high[-1], np.inf))
    return float(between(np.append(low[0] - 2.0, high)[k], np.append(low, last)[k]))


def best_cuts(families: Iterable[Family], costs: Array) -> list[Hypothesis]:
    """The best cut of each score, the best first."""
    found = sorted((cuts.best(costs) for cuts in families), key=lambda pair: pair[0])
    return [hypothesis for _, hypothesis in found]


SWEEPS = 10


class Offsets:
    """Classifiers that predict the class whose score plus offset is largest; good offsets for given costs.

    Parameters
    ----------
    scores : Array
        Of the records and the C classes, shape ``(n, C)``; minus infinite for a class that is
        never predicted.
    make : Callable[[Array], Classifier]
        Gives the classifier with these offsets, shape ``(C,)``.

    Notes
    -----
    Coordinate descent: as the offset of one class grows, records change to that class in the order of their
    margins, so that the best value costs one sort. The passes over the classes go on until none lowers the
    cost, from two starts: the scores as they are, and scores that are centred by class. An offset at which
    two classes tie for some record, up to rounding, is moved at equal cost.
    """

    def __init__(self, scores: Array, make: Callable[[Array], Classifier]) -> None:
        self.scores, self.make = scores, make
        kept = np.isfinite(scores).all(axis=0)
        self.used = np.flatnonzero(kept)
        centred = np.zeros(scores.shape[1])
        centred[kept] = -scores[:, kept].mean(axis=0)
        self.starts = (np.zeros(scores.shape[1]), centred)

    def best(self, costs: Array) -> tuple[float, Hypothesis]:
        """The offsets of least cost that are found, and that cost.

        Parameters
        ----------
        costs : Array
            Of the cells of `as_cells`, shape ``(n * C,)``.
        """
        table = costs_by_class(costs, self.scores.shape[1])
        one, other = (self._descend(start, table) for start in self.starts)
        cost, offsets = other if other[0] < one[0] - _dust(table) else one
        codes = np.argmax(self.scores + offsets, axis=1)
        return cost, Hypothesis(lambda: self.make(offsets), as_cells(codes, self.scores.shape[1]))

    def _descend(self, offsets: Array, table: Array) -> tuple[float, Array]:
        """Improve one offset after the other."""
        each, rounding = np.arange(len(table)), ROUNDING * np.abs(self.scores[:, self.used]).mean()
        offsets = offsets.copy()
        cost = float(table[each, np.argmax(self.scores + offsets, axis=1)].sum())
        for _ in range(SWEEPS):
            before = cost
            for c in self.used.tolist():
                others = self.scores + offsets
                others[:, c] = -np.inf
                rival = np.argmax(others, axis=1)
                tried = offsets.copy()
                margin = self.scores[:, c] - others[each, rival]
                tried[c] = -lowest_cut(margin, table[:, c] - table[each, rival], ROUNDING)
                reached = float(table[each, np.argmax(self.scores + tried, axis=1)].sum())
                tie = (np.abs(margin + offsets[c]) <= rounding).any()
                if reached < cost - _dust(table) or (tie and reached <= cost + _dust(table)):
                    cost, offsets = reached, tried
            if cost >= before - _dust(table):
                break
        return cost, offsets


def _dust(table: Array) -> float:
    """A difference of costs that may be rounding."""
    return float(10.0**-DIGITS * np.abs(table).sum())
