"""All cuts of one score: the classifiers that are left over once a learner has sorted the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from forcopt.arrays import Array
from forcopt.learning.hypotheses import Classifier, Constant, Hypothesis
from forcopt.learning.thresholds import ROUNDING, between, levels

__all__ = ["Cuts", "best_cuts", "lowest_cut"]


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
