"""The decision: classifiers and their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.fairness import GroupRates
from forcopt.learning import Classifier, Hypothesis, RandomizedPolicy
from forcopt.learning.files import PolicyFile, classifier_from_dict, classifier_to_dict
from forcopt.learning.hypotheses import aligned, as_cells
from forcopt.learning.tolerances import NEGLIGIBLE, SUM
from forcopt.models.fair_classification.records import as_table
from forcopt.problem.drawing import finished, panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 12


@runtime_checkable
class SeesGroups(Protocol):
    """A decision that also reads the groups, so that features alone do not determine its predictions."""

    def predicted_for(self, problem: Any, /) -> Array:
        """The probability that each record of the problem is predicted 1."""

    def rates_for(self, problem: Any, /) -> GroupRates:
        """The rates of each group."""


@dataclass(frozen=True, eq=False)
class RandomizedClassifier(RandomizedPolicy, PolicyFile):
    """Draws one of its classifiers for each record.

    Attributes
    ----------
    classifiers : tuple[Classifier, ...]
        The support of the mixture.
    weights : Array
        The probability of each, at least 0, with sum 1; shape ``(len(classifiers),)``.
    multipliers : Array, optional
        Prices of the inequalities of the constraint under which it was found, if any, as
        `FairClassification.lagrangian` orders them; `FairClassification.evaluate` then reports how far both
        are from a saddle point.
    multiplier_bound : float, optional
        On the sum of the multipliers; their own sum if None.
    classes : int, default 2
        The number of classes, C, which are numbered from 0.
    features : tuple[str, ...], optional
        The names of the features, in order: a frame is aligned by them.
    labels : tuple, optional
        The label of each class, which `predict` returns; the numbers by default.

    Raises
    ------
    DeclarationError
        For weights that are no probabilities.
    """

    classifiers: tuple[Classifier, ...]
    weights: Array
    multipliers: Array | None = field(default=None, repr=False)
    multiplier_bound: float | None = field(default=None, repr=False)
    classes: int = 2
    features: tuple[str, ...] = field(default=(), repr=False)
    labels: tuple[Any, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        weights = as_numbers(self.weights, "weights")
        object.__setattr__(self, "classifiers", tuple(self.classifiers))
        if weights.shape != (len(self.classifiers),) or not len(weights):
            raise DeclarationError(
                f"weights has shape {weights.shape}; it must be ({len(self.classifiers)},), at least one"
            )
        if weights.min() < -NEGLIGIBLE or abs(weights.sum() - 1.0) > SUM:
            raise DeclarationError(
                f"weights has least entry {weights.min():g} and sum {weights.sum():g}; they must be "
                "probabilities"
            )
        if self.labels and len(self.labels) != self.classes:
            raise DeclarationError(f"labels are {self.labels!r}; there are {self.classes} classes")
        weights = np.maximum(weights, 0.0)
        object.__setattr__(self, "weights", weights / weights.sum())

    @classmethod
    def of(
        cls,
        weights: Any,
        hypotheses: Sequence[Hypothesis],
        multipliers: Array | None = None,
        multiplier_bound: float | None = None,
        classes: int = 2,
        features: tuple[str, ...] = (),
    ) -> RandomizedClassifier:
        """A mixture of hypotheses; equal ones are joined, and ones without weight left out.

        A solver may leave probabilities by its tolerance: weights below 0 are taken for 0.
        """
        joined: dict[bytes, tuple[Classifier, float]] = {}
        for weight, h in zip(np.asarray(weights, dtype=float), hypotheses, strict=True):
            if weight > NEGLIGIBLE:
                key = np.packbits(h.predictions.astype(bool)).tobytes()
                first, before = joined.get(key, (h.classifier, 0.0))
                joined[key] = first, before + float(weight)
        total = np.array([w for _, w in joined.values()])
        kept = tuple(c for c, _ in joined.values())
        return cls(kept, total / total.sum(), multipliers, multiplier_bound, classes, features)

    def votes(self, X: Any) -> Array:
        """The prediction of each classifier for each row of X, shape ``(len(classifiers), n)``.

        Raises
        ------
        DeclarationError
            For a frame that lacks a feature, or has another column, by its name.
        """
        features = as_table(aligned(X, self.features))  # an array, as in training
        return np.array([np.asarray(c.predict(features), dtype=float) for c in self.classifiers])

    def probability(self, records: Any) -> Array:
        """The probability that each row of features is predicted 1, shape ``(n,)``.

        With C classes, above two, the probability of each, shape ``(n, C)``.
        """
        votes = self.votes(records)
        chance = np.clip(self.weights @ as_cells(votes, self.classes), 0.0, 1.0)
        return np.asarray(chance if self.classes == 2 else chance.reshape(-1, self.classes))

    def predict(self, X: Any, seed: int | np.random.Generator | None = None) -> Array:
        """Draw a prediction for each row of X, as `draw` does; a member of `labels`, if these are known."""
        drawn = self.draw(X, seed)
        return np.asarray(self.labels)[drawn] if self.labels else drawn

    def to_dict(self) -> dict[str, Any]:
        """The classifiers, weights, names and labels as plain data; multipliers are left out.

        Raises
        ------
        DeclarationError
            For a classifier without a plain form. A linear learner becomes a halfspace.
        """
        return {
            "classifiers": [classifier_to_dict(c) for c in self.classifiers],
            "weights": self.weights.tolist(),
            **({} if self.classes == 2 else {"classes": self.classes}),
            **({"features": list(self.features)} if self.features else {}),
            **({"labels": list(self.labels)} if self.labels else {}),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The policy of plain data."""
        classifiers = tuple(map(classifier_from_dict, data["classifiers"]))
        return cls(
            classifiers,
            np.asarray(data["weights"]),
            classes=int(data.get("classes", 2)),
            features=tuple(data.get("features", ())),
            labels=tuple(data.get("labels", ())),
        )

    def plot(self, path: str | Path | None = None, *, ax: Any = None, problem: Any = None) -> Figure:
        """Draw the probability of each classifier; with the problem, its error against its disparity.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        problem : FairClassification, optional
            The records on which to measure. Each classifier is a circle whose area grows with its
            probability, and the mixture a star.
        """
        figure, axes = panel(ax, (5.0, 4.0))
        if problem is None:
            order = np.argsort(-self.weights, kind="stable")
            axes.barh([f"{self.classifiers[k]!r:.40}" for k in order], self.weights[order])
            axes.invert_yaxis()
            axes.set(xlabel="probability", xlim=(0, 1))
            return finished(figure, path)
        judged = [problem.evaluate(decision) for decision in [*self.classifiers, self]]
        names = list(problem.demand.disparity(problem.rates(as_cells(problem.labels, self.classes))))
        if not names:
            raise DeclarationError(f"problem: {problem.constraint!r} measures no disparity to draw against")
        spread = np.array([max(e.metrics[name] for name in names) for e in judged])
        error = np.array([e.objective for e in judged])
        axes.scatter(spread[:-1], error[:-1], s=20 + 400 * self.weights, alpha=0.6, label="classifiers")
        axes.scatter(spread[-1:], error[-1:], s=160, marker="*", zorder=3, label="their mixture")
        axes.set(xlabel="largest disparity", ylabel="error")
        axes.legend()
        return finished(figure, path)

    def __repr__(self) -> str:
        order = np.argsort(-self.weights, kind="stable")
        lines = [f"{self.weights[k]:.4f}  {self.classifiers[k]!r}" for k in order[:SHOWN]]
        if len(order) > SHOWN:
            lines.append(f"... and {len(order) - SHOWN} more")
        return "\n".join(lines)
