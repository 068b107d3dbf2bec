"""A table of classifiers, each given by its predictions for the records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import field_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.learning.classes import as_cells
from forcopt.learning.hypotheses import Hypothesis
from forcopt.learning.listed import ListedHypotheses, ListedOracle
from forcopt.learning.lookup import Lookup, distinct_rows

__all__ = ["Finite", "FiniteClassesOracle", "TableRow"]


class Finite(ListedHypotheses):
    """The rows of a table: each is a classifier, given by its predictions for the records.

    Attributes
    ----------
    table : Numbers
        The probabilities of predicting 1, usually 0 or 1; shape ``(N, n)``. `FairClassification` takes 0 and
        1 alone, since it mixes classifiers itself, or the numbers of several classes.

    Examples
    --------
    >>> Finite([[0, 0, 1], [0, 1, 1]]).oracle(np.zeros((3, 1))).best(np.array([1.0, -1.0, 0.0])).classifier
    hypothesis 1
    """

    table: Numbers

    @field_validator("table")
    @classmethod
    def _are_probabilities(cls, table: Array) -> Array:
        if table.ndim != 2 or table.size == 0:
            raise DeclarationError(f"the shape is {table.shape}; it must be (classifiers, records)")
        outside = (table < 0) | ((table > 1) & (table % 1 != 0))
        if outside.any():
            at = [int(i) for i in np.argwhere(outside)[0]]
            raise DeclarationError(
                f"the array{at} is {table[tuple(at)]:g}; it must be from 0 to 1, or the number of a class"
            )
        return table

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.table)

    @property
    def records(self) -> int:
        """The number of columns."""
        return int(self.table.shape[1])

    def predictions(self, which: Array) -> Array:
        """Rows of the table."""
        return self.table[which]

    def predict(self, which: Array, features: Any) -> Array:
        """The table holds no other records.

        Raises
        ------
        DeclarationError
            Always.
        """
        raise DeclarationError("classifiers given as a table of predictions cannot predict other records")

    def total_costs(self, costs: Array) -> Array:
        """One product of matrices."""
        return costs @ self.table.T

    def constant_classifiers(self) -> Array:
        """The constant rows."""
        return np.flatnonzero(np.ptp(self.table, axis=1) == 0)

    def classifier(self, number: int, features: Array) -> TableRow:
        """A row of the table."""
        return TableRow(number, self.table[number].astype(np.int64), features)

    def oracle(self, features: Array) -> ListedOracle:
        """The oracle compares all rows; ties go to the first.

        Raises
        ------
        DeclarationError
            If the number of records differs, or the table holds other numbers than 0 and 1.
        """
        self._check((self.table != 0) & (self.table != 1), "0 or 1")
        return super().oracle(features)

    def class_oracle(self, features: Array, classes: int) -> FiniteClassesOracle:
        """The same for several classes, whose numbers are the entries of the table."""
        self._check(
            (self.table % 1 != 0) | (self.table >= classes), f"a whole number from 0 to {classes - 1}"
        )
        super().oracle(features)  # as many records?
        return FiniteClassesOracle(self, features, classes)

    def _check(self, wrong: Array, rule: str) -> None:
        if wrong.any():
            at = [int(i) for i in np.argwhere(wrong)[0]]
            raise DeclarationError(f"hypotheses: table{at} is {self.table[tuple(at)]:g}; it must be {rule}")


class FiniteClassesOracle(ListedOracle):
    """Compares all rows of a table of classes."""

    def __init__(self, listed: Finite, features: Array, classes: int) -> None:
        super().__init__(listed, features)
        self.cells = as_cells(listed.table, classes)

    def best(self, costs: Array) -> Hypothesis:
        """The first row of least cost."""
        return self._hypothesis(int(np.argmin(self.cells @ costs)))

    def _hypothesis(self, number: int) -> Hypothesis:
        return Hypothesis(lambda: self.listed.classifier(number, self.features), self.cells[number])


@dataclass(frozen=True, eq=False)
class TableRow:
    """A hypothesis of a table; it predicts for the records that it was declared with.

    Attributes
    ----------
    index : int
        Which row of the table.
    predictions : Array
        The class of each record, 0 or 1 or more.
    features : Array
        Of the records.
    """

    index: int
    predictions: Array = field(repr=False)
    features: Array = field(repr=False)

    def predict(self, X: Any) -> Array:
        """Return its predictions for the records, or for rows of features that occur among them.

        Raises
        ------
        DeclarationError
            For other rows, or if records with the same features are predicted differently.
        """
        features = as_numbers(X, "X")
        if np.array_equal(features, self.features):
            return self.predictions
        return self.lookup().predict(features)

    def lookup(self) -> Lookup:
        """The prediction for each distinct row of features.

        Raises
        ------
        DeclarationError
            If records with the same features are predicted differently.
        """
        rows, place = distinct_rows(self.features)
        values = np.zeros(len(rows), dtype=np.int64)
        values[place] = self.predictions
        if (values[place] != self.predictions).any():
            raise DeclarationError(
                f"hypothesis {self.index} predicts differently for records with the same features, so it "
                "does not define predictions for other records"
            )
        return Lookup(rows, values)

    def __repr__(self) -> str:
        return f"hypothesis {self.index}"
