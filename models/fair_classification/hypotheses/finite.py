"""A list of hypotheses, by what they predict for the records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import field_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Integers
from forcopt.errors import DeclarationError
from forcopt.models.fair_classification.hypotheses.base import Hypotheses, Hypothesis, Oracle
from forcopt.models.fair_classification.hypotheses.lookup import Lookup, distinct_rows

__all__ = ["Finite", "TableRow"]


class Finite(Hypotheses):
    """The rows of a table: each is a hypothesis, given by what it predicts for each record.

    Attributes
    ----------
    table : Integers
        0 or 1, shape ``(hypotheses, n)``.

    Examples
    --------
    >>> Finite([[0, 0, 1], [0, 1, 1]]).oracle(np.zeros((3, 1))).best(np.array([1.0, -1.0, 0.0])).classifier
    hypothesis 1
    """

    table: Integers

    @field_validator("table")
    @classmethod
    def _is_table(cls, table: Array) -> Array:
        if table.ndim != 2 or not len(table):
            raise DeclarationError(f"the shape is {table.shape}; it must be (hypotheses, n), at least one")
        bad = (table != 0) & (table != 1)
        if bad.any():
            entry = [int(i) for i in np.argwhere(bad)[0]]
            raise DeclarationError(f"the array{entry} is {table[tuple(entry)]}; it must be 0 or 1")
        return table

    def oracle(self, features: Array) -> FiniteOracle:
        """The oracle: compare all rows; ties go to the first."""
        if self.table.shape[1] != len(features):
            raise DeclarationError(
                f"hypotheses: the table has {self.table.shape[1]} columns for {len(features)} records"
            )
        return FiniteOracle(self.table, features)


@dataclass(frozen=True, eq=False)
class TableRow:
    """A hypothesis of a table; it predicts for the records that it was declared with.

    Attributes
    ----------
    index : int
        Which row of the table.
    predictions : Array
        0 or 1 for each record.
    features : Array
        Of the records.
    """

    index: int
    predictions: Array = field(repr=False)
    features: Array = field(repr=False)

    def predict(self, X: Any) -> Array:
        """What it predicts for the records, or for rows of features that occur among them.

        Raises
        ------
        DeclarationError
            For other rows, or if records with the same features are predicted differently.
        """
        features = as_numbers(X, "X")
        if np.array_equal(features, self.features):
            return self.predictions
        rows, place = distinct_rows(self.features)
        values = np.zeros(len(rows), dtype=np.int64)
        values[place] = self.predictions
        if (values[place] != self.predictions).any():
            raise DeclarationError(
                f"hypothesis {self.index} predicts differently for records with the same features, so it "
                "says nothing about other records"
            )
        return Lookup(rows, values).predict(features)

    def __repr__(self) -> str:
        return f"hypothesis {self.index}"


class FiniteOracle(Oracle):
    """Compares all rows of a table."""

    def __init__(self, table: Array, features: Array) -> None:
        self.table, self.features = table, features

    def best(self, costs: Array) -> Hypothesis:
        """The first row of least cost."""
        return self._row(int(np.argmin(self.table @ costs)))

    def constants(self) -> list[Hypothesis]:
        """Those rows that are constant."""
        return [self._row(int(i)) for i in np.flatnonzero(np.ptp(self.table, axis=1) == 0)]

    def all(self) -> list[Hypothesis]:
        """All rows."""
        return [self._row(i) for i in range(len(self.table))]

    def _row(self, index: int) -> Hypothesis:
        return Hypothesis(TableRow(index, self.table[index], self.features), self.table[index])
