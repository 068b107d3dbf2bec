"""Rates of a classifier with several classes, and a notion for each class against all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness.notions import AllOf, Notion
from forcopt.fairness.rates import ERROR, GroupRates, Rate
from forcopt.language.constraint import Constraint

__all__ = ["ClassRates", "Classwise"]


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

    def inequalities(self, rates: ClassRates) -> list[Constraint]:
        """The same for methods that price it row by row, see `Notion.inequalities`."""
        found = ((end, notion.inequalities(part)) for end, notion, part in self.parts(rates))
        return [_named(row, end) for end, rows in found for row in rows]

    def demands(self, rates: ClassRates) -> Iterator[tuple[Rate, GroupRates]]:
        """Each linear rate of the notion, with the rates of the groups that it compares."""
        for _, notion, part in self.parts(rates):
            yield from notion.demands(part)

    def disparity(self, rates: ClassRates) -> dict[str, Any]:
        """The disparities by the name of rate and class."""
        return {
            name + end: d
            for end, notion, part in self.parts(rates)
            for name, d in notion.disparity(part).items()
        }

    def violation(self, rates: ClassRates) -> dict[str, float]:
        """The violations by the name of rate and class; the largest where two notions look at one rate."""
        found: dict[str, float] = {}
        for end, notion, part in self.parts(rates):
            for name, value in notion.violation(part).items():
                found[name + end] = max(value, found.get(name + end, 0.0))
        return found


def _named(row: Constraint, end: str) -> Constraint:
    """A row whose name ends in the class."""
    given = row.name
    row.name = row.expression.model.unused_name(given.partition("#")[0] + end.replace(" ", "_"))
    row.labels = [row.name + label.removeprefix(given) for label in row.labels or ()]
    return row
