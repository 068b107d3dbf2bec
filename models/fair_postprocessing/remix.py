"""The decision for several classes: the law of the new class, given the predicted class and the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.fairness.records import read_groups, same_length
from forcopt.learning.files import PolicyFile, numbers_from_plain

__all__ = ["RandomizedRemix"]

ROUNDING = 1e-6
ROUNDING_OF_SUMS = 1e-12


@dataclass(frozen=True, eq=False)
class RandomizedRemix(PolicyFile):
    """Draws a class by the predicted class and the group of a record.

    Attributes
    ----------
    probabilities : Array
        Indexed ``[predicted class, group, class]``; shape ``(C, K, C)``, the last axis sums to 1.
    classes : tuple[str, ...]
        The names of the C classes.
    groups : tuple[str, ...]
        The names of the K groups.

    Raises
    ------
    DeclarationError
        For another shape, or numbers that are no probabilities.
    """

    probabilities: Array
    classes: tuple[str, ...]
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        p, count = as_numbers(self.probabilities, "probabilities"), len(self.classes)
        if p.shape != (count, len(self.groups), count):
            raise DeclarationError(
                f"probabilities has shape {p.shape}; it must be {(count, len(self.groups), count)}"
            )
        if p.min() < -ROUNDING or np.abs(p.sum(axis=2) - 1.0).max() > ROUNDING:
            raise DeclarationError("probabilities: the last axis holds numbers that are no probabilities")
        exact, total = np.maximum(p, 0.0), np.maximum(p, 0.0).sum(axis=2, keepdims=True)
        exact = np.where(np.abs(total - 1.0) > ROUNDING_OF_SUMS, exact / total, exact)
        exact.flags.writeable = False
        object.__setattr__(self, "probabilities", exact)

    def probability(self, predictions: Any, groups: Any) -> Array:
        """The probability of each class for each record, shape ``(n, C)``.

        Parameters
        ----------
        predictions : array_like
            The predicted class of each record, among `classes`.
        groups : array_like
            The group of each record, among `groups`.
        """
        predicted, _ = read_groups(predictions, self.classes)
        codes, _ = read_groups(groups, self.groups)
        same_length(predictions=predicted, groups=codes)
        return np.asarray(self.probabilities[predicted, codes])

    def predict(self, predictions: Any, groups: Any, seed: int | np.random.Generator | None = None) -> Array:
        """Draw the position of a class for each record; the same int gives the same draws."""
        ends = np.cumsum(self.probability(predictions, groups), axis=1)
        drawn = np.random.default_rng(seed).random(len(ends))[:, None] * ends[:, -1:]
        return np.asarray((drawn >= ends).sum(axis=1), dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Probabilities, classes and groups as plain data."""
        return {
            "probabilities": self.probabilities.tolist(),
            "classes": list(self.classes),
            "groups": list(self.groups),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The policy of plain data."""
        probabilities = numbers_from_plain(data["probabilities"])
        return cls(probabilities, tuple(map(str, data["classes"])), tuple(map(str, data["groups"])))

    def __repr__(self) -> str:
        width = max(len("group"), *map(len, self.groups))
        wide = max(len("predicted"), *map(len, self.classes))
        lines = [f"{'group':{width}}  {'predicted':{wide}}  probability of " + ", ".join(self.classes)]
        for a, group in enumerate(self.groups):
            for h, name in enumerate(self.classes):
                chances = "  ".join(f"{v:.4f}" for v in self.probabilities[h, a])
                lines.append(f"{group:{width}}  {name:{wide}}  {chances}")
        return "\n".join(lines)
