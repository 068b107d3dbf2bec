"""The declaration: a table of predictions, groups and labels, and what fairness demands."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from forcopt.declaration import Integers
from forcopt.errors import DeclarationError
from forcopt.fairness import (
    ERROR,
    FALSE_POSITIVE,
    SELECTION,
    TRUE_POSITIVE,
    GroupRates,
    Notion,
    tabulate,
)
from forcopt.language.expression import as_numbers
from forcopt.language.terms import Array
from forcopt.models.fair_postprocessing.decision import RandomizedPostprocessor
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Problem

__all__ = ["FairPostprocessing"]


class FairPostprocessing(Problem):
    """Remix the predictions of a given binary classifier, group by group, for the least error that is fair.

    A record of group `a` that the classifier predicts as `h` is predicted 1 with probability ``p[h, a]``. The
    error, and every rate of every group, is affine in `p`.

    Attributes:
        counts: how many records there are, indexed ``[prediction, group, label]``; shape ``(2, K, 2)``.
        constraint: the fairness notion, such as ``EqualizedOdds(0.05)``; notions combine with ``&``.
        groups: names of the K groups; ``"0"``, ``"1"``, ... by default.

    Raises:
        DeclarationError: for counts that are negative, fractional or of another shape, and for a group
            without the records over which a rate of `constraint` is taken.

    Reference: Jagielski et al. (2019), LP (5) and (6), with disparities over all pairs of groups.

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

    family: ClassVar[str] = "postprocessing"
    default_method: ClassVar[str] = "lp"

    counts: Integers
    constraint: Notion
    groups: tuple[Annotated[str, BeforeValidator(str)], ...] = Field(default=(), validate_default=True)

    @field_validator("counts")
    @classmethod
    def _is_table(cls, counts: Array) -> Array:
        if counts.ndim != 3 or counts.shape[0] != 2 or counts.shape[1] < 1 or counts.shape[2] != 2:
            raise DeclarationError(
                f"the shape is {counts.shape}; it must be (2, K, 2): prediction, group (at least one), label"
            )
        if (counts < 0).any():
            entry = [int(i) for i in np.argwhere(counts < 0)[0]]
            raise DeclarationError(f"the array{entry} is {counts[tuple(entry)]}; it must not be negative")
        return counts

    @field_validator("groups")
    @classmethod
    def _are_names(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "counts" not in info.data:  # its own error is told
            return names
        count = info.data["counts"].shape[1]
        if names and len(names) != count:
            raise DeclarationError(f"{len(names)} names are given for the {count} groups of counts")
        if len(set(names)) < len(names):
            raise DeclarationError(f"{', '.join(names)} are not all different")
        return names or tuple(str(a) for a in range(count))

    @model_validator(mode="after")
    def _has_rates(self) -> Self:
        for rate in self.constraint.rates:
            self.base.rate(rate)
        return self

    @classmethod
    def from_predictions(cls, predictions: Any, groups: Any, labels: Any, constraint: Notion) -> Self:
        """Count records.

        Args:
            predictions: of the classifier, 0 or 1 for each record; arrays, lists or pandas columns.
            groups: the group of each record, of any type.
            labels: 0 or 1 for each record.
            constraint: the fairness notion.

        Raises:
            DeclarationError: for columns of different length, other values, or a missing group.
        """
        counts, names = tabulate(predictions, groups, labels)
        return cls(counts=counts, constraint=constraint, groups=names)

    # -- rates -----------------------------------------------------------------------------------------------

    def rates(self, probabilities: Any) -> GroupRates:
        """The rates of each group after post-processing.

        Args:
            probabilities: of predicting 1 given prediction and group, shape ``(2, K)``; numbers or an
                expression.
        """
        positives = (self.counts * probabilities[:, :, None]).sum(axis=0)
        return GroupRates(positives, self.counts.sum(axis=0), self.groups)

    @property
    def base(self) -> GroupRates:
        """The rates of the predictions as they are."""
        return GroupRates(self.counts[1], self.counts.sum(axis=0), self.groups)

    def postprocessor(self, probabilities: Any) -> RandomizedPostprocessor:
        """The decision with these probabilities, shape ``(2, K)``."""
        base = self.base
        nobody = np.full(len(self.groups), np.nan)
        rates = [
            base.rate(rate) if base.defines(rate) else nobody for rate in (FALSE_POSITIVE, TRUE_POSITIVE)
        ]
        return RandomizedPostprocessor(self._probabilities(probabilities), self.groups, np.stack(rates))

    def evaluate(self, decision: RandomizedPostprocessor | Any) -> Evaluation:
        """Judge a decision: its error rate, its violations and the rates of each group.

        Args:
            decision: a post-processor for these groups, or its probabilities, shape ``(2, K)``.

        Returns:
            The error rate; violations for each rate (disparity above tolerance) and for ``"probability"``
            (outside [0, 1]); as metrics the largest disparity and the rates of each group.
        """
        probabilities = self._probabilities(decision)
        rates = self.rates(probabilities)
        violations = {
            **self.constraint.violation(rates),
            "probability": max(float(-probabilities.min()), float(probabilities.max()) - 1.0),
        }
        metrics = {"largest disparity": max(self.constraint.disparity(rates).values())}
        for rate in (FALSE_POSITIVE, TRUE_POSITIVE, SELECTION):
            if rates.defines(rate):
                values = rates.rate(rate)
                metrics |= {f"{rate.name} of {g}": float(v) for g, v in zip(self.groups, values, strict=True)}
        return Evaluation(
            objective=float(rates.overall(ERROR)),
            violations={name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE},
            metrics=metrics,
        )

    def _probabilities(self, decision: Any) -> Array:
        if isinstance(decision, RandomizedPostprocessor):
            if decision.groups != self.groups:
                raise DeclarationError(
                    f"the decision is for groups {', '.join(decision.groups)}, not {', '.join(self.groups)}"
                )
            return decision.probabilities
        values = as_numbers(decision, "the decision")
        if values.shape != (2, len(self.groups)):
            raise DeclarationError(
                f"the decision has shape {values.shape}; it must be (2, {len(self.groups)})"
            )
        return values
