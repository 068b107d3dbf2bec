"""All cuts of one score: the classifiers that are left over once a learner has sorted the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from forcopt.arrays import Array
from forcopt.learning.hypotheses import Classifier, Constant, Hypothesis
from forcopt.learning.thresholds import middles

__all__ = ["Cuts", "best_cuts", "lowest_cut"]


DIGITS = 12
"""Of a cost, as a share of all costs; further ones are rounding."""


class Cuts:
    """The classifiers that predict 1 where a score is at least some value; the best costs one pass.

    Parameters
    ----------
    scores : Array
        Of the records, shape ``(n,)``.
    make : Callable[[float], Classifier]
        Gives the classifier that cuts the score at a value.
    """

    def __init__(self, scores: Array, make: Callable[[float], Classifier]) -> None:
        self.make = make
        self.values, self.place = np.unique(scores, return_inverse=True)

    def best(self, costs: Array) -> tuple[float, Hypothesis]:
        """The cut of least cost, and that cost."""
        at = np.bincount(self.place, costs, len(self.values))
        above = np.append(np.cumsum(at[::-1])[::-1], 0.0)  # entry k: predict 1 from the k-th value on
        k = int(np.argmin(above))
        return float(above[k]), Hypothesis(lambda: self._cut(k), (self.place >= k).astype(np.int64))

    def _cut(self, k: int) -> Classifier:
        if k in (0, len(self.values)):
            return Constant(int(k == 0))
        return self.make(float(middles(self.values[k - 1 : k + 1])[0]))


class Family(Protocol):
    """Classifiers over one score, such as `Cuts`."""

    def best(self, costs: Array, /) -> tuple[float, Hypothesis]:
        """A classifier of low cost, and that cost."""


def lowest_cut(scores: Array, costs: Array) -> float:
    """The number t for which predicting 1 where a score is at least t costs least.

    It lies between two scores, or a unit beyond all of them. Of costs that differ by rounding alone the first
    counts.
    """
    values, place = np.unique(scores, return_inverse=True)
    above = np.append(np.cumsum(np.bincount(place, costs, len(values))[::-1])[::-1], 0.0)
    k = int(np.argmin(np.round(above / (np.abs(costs).sum() or 1.0), DIGITS)))
    last = max(values[-1] + 2.0, np.nextafter(values[-1], np.inf))
    return float(middles(np.concatenate([[values[0] - 2.0], values, [last]])[k : k + 2])[0])


def best_cuts(families: Iterable[Family], costs: Array) -> list[Hypothesis]:
    """The best cut of each score, the best first."""
    found = sorted((cuts.best(costs) for cuts in families), key=lambda pair: pair[0])
    return [hypothesis for _, hypothesis in found]
