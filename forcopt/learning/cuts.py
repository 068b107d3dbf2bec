"""Cuts of one score and offsets of several: the classifiers left once a learner has scored the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from forcopt.arrays import Array
from forcopt.learning.hypotheses import Classifier, Constant, Hypothesis, as_cells, costs_by_class
from forcopt.learning.thresholds import between, levels
from forcopt.learning.tolerances import ROUNDING

__all__ = ["Cuts", "Offsets", "best_cuts", "lowest_cut"]

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
