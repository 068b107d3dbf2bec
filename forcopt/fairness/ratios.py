"""Ratios of rates: no group's rate is below a part of another's, as in the 80 % rule."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from forcopt.errors import DeclarationError
from forcopt.fairness.notions import Notion
from forcopt.fairness.rates import FALSE_POSITIVE, SELECTION, TRUE_POSITIVE, GroupRates, Rate
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression

__all__ = ["DemographicParityRatio", "EqualOpportunityRatio", "EqualizedOddsRatio", "RateRatio"]


class RateRatio(Notion):
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

    def rows(self, rates: GroupRates) -> list[Constraint]:
        """Two constraints of K rows for each rate, named after it; none for a single group."""
        if len(rates.groups) == 1:
            return []
        return [row for rate in self.rates for row in self._rows(rates, rate)]

    def _rows(self, rates: GroupRates, rate: Rate) -> list[Constraint]:
        values, slack = rates.rate(rate), rates.slack(rate)
        if not isinstance(values, Expression):
            raise DeclarationError(
                f"the {rate.name} is made of numbers, so it cannot be constrained; `violation` measures it"
            )
        model = values.model
        level = model.variable(model.unused_name(f"largest_{rate.name.replace(' ', '_')}"))
        name = level.name.removeprefix("largest_")
        found: list[Constraint] = [values - level <= slack, values - self.ratio * level >= 0.0 - slack]
        for row, side in zip(found, ("most", "least"), strict=True):
            row.name = f"{name}_{side}"
            row.labels = [f"{row.name}[{group}]" for group in rates.groups]
        return found

    def inequalities(self, rates: GroupRates) -> list[Constraint]:
        """One row ``ratio * rate_b <= rate_a`` for each ordered pair of groups."""
        first, second = np.nonzero(~np.eye(len(rates.groups), dtype=bool))
        if not len(first):
            return []
        found = []
        for rate in self.rates:
            values, slack = rates.rate(rate), rates.slack(rate)
            row = self.ratio * values[second] - values[first] <= self.ratio * slack[second] + slack[first]
            row.name = f"{rate.name.replace(' ', '_')}_ratio"
            row.labels = [
                f"{row.name}[{rates.groups[a]},{rates.groups[b]}]" for a, b in zip(first, second, strict=True)
            ]
            found.append(row)
        return found

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
            values = rates.rate(rate)
            if isinstance(values, Expression):
                raise DeclarationError(
                    f"the ratio of the {rate.name}s is not convex; demand it by rows instead"
                )
            largest = float(values.max())
            found[f"relative {rate.name}"] = 1.0 - float(values.min()) / largest if largest > 0 else 0.0
        return found

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """For each rate: by how much the smallest is below `ratio` times the largest, or 0."""
        found = {}
        for rate in self.rates:
            values = rates.rate(rate)
            found[f"relative {rate.name}"] = max(self.ratio * float(values.max()) - float(values.min()), 0.0)
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
