"""A notion over merged groups: each of several sensitive columns for itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic import Field

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness.notions import Notion
from forcopt.fairness.rates import CountNoise, GroupRates, Rate
from forcopt.language.constraint import Constraint

__all__ = ["Merged"]


class Merged(Notion):
    """A notion over unions of groups.

    If groups cross several columns, such as sex and race, ``notion.by("sex", ...) & notion.by("race", ...)``
    demands the notion of each column for itself, and not of their crossing.

    Attributes
    ----------
    notion : Notion
        The notion over the unions.
    column : str
        The name of the column; it appears in metrics, violations and rows.
    values : dict[str, str]
        The value of the column for each group by its name; a group that is left out is in no union.

    Raises
    ------
    DeclarationError
        On construction if `values` is empty or `notion` looks at single records; on use for a name in
        `values` that is no group.

    Examples
    --------
    >>> from forcopt.fairness import SELECTION, DemographicParity
    >>> r = GroupRates([[1, 1], [4, 4], [2, 2], [1, 1]], [[5, 5]] * 4, ("f & u", "f & v", "m & u", "m & v"))
    >>> by_sex = DemographicParity(0.1).by("sex", {g: g[0] for g in r.groups})
    >>> {name: round(d, 6) for name, d in by_sex.disparity(r).items()}
    {'selection rate by sex': 0.2}
    """

    notion: Notion
    column: str
    values: dict[str, str] = Field(min_length=1)

    def model_post_init(self, context: Any) -> None:
        """Refuse a notion of single records."""
        if len(self.notion.records):
            raise DeclarationError(
                f"notion: {type(self.notion).__name__} looks at single records; unions are of groups"
            )

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates of the notion."""
        return self.notion.rates

    def merged(self, rates: GroupRates) -> GroupRates:
        """The rates of the unions, each named ``column=value``."""
        unknown = set(self.values) - set(rates.groups)
        if unknown:
            raise DeclarationError(
                f"values names group {min(unknown)!r}; the groups are {', '.join(rates.groups)}"
            )
        names = tuple(dict.fromkeys(self.values[g] for g in rates.groups if g in self.values))
        member: Array = np.array([[self.values.get(g) == name for g in rates.groups] for name in names])
        union = member.astype(float)
        noise = None if rates.noise is None else CountNoise(rates.noise.bound, union @ rates.noise.counts)
        titles = tuple(f"{self.column}={name}" for name in names)
        return GroupRates(union @ rates.positives, union @ rates.mass, titles, noise=noise)

    def rows(self, rates: GroupRates) -> list[Constraint]:
        """The rows of the notion over the unions."""
        return self.notion.rows(self.merged(rates))

    def inequalities(self, rates: GroupRates) -> list[Constraint]:
        """The inequalities of the notion over the unions."""
        return self.notion.inequalities(self.merged(rates))

    def demands(self, rates: GroupRates) -> Iterator[tuple[Rate, GroupRates]]:
        """The demands of the notion over the unions."""
        return self.notion.demands(self.merged(rates))

    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """The disparities of the unions, by the name of rate and column."""
        found = self.notion.disparity(self.merged(rates))
        return {f"{name} by {self.column}": d for name, d in found.items()}

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """The violations of the unions, by the name of rate and column."""
        found = self.notion.violation(self.merged(rates))
        return {f"{name} by {self.column}": v for name, v in found.items()}
