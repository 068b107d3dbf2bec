"""Mixtures of classifiers with lexicographically minimal group errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from pydantic import model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.fairness.records import read_binary
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.learning import Finite, ListedHypotheses, RandomizedPolicy
from forcopt.learning.files import (
    StoredClassifiers,
    classifier_from_dict,
    classifier_to_dict,
    distribution,
    finite_numbers,
)
from forcopt.learning.hypotheses import aligned
from forcopt.learning.policy import mixed
from forcopt.models.lexifair.problem import GroupModel, Lexifair
from forcopt.models.lexifair.tolerances import NEGLIGIBLE


@dataclass(frozen=True, eq=False, repr=False)
class ClassifierMixture(GroupModel, RandomizedPolicy):
    """Draws one of some classifiers, then predicts by it.

    Attributes
    ----------
    which : Array
        Numbers of the classifiers in their class, rising, shape ``(s,)``.
    probabilities : Array
        Of drawing each, shape ``(s,)``.
    hypotheses : ListedHypotheses or StoredClassifiers
        The class; in a mixture that was read from a file, the classifiers that it draws alone.

    Examples
    --------
    >>> import forcopt as fo
    >>> mixture = fo.load("lexifair/three-models").solve().decision
    >>> round(float(mixture.probabilities.sum()), 6), len(mixture.which) == len(mixture.probabilities)
    (1.0, True)
    """

    which: Array
    probabilities: Array
    hypotheses: ListedHypotheses | StoredClassifiers

    def probability(self, records: Any) -> Array:
        """The probability of predicting 1 for records with these features, shape ``(n,)``."""
        table = aligned(records, self.features)
        return mixed(self.probabilities, self.hypotheses.predict(self.which, table))

    def to_dict(self) -> dict[str, Any]:
        """Names, losses, and the classifiers with their probabilities as plain data.

        Raises
        ------
        DeclarationError
            For a class that predicts no other records than its own (`Finite`).
        """
        if isinstance(self.hypotheses, Finite):
            raise DeclarationError(
                "rows of a table predict no other records, so they are not written to a file"
            )
        nothing = np.zeros((0, 0))
        drawn = [
            {"probability": chance, **classifier_to_dict(self.hypotheses.classifier(number, nothing))}
            for number, chance in zip(self.which.tolist(), self.probabilities.tolist(), strict=True)
        ]
        return {**super().to_dict(), "classifiers": drawn}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The mixture of plain data."""
        drawn = data["classifiers"]
        stored = StoredClassifiers(tuple(map(classifier_from_dict, drawn)))
        chances = distribution([entry["probability"] for entry in drawn], "classifiers: the probabilities")
        losses = finite_numbers(data, "losses", len(data["names"]))
        names = tuple(data.get("features", ()))
        return cls(losses, tuple(data["names"]), np.arange(len(drawn)), chances, stored, features=names)


class LexifairClassification(Lexifair):
    """Choose a mixture of classifiers whose sorted vector of group errors is lexicographically smallest.

    The other fields are as in `Lexifair`; labels are 0 or 1. The loss of a record is the probability of
    predicting it wrong.

    Attributes
    ----------
    hypotheses : ListedHypotheses
        The class of classifiers, such as ``Stumps(X)`` or ``Finite(table)``.
    randomized : bool, default True
        Whether classifiers may be mixed; otherwise one is chosen.

    Raises
    ------
    DeclarationError
        For other labels, an empty group, a record that does not exist, more levels than groups, and a class
        over another number of records.

    References
    ----------
    Diana, Gill, Globus-Harris, Kearns, Roth, Sharifi-Malvajerdi, FORC 2021, section 6.

    Examples
    --------
    Thresholds on a line; no single one errs less than once in three on every group:

    >>> from forcopt.models import LexifairClassification
    >>> from forcopt.learning import Stumps
    >>> p = LexifairClassification(labels=[0, 1, 1, 1, 0, 0], groups=[[0, 1, 2], [2, 3, 4], [1, 4, 5]],
    ...     hypotheses=Stumps([[0], [1], [2], [3], [4], [5]]))
    >>> p.solve().decision
    group    loss
    0      0.2222
    2      0.2222
    1      0.1111
    """

    hypotheses: ListedHypotheses
    randomized: bool = True

    @model_validator(mode="after")
    def _fits(self) -> Self:
        read_binary(self.labels, "labels")
        if self.hypotheses.records != len(self.labels):
            raise DeclarationError(
                f"hypotheses has {self.hypotheses.records} records, labels {len(self.labels)} entries"
            )
        if isinstance(self.hypotheses, Finite) and self.hypotheses.table.max() > 1:
            raise DeclarationError(
                f"hypotheses: the table holds {self.hypotheses.table.max():g}; it must be from 0 to 1, as "
                "labels have two classes"
            )
        return self

    def record_costs(self, weights: Array) -> tuple[Array, float]:
        """Group weights as costs of records: of predicting 1 rather than 0, and of predicting 0 throughout.

        Parameters
        ----------
        weights : Array
            Of the groups, shape ``(K,)``.
        """
        weight = weights @ self.averages
        return (1.0 - 2.0 * self.labels) * weight, float(weight @ self.labels)

    @cached_property
    def error_table(self) -> Array:
        """The error of every classifier in every group, shape ``(N, K)``."""
        costs = self.averages.multiply(1.0 - 2.0 * self.labels).toarray()
        return np.asarray(self.hypotheses.total_costs(costs).T + self.averages @ self.labels)

    def mixture(self, which: Any, probabilities: Any) -> ClassifierMixture:
        """The decision that draws classifier ``which[i]`` with probability ``probabilities[i]``."""
        numbers, chances = np.asarray(which), as_numbers(probabilities, "probabilities")
        if numbers.shape != chances.shape or numbers.ndim != 1 or numbers.size == 0:
            raise DeclarationError(f"{numbers.size} classifiers and {chances.size} probabilities do not fit")
        wrong = (numbers < 0) | (numbers >= self.hypotheses.count)
        if wrong.any():
            raise DeclarationError(
                f"there is no classifier {numbers[wrong][0]}; they are 0 to {self.hypotheses.count - 1}"
            )
        distinct, place = np.unique(numbers, return_inverse=True)
        total = np.bincount(place, weights=chances)
        losses = total @ self._errors(distinct)
        names = getattr(self.hypotheses, "feature_names", ())
        return ClassifierMixture(losses, self.group_names, distinct, total, self.hypotheses, features=names)

    def _errors(self, which: Array) -> Array:
        """The errors of some classifiers in every group, shape ``(len(which), K)``."""
        if "error_table" in self.__dict__:
            return np.asarray(self.error_table[which])
        wrong = abs(self.hypotheses.predictions(which) - self.labels)
        return np.asarray((self.averages @ wrong.T).T)

    def _mixture(self, decision: Any) -> ClassifierMixture:
        if isinstance(decision, ClassifierMixture):
            if decision.hypotheses is not self.hypotheses and decision.hypotheses != self.hypotheses:
                raise DeclarationError("the decision mixes classifiers of another class")
            return decision
        chances = as_numbers(decision, "decision")
        if chances.shape != (self.hypotheses.count,):
            raise DeclarationError(
                f"the decision has shape {chances.shape}; it must be ({self.hypotheses.count},), "
                "a probability for each classifier"
            )
        return self.mixture(np.arange(len(chances)), chances)

    def sparsify(self, decision: Any) -> ClassifierMixture:
        """A mixture of at most K + 1 of the same classifiers with the same group errors (Carathéodory)."""
        mixture = self._mixture(decision)
        keep = mixture.probabilities > 0
        which, chances = mixture.which[keep], mixture.probabilities[keep]
        rows = np.column_stack([self._errors(which), np.ones(len(which))])
        while len(which) > rows.shape[1]:
            # a direction that changes neither errors nor total, followed until a probability is 0
            direction = np.linalg.svd(rows[: rows.shape[1] + 1].T)[2][-1]
            direction = np.append(direction, np.zeros(len(which) - len(direction)))
            direction *= np.sign(direction[np.argmax(abs(direction))])
            steps = np.where(
                direction > NEGLIGIBLE, chances / np.where(direction > NEGLIGIBLE, direction, 1.0), np.inf
            )
            at = int(np.argmin(steps))
            chances = np.maximum(chances - steps[at] * direction, 0.0)
            stay = np.arange(len(which)) != at
            which, chances, rows = which[stay], chances[stay], rows[stay]
        return replace(self.mixture(which, chances / chances.sum()), levels=mixture.levels)

    # -- the interface of Lexifair -------------------------------------------------------------------------

    @property
    def is_convex(self) -> bool:
        """Whether classifiers may be mixed."""
        return self.randomized

    def check_randomized(self, method: str) -> None:
        """Refuse a method that mixes classifiers."""
        if not self.randomized:
            raise DeclarationError(
                f"method {method!r} mixes classifiers, but randomized is False; "
                "use 'compact', 'row-generation' or 'enumeration'"
            )

    def group_losses(self, decision: ClassifierMixture | Any) -> Array:
        """The error rate in each group, shape ``(K,)``."""
        mixture = self._mixture(decision)
        return np.asarray(mixture.probabilities @ self._errors(mixture.which))

    def overall_loss(self, decision: ClassifierMixture | Any) -> float:
        """The error rate over all records."""
        mixture = self._mixture(decision)
        chance = mixture.probabilities @ self.hypotheses.predictions(mixture.which)
        return float((self.record_weights * abs(chance - self.labels)).mean())

    def misfit(self, decision: ClassifierMixture | Any) -> dict[str, float]:
        """How far the probabilities are from being some, or one classifier."""
        p = self._mixture(decision).probabilities
        out = {"probabilities": max(float(-p.min()), abs(float(p.sum()) - 1.0))}
        return out if self.randomized else {**out, "one classifier": 1.0 - float(p.max())}

    def best_response(self, weights: Array) -> ClassifierMixture:
        """The best single classifier: cost-sensitive classification."""
        costs, _ = self.record_costs(weights)
        return self.mixture(self.hypotheses.best(costs)[None], np.ones(1))

    def mix(self, models: Sequence[ClassifierMixture], probabilities: Array) -> ClassifierMixture:
        """Mix mixtures."""
        chances = [q * m.probabilities for q, m in zip(probabilities, models, strict=True) if q > 0]
        which = [m.which for q, m in zip(probabilities, models, strict=True) if q > 0]
        return self.mixture(np.concatenate(which), np.concatenate(chances))

    def write(self, model: Model) -> tuple[Expression, Any, dict[str, Any]]:
        """A probability for each classifier, summing to 1; binary if one is to be chosen."""
        p = model.variable(
            model.unused_name("probability"),
            self.hypotheses.count,
            lower=0,
            upper=1,
            integer=not self.randomized,
        )
        model.subject_to(p.sum() == 1, name=model.unused_name("mixture"))

        def decision(solution: Any) -> ClassifierMixture:
            found = np.maximum(solution[p], 0.0)
            which = np.flatnonzero(found)
            return self.mixture(which, found[which] / found.sum())

        def start(decision: Any) -> dict[Variable, Array]:
            mixture = self._mixture(decision)
            return {p: np.bincount(mixture.which, mixture.probabilities, self.hypotheses.count)}

        return model.lift(self.error_table.T @ p), decision, {"probabilities": p, "start": start}
