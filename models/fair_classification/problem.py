"""The declaration: records, a fairness constraint, and a class of classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from scipy.sparse import issparse

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.declaration import Integers, Name, Numbers
from forcopt.errors import DeclarationError, require, require_shape
from forcopt.fairness import AllOf, Classwise, CostTable, Merged, Notion, RateParity, RateRatio, read_binary
from forcopt.fairness.costs import check_costs
from forcopt.fairness.rates import ERROR, FALSE_POSITIVE, SELECTION, TRUE_POSITIVE
from forcopt.learning import Hypotheses, Hypothesis, Learner, Oracle
from forcopt.learning.hypotheses import aligned, as_cells, take_names
from forcopt.learning.tolerances import SUM
from forcopt.models.fair_classification.decision import (
    Features,
    Groups,
    RandomizedClassifier,
    SeesGroups,
    as_hypotheses,
    default_hypotheses,
    take_raw,
)
from forcopt.models.fair_classification.lagrangian import Lagrangian, Moments, SaddleGaps
from forcopt.models.fair_classification.tolerances import PROBABILITY
from forcopt.privacy import PrivacyBudget
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Problem


class FairClassification(Problem):
    """Learn the randomised classifier of least error that is fair on the records.

    This is fair empirical risk minimisation. A decision is a mixture Q of classifiers of a class H. Its
    error, and every rate of every group, is linear in the probability ``p[i]`` that record i is predicted 1,
    so that this is a linear program over the convex hull of H.

    Attributes
    ----------
    features : Features
        Of the n records, shape ``(n, d)``; arrays or a pandas frame of numbers. With a `Learner` also a
        sparse array of scipy, and NaN where a value is missing, if its estimator takes them.
    labels : Integers
        0 or 1 for each record; with `classes` the number of its class, from 0.
    groups : Groups
        The group of each record, of any type; None or NaN where missing (such a record counts in the error
        alone); or reports through a channel, ``RandomizedResponse(epsilon).observe(z)``: then the rates
        are unbiased estimates of the rates of the true groups; or a `GroupProxy`, whose probabilities weigh
        the records in the rates.
    constraint : Notion
        The fairness notion, such as ``EqualizedOdds(0.02)``; notions combine with ``&``.
    weights : Numbers, optional
        Of the records, at least 0, shape ``(n,)``; 1 each by default.
    hypotheses : Hypotheses or estimator, optional
        The class H, or an estimator of scikit-learn for a `Learner`; logistic regression on standardised
        features by default.
    privacy : PrivacyBudget, optional
        Let the decision be private in the groups of the records (not in features and labels), such as
        ``PrivacyBudget(epsilon=1.0, delta=1e-6, floor=500)``.
    classes : tuple[str, ...], optional
        The names of C classes, if there are more than two. A notion over the rates of a binary prediction
        then holds classwise: for each class against all others. A notion over error rates holds once, for
        the error of all classes. The hypotheses are `Learner`, `AllFunctions` or `Finite`; there is no
        `privacy`.
    feature_names : tuple[str, ...], optional
        Of the d features; those of a frame by default. The decision then knows them, and takes the columns of
        a frame by name.
    costs : CostTable, optional
        The cost of each prediction for each label, shape ``(C, C)``, indexed ``[label, prediction]``, see
        `cost_table`; the least mean cost is then sought in place of the least error. There is no `privacy`.

    Raises
    ------
    DeclarationError
        For columns of different length, labels that are no classes, a pair of records that do not exist, a
        group without records over which a rate of `constraint` is taken, a floor that the counts do not keep,
        and for `privacy` of groups that were seen through a channel.

    References
    ----------
    Agarwal et al. (2018); Jagielski et al. (2019), program (2); Jung et al. (2021), program (1) to (3);
    Mozannar et al. (2020), section 6 for missing groups.

    Examples
    --------
    >>> from forcopt.fairness import EqualizedOdds
    >>> from forcopt.models.fair_classification import FairClassification, Thresholds
    >>> x = [[0], [0], [1], [1], [2], [2], [0], [1], [2], [0], [1], [1]]
    >>> p = FairClassification(
    ...     features=x, labels=[0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1], groups=["a"] * 6 + ["b"] * 6,
    ...     constraint=EqualizedOdds(0.1), hypotheses=Thresholds(direction="above"))
    >>> s = p.solve()
    >>> round(s.objective, 6), s.status
    (0.45, <Status.OPTIMAL: 'optimal'>)
    >>> round(s.evaluation.metrics["true positive rate"], 6)  # by how much it differs
    0.1
    """

    family: ClassVar[str] = "learning"
    default_method: ClassVar[str] = "column-generation"
    refuses_channel: ClassVar[str] = ""

    features: Features
    labels: Annotated[Integers, BeforeValidator(lambda v: _codes(v))]
    groups: Groups
    constraint: Notion
    weights: Numbers | None = None
    hypotheses: Hypotheses | None = None
    privacy: PrivacyBudget | None = None
    classes: tuple[Name, ...] = Field(default=(), kw_only=True)
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)
    costs: CostTable | None = Field(default=None, kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _names_features(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("hypotheses") is not None:
            learns = as_hypotheses(data["hypotheses"])
            data = take_raw({**data, "hypotheses": learns}, isinstance(learns, Learner))
        return take_names(data)

    @field_validator("features")
    @classmethod
    def _is_table(cls, features: Array) -> Array:
        if features.ndim != 2 or 0 in features.shape:
            raise DeclarationError(f"the shape is {features.shape}; it must be (n, d), n and d at least 1")
        return features

    @field_validator("labels", "weights")
    @classmethod
    def _fits(cls, column: Array | None, info: ValidationInfo) -> Array | None:
        if column is not None and "features" in info.data:
            n = info.data["features"].shape[0]
            require(column.shape == (n,), "the shape", column.shape, f"be ({n},), as of features")
        return column

    @field_validator("weights")
    @classmethod
    def _is_weight(cls, weights: Array | None) -> Array | None:
        if weights is not None and (weights.min() < 0 or weights.sum() <= 0):
            given = f"its least entry is {weights.min():g} and its sum {weights.sum():g}"
            raise DeclarationError(f"{given}; weights must not be negative, and not all be 0")
        return weights

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        n = len(self.labels)
        self._has_classes()
        check_costs(self.costs, self.class_count)
        if self.feature_names and len(set(self.feature_names)) != self.features.shape[1]:
            names, count = ", ".join(self.feature_names), self.features.shape[1]
            raise DeclarationError(f"feature_names are {names}; they must be {count} different names")
        if not isinstance(self.hypotheses, Learner):
            kind = "the default learner" if self.hypotheses is None else type(self.hypotheses).__name__
            if issparse(self.features):
                raise DeclarationError(f"features is sparse; {kind} takes dense features, a Learner both")
            rule = f"{kind} takes no missing values, a Learner may"
            check_entries(self.features, np.isnan(self.features), "features", rule)
        if len(self.groups.codes) != n:
            raise DeclarationError(f"groups has {len(self.groups.codes)} entries for {n} records")
        records = self.constraint.records
        if len(records) and records.max() >= n:
            most = records.max()
            raise DeclarationError(f"constraint: a pair names record {most}; there are {n} records, from 0")
        parts = self.constraint.notions if isinstance(self.constraint, AllOf) else (self.constraint,)
        for part in parts:
            self._compares_groups(part)
        nobody = self.moments.rates(np.zeros(self.moments.matrix.shape[0]))
        for rate, rates in self.demand.demands(nobody):
            if self.groups.channel is not None and not rates.defines(rate):
                a = int(np.argmin(rates.total(rate.given)))
                raise DeclarationError(
                    f"groups: seen through the channel, the estimated number of records of group "
                    f"{rates.groups[a]!r} over which the {rate.name} is taken is "
                    f"{rates.total(rate.given)[a]:.4g}; it must be positive: too few records for this epsilon"
                )
            rates.rate(rate)
        if self.privacy is not None:
            self._keeps_privacy(self.privacy)
        _ = self.oracle  # does the class fit the features?
        return self

    def _has_classes(self) -> None:
        count = len(self.classes) or 2
        if self.classes and (count < 3 or len(set(self.classes)) < count):
            rule = "are not three or more different names; two need no names"
            raise DeclarationError(f"classes: {', '.join(self.classes)} {rule}")
        rule = f"from 0 to {count - 1}" if self.classes else "0 or 1"
        check_entries(self.labels, self.labels >= count, "labels: the array", f"it must be {rule}")
        if not self.classes:
            return
        if self.privacy is not None:
            raise DeclarationError(f"privacy: private learning has two classes, not {count}")
        if len(self.constraint.records):
            kind = f"constraint: {type(self.constraint).__name__} looks at single records"
            raise DeclarationError(f"{kind} and compares their predictions of 1; there are {count} classes")

    def _compares_groups(self, notion: Notion) -> None:
        """Refuse a comparison of one group with missing ones."""
        names, where = set(self.groups.names), "groups"
        some_missing = bool((self.groups.codes < 0).any())
        if isinstance(notion, Merged):
            some_missing |= not names <= set(notion.values)
            names, where, notion = set(notion.values.values()), f"groups by {notion.column}", notion.notion
        if some_missing and len(names) == 1 and isinstance(notion, RateParity | RateRatio):
            alone = f"{names.pop()!r} is the only named group, and the groups of other records are missing"
            raise DeclarationError(f"{where}: {alone}; {type(notion).__name__} compares two groups or more")

    def _keeps_privacy(self, privacy: PrivacyBudget) -> None:
        if self.costs is not None:
            raise DeclarationError("privacy: private learning counts errors, so it takes no costs")
        if self.groups.channel is not None:
            raise DeclarationError("privacy is for true groups; reported ones (channel) are private already")
        if self.groups.proxy is not None:
            raise DeclarationError("privacy is for true groups; a proxy is computed from features and labels")
        least = round((self.groups.shares.T @ np.eye(2)[self.labels]).min())
        if privacy.floor is not None and least < privacy.floor:  # how many there are is private
            floor = privacy.floor
            raise DeclarationError(f"privacy.floor is {floor:g}, but a group and label has fewer records")

    def choose_method(self) -> str:
        """Choose ``dp-oracle-learner`` if there is `privacy`, else ``column-generation``."""
        return "column-generation" if self.privacy is None else "dp-oracle-learner"

    # -- shared by the methods -------------------------------------------------------------------------------

    @cached_property
    def record_weights(self) -> Array:
        """The weight of each record, with sum 1; shape ``(n,)``."""
        weights = np.ones(len(self.labels)) if self.weights is None else self.weights
        return np.asarray(weights / weights.sum())

    @cached_property
    def moments(self) -> Moments:
        """The linear map from predictions to the constraint's moments."""
        groups = self.groups
        names = groups.names, self.classes
        return Moments(groups.shares, self.labels, self.record_weights, self.constraint, *names)

    @property
    def class_count(self) -> int:
        """The number of classes, C."""
        return len(self.classes) or 2

    @property
    def demand(self) -> Any:
        """The constraint; with several classes for each of them."""
        return Classwise(self.constraint) if self.classes else self.constraint

    @cached_property
    def error_costs(self) -> tuple[Array, float]:
        """What each prediction of 1 in place of 0 adds to the error, and the error of predicting 0 always."""
        table = 1.0 - np.eye(self.class_count) if self.costs is None else self.costs
        of_record = self.record_weights[:, None] * table[self.labels]
        if self.classes:
            return of_record.ravel(), 0.0
        return of_record[:, 1] - of_record[:, 0], float(of_record[:, 0].sum())

    @cached_property
    def lagrangian(self) -> Lagrangian:
        """Error, inequalities, and the costs for the oracle at given multipliers."""
        pairs = self.privacy is not None
        return Lagrangian(*self.error_costs, self.demand.rows, self.moments, pairs=pairs)

    @cached_property
    def oracle(self) -> Oracle:
        """The cost-sensitive oracle of `hypotheses` for the records; a method takes a `fresh` one."""
        hypotheses = self.hypotheses or default_hypotheses(self.features, self.record_weights)
        if self.classes:
            return hypotheses.class_oracle(self.features, self.class_count)
        return hypotheses.oracle(self.features)

    def noise(self, error: float) -> float:
        """A quarter of the standard error of an error rate that is measured on these records.

        Parameters
        ----------
        error : float
            The error rate, or the mean cost.

        Returns
        -------
        float
            ``sqrt(e (c - e) / m) / 4`` for e = `error`, the largest cost c (1 without `costs`) and the
            effective number of records m, the inverse of the sum of squared `record_weights`. A smaller
            difference of two training errors is within the sampling error.
        """
        dearest = 1.0 if self.costs is None else float(self.costs.max())
        rate = min(max(error, 0.0), dearest)
        return 0.25 * float(np.sqrt(rate * (dearest - rate) * np.square(self.record_weights).sum()))

    # -- evaluation ------------------------------------------------------------------------------------------

    def predicted(self, decision: Any) -> Array:
        """The probability that each record is predicted 1, shape ``(n,)``.

        With C classes, above two, the probability of each, shape ``(n, C)``.

        Parameters
        ----------
        decision : Any
            A `RandomizedClassifier`, any classifier with ``predict``, the probabilities, or a
            `TwoStepClassifier`, which looks at the reported groups, too.
        """
        shape = (len(self.labels), self.class_count) if self.classes else self.labels.shape
        if isinstance(decision, SeesGroups):
            return decision.predicted_for(self)
        if isinstance(decision, RandomizedClassifier):
            if (known := decision.classes) != (count := self.class_count):
                raise DeclarationError(f"the decision has {known} classes; there are {count}")
            return decision.probability(self._named_for(decision))
        if hasattr(decision, "predict"):
            decision = decision.predict(self.features)
            if self.classes:
                codes = _codes(decision)
                if codes.max(initial=0) >= self.class_count:
                    most, count = codes.max(), self.class_count
                    raise DeclarationError(f"the decision predicts class {most}; there are {count} classes")
                decision = as_cells(codes, self.class_count).reshape(-1, self.class_count)
        values = as_numbers(decision, "the decision")
        require_shape(values.shape == shape, "the decision has", values, f"be {shape}")
        if values.min() < -PROBABILITY or values.max() > 1 + PROBABILITY:
            ends = f"{values.min():g} and {values.max():g}"
            raise DeclarationError(f"the decision holds {ends}; probabilities are from 0 to 1")
        if self.classes and np.abs(values.sum(axis=1) - 1.0).max() > SUM:
            raise DeclarationError("the decision: the probabilities of a record's classes do not sum to 1")
        return np.clip(values, 0.0, 1.0)

    def _named_for(self, decision: RandomizedClassifier) -> Any:
        """The features in the order in which the decision has them."""
        return aligned(self.features, decision.features, self.feature_names)

    def mixture(self, decision: Any) -> tuple[Array, Array]:
        """The weights of a mixture, and the predictions of its k classifiers, shape ``(k, n)``.

        Raises
        ------
        DeclarationError
            For a decision that is no `RandomizedClassifier`.
        """
        if not isinstance(decision, RandomizedClassifier):
            raise DeclarationError(f"a {type(decision).__name__} is no mixture of hypotheses")
        return decision.weights, as_cells(decision.votes(self._named_for(decision)), self.class_count)

    def policy(
        self,
        weights: Any,
        hypotheses: Sequence[Hypothesis],
        multipliers: Array | None = None,
        multiplier_bound: float | None = None,
    ) -> RandomizedClassifier:
        """The decision that mixes hypotheses, see `RandomizedClassifier.of`."""
        facts = self.class_count, self.feature_names, hasattr(self.features, "iloc")
        return RandomizedClassifier.of(weights, hypotheses, multipliers, multiplier_bound, *facts)

    def rates(self, predicted: Any) -> Any:
        """The rates of each group, if record i is predicted 1 with probability ``predicted[i]``.

        `GroupRates`; `ClassRates` with more than two classes, for probabilities of shape ``(n, C)``.
        """
        return self.moments.rates(self.moments.matrix @ predicted.reshape(-1))

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the least changes of the notion's limits, for hypotheses that can be listed.

        See `Problem.least_relaxation`.
        """
        return self.relaxed_rows("lp", "fairness", time_limit)

    def evaluate(self, decision: Any) -> Evaluation:
        """Evaluate a decision: error, violations, rates of each group, and distance to a saddle point.

        Parameters
        ----------
        decision : Any
            See `predicted`. That its classifiers belong to `hypotheses` is not checked.

        Returns
        -------
        Evaluation
            The error; violations of each demand; as metrics the disparities, the rates of each group, and, if
            the decision carries multipliers for these inequalities and the oracle needs no solver, both
            saddle gaps and the lower bound that the multipliers prove.
        """
        predicted = self.predicted(decision)
        rates: Any = self.rates(predicted)
        if isinstance(decision, SeesGroups):
            rates = decision.rates_for(self)
        metrics = {**self.demand.disparity(rates), **self.demand.left_out(rates)}
        parts = [("", rates)]
        if self.classes:
            parts = [(f" of class {name}", rates.of_class(c)) for c, name in enumerate(self.classes)]
        for end, part in parts:
            metrics |= part.named(FALSE_POSITIVE, TRUE_POSITIVE, SELECTION, end=end)
        metrics |= (rates.of_error() if self.classes else rates).named(ERROR)
        multipliers = getattr(decision, "multipliers", None)
        fits = multipliers is not None and multipliers.shape == (self.lagrangian.size,)
        if fits and self.oracle.exact and self.oracle.closed_form:
            gaps = self.saddle_gaps(decision, multipliers, decision.multiplier_bound)
            metrics |= {"learner gap": gaps.learner, "auditor gap": gaps.auditor, "lower bound": gaps.bound}
        found = self.demand.violation(rates)
        broken = {name: v for name, v in found.items() if v > FEASIBILITY_TOLERANCE}
        costs, base = self.error_costs
        return Evaluation(base + float((costs * predicted.reshape(-1)).sum()), broken, metrics)

    def saddle_gaps(self, decision: Any, multipliers: Any, bound: float | None = None) -> SaddleGaps:
        """The gaps of a decision and multipliers to a saddle point of the game; one call of the oracle.

        Parameters
        ----------
        decision : Any
            See `predicted`.
        multipliers : Any
            At least 0, one for each of ``lagrangian.names``.
        bound : float, optional
            On the sum of the auditor's multipliers; the sum of the given ones if None.

        Returns
        -------
        SaddleGaps
            Learner's and auditor's gap, and the lower bound. They are exact if the oracle is.

        References
        ----------
        Jagielski et al. (2019), section 4 and Theorem 4.4: if both gaps are at most nu, the error is within 2
        nu of the best, and the constraint is violated by at most (1 + 2 nu) / bound.
        """
        prices = as_numbers(multipliers, "multipliers")
        if prices.shape != (self.lagrangian.size,) or prices.min(initial=0.0) < 0:
            given = f"shape {prices.shape} and least entry {prices.min(initial=0.0):g}"
            rule = f"it must have shape ({self.lagrangian.size},) and not be negative"
            raise DeclarationError(f"multipliers has {given}; {rule}")
        best = self.oracle.fresh().best(self.lagrangian.price(prices)).predictions
        return self.lagrangian.gaps(self.predicted(decision).reshape(-1), prices, best, bound)


def _codes(values: Any) -> Array:
    """Labels or predictions, as numbers of classes."""
    column = as_numbers(values, "the array")
    if column.ndim != 1:
        return read_binary(column, "the array")
    rule = "it must be 0 or 1, or the number of one of several classes"
    check_entries(column, (column < 0) | (column % 1 != 0), "the array", rule)
    return column.astype(np.int64)
