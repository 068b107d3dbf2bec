"""The declaration: a table of predictions, groups and labels, and a fairness constraint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.clock import Deadline
from forcopt.declaration import Integers, Name
from forcopt.errors import DeclarationError, require_shape
from forcopt.fairness import FALSE_POSITIVE, SELECTION, TRUE_POSITIVE, GroupRates, Notion, Rate, tabulate
from forcopt.fairness.costs import CostTable, check_costs, loss_rate
from forcopt.language.model import Model
from forcopt.models.fair_postprocessing.decision import RandomizedPostprocessor
from forcopt.numeric import project_box
from forcopt.privacy import ObservedGroups, PrivacyBudget, RandomizedResponse
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Outcome, Problem


def emptied(rates: GroupRates, notion: Notion) -> str:
    """The reason if the noise leaves a group without records for a rate, else an empty text.

    Parameters
    ----------
    rates : GroupRates
        Of noisy counts.
    notion : Notion
        Whose rates to take.
    """
    for rate, over in notion.demands(rates):
        records = over.total(rate.given)
        if over.noise is not None and (records <= 0).any():
            a = int(np.argmin(records))
            enough = over.noise.counts[a] * int(np.sum(rate.given[0])) * over.noise.bound
            left = f"{records[a]:.6g} records of group {over.groups[a]!r} for its {rate.name}"
            return f"the noise leaves {left}; more than {enough:.6g} true ones would have been enough"
    return ""


def check_declared(names: Sequence[str] | None, privacy: PrivacyBudget | None) -> None:
    """Refuse a private problem without the names of its groups: whether a name occurs is private.

    Raises
    ------
    DeclarationError
        For `privacy` without `names`.
    """
    if privacy is not None and not names:
        raise DeclarationError(
            "names is missing; with privacy it must list all groups, as those that occur in the records are "
            'private: names=("a", "b")'
        )


class Postprocessing(Problem):
    """The base of problems that change given predictions or scores group by group."""

    family: ClassVar[str] = "postprocessing"
    default_method: ClassVar[str] = "lp"
    _held: ClassVar[str] = "counts are of groups"
    """What the decision looks at."""

    def _check(self: Any, classes: int = 2, privacy: PrivacyBudget | None = None) -> None:
        check_costs(self.costs, classes)
        if self.costs is not None and privacy is not None:
            raise DeclarationError("privacy: private post-processing counts errors, so it takes no costs")
        if self.channel is not None and privacy is not None:
            raise DeclarationError("privacy is for true groups; reported ones (channel) are private already")
        if len(self.constraint.records):
            kind = type(self.constraint).__name__
            raise DeclarationError(f"constraint: {kind} looks at single records; {self._held}")

    @property
    def loss(self: Any) -> Rate:
        """The objective: the error rate, or the mean cost."""
        return loss_rate(self.costs)

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the least changes of the limits of the notion, by `lp`; see `Problem.least_relaxation`."""
        return self.relaxed_rows("lp", "fairness", time_limit)

    def _judged(
        self: Any, error: float, rates: GroupRates, others: dict[str, float] | None = None
    ) -> Evaluation:
        """The evaluation of rates, with other violations; those that are not defined are violations of 1.

        Private problems are declared without a look at the counts of groups: a refusal would reveal an empty
        one.
        """
        demands = self.constraint.demands(rates)
        undefined = {f"undefined {rate.name}": 1.0 for rate, over in demands if not over.defines(rate)}
        violations = {**(undefined or self.constraint.violation(rates)), **(others or {})}
        disparity = {} if undefined else self.constraint.disparity(rates)
        metrics = {"largest disparity": max(disparity.values(), default=float(bool(undefined)))}
        metrics |= self.constraint.left_out(rates) | rates.named(FALSE_POSITIVE, TRUE_POSITIVE, SELECTION)
        broken = {name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE}
        return Evaluation(error, broken, metrics | disparity)


class FairPostprocessing(Postprocessing):
    """Remix the predictions of a given binary classifier, group by group, for the least error that is fair.

    A record of group `a` that the classifier predicts as `h` is predicted 1 with probability ``p[h, a]``. The
    error, and every rate of every group, is affine in `p`.

    Attributes
    ----------
    counts : Integers
        How many records there are, indexed ``[prediction, group, label]``; shape ``(2, K, 2)``.
    constraint : Notion
        The fairness notion, such as ``EqualizedOdds(0.05)``; notions combine with ``&``.
    groups : tuple[str, ...], optional
        Names of the K groups; ``"0"``, ``"1"``, ... by default. Or a `RandomizedResponse`, which sets
        `channel`.
    channel : RandomizedResponse, optional
        The channel of the records' groups: `counts` holds people's reports. The constraint then
        is on the rates of the true groups, estimated by inverting the channel. The predictions must not
        depend on the groups.
    negative_cells : Literal["refuse", "project"], default "refuse"
        The treatment of a negative estimated number of records of a group and label: ``"refuse"``, or
        ``"project"`` the estimated table onto the nearest one without negative cells.
    privacy : PrivacyBudget, optional
        Let the decision be private in the groups of the records: Laplace noise is added to the counts. Its
        `floor`, if there is one, is a lower bound on the records of every group and label that may be known
        to all.
    costs : CostTable, optional
        The cost of each prediction for each label, shape ``(2, 2)``, indexed ``[label, prediction]``, see
        `cost_table`; the least mean cost is then sought in place of the least error. There is no `privacy`.

    Raises
    ------
    DeclarationError
        For counts that are negative, fractional, all 0 or of another shape; for a group without the records
        over which a rate of `constraint` is taken (not with `privacy`: the refusal would reveal it); for a
        negative estimated cell; for a floor that the counts do not keep; for `channel` with `privacy`.

    References
    ----------
    Jagielski et al. (2019), LP (5) and (6) and Algorithm 1; Mozannar, Ohannessian and Srebro (2020), LP (14).
    Disparities are over all pairs of groups.

    Examples
    --------
    >>> from forcopt.fairness import EqualizedOdds
    >>> from forcopt.models import FairPostprocessing
    >>> counts = [[[36, 4], [9, 5]], [[4, 16], [6, 20]]]
    >>> p = FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.1), groups=("a", "b"))
    >>> s = p.solve()
    >>> round(s.objective, 4)
    0.2609
    >>> s.decision
    probability of predicting 1 after
    group  prediction 0  prediction 1
    a            0.1875        1.0000
    b            0.0000        0.9219
    """

    refuses_channel: ClassVar[str] = "it holds counts; `from_predictions` takes reports, and sets the channel"

    counts: Integers
    constraint: Notion
    groups: tuple[Name, ...] = Field(default=(), validate_default=True)
    channel: RandomizedResponse | None = None
    negative_cells: Literal["refuse", "project"] = "refuse"
    privacy: PrivacyBudget | None = None
    costs: CostTable | None = Field(default=None, kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _groups_may_say_the_channel(cls, data: Any) -> Any:
        if not isinstance(data.get("groups"), RandomizedResponse):
            return data
        if data.get("channel") is not None:
            raise DeclarationError("groups is a channel, and another channel is given")
        return {**data, "channel": data["groups"], "groups": ()}

    @field_validator("counts")
    @classmethod
    def _is_table(cls, counts: Array) -> Array:
        shape = counts.shape
        if len(shape) != 3 or shape[0] != 2 or shape[1] < 1 or shape[2] != 2:
            raise DeclarationError(f"the shape is {shape}; it must be (2, K, 2): prediction, group, label")
        check_entries(counts, counts < 0, "the array", "it must not be negative")
        return counts

    @field_validator("groups")
    @classmethod
    def _are_names(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "counts" not in info.data:  # it has an error of its own
            return names
        count = info.data["counts"].shape[1]
        if names and len(names) != count:
            raise DeclarationError(f"{len(names)} names are given for the {count} groups of counts")
        if len(set(names)) < len(names):
            raise DeclarationError(f"{', '.join(names)} are not all different")
        return names or tuple(str(a) for a in range(count))

    @model_validator(mode="after")
    def _has_rates(self) -> Self:
        self._check(privacy=self.privacy)
        for rate, base in self.constraint.demands(self.base):
            if self.privacy is None:
                base.rate(rate)
        if not self.counts.any():
            raise DeclarationError("counts: all are 0; at least one record is needed")
        if self.privacy is not None and self.privacy.delta:
            raise DeclarationError("privacy.delta is positive; Laplace noise needs none")
        floor = None if self.privacy is None else self.privacy.floor
        if floor is not None and self.counts.sum(axis=0).min() < floor:  # how many there are is private
            raise DeclarationError(f"privacy.floor is {floor:g}, but a group and label has fewer records")
        return self

    def choose_method(self) -> str:
        """Choose ``dp-postprocessing`` if there is `privacy`, else ``lp``."""
        return "lp" if self.privacy is None else "dp-postprocessing"

    @classmethod
    def from_predictions(
        cls,
        predictions: Any,
        groups: Any,
        labels: Any,
        constraint: Notion,
        *,
        names: Sequence[str] | None = None,
        **fields: Any,
    ) -> Self:
        """Count records.

        Parameters
        ----------
        predictions : Any
            Of the classifier, 0 or 1 for each record; arrays, lists or pandas columns.
        groups : Any
            The group of each record, of any type; ``channel.observe(reports)`` if these are reports.
        labels : Any
            0 or 1 for each record.
        constraint : Notion
            The fairness notion.
        names : Sequence[str], optional
            Of all groups, also of groups without records; those that occur by default. With `privacy` they
            must be given: which groups occur is private.
        fields : Any
            The other fields of the declaration.

        Raises
        ------
        DeclarationError
            For columns of different length, other values, a missing group or one that is not among `names`,
            and for `privacy` without `names`.
        """
        if isinstance(groups, ObservedGroups):
            fields, groups = {"channel": groups.channel, **fields}, groups.reports
        check_declared(names, fields.get("privacy"))
        counts, known = tabulate(predictions, groups, labels, names)
        return cls(counts=counts, constraint=constraint, groups=known, **fields)

    # -- rates -----------------------------------------------------------------------------------------------

    @cached_property
    def by_group(self) -> Array:
        """The counts by true group, as `counts`: estimated if there is a channel.

        The channel is inverted cell by cell (Mozannar et al. 2020, section 4), which is unbiased. Then the
        base predictions' rates are cut to [0, 1] (the paper projects them onto the simplex, but rates of
        several groups need not sum to 1).
        """
        if self.channel is None:
            return self.counts
        table = self.channel.debias(self.counts, axis=1)
        mass = table.sum(axis=0)
        if (mass < 0).any() and self.negative_cells == "project":
            total = float(table.sum())
            table = project_box(table.ravel(), 0.0, total, total).reshape(table.shape)
            mass = table.sum(axis=0)
        elif (mass < 0).any():
            a, label = (int(i) for i in np.argwhere(mass < 0)[0])
            raise DeclarationError(
                f"group {self.groups[a]!r} has an estimated {mass[a, label]:.6g} records with label {label}; "
                'that must not be negative: gather more, or pass negative_cells="project"'
            )
        ones = np.clip(table[1], 0.0, mass)
        return np.stack([mass - ones, ones])

    def rates(self, probabilities: Any) -> GroupRates:
        """The rates of each group after post-processing.

        Parameters
        ----------
        probabilities : Any
            Of predicting 1 given prediction and group, shape ``(2, K)``; numbers or an expression.
        """
        seen = probabilities
        if self.channel is not None:
            seen = probabilities @ self.channel.transition(len(self.groups))
        positives = (self.by_group * seen[:, :, None]).sum(axis=0)
        counted = self.channel is None and self.privacy is None
        return GroupRates(positives, self.by_group.sum(axis=0), self.groups, counted=counted)

    def error(self, probabilities: Any) -> Any:
        """The error rate, or the mean cost, after post-processing; a scalar.

        It is taken over the groups as they are given, reported or true. That is the error of the reports'
        predictor exactly, with no channel to invert.
        """
        positives = (self.counts * probabilities[:, :, None]).sum(axis=0)
        return GroupRates(positives, self.counts.sum(axis=0), self.groups).overall(self.loss)

    @property
    def base(self) -> GroupRates:
        """The rates of the predictions as they are."""
        return GroupRates(self.by_group[1], self.by_group.sum(axis=0), self.groups)

    def postprocessor(self, probabilities: Any, released: Array | None = None) -> RandomizedPostprocessor:
        """The decision with these probabilities, shape ``(2, K)``.

        Parameters
        ----------
        probabilities : Any
            Of predicting 1.
        released : ndarray, optional
            The noisy counts, if the decision is private: its base rates then are theirs, for it must hold
            nothing else.
        """
        base = self.base
        if released is not None:
            table = np.maximum(released, 0.0)
            base = GroupRates(table[1], table.sum(axis=0), self.groups)
        nobody = np.full(len(self.groups), np.nan)
        both = (FALSE_POSITIVE, TRUE_POSITIVE)
        rates = [base.rate(rate) if base.defines(rate) else nobody for rate in both]
        p = self.probabilities(probabilities)
        return RandomizedPostprocessor(p, self.groups, np.stack(rates), self.channel)

    def evaluate(self, decision: RandomizedPostprocessor | Any) -> Evaluation:
        """Evaluate a decision: its error rate, its violations and the rates of each group.

        Parameters
        ----------
        decision : RandomizedPostprocessor or Any
            A post-processor for these groups, or its probabilities, shape ``(2, K)``.

        Returns
        -------
        Evaluation
            The error rate; violations for each rate (disparity above tolerance) and for ``"probability"``
            (outside [0, 1]); as metrics the largest disparity and the rates of each group. With `privacy`,
            all that is computed from the true counts, so it is not private; a rate for which a group has no
            records then is a violation of 1.
        """
        probabilities = self.probabilities(decision)
        rates = self.rates(probabilities)
        outside = {"probability": max(float(-probabilities.min()), float(probabilities.max()) - 1.0)}
        return self._judged(float(self.error(probabilities)), rates, outside)

    def probabilities(self, decision: Any) -> Array:
        """The probabilities of a decision, shape ``(2, K)``.

        Raises
        ------
        DeclarationError
            For other groups, or another shape.
        """
        if isinstance(decision, RandomizedPostprocessor):
            if decision.groups != self.groups:
                theirs, ours = ", ".join(decision.groups), ", ".join(self.groups)
                raise DeclarationError(f"the decision is for groups {theirs}, not {ours}")
            return decision.probabilities
        values = as_numbers(decision, "the decision")
        shape = 2, len(self.groups)
        require_shape(values.shape == shape, "the decision has", values, f"be {shape}")
        return values


@FairPostprocessing.formulation(
    "lp", exact=True, cites="Jagielski et al. (2019), LP (5) and (6); Mozannar et al. (2020), LP (14)"
)
def lp(problem: FairPostprocessing, model: Model) -> Handles:
    """Linear program: 2 K probabilities, and for each rate of the notion one level and K rows.

    It is always feasible: a constant prediction has equal rates in all groups. With a channel, the error is
    over the reported counts, and the rates are over the true groups, which see the channel's mix of the
    probabilities (the paper's objective takes the reported counts with that mix, so that the noise is in it
    twice). With privacy, this is the optimum that privacy forgoes: it reads the true counts.

    Returns
    -------
    Handles
        ``probabilities``, shape ``(2, K)``; ``rates``, the `GroupRates` as expressions; ``error``;
        ``fairness``, the constraints of the notion.
    """
    name = model.unused_name("probability")
    labels = [f"{name}[{prediction},{group}]" for prediction in (0, 1) for group in problem.groups]
    probabilities = model.variable(name, shape=(2, len(problem.groups)), lower=0, upper=1, labels=labels)
    rates = problem.rates(probabilities)
    fairness = problem.constraint.rows(rates)
    model.subject_to(fairness)
    error = problem.error(probabilities)
    return Handles(
        objective=error,
        # a solver may leave the bounds by its tolerance
        decision=lambda solution: problem.postprocessor(np.clip(solution[probabilities], 0.0, 1.0)),
        start=lambda decision: {probabilities: problem.probabilities(decision)},
        probabilities=probabilities,
        rates=rates,
        error=error,
        fairness=fairness,
    )


@FairPostprocessing.algorithm("as-predicted", rank="published")
def as_predicted(problem: FairPostprocessing, *, time_limit: float | None = None) -> Outcome:
    """Leave the predictions as they are: the evaluation shows their error and their disparity.

    Parameters
    ----------
    time_limit : float, optional
        Seconds; the run is linear in the number of groups and stays below any limit of use.
    """
    Deadline(time_limit)  # refuses a malformed limit
    return Outcome(problem.postprocessor(np.repeat([[0.0], [1.0]], len(problem.groups), axis=1)))
