"""The decision on scores: in each group, thresholds and the probability of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.fairness.records import read_groups, same_length
from forcopt.learning.files import PolicyFile
from forcopt.problem.drawing import COLOURS, MARKERS, finished, panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RandomizedThresholds"]


@dataclass(frozen=True, eq=False)
class RandomizedThresholds(PolicyFile):
    """Draws a threshold by the group of a record, and predicts 1 if the record's score is at least that.

    Attributes
    ----------
    groups : tuple[str, ...]
        The names of the K groups.
    thresholds : tuple[Array, ...]
        For each group its thresholds, rising; infinite for "never", minus infinite for "always".
    weights : tuple[Array, ...]
        For each group the probability of each threshold; they sum to 1.

    Examples
    --------
    >>> d = RandomizedThresholds(("a", "b"), (np.array([0.5]), np.array([0.2, 0.6])), ([1.0], [0.25, 0.75]))
    >>> d.probability([0.5, 0.5, 0.7], ["a", "b", "b"]).tolist()
    [1.0, 0.25, 1.0]
    """

    groups: tuple[str, ...]
    thresholds: tuple[Array, ...]
    weights: tuple[Array, ...]

    def __post_init__(self) -> None:
        if not len(self.groups) == len(self.thresholds) == len(self.weights):
            raise DeclarationError(
                f"there are {len(self.groups)} groups, {len(self.thresholds)} lists of thresholds and "
                f"{len(self.weights)} of weights; each group needs both"
            )
        thresholds, weights = [], []
        for name, cuts, chances in zip(self.groups, self.thresholds, self.weights, strict=True):
            t, w = np.asarray(cuts, dtype=float), as_numbers(chances, "weights")
            if t.ndim != 1 or t.shape != w.shape or not len(t) or np.isnan(t).any():
                raise DeclarationError(
                    f"group {name!r}: thresholds {t.tolist()} and weights {w.tolist()} differ"
                )
            if w.min() < -1e-9 or abs(w.sum() - 1.0) > 1e-6:
                raise DeclarationError(f"group {name!r}: the weights {w.tolist()} are no probabilities")
            order = np.argsort(t, kind="stable")
            w = np.maximum(w, 0.0)
            thresholds.append(t[order])
            weights.append((w / w.sum())[order])
        object.__setattr__(self, "thresholds", tuple(thresholds))
        object.__setattr__(self, "weights", tuple(weights))

    def probability(self, scores: Any, groups: Any) -> Array:
        """The probability that each record is predicted 1.

        Parameters
        ----------
        scores : array_like
            One score a record, shape ``(n,)``.
        groups : array_like
            The group of each record.

        Returns
        -------
        Array
            Numbers from 0 to 1, shape ``(n,)``.

        Raises
        ------
        DeclarationError
            For a group without thresholds, and for columns of different length.
        """
        values = as_numbers(scores, "scores")
        codes, _ = read_groups(groups, self.groups)
        same_length(scores=values, groups=codes)
        chance = np.zeros(len(values))
        for a, (cuts, weights) in enumerate(zip(self.thresholds, self.weights, strict=True)):
            members = codes == a
            below = np.append(0.0, np.cumsum(weights))
            chance[members] = below[np.searchsorted(cuts, values[members], side="right")]
        return np.clip(chance, 0.0, 1.0)

    def predict(self, scores: Any, groups: Any, seed: int | np.random.Generator | None = None) -> Array:
        """Draw a prediction for each record, independently; the same int gives the same draws."""
        chance = self.probability(scores, groups)
        return np.asarray(np.random.default_rng(seed).random(len(chance)) < chance, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Groups, thresholds and weights as plain data; infinite thresholds as text."""
        return {
            "groups": list(self.groups),
            "thresholds": [
                [t if np.isfinite(t) else str(t) for t in cuts.tolist()] for cuts in self.thresholds
            ],
            "weights": [weights.tolist() for weights in self.weights],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The policy of plain data."""
        thresholds = tuple(np.array([float(t) for t in cuts]) for cuts in data["thresholds"])
        return cls(tuple(data["groups"]), thresholds, tuple(map(np.asarray, data["weights"])))

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw the probability of predicting 1 as the score grows, a line for each group.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        figure, axes = panel(ax, (5.0, 3.6))
        cuts = np.concatenate(self.thresholds)
        inner = cuts[np.isfinite(cuts)]
        low, high = (float(inner.min()), float(inner.max())) if len(inner) else (0.0, 1.0)
        room = 0.1 * (high - low) or 0.5
        ends = np.array([low - room, high + room])
        for a, name in enumerate(self.groups):
            own = self.thresholds[a]
            at = np.unique(np.concatenate([ends, own[np.isfinite(own)]]))
            color, marker = COLOURS[a % len(COLOURS)], MARKERS[a % len(MARKERS)]
            chance = self.probability(at, [name] * len(at))
            axes.step(at, chance, where="post", color=color, marker=marker, label=name)
        axes.set(xlabel="score", ylabel="probability of predicting 1", ylim=(-0.05, 1.05))
        axes.legend()
        return finished(figure, path)

    def __repr__(self) -> str:
        width = max(len("group"), *map(len, self.groups))
        lines = [f"{'group':{width}}  predicts 1 from a score of"]
        for name, cuts, weights in zip(self.groups, self.thresholds, self.weights, strict=True):
            kept = [(t, w) for t, w in zip(cuts.tolist(), weights.tolist(), strict=True) if w > 1e-9]
            texts = [f"{t:.6g}" + (f" (probability {w:.4f})" if len(kept) > 1 else "") for t, w in kept]
            lines.append(f"{name:{width}}  {', '.join(texts)}")
        return "\n".join(lines)
