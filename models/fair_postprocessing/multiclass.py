"""Post-processing of the predictions of a classifier with several classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers, check_entries, check_label_order, entries_of, is_missing
from forcopt.declaration import Name, Numbers
from forcopt.errors import DeclarationError
from forcopt.fairness import ERROR, ClassRates, Classwise, CostTable, Notion, read_groups
from forcopt.fairness.records import same_length
from forcopt.language import Expression, Model, stack
from forcopt.models.fair_postprocessing.decision import RandomizedRemix
from forcopt.models.fair_postprocessing.problem import Postprocessing
from forcopt.privacy import ObservedGroups, RandomizedResponse
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles
from forcopt.problem.drawing import Sketch


class MulticlassPostprocessing(Postprocessing):
    """Remix the predicted classes group by group, for the least error that is fair.

    A record of group `a` with predicted class `h` gets class `c` with probability ``p[h, a, c]``. Error and
    rates are linear in `p`. A notion over the rates of a binary prediction holds classwise: for each class
    against all others. A notion over error rates holds once, for the error of all classes. If the classes are
    `ordered`, such as the levels of a regression, a notion holds for each threshold: for the classes from one
    on against those below. `DemographicParity` is then the statistical parity of a regression: the
    distribution functions of two groups differ by at most the tolerance.

    Attributes
    ----------
    counts : Numbers
        How many records there are, or how much they weigh, indexed ``[prediction, group, label]``; shape
        ``(C, K, C)``.
    constraint : Notion
        The fairness notion, over groups; notions combine with ``&``.
    groups : tuple[str, ...], optional
        Names of the K groups; ``"0"``, ``"1"``, ... by default.
    classes : tuple[str, ...], optional
        Names of the C classes; ``"0"``, ``"1"``, ... by default.
    costs : CostTable, optional
        The cost of each prediction for each label, shape ``(C, C)``, indexed ``[label, prediction]``; the
        least mean cost is then sought in place of the least error.
    channel : RandomizedResponse, optional
        The channel of the records' groups, if `counts` are by report, see `FairPostprocessing`.
    ordered : bool, default False
        Whether rates are those of thresholds: of each class but the first, or a class above it.

    Raises
    ------
    DeclarationError
        For counts that are negative or of another shape, names that do not fit, a group without the records
        over which a rate of `constraint` is taken, a constraint on single records, and one on error rates if
        the classes are ordered.

    References
    ----------
    Hardt, Price and Srebro (2016), section 4.1, for two classes; Putzel and Lee (2022): Blackbox
    post-processing for multiclass fairness, with classwise equalized odds; Agarwal, Dudík and Wu (2019): Fair
    regression, section 2, statistical parity over thresholds.

    Examples
    --------
    >>> from forcopt.fairness import DemographicParity
    >>> from forcopt.models import MulticlassPostprocessing
    >>> counts = np.zeros((3, 2, 3), dtype=int)
    >>> counts[[0, 1, 2], 0, [0, 1, 2]], counts[[0, 1, 2], 1, [0, 1, 2]] = [4, 4, 2], [2, 4, 4]
    >>> p = MulticlassPostprocessing(counts=counts, constraint=DemographicParity(0.1))
    >>> round(p.solve().objective, 6)
    0.05
    >>> round(p.replace(ordered=True).solve().objective, 6)
    0.05
    """

    refuses_channel: ClassVar[str] = "it holds counts; `from_predictions` takes reports, and sets the channel"

    counts: Numbers
    constraint: Notion
    groups: tuple[Name, ...] = ()
    classes: tuple[Name, ...] = Field(default=(), kw_only=True)
    costs: CostTable | None = Field(default=None, kw_only=True)
    channel: RandomizedResponse | None = Field(default=None, kw_only=True)
    ordered: bool = Field(default=False, kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        try:
            shape = np.shape(data.get("counts"))
        except ValueError:  # rows of different length; the field refuses them
            return data
        if len(shape) != 3:
            return data
        names = {"groups": shape[1], "classes": shape[0]}
        default = {k: tuple(map(str, range(n))) for k, n in names.items()}
        given = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items() if k in names}
        return {**data, **default, **{k: v for k, v in given.items() if v not in (None, (), [])}}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        shape = self.counts.shape
        if len(shape) != 3 or shape[0] != shape[2] or shape[0] < 2 or shape[1] < 1:
            rule = "(C, K, C): prediction, group, label, with C at least 2 and K at least 1"
            raise DeclarationError(f"counts: the shape is {shape}; it must be {rule}")
        check_entries(self.counts, self.counts < 0, "counts", "it must not be negative")
        if not self.counts.any():
            raise DeclarationError("counts: all are 0; at least one record is needed")
        for name, count in (("groups", shape[1]), ("classes", shape[0])):
            names = getattr(self, name)
            if len(names) != count or len(set(names)) < count:
                raise DeclarationError(f"{name}: {', '.join(names)} are not {count} different names")
        self._check(shape[0])
        if self.ordered and ERROR in self.constraint.rates:
            raise DeclarationError("constraint: error rates have no thresholds; leave out ordered=True")
        mass = self.by_group.sum(axis=0)
        if self.channel is not None and (mass < 0).any():
            a, c = (int(i) for i in np.argwhere(mass < 0)[0])
            raise DeclarationError(
                f"counts: seen through the channel, the estimated number of records of group "
                f"{self.groups[a]!r} and class {self.classes[c]!r} is {mass[a, c]:.4g}; it must not be "
                "negative"
            )
        for rate, over in self.demand.demands(self.rates(self.as_predicted)):
            over.rate(rate)
        return self

    @classmethod
    def from_predictions(
        cls,
        predictions: Any,
        groups: Any,
        labels: Any,
        constraint: Notion,
        *,
        classes: Sequence[str] | None = None,
        weights: Any = None,
        costs: Any = None,
        ordered: bool = False,
    ) -> Self:
        """Count records.

        Parameters
        ----------
        predictions, labels : array_like
            A class for each record, of any type.
        groups : array_like
            The group of each record, of any type; ``channel.observe(reports)`` if these are reports.
        constraint : Notion
            The fairness notion.
        classes : Sequence[str], optional
            The names of all classes in their order, also of classes without a record; by default the
            classes that occur.
        weights : array_like, optional
            Of the records, at least 0; 1 each by default.
        costs : array_like, optional
            See the attribute.
        ordered : bool, default False
            See the attribute; the order is that of `classes`, and of the values if they are left out.

        Raises
        ------
        DeclarationError
            For columns of different length, a missing value, or a class that is not among `classes`.
        """
        channel = groups.channel if isinstance(groups, ObservedGroups) else None
        groups = groups if channel is None else groups.reports
        given = {"predictions": predictions, "groups": groups, "labels": labels, "weights": weights}
        check_label_order(cls.__name__, given)
        codes, names = read_groups(groups)
        columns = {"predictions": _column(predictions), "labels": _column(labels)}
        for name, column in columns.items():
            missing = [i for i, value in enumerate(column) if is_missing(value)]
            if missing:
                raise DeclarationError(f"{name}[{missing[0]}] is missing; every record must have a class")
        same_length(predictions=columns["predictions"], groups=codes, labels=columns["labels"])
        known, every = classes, np.concatenate(list(columns.values())).tolist()
        if ordered and known is None:
            if any(isinstance(value, str) for value in every):
                raise DeclarationError("classes is missing; the order of classes that are text must be given")
            known = sorted(set(every))
        both, found = read_groups(every, None if known is None else tuple(map(str, known)))
        n, count = len(codes), len(found)
        weight = np.ones(n) if weights is None else as_numbers(weights, "weights")
        same_length(groups=codes, weights=weight)
        check_entries(weight, weight < 0, "weights", "it must not be negative")
        counts = np.zeros((count, len(names), count))
        np.add.at(counts, (both[:n], codes, both[n:]), weight)
        fields: dict[str, Any] = {"classes": found, "costs": costs, "channel": channel, "ordered": ordered}
        return cls(counts=counts, constraint=constraint, groups=names, **fields)

    # -- rates -----------------------------------------------------------------------------------------------

    @cached_property
    def by_group(self) -> Array:
        """The counts by true group, as `counts`: estimated without bias if there is a channel."""
        return self.counts if self.channel is None else self.channel.debias(self.counts, axis=1)

    @cached_property
    def as_predicted(self) -> Array:
        """The probabilities that leave every prediction as it is, shape ``(C, K, C)``."""
        return np.repeat(np.eye(len(self.classes))[:, None, :], len(self.groups), axis=1)

    def rates(self, probabilities: Any) -> ClassRates:
        """The rates of each class, or of it and those above, against all others; numbers or expressions."""
        counts, count, known = self.by_group, len(self.groups), len(self.classes)
        sets = [list(range(c, known if self.ordered else c + 1)) for c in range(known)]
        sets = sets[1:] if self.ordered else sets
        split = np.stack(  # [set of classes, prediction, group, whether the label is in the set]
            [
                np.stack([counts.sum(axis=2) - (within := counts[:, :, s].sum(axis=2)), within], axis=2)
                for s in sets
            ]
        )
        # a person of a group is treated as its reports are on average
        seen = np.eye(count) if self.channel is None else self.channel.transition(count)
        chance = [probabilities[:, :, s].sum(axis=2) for s in sets]
        positives = [(s * (p @ seen)[:, :, None]).sum(axis=0) for s, p in zip(split, chance, strict=True)]
        joined = stack(positives) if isinstance(positives[0], Expression) else np.stack(positives)
        names = [f"{c} or above" for c in self.classes[1:]] if self.ordered else self.classes
        return ClassRates(joined, split.sum(axis=1), self.groups, tuple(names))

    @property
    def demand(self) -> Classwise:
        """The constraint for each class."""
        return Classwise(self.constraint)

    def error(self, probabilities: Any) -> Any:
        """The error rate, or the mean cost; a scalar."""
        costs = 1.0 - np.eye(len(self.classes)) if self.costs is None else self.costs
        return ((self.counts @ costs) * probabilities).sum() / float(self.counts.sum())

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        rows = [f"{name}, predicted {known}" for name in decision.groups for known in decision.classes]
        title = f"The new predictions lose {evaluation.objective:.3g} on average"
        chances = decision.probabilities.swapaxes(0, 1).reshape(len(rows), -1)
        return Sketch(title, chances, rows, decision.classes, "probability")

    def evaluate(self, decision: RandomizedRemix | Any) -> Evaluation:
        """Evaluate a decision: its error rate, its violations and its disparities.

        Parameters
        ----------
        decision : RandomizedRemix or Any
            For these groups and classes, or its probabilities, shape ``(C, K, C)``.
        """
        p = self.probabilities(decision)
        rates = self.rates(p)
        violations = self.demand.violation(rates)
        broken = {name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE}
        metrics = self.demand.disparity(rates) | self.demand.left_out(rates)
        return Evaluation(float(self.error(p)), broken, metrics)

    def probabilities(self, decision: Any) -> Array:
        """The probabilities of a decision, shape ``(C, K, C)``.

        Raises
        ------
        DeclarationError
            For other groups or classes, another shape, or numbers that are no probabilities.
        """
        if isinstance(decision, RandomizedRemix):
            if (decision.groups, decision.classes) != (self.groups, self.classes):
                raise DeclarationError("the decision is for other groups or classes")
            if decision.channel != self.channel:
                raise DeclarationError(f"the decision is for groups seen through {decision.channel}")
            return decision.probabilities
        return RandomizedRemix(as_numbers(decision, "the decision"), self.classes, self.groups).probabilities


def _column(values: Any) -> Array:
    """The class of each record as it is given: an array of objects, which turns no missing value to text."""
    if np.ndim(values) != 1:
        raise DeclarationError(f"predictions and labels must be columns, not of shape {np.shape(values)}")
    column = np.empty(len(values), dtype=object)
    column[:] = entries_of(values)
    return column


@MulticlassPostprocessing.formulation("lp", exact=True, cites="Putzel and Lee (2022), section 3")
def lp(problem: MulticlassPostprocessing, model: Model) -> Handles:
    """Linear program over the law of the new class for each predicted class and group.

    Returns
    -------
    Handles
        ``probabilities``, shape ``(C, K, C)``; ``error``; ``fairness``, the constraints of the notion.
    """
    p = model.variable(model.unused_name("probability"), shape=problem.counts.shape, lower=0, upper=1)
    model.subject_to(p.sum(axis=2) == 1, name=model.unused_name("one_class"))
    fairness = problem.demand.rows(problem.rates(p))
    model.subject_to(fairness)
    error = problem.error(p)

    def decision(solution: Any) -> RandomizedRemix:
        found = np.clip(solution[p], 0.0, 1.0)
        law = found / found.sum(axis=2, keepdims=True)
        return RandomizedRemix(law, problem.classes, problem.groups, problem.channel)

    parts: dict[str, Any] = {"probabilities": p, "error": error, "fairness": fairness}
    return Handles(error, decision, lambda given: {p: problem.probabilities(given)}, **parts)
