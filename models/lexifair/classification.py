"""Mixtures of classifiers with lexicographically minimal group errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers, check_shape
from forcopt.clock import Deadline
from forcopt.declaration import Name
from forcopt.errors import DeclarationError
from forcopt.fairness import Notion, read_binary
from forcopt.language import Constraint, Expression, Model
from forcopt.learning import Hypotheses, Hypothesis, Learner, Oracle, RandomizedPolicy
from forcopt.learning.files import classifier_from_dict, classifier_to_dict, distribution, finite_numbers
from forcopt.learning.finite import Finite, ListedHypotheses, ListedOracle
from forcopt.learning.hypotheses import take_names
from forcopt.learning.learner import Estimator
from forcopt.models.fair_classification.decision import (
    Features,
    RandomizedClassifier,
    default_hypotheses,
    take_raw,
)
from forcopt.models.fair_classification.lagrangian import Moments
from forcopt.models.lexifair.problem import Fit, GroupModel, Lexifair, Responder
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation


@dataclass(frozen=True, eq=False, repr=False)
class ClassifierMixture(GroupModel, RandomizedPolicy):
    """Draws one of some classifiers, then predicts by it.

    Attributes
    ----------
    policy : RandomizedClassifier
        The classifiers, and the probability of drawing each.

    Examples
    --------
    >>> import forcopt as fo
    >>> mixture = fo.load("lexifair/three-models").solve().decision
    >>> p = mixture.probabilities  # a third classifier may have a chance within the tolerance of a level
    >>> round(float(p.sum()), 6), int((p > 1e-6).sum())
    (1.0, 2)
    """

    policy: RandomizedClassifier

    @property
    def probabilities(self) -> Array:
        """Of drawing each of the classifiers, shape ``(s,)``."""
        return self.policy.weights

    def probability(self, records: Any) -> Array:
        """The probability of predicting 1 for records with these features, shape ``(n,)``."""
        return self.policy.probability(records)

    def to_dict(self) -> dict[str, Any]:
        """Names, losses, and the classifiers with their probabilities as plain data.

        Raises
        ------
        DeclarationError
            For a class that predicts no other records than its own (`Finite` without features).
        """
        law = zip(self.probabilities.tolist(), self.policy.classifiers, strict=True)
        drawn = [{"probability": chance, **classifier_to_dict(c)} for chance, c in law]
        return {**super().to_dict(), "classifiers": drawn, **({"raw": True} if self.policy.raw else {})}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The mixture of plain data."""
        losses = finite_numbers(data, "losses", len(data["names"]))
        drawn, names = data["classifiers"], tuple(data.get("features", ()))
        chances = distribution([entry["probability"] for entry in drawn], "classifiers: the probabilities")
        members = tuple(map(classifier_from_dict, drawn))
        policy = RandomizedClassifier(members, chances, features=names, raw=bool(data.get("raw", False)))
        return cls(losses, tuple(data["names"]), policy, features=names)


class LexifairClassification(Lexifair):
    """Choose a mixture of classifiers whose sorted vector of group errors is lexicographically smallest.

    The other fields are as in `Lexifair`; labels are 0 or 1. The loss of a record is the probability of
    predicting it wrong.

    Attributes
    ----------
    hypotheses : Hypotheses, optional
        The class of classifiers, such as ``Stumps(X)``, ``Halfspaces()`` or ``Finite(table)``.
    randomized : bool, default True
        Whether classifiers may be mixed; otherwise one is chosen.
    features : Features, optional
        Of the n records, as `FairClassification` takes them; those of ``Stumps`` by default, and not needed
        by ``Finite``.
    learner : estimator, optional
        A classifier of scikit-learn, in place of `hypotheses`; logistic regression on standardised features
        if neither is given.
    constraint : Notion, optional
        What the mixture must satisfy besides: any linear demand on the rates of the groups, such as
        ``BoundedGroupLoss(0.3)``, a budget of elicited pairs, or a notion of your own.
    feature_names : tuple[str, ...], optional
        Of the features; those of a frame by default.

    Raises
    ------
    DeclarationError
        For other labels, an empty group, a record that does not exist, more levels than groups, and a class
        over another number of records.

    References
    ----------
    Diana, Gill, Globus-Harris, Kearns, Roth, Sharifi-Malvajerdi, FORC 2021, section 6.

    Notes
    -----
    The multipliers of the groups, and of the rows of `constraint`, are costs of the records for the oracle of
    the class. If it is exact, so is ``column-generation``. With a `Learner` the levels are bounded as if its
    fits were optimal: an audit, no proof.

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

    hypotheses: Hypotheses | None = None
    randomized: bool = True
    features: Features | None = Field(default=None, kw_only=True)
    learner: Estimator | None = Field(default=None, kw_only=True)
    constraint: Notion | None = Field(default=None, kw_only=True)
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _names_features(cls, data: Any) -> Any:
        if isinstance(data, dict):
            learns = data.get("learner") is not None or isinstance(data.get("hypotheses"), Learner)
            data = take_raw(data, learns)
        return take_names(data)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        read_binary(self.labels, "labels")
        if self.learner is not None and self.hypotheses is not None:
            raise DeclarationError("learner: there are hypotheses, too; give one of both")
        listed = self.hypotheses.records if isinstance(self.hypotheses, ListedHypotheses) else None
        table = None if self.features is None else self.features.shape[0]
        for name, n in (("hypotheses", listed), ("features", table)):
            if n not in (None, len(self.labels)):
                raise DeclarationError(f"{name} has {n} records, labels {len(self.labels)} entries")
        if isinstance(self.hypotheses, Finite) and self.hypotheses.table.max() > 1:
            most = self.hypotheses.table.max()
            raise DeclarationError(f"hypotheses: the table holds {most:g}; it must be from 0 to 1")
        if self.constraint is not None:
            last = self.constraint.records.max(initial=-1)
            if last >= (n := len(self.labels)):
                raise DeclarationError(f"constraint: a pair names record {last}; there are {n} records")
            for rate, rates in self.constraint.demands(self.rates(np.zeros(len(self.labels)))):
                rates.rate(rate)
        _ = self.oracle  # does the class fit the features?
        return self

    @cached_property
    def table(self) -> Any:
        """The features of the records, shape ``(n, d)``; of a class without features, with no column."""
        if self.features is not None:
            return self.features
        if isinstance(self.hypotheses, ListedHypotheses):
            return getattr(self.hypotheses, "features", np.zeros((len(self.labels), 0)))
        kind = "a learner" if self.hypotheses is None else type(self.hypotheses).__name__
        raise DeclarationError(f"features is None; {kind} needs the features of the records")

    @cached_property
    def oracle(self) -> Oracle:
        """The cost-sensitive oracle of `hypotheses` for the records; a method takes a `fresh` one."""
        if isinstance(self.hypotheses, ListedHypotheses):
            return ListedOracle(self.hypotheses, self.table)
        if self.hypotheses is not None:
            return self.hypotheses.oracle(self.table)
        if self.learner is not None:
            return Learner(self.learner).oracle(self.table)
        return default_hypotheses(self.table, self.record_weights).oracle(self.table)

    # -- errors and rates are linear in the predictions ------------------------------------------------------

    @cached_property
    def signed(self) -> sp.csr_array:
        """How much predicting 1 rather than 0 for a record adds to the error of each group, ``(K, n)``."""
        return sp.csr_array(self.averages.multiply(1.0 - 2.0 * self.labels))

    @cached_property
    def moments(self) -> Moments | None:
        """The linear map from predictions to the moments of `constraint`; None without one."""
        if self.constraint is None:
            return None
        shares, weights = self.shares.T.toarray(), self.record_weights / len(self.labels)
        return Moments(shares, self.labels.astype(np.int64), weights, self.constraint, self.group_names)

    @cached_property
    def _map(self) -> sp.csr_array:
        """Errors of groups and moments, as rows over predictions."""
        rates = [] if self.moments is None else [self.moments.matrix]
        return sp.csr_array(sp.vstack([self.signed, *rates]))

    @cached_property
    def _scales(self) -> Array:
        """Of the moments: a cell counts in shares of its group, so that small groups are held, too."""
        if self.moments is None:
            return np.zeros(0)
        mass = np.abs(self.moments.mass).sum(axis=1, keepdims=True)
        cells = np.broadcast_to(mass, self.moments.mass.shape).reshape(-1)
        return np.append(cells, np.ones(self.moments.matrix.shape[0] - len(cells)))

    def fit(self, chances: Any, hypotheses: Sequence[Hypothesis]) -> Fit:
        """A mixture of hypotheses, with its losses and scaled moments."""
        found, count = self._map @ _mean(chances, hypotheses), len(self.groups)
        parts = np.asarray(chances, dtype=float), list(hypotheses)
        return Fit(found[:count] + self.averages @ self.labels, found[count:] / self._scales, parts)

    def rates(self, predicted: Array) -> Any:
        """The rates of each group, if record i is predicted 1 with probability ``predicted[i]``."""
        assert self.moments is not None
        return self.moments.rates(self.moments.matrix @ predicted)

    def rows(self, moments: Expression) -> list[Constraint]:
        """The rows of `constraint`, over scaled moments that are an expression."""
        if self.constraint is None or self.moments is None:
            return []
        rates: Any = self.moments.rates(self._scales * moments)
        return self.constraint.rows(rates)

    @cached_property
    def error_table(self) -> Array:
        """The error of every classifier in every group, for a class that can be listed; ``(N, K)``."""
        base = self.averages @ self.labels
        if isinstance(self.hypotheses, ListedHypotheses):
            return np.asarray(self.hypotheses.total_costs(self.signed.toarray()).T + base)
        return np.array([self.signed @ h.predictions + base for h in self.oracle.all()])

    # -- decisions -------------------------------------------------------------------------------------------

    def mixture(self, which: Any, probabilities: Any) -> ClassifierMixture:
        """The decision that draws classifier ``which[i]`` of the list with ``probabilities[i]``."""
        numbers, chances = np.asarray(which), as_numbers(probabilities, "probabilities")
        if numbers.shape != chances.shape or numbers.ndim != 1 or numbers.size == 0:
            raise DeclarationError(f"{numbers.size} classifiers and {chances.size} probabilities do not fit")
        listed = None if isinstance(self.oracle, ListedOracle) else self.oracle.all()
        count = self.oracle.listed.count if isinstance(self.oracle, ListedOracle) else len(listed or ())
        wrong = (numbers < 0) | (numbers >= count)
        if wrong.any():
            raise DeclarationError(f"there is no classifier {numbers[wrong][0]}; they are 0 to {count - 1}")
        kept = numbers[chances > 0].tolist()
        made = [listed[k] if listed else self.oracle.hypothesis(k) for k in kept]  # type: ignore[attr-defined]
        return self.decide(self.fit(chances[chances > 0], made))

    def decide(self, fit: Fit) -> ClassifierMixture:
        """The decision."""
        chances, hypotheses = fit.parts
        names = self.feature_names or getattr(self.hypotheses, "feature_names", ())
        raw = hasattr(self.features, "iloc")
        policy = RandomizedClassifier.of(chances, hypotheses, features=names, raw=raw)
        return ClassifierMixture(fit.losses, self.group_names, policy, features=names)

    def fit_of(self, decision: Any) -> Fit:
        """A decision, or the probability of each classifier of the list, with its losses and moments."""
        if not isinstance(decision, ClassifierMixture):
            chances = as_numbers(decision, "decision")
            count = self.error_table.shape[0]
            check_shape(chances, (count,), "the decision")
            decision = self.mixture(np.arange(count), chances / (chances.sum() or 1.0))
        policy = decision.policy
        votes = zip(policy.classifiers, policy.votes(self.table), strict=True)
        return self.fit(policy.weights, [Hypothesis(c, v) for c, v in votes])

    # -- the interface of Lexifair -------------------------------------------------------------------------

    @property
    def is_convex(self) -> bool:
        """Whether classifiers may be mixed."""
        return self.randomized

    @property
    def exact(self) -> bool:
        """Whether the oracle of the class is."""
        return self.oracle.exact

    def check_randomized(self, method: str) -> None:
        """Refuse a method that mixes classifiers."""
        if not self.randomized:
            raise DeclarationError(f"{method!r} mixes classifiers, but randomized is False; use 'compact'")

    def predicted(self, decision: Any) -> Array:
        """The probability that each record is predicted 1, shape ``(n,)``."""
        if isinstance(decision, ClassifierMixture):
            return decision.probability(self.table)
        return _mean(*self.fit_of(decision).parts)

    def group_losses(self, decision: ClassifierMixture | Any) -> Array:
        """The error rate in each group, shape ``(K,)``."""
        return np.asarray(self.signed @ self.predicted(decision) + self.averages @ self.labels)

    def overall_loss(self, decision: ClassifierMixture | Any) -> float:
        """The error rate over all records."""
        return float((self.record_weights * abs(self.predicted(decision) - self.labels)).mean())

    def misfit(self, decision: ClassifierMixture | Any) -> dict[str, float]:
        """How far the probabilities are from being some, or one classifier."""
        mixed = isinstance(decision, ClassifierMixture)
        p = decision.probabilities if mixed else as_numbers(decision, "decision")
        out = {"probabilities": max(float(-p.min()), abs(float(p.sum()) - 1.0))}
        return out if self.randomized else {**out, "one classifier": 1.0 - float(p.max())}

    def evaluate(self, decision: ClassifierMixture | Any) -> Evaluation:
        """As `Lexifair.evaluate`; violations and disparities of `constraint`, too."""
        found = super().evaluate(decision)
        if self.constraint is None:
            return found
        rates = self.rates(self.predicted(decision))
        broken = {k: v for k, v in self.constraint.violation(rates).items() if v > FEASIBILITY_TOLERANCE}
        metrics = {**found.metrics, **self.constraint.disparity(rates)}
        return Evaluation(found.objective, {**found.violations, **broken}, metrics)

    def responder(self, deadline: Deadline | None = None) -> Responder:
        """Cost-sensitive classification: the best single classifier that the oracle finds or remembers."""
        oracle = self.oracle.fresh()
        oracle.deadline = deadline or Deadline()

        def respond(weights: Array, prices: Array) -> Fit:
            costs = weights @ self.signed
            if self.moments is not None and len(prices):
                costs = costs + (prices / self._scales) @ self.moments.matrix
            return self.fit([1.0], [oracle.good(costs)])

        return respond

    def start(self) -> list[Fit]:
        """The constants, which satisfy most constraints."""
        return [self.fit([1.0], [h]) for h in self.oracle.constants()]

    def blend(self, fits: Sequence[Fit], probabilities: Array) -> Fit:
        """Mix mixtures."""
        joined: dict[int, tuple[float, Hypothesis]] = {}
        for q, fit in zip(probabilities.tolist(), fits, strict=True):
            for chance, h in zip(*fit.parts, strict=True) if q > 0 else ():
                joined[id(h)] = joined.get(id(h), (0.0, h))[0] + q * chance, h
        return self.fit(np.array([q for q, _ in joined.values()]), [h for _, h in joined.values()])

    def write(self, model: Model) -> tuple[Expression, Any, dict[str, Any]]:
        """The mixtures of the class, or a single classifier by integers; and the rows of `constraint`."""
        hull = self.oracle.hull(model, self._map, not self.randomized)
        count = len(self.groups)
        if self.constraint is not None:
            model.subject_to(self.rows(hull.mapped[count:] / self._scales))

        def start(decision: Any) -> Any:
            chances, hypotheses = self.fit_of(decision).parts
            return hull.start(chances, np.array([h.predictions for h in hypotheses]))

        losses = model.lift(hull.mapped[:count] + self.averages @ self.labels)
        return losses, lambda found: self.decide(self._positive(*hull.mixture(found))), {"start": start}

    def _positive(self, chances: Array, hypotheses: list[Hypothesis]) -> Fit:
        kept = np.flatnonzero(np.asarray(chances) > 0)
        return self.fit(chances[kept] / chances[kept].sum(), [hypotheses[k] for k in kept.tolist()])


def _mean(chances: Any, hypotheses: Sequence[Hypothesis]) -> Array:
    """The predictions of a mixture, record by record."""
    return np.asarray(sum(q * h.predictions for q, h in zip(chances, hypotheses, strict=True)), dtype=float)
