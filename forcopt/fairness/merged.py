"""A notion over merged groups, of several sensitive columns; and over classes, each against all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness.notions import AllOf, Notion, largest
from forcopt.fairness.rates import ERROR, GroupRates, Rate
from forcopt.language.constraint import Constraint


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
            raise DeclarationError(f"values names {min(unknown)!r}; the groups are {', '.join(rates.groups)}")
        names = tuple(dict.fromkeys(self.values[g] for g in rates.groups if g in self.values))
        member: Array = np.array([[self.values.get(g) == name for g in rates.groups] for name in names])
        return rates.union(member, tuple(f"{self.column}={name}" for name in names))

    def rows(self, rates: GroupRates) -> list[Constraint]:
        """The rows of the notion over the unions."""
        return self.notion.rows(self.merged(rates))

    def demands(self, rates: GroupRates) -> Iterator[tuple[Rate, GroupRates]]:
        """The demands of the notion over the unions."""
        return self.notion.demands(self.merged(rates))

    @property
    def promise(self) -> str:
        """The promise of the notion."""
        return self.notion.promise and f"{self.notion.promise} by {self.column}"

    def left_out(self, rates: GroupRates) -> dict[str, float]:
        """The unions that the notion leaves out."""
        return self.notion.left_out(self.merged(rates))

    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """The disparities of the unions, by the name of rate and column."""
        found = self.notion.disparity(self.merged(rates))
        return {f"{name} by {self.column}": d for name, d in found.items()}

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """The violations of the unions, by the name of rate and column."""
        found = self.notion.violation(self.merged(rates))
        return {f"{name} by {self.column}": v for name, v in found.items()}


@dataclass(frozen=True, eq=False)
class ClassRates:
    """The rates of a (randomised) classifier with C classes in each of K groups.

    Attributes
    ----------
    positives : Any
        How much of each group is predicted as each class, without the records of that label (0) and of them
        (1); numbers or an expression, shape ``(C, K, 2)``.
    mass : Array
        How much there is without that label and with it, shape ``(C, K, 2)``.
    groups : tuple[str, ...]
        The names of the K groups.
    classes : tuple[str, ...]
        The names of the C classes.

    Examples
    --------
    >>> import numpy as np
    >>> from forcopt.fairness import ClassRates
    >>> mass = np.full((3, 2, 2), 10.0)
    >>> rates = ClassRates(mass / 2, mass, ("a", "b"), ("low", "mid", "top"))
    >>> rates.of_class(2).groups
    ('a', 'b')
    """

    positives: Any
    mass: Array
    groups: tuple[str, ...]
    classes: tuple[str, ...]

    def of_class(self, c: int) -> GroupRates:
        """The rates of one class against all others."""
        return GroupRates(self.positives[c], self.mass[c], self.groups)

    def of_error(self) -> GroupRates:
        """The error of all classes: whether a prediction is wrong, as a class that nobody has."""
        size = self.mass[0].sum(axis=1)
        wrong = size - self.positives[:, :, 1].sum(axis=0)
        nobody = np.array([1.0, 0.0])
        return GroupRates(wrong.reshape((len(size), 1)) * nobody, size[:, None] * nobody, self.groups)


@dataclass(frozen=True)
class Classwise:
    """A notion over the rates of each class against all others; one over error rates holds once, for all.

    It has the methods of `Notion` that a program needs, on `ClassRates` in place of `GroupRates`. The names
    of rates and rows end in the class.

    Attributes
    ----------
    notion : Notion
        Over groups.

    References
    ----------
    Putzel and Lee (2022): Blackbox post-processing for multiclass fairness, section 3, for equalized odds.

    Examples
    --------
    >>> from forcopt.fairness import DemographicParity
    >>> mass = np.array([[[6, 4], [6, 4]], [[6, 4], [7, 3]], [[8, 2], [7, 3]]])
    >>> positives = np.array([[[0, 4], [0, 4]], [[0, 4], [1, 3]], [[0, 2], [0, 2]]])
    >>> rates = ClassRates(positives, mass, groups=("u", "v"), classes=("a", "b", "c"))
    >>> {name: round(d, 6) for name, d in Classwise(DemographicParity()).disparity(rates).items()}
    {'selection rate of class a': 0.0, 'selection rate of class b': 0.0, 'selection rate of class c': 0.0}
    """

    notion: Notion

    def parts(self, rates: ClassRates) -> Iterator[tuple[str, Notion, GroupRates]]:
        """The demands: the end of its names (empty for the error of all), a notion, and rates of groups.

        Raises
        ------
        DeclarationError
            For one notion over error rates and other rates.
        """
        parts = self.notion.notions if isinstance(self.notion, AllOf) else (self.notion,)
        for notion in parts:
            if ERROR not in notion.rates:
                for c, name in enumerate(rates.classes):
                    yield f" of class {name}", notion, rates.of_class(c)
            elif len(notion.rates) == 1:
                yield "", notion, rates.of_error()
            else:
                raise DeclarationError(
                    "constraint: merge groups for error rates and other rates one by one, and join by &"
                )

    def rows(self, rates: ClassRates) -> list[Constraint]:
        """The demand as constraints, for rates that are expressions of a model."""
        return [_named(row, end) for end, notion, part in self.parts(rates) for row in notion.rows(part)]

    def demands(self, rates: ClassRates) -> Iterator[tuple[Rate, GroupRates]]:
        """Each linear rate of the notion, with the rates of the groups that it compares."""
        for _, notion, part in self.parts(rates):
            yield from notion.demands(part)

    def left_out(self, rates: ClassRates) -> dict[str, float]:
        """The groups that are dropped or pooled for a class."""
        parts = ((end, notion.left_out(part)) for end, notion, part in self.parts(rates))
        return {name + end: share for end, found in parts for name, share in found.items()}

    def disparity(self, rates: ClassRates) -> dict[str, Any]:
        """The disparities by the name of rate and class."""
        parts = ((end, notion.disparity(part)) for end, notion, part in self.parts(rates))
        return {name + end: d for end, found in parts for name, d in found.items()}

    def violation(self, rates: ClassRates) -> dict[str, float]:
        """The violations by the name of rate and class; the largest where two notions look at one rate."""
        return largest(
            ((name + end, value) for name, value in notion.violation(part).items())
            for end, notion, part in self.parts(rates)
        )


def _named(row: Constraint, end: str) -> Constraint:
    """A row whose name ends in the class."""
    given = row.name
    row.name = row.expression.model.unused_name(given.partition("#")[0] + end.replace(" ", "_"))
    row.labels = [row.name + label.removeprefix(given) for label in row.labels or ()]
    return row
