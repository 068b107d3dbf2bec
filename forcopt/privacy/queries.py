"""Queries: numbers of a table of records whose change by one person is known, before noise is added."""

from __future__ import annotations

from abc import abstractmethod
from math import fsum
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.privacy.losses import Neighbours
from forcopt.privacy.mechanism import AdditiveMechanism, Mechanism
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness


class Query(Declared):
    """A number of a table; ``query >> mechanism`` releases it with the mechanism's noise."""

    @abstractmethod
    def answer(self, records: Any) -> float:
        """The number, for every table, also for an empty one."""

    @abstractmethod
    def sensitivity(self, neighbours: Neighbours) -> float:
        """The largest change of the number between neighbouring tables."""

    def __rshift__(self, mechanism: AdditiveMechanism) -> QueryMechanism:
        return QueryMechanism(query=self, mechanism=mechanism)


class Count(Query):
    """The number of records.

    Examples
    --------
    >>> Count().answer(np.zeros((3, 2))), Count().sensitivity("add_remove")
    (3, 1.0)
    """

    def answer(self, records: Any) -> float:
        """See `Query`."""
        return len(records)

    def sensitivity(self, neighbours: Neighbours) -> float:
        """See `Query`."""
        return float(neighbours == "add_remove")


class ClampedSum(Query):
    """The sum of a column, each value brought into an interval first.

    Parameters
    ----------
    lower, upper : float
        The ends of the interval, which must be public.
    column : str, optional
        Of a table; without it the records are numbers.

    Notes
    -----
    A missing value counts as the number of the interval that is nearest to 0: an error would tell that it is
    there.

    Examples
    --------
    >>> ages = ClampedSum(lower=0, upper=100)
    >>> ages.answer([30, 40, 999]), ages.sensitivity("substitute")
    (170.0, 100.0)
    """

    lower: float = Field(allow_inf_nan=False)
    upper: float = Field(allow_inf_nan=False)
    column: str | None = None

    @model_validator(mode="after")
    def _is_interval(self) -> Self:
        if self.lower >= self.upper:
            raise DeclarationError(f"lower is {self.lower:g} and upper {self.upper:g}; lower must be less")
        return self

    def answer(self, records: Any) -> float:
        """See `Query`."""
        values = np.asarray(records if self.column is None else records[self.column], dtype=float)
        if values.ndim != 1:
            raise DeclarationError(f"the records have shape {values.shape}; name the column to sum")
        return fsum(np.clip(np.where(np.isnan(values), 0.0, values), self.lower, self.upper))

    def sensitivity(self, neighbours: Neighbours) -> float:
        """See `Query`."""
        ends = abs(self.lower), abs(self.upper)
        return max(ends) if neighbours == "add_remove" else self.upper - self.lower


class QueryMechanism(Mechanism):
    """A query of a table of records, and noise on its answer.

    Parameters
    ----------
    query : Query
        Such as `Count`.
    mechanism : AdditiveMechanism
        For one number, of the query's sensitivity at least.

    Raises
    ------
    DeclarationError
        For a sensitivity below the query's under both relations, or several numbers.

    Examples
    --------
    >>> from forcopt.privacy import Laplace, Simulated
    >>> count = Count() >> AdditiveMechanism(Laplace(epsilon=1.0))
    >>> count.release(np.zeros((40, 3)), Simulated(1)).values.round(2).tolist()
    [40.02]
    """

    query: Query
    mechanism: AdditiveMechanism

    @model_validator(mode="after")
    def _covers_the_query(self) -> Self:
        if self.mechanism.dimension != 1:
            raise DeclarationError(f"the query has one answer; dimension is {self.mechanism.dimension}")
        if not self._relations:
            change = self.query.sensitivity("add_remove")
            raise DeclarationError(
                f"sensitivity is {self.mechanism.sensitivity:g}; one person changes {self.query!r} by up to "
                f"{change:g}"
            )
        return self

    @property
    def _relations(self) -> list[Neighbours]:
        both: tuple[Neighbours, ...] = ("add_remove", "substitute")
        return [r for r in both if self.query.sensitivity(r) <= self.mechanism.sensitivity]

    @property
    def neighbours(self) -> Neighbours | None:
        """See `Mechanism`: the relation under which the sensitivity suffices; None if it does under both."""
        return self._relations[0] if len(self._relations) == 1 else None

    def profile(self, distance: int = 1) -> Profile:
        """See `Mechanism`."""
        return self.mechanism.profile(distance)

    def send(self, values: Any, rng: Randomness) -> Any:
        """See `Channel`: `values` are the records."""
        return self.mechanism.send([self.query.answer(values)], rng)

    def total_variation(self, output: Any) -> float:
        """See `Channel`."""
        return self.mechanism.total_variation(output)
