"""The classifiers that add a number to the score of each class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.learning.classes import as_cells, costs_by_class
from forcopt.learning.cuts import DIGITS, lowest_cut
from forcopt.learning.hypotheses import Classifier, Hypothesis
from forcopt.learning.thresholds import ROUNDING

__all__ = ["Offsets"]

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
