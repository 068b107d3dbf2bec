"""From the raw score of a model to one that is calibrated in each group, by a sample it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.fairness.records import read_binary, read_groups, same_length
from forcopt.learning.files import PolicyFile, numbers_from_plain
from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors


@dataclass(frozen=True, eq=False)
class Recalibration(PolicyFile):
    """A raw score cut into bins; in each group, each bin counts as its share with label 1.

    (Rounding scores down to the end of their bin, as in appendix A.8 of the paper, does not calibrate them.)

    Attributes
    ----------
    edges : Array
        Between the bins, ascending; a score on an edge belongs to the bin above; shape ``(B - 1,)``.
    people : Mapping[str, Array]
        For each group how many were in each bin, shape ``(B,)``.
    positive : Mapping[str, Array]
        For each group how many of them had label 1.

    References
    ----------
    Reich and Vijaykumar (2021), Remark 6.

    Examples
    --------
    >>> r = Recalibration.fit([1, 1, 2, 2, 1, 1, 2, 2], list("aaaabbbb"), [0, 1, 1, 1, 0, 0, 0, 1], edges=[2])
    >>> r.transform([1, 2, 5], ["a", "a", "b"]).tolist()
    [0.5, 1.0, 0.5]
    >>> r.problem(cutoff=0.5).scores["b"].tolist()
    [[0.0, 0.5], [0.5, 0.5]]
    """

    edges: Array
    people: Mapping[str, Array]
    positive: Mapping[str, Array]

    @classmethod
    def fit(cls, scores: Any, groups: Any, labels: Any, *, bins: int = 20, edges: Any = None) -> Self:
        """Count records of a sample.

        Parameters
        ----------
        scores : Any
            Raw, larger for label 1, of any scale.
        groups : Any
            The group of each record.
        labels : Any
            0 or 1 for each record.
        bins : int, default 20
            Cut at the quantiles of the scores of all groups into this many bins, or fewer where many scores
            are the same.
        edges : Any, optional
            Cut there instead.

        Raises
        ------
        DeclarationError
            For columns of different length or other values.
        """
        raw, actual = as_numbers(scores, "scores"), read_binary(labels, "labels")
        codes, names = read_groups(groups)
        same_length(scores=raw, groups=codes, labels=actual)
        if edges is None:
            if bins < 1:
                raise DeclarationError(f"bins is {bins}; there must be at least one")
            edges = np.quantile(raw, np.arange(1, bins) / bins, method="higher")
        cuts = np.unique(as_numbers(edges, "edges"))
        place = np.searchsorted(cuts, raw, side="right")
        people = {n: np.bincount(place[codes == a], minlength=len(cuts) + 1) for a, n in enumerate(names)}
        positive = {
            n: np.bincount(place[(codes == a) & (actual == 1)], minlength=len(cuts) + 1)
            for a, n in enumerate(names)
        }
        return cls(cuts, people, positive)

    def to_dict(self) -> dict[str, Any]:
        """Edges and counts as plain data."""
        tables = {"people": self.people, "positive": self.positive}
        counts = {
            field: {name: np.asarray(c).tolist() for name, c in t.items()} for field, t in tables.items()
        }
        return {"edges": np.asarray(self.edges).tolist(), **counts}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The recalibration of plain data."""
        people, positive = (
            {name: np.asarray(counts) for name, counts in data[field].items()}
            for field in ("people", "positive")
        )
        return cls(numbers_from_plain(data["edges"]), people, positive)

    def transform(self, scores: Any, groups: Any) -> Array:
        """The calibrated score of each record, by its group and bin.

        Raises
        ------
        DeclarationError
            For a group that the sample did not have, or not in that bin.
        """
        names = tuple(self.people)
        raw = as_numbers(scores, "scores")
        codes, _ = read_groups(groups, names)
        same_length(scores=raw, groups=codes)
        place = np.searchsorted(self.edges, raw, side="right")
        people = np.array([self.people[name] for name in names])[codes, place]
        if (people == 0).any():
            at = int(np.argmax(people == 0))
            raise DeclarationError(
                f"scores[{at}] is {raw[at]:g}, in a bin where the sample has nobody of group "
                f"{names[codes[at]]!r}; take fewer bins"
            )
        return np.asarray(np.array([self.positive[name] for name in names])[codes, place] / people)

    def problem(self, **fields: Any) -> CalibratedEqualErrors:
        """Calibrated scores of these groups, weighted by their shares of the sample.

        Parameters
        ----------
        fields : Any
            The other fields of the declaration, such as ``cutoff``.
        """
        counts = {name: (self.people[name], self.positive[name]) for name in self.people}
        return CalibratedEqualErrors.from_counts(counts, **fields)
