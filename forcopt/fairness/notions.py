"""Fairness notions: constraints on the rates of groups, and on their ratios, that every learner accepts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from forcopt.arrays import Array
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.fairness.rates import (
    ERROR,
    FALSE_POSITIVE,
    NEGATIVE_PREDICTIVE,
    POSITIVE_PREDICTIVE,
    SELECTION,
    TRUE_POSITIVE,
    GroupRates,
    Rate,
)
from forcopt.fairness.tolerances import SHARE
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.variable import Variable


def largest(amounts: Iterable[Iterable[tuple[str, float]]]) -> dict[str, float]:
    """The largest amount of each name; at least 0."""
    found: dict[str, float] = {}
    for name, amount in chain.from_iterable(amounts):
        found[name] = max(amount, found.get(name, 0.0))
    return found


def labelled(row: Constraint, name: str, labels: Iterable[object]) -> Constraint:
    """The row with its name, and a label for each of its entries."""
    row.name, row.labels = name, [f"{name}[{label}]" for label in labels]
    return row


class Notion(Declared):
    """A demand on the rates of groups. Notions combine with ``&``."""

    @property
    @abstractmethod
    def rates(self) -> tuple[Rate, ...]:
        """The rates that it looks at."""

    @abstractmethod
    def rows(self, rates: GroupRates) -> list[Constraint]:
        """The demand as constraints, for rates that are expressions of a model; none for a single group."""

    def demands(self, rates: GroupRates) -> Iterator[tuple[Rate, GroupRates]]:
        """Each linear rate of the notion, with the rates of the groups that it compares."""
        yield from ((rate, rates) for rate in self.rates if rate.is_linear)

    def by(self, column: str, values: Mapping[str, str]) -> Notion:
        """The same notion over unions of groups, see `Merged`."""
        from forcopt.fairness.merged import Merged

        return Merged(notion=self, column=column, values=dict(values))

    @property
    def records(self) -> Array:
        """The positions of the records that it looks at one by one; none for a demand on groups."""
        return np.zeros(0, dtype=np.int64)

    @property
    def promise(self) -> str:
        """What it promises on fresh records; empty for a notion that holds on the given records alone."""
        return ""

    def left_out(self, rates: GroupRates) -> dict[str, float]:
        """A text for each rate and group that is not compared by itself, with its share; for reports."""
        return {}

    @abstractmethod
    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """For each rate by its name: how unequal the groups are; for expressions, a convex expression."""

    @abstractmethod
    def violation(self, rates: GroupRates) -> dict[str, float]:
        """For each rate by its name: by how much the groups are more unequal than allowed; for numbers."""

    def __and__(self, other: Notion) -> AllOf:
        return AllOf(notions=(self, other)) if isinstance(other, Notion) else NotImplemented


class _OfRates(Notion):
    """The common part of the notions on the rates of all pairs of groups: a free column for each rate.

    Attributes
    ----------
    undefined : {"refuse", "drop", "pool"}, default "refuse"
        The treatment of a group without records over which a rate is taken, or with a share of at most
        `smallest` of them, in the rows of this rate: an error, if it has none; the group is not compared; or
        all such groups are compared as one, if they have records.
    smallest : float, default 0.0
        A share of the records that a rate is taken over.
    """

    undefined: Literal["refuse", "drop", "pool"] = Field(default="refuse", kw_only=True)
    smallest: float = Field(default=0.0, ge=0.0, lt=1.0, allow_inf_nan=False, kw_only=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        fields = type(self).model_fields
        for name, value in super().__repr_args__():
            if name is None or not fields[name].kw_only or value != fields[name].default:
                yield name, value

    def rows(self, rates: GroupRates) -> list[Constraint]:
        """Constraints of K rows for each rate, named after it; none for a single group."""
        compared = ((rate, self.compared(rates, rate)) for rate in self.rates)
        return [row for rate, over in compared if len(over.groups) > 1 for row in self._rows(over, rate)]

    def demands(self, rates: GroupRates) -> Iterator[tuple[Rate, GroupRates]]:
        """Each linear rate of the notion, with the rates of the groups that it compares."""
        yield from ((rate, self.compared(rates, rate)) for rate in self.rates if rate.is_linear)

    def compared(self, rates: GroupRates, rate: Rate) -> GroupRates:
        """The groups that are compared by a rate, see `undefined`."""
        if self.undefined == "refuse":
            return rates
        given = rates.total(rate.given)
        small = given <= self.smallest * given.sum()
        names, member = np.array(rates.groups, dtype=object), np.eye(len(small))[~small]
        kept = names[~small].tolist()
        if self.undefined == "pool" and given[small].sum() > 0:
            member, kept = np.vstack([member, small]), [*kept, " + ".join(names[small])]
        return rates.union(member, tuple(kept))

    def left_out(self, rates: GroupRates) -> dict[str, float]:
        """The groups that are dropped or pooled, see `undefined`."""
        found = {}
        for rate in self.rates if self.undefined != "refuse" else ():
            given, kept = rates.total(rate.given), self.compared(rates, rate).groups
            for group, share in zip(rates.groups, given / max(given.sum(), SHARE), strict=True):
                if group not in kept:
                    found[f"share of {group} ({self.undefined}) in the {rate.name}"] = float(share)
        return found

    @abstractmethod
    def _rows(self, rates: GroupRates, rate: Rate) -> list[Constraint]:
        """The rows of one rate."""

    def _with_level(self, rates: GroupRates, rate: Rate, side: str) -> tuple[Expression, Variable, str]:
        """The rate of each group, the column for its least or largest value, and the name of the rows."""
        values = rates.rate(rate)
        if not isinstance(values, Expression):
            raise DeclarationError(
                f"the {rate.name} is made of numbers, so it cannot be constrained; `violation` measures it"
            )
        level = values.model.variable(values.model.unused_name(f"{side}_{rate.name.replace(' ', '_')}"))
        return values, level, level.name.removeprefix(f"{side}_")


class RateParity(_OfRates):
    """Rates are nearly equal over all pairs of groups: largest minus smallest is at most `tolerance`.

    Subclasses name the `rates`. (Some papers compare every group with one anchor group, which lets two
    others differ by twice as much.)

    The rows are ``0 <= rate_a - level <= tolerance`` with one free column `level` for each rate: K rows,
    where the pairs would take K (K - 1) / 2. Each group then has one multiplier, the price of its rate, and
    the multipliers of one rate sum to zero.

    Attributes
    ----------
    tolerance : float, default 0.0
        From 0 (equal) to 1 (anything goes); gamma in Jagielski et al. (2019).
    confidence : float, optional
        The tolerance then holds in the population that the records are drawn from with this probability; see
        Notes. By default it holds on the records.

    Notes
    -----
    With `confidence` 1 - d the rows of two groups leave a margin for each of them. With K groups and R rates
    the margin of n records is ``sqrt(log(2 K R / d) / (2 n))``: by the inequality of Dvoretzky, Kiefer and
    Wolfowitz with Massart's constant, the rates of no threshold on a score are farther from those of the
    population, for all groups and rates together, if the score was fitted on other records. By Hoeffding's
    inequality the same holds of remixed binary predictions. So thresholds and remixes take it; selection,
    false and true positive rates have it.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Corollary 1; Hoeffding
    (1963), Theorem 2.
    """

    tolerance: float = Field(default=0.0, ge=0.0, le=1.0, allow_inf_nan=False)
    confidence: float | None = Field(default=None, gt=0.0, lt=1.0, kw_only=True)

    @property
    def promise(self) -> str:
        """The tolerance, if it holds with a probability."""
        names = " and ".join(rate.name for rate in self.rates)
        limit = f"no two groups differ by more than {self.tolerance:g} in {names}"
        return "" if self.confidence is None else f"with probability {self.confidence:g} {limit}"

    def margin(self, rates: GroupRates, rate: Rate) -> Array:
        """How far the rate of each group may be from that of the population, shape ``(K,)``; see Notes.

        Raises
        ------
        DeclarationError
            For rates that no margin is known of, and for too few records.
        """
        if self.confidence is None:
            return np.zeros(len(rates.groups))
        if not rates.counted or rate not in (SELECTION, FALSE_POSITIVE, TRUE_POSITIVE):
            raise DeclarationError(
                f"confidence is {self.confidence:g}; a margin is known for selection, false and true "
                "positive rates of thresholds or remixes by group, without weights, channel or privacy"
            )
        records = rates.total(rate.given)
        chances = 2 * len(rates.groups) * len(self.rates) / (1.0 - self.confidence)
        found = np.sqrt(np.log(chances) / (2 * records))
        if 2 * found.max() > self.tolerance:
            enough = 2 * np.log(chances) / max(self.tolerance, SHARE) ** 2
            raise DeclarationError(
                f"confidence: group {rates.groups[int(found.argmax())]!r} has {records.min():.0f} records "
                f"for its {rate.name}, enough for a tolerance of {2 * found.max():.4f}; "
                f"{self.tolerance:g} takes {enough:.0f}"
            )
        return np.asarray(found)

    def _rows(self, rates: GroupRates, rate: Rate) -> list[Constraint]:
        # Of noisy counts two groups may differ by the tolerance and both their slacks.
        (values, level, name), slack = self._with_level(rates, rate, "least"), rates.slack(rate)
        slack = slack - self.margin(rates, rate)
        return [labelled((values - level).between(0.0 - slack, self.tolerance + slack), name, rates.groups)]

    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """For each rate by its name: the largest minus the smallest over the groups.

        Examples
        --------
        >>> r = GroupRates(positives=[[4, 16], [6, 20]], mass=[[40, 20], [15, 25]])
        >>> {name: round(d, 6) for name, d in EqualizedOdds().disparity(r).items()}
        {'false positive rate': 0.3, 'true positive rate': 0.0}
        """
        found = {}
        for rate in self.rates:
            values = self.compared(rates, rate).rate(rate)
            spread = values.max() - values.min() if len(values) else 0.0
            found[rate.name] = spread if isinstance(spread, Expression) else float(spread)
        return found

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """For each rate by its name: the disparity, with margins, above the tolerance, or 0."""
        found = {name: max(d - self.tolerance, 0.0) for name, d in self.disparity(rates).items()}
        for rate, over in self.demands(rates) if self.confidence is not None else ():
            values, margin = over.rate(rate), self.margin(over, rate)
            if len(values) > 1:
                found[rate.name] = max(np.ptp([values - margin, values + margin]) - self.tolerance, 0.0)
        return found


class EqualizedOdds(RateParity):
    """Equal false positive and true positive rates (Hardt, Price and Srebro 2016).

    Examples
    --------
    >>> EqualizedOdds(0.02)
    EqualizedOdds(tolerance=0.02)
    """

    rates: ClassVar[tuple[Rate, ...]] = (FALSE_POSITIVE, TRUE_POSITIVE)


class EqualOpportunity(RateParity):
    """Equal true positive rates (Hardt, Price and Srebro 2016).

    Examples
    --------
    >>> [rate.name for rate in EqualOpportunity(0.05).rates]
    ['true positive rate']
    """

    rates: ClassVar[tuple[Rate, ...]] = (TRUE_POSITIVE,)


class FalsePositiveParity(RateParity):
    """Equal false positive rates (Jagielski et al. 2019, equation (4)).

    Examples
    --------
    >>> [rate.name for rate in FalsePositiveParity(0.05).rates]
    ['false positive rate']
    """

    rates: ClassVar[tuple[Rate, ...]] = (FALSE_POSITIVE,)


class DemographicParity(RateParity):
    """Equal selection rates, whatever the labels.

    Examples
    --------
    >>> DemographicParity(0.05) & ErrorParity(0.1)
    AllOf(notions=(DemographicParity(tolerance=0.05), ErrorParity(tolerance=0.1)))
    """

    rates: ClassVar[tuple[Rate, ...]] = (SELECTION,)


class ErrorParity(RateParity):
    """Equal error rates.

    Examples
    --------
    >>> [rate.name for rate in ErrorParity(0.05).rates]
    ['error rate']
    """

    rates: ClassVar[tuple[Rate, ...]] = (ERROR,)


class BoundedGroupLoss(Notion):
    """No group's error rate is above `bound` (Agarwal, Dudik and Wu 2019, for the 0/1 loss).

    Unlike parity it never asks to do worse for a group so that all are equal; but it may be infeasible.

    Attributes
    ----------
    bound : float
        On the error rate of every group, from 0 to 1.

    Examples
    --------
    >>> r = GroupRates(positives=[[4, 16], [6, 20]], mass=[[40, 20], [15, 25]])
    >>> {name: round(v, 6) for name, v in BoundedGroupLoss(0.25).violation(r).items()}
    {'largest error rate': 0.025}
    """

    bound: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)

    rates: ClassVar[tuple[Rate, ...]] = (ERROR,)

    def rows(self, rates: GroupRates) -> list[Constraint]:
        """One constraint, with a row for each group."""
        return [labelled(rates.rate(ERROR) <= self.bound + rates.slack(ERROR), "group_loss", rates.groups)]

    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """The largest error rate of a group, as ``"largest error rate"``."""
        largest = rates.rate(ERROR).max()
        return {"largest error rate": largest if isinstance(largest, Expression) else float(largest)}

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """By how much it is above the bound, or 0."""
        return {name: max(d - self.bound, 0.0) for name, d in self.disparity(rates).items()}


class PredictiveValues(Notion):
    """Whoever is predicted 1 has label 1 often enough, and who is predicted 0 label 0, in every group.

    A calibrated score leads to such predictions, and only to these: some score that is calibrated within
    the group is at least c for all predicted 1 and at most d for all predicted 0 if and only if the
    predictive values are at least c and 1 - d (Reich and Vijaykumar 2021, Proposition 3).
    A group without a prediction of 1 (or 0) meets the demand.

    Attributes
    ----------
    positive : float
        The least P(label = 1 | prediction = 1), from 0 to 1.
    negative : float
        The least P(label = 0 | prediction = 0), from 0 to 1.

    Notes
    -----
    The rows are the quotients multiplied out, so they are linear, and met where nobody has the prediction.
    They count in shares of the group.

    Examples
    --------
    >>> r = GroupRates(positives=[[4, 16], [6, 20]], mass=[[40, 20], [15, 25]])
    >>> {name: round(v, 6) for name, v in PredictiveValues(0.8, 0.7).violation(r).items()}
    {'positive predictive value': 0.030769, 'negative predictive value': 0.057143}
    """

    rates: ClassVar[tuple[Rate, ...]] = (POSITIVE_PREDICTIVE, NEGATIVE_PREDICTIVE)

    positive: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)
    negative: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)

    def rows(self, rates: GroupRates) -> list[Constraint]:
        """For either value one constraint of K rows, named after it."""
        return [self._row(rates, rate, least) for rate, least in self._least()]

    def _least(self) -> tuple[tuple[Rate, float], ...]:
        return (POSITIVE_PREDICTIVE, self.positive), (NEGATIVE_PREDICTIVE, self.negative)

    def _row(self, rates: GroupRates, rate: Rate, least: float) -> Constraint:
        size = rates.mass.sum(axis=1)
        size = np.where(size > 0, size, 1.0)
        share = rates.total(rate.event) / size - least * (rates.total(rate.given) / size)
        row: Constraint = share >= 0.0 - rates.slack_of_weighted() / size
        return labelled(row, row.expression.model.unused_name(rate.name.replace(" ", "_")), rates.groups)

    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """Nothing: groups may differ."""
        return {}

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """For either value by its name: how far the worst group's is below the least allowed, or 0.

        A group's value counts only if the row that demands it is broken by more than 1e-6 of the group. A
        solver leaves rounding dust where it predicts 1 for nobody, and the value of dust is arbitrary.
        """
        found = {}
        size = rates.mass.sum(axis=1)
        for rate, least in self._least():
            event, given = rates.total(rate.event), rates.total(rate.given)
            broken = least * given - event > SHARE * size
            found[rate.name] = max(0.0, least - float((event[broken] / given[broken]).min(initial=1.0)))
        return found


class AllOf(Notion):
    """Several notions at once; made by ``&``.

    Parameters
    ----------
    notions : tuple[Notion, ...]
        At least one; nested ones are flattened.

    Examples
    --------
    >>> EqualOpportunity(0.02) & DemographicParity(0.1)
    AllOf(notions=(EqualOpportunity(tolerance=0.02), DemographicParity(tolerance=0.1)))
    """

    notions: tuple[Notion, ...] = Field(min_length=1)

    @field_validator("notions")
    @classmethod
    def _flat(cls, notions: tuple[Notion, ...]) -> tuple[Notion, ...]:
        return tuple(
            n for notion in notions for n in (notion.notions if isinstance(notion, AllOf) else (notion,))
        )

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates of all of them, each once."""
        return tuple(dict.fromkeys(rate for notion in self.notions for rate in notion.rates))

    def rows(self, rates: GroupRates) -> list[Constraint]:
        """The rows of all of them."""
        return [row for notion in self.notions for row in notion.rows(rates)]

    def demands(self, rates: GroupRates) -> Iterator[tuple[Rate, GroupRates]]:
        """The demands of all of them."""
        for notion in self.notions:
            yield from notion.demands(rates)

    @property
    def records(self) -> Array:
        """The positions of the records that any of them looks at."""
        return np.unique(np.concatenate([notion.records for notion in self.notions]))

    @property
    def promise(self) -> str:
        """The promises of all of them."""
        return "; ".join(filter(None, (notion.promise for notion in self.notions)))

    def left_out(self, rates: GroupRates) -> dict[str, float]:
        """The groups that any of them leaves out."""
        return {name: share for notion in self.notions for name, share in notion.left_out(rates).items()}

    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """The disparities of all of them."""
        return {name: d for notion in self.notions for name, d in notion.disparity(rates).items()}

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """The violations of all of them; the largest where two look at one rate."""
        return largest(notion.violation(rates).items() for notion in self.notions)


class RateRatio(_OfRates):
    """The smallest rate of a group is at least `ratio` times the largest.

    Subclasses define `rates`. The demand is linear although a ratio is not: ``rate_a >= ratio * rate_b`` for
    all pairs of groups. The rows are ``rate_a <= level`` and ``rate_a >= ratio * level`` with one free
    column `level` for each rate: rates that are estimated through a channel may leave [0, 1].

    Attributes
    ----------
    ratio : float, default 0.8
        From 0 (anything goes) to 1 (equal).
    """

    ratio: float = Field(default=0.8, ge=0.0, le=1.0, allow_inf_nan=False)

    def _rows(self, rates: GroupRates, rate: Rate) -> list[Constraint]:
        (values, level, name), slack = self._with_level(rates, rate, "largest"), rates.slack(rate)
        most, least = values - level <= slack, values - self.ratio * level >= 0.0 - slack
        return [labelled(most, f"{name}_most", rates.groups), labelled(least, f"{name}_least", rates.groups)]

    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """For each rate: by which part the smallest is below the largest, 1 less their ratio.

        Raises
        ------
        DeclarationError
            For rates that are expressions: the ratio is not convex in them.

        Examples
        --------
        >>> r = GroupRates(positives=[[4, 16], [6, 20]], mass=[[40, 20], [15, 25]])
        >>> {name: round(d, 6) for name, d in EqualizedOddsRatio(0.8).disparity(r).items()}
        {'relative false positive rate': 0.75, 'relative true positive rate': 0.0}
        """
        found = {}
        for rate in self.rates:
            values = self.compared(rates, rate).rate(rate)
            if isinstance(values, Expression):
                raise DeclarationError(f"the ratio of the {rate.name}s is not convex; demand it by rows")
            largest = float(values.max(initial=0.0))
            found[f"relative {rate.name}"] = 1.0 - float(values.min()) / largest if largest > 0 else 0.0
        return found

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """For each rate: by how much the smallest is below `ratio` times the largest, or 0."""
        found = {}
        for rate in self.rates:
            values = self.compared(rates, rate).rate(rate)
            short = self.ratio * values.max() - values.min() if len(values) else 0.0
            found[f"relative {rate.name}"] = max(float(short), 0.0)
        return found


class DemographicParityRatio(RateRatio):
    """Selection rates of all groups are at least `ratio` times the largest; 0.8 is the 80 % rule.

    References
    ----------
    Equal Employment Opportunity Commission, Uniform guidelines on employee selection procedures (1978),
    29 CFR 1607.4 D; Feldman et al. (2015), Certifying and removing disparate impact, Definition 1.1.

    Examples
    --------
    >>> r = GroupRates(positives=[[4, 16], [6, 20]], mass=[[40, 20], [15, 25]])
    >>> {name: round(v, 6) for name, v in DemographicParityRatio(0.8).violation(r).items()}
    {'relative selection rate': 0.186667}
    """

    rates: ClassVar[tuple[Rate, ...]] = (SELECTION,)


class EqualOpportunityRatio(RateRatio):
    """True positive rates of all groups are at least `ratio` times the largest.

    Examples
    --------
    >>> [rate.name for rate in EqualOpportunityRatio(0.8).rates]
    ['true positive rate']
    """

    rates: ClassVar[tuple[Rate, ...]] = (TRUE_POSITIVE,)


class EqualizedOddsRatio(RateRatio):
    """False positive and true positive rates of all groups are at least `ratio` times the largest.

    Examples
    --------
    >>> [rate.name for rate in EqualizedOddsRatio(0.8).rates]
    ['false positive rate', 'true positive rate']
    """

    rates: ClassVar[tuple[Rate, ...]] = (FALSE_POSITIVE, TRUE_POSITIVE)
