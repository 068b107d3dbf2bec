"""Finite classes of classifiers: listed, tables of predictions, all functions of rows; and rows looked up."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from pydantic import field_validator

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.learning.hypotheses import (
    Classifier,
    Hull,
    Hypotheses,
    Hypothesis,
    Listing,
    Oracle,
    as_cells,
    constants,
    costs_by_class,
)


def distinct_rows(features: Array) -> tuple[Array, Array]:
    """The distinct rows of features, sorted, and for each record which of them it has."""
    rows, place = np.unique(features + 0.0, axis=0, return_inverse=True)  # -0.0 is 0.0
    return rows, place.reshape(-1)


@dataclass(frozen=True, eq=False)
class Lookup:
    """Predicts for each known row of features the value in a table.

    Attributes
    ----------
    rows : Array
        Distinct, sorted rows of features, shape ``(m, d)``.
    values : Array
        The class of each, 0 or 1 or more, shape ``(m,)``.
    name : str, default "lookup"
        Its name in reports.

    Examples
    --------
    >>> import numpy as np
    >>> h = Lookup(np.array([[0.0], [1.0]]), np.array([0, 1]))
    >>> h.predict([[1.0], [0.0], [1.0]]).tolist()
    [1, 0, 1]
    """

    rows: Array = field(repr=False)
    values: Array = field(repr=False)
    name: str = "lookup"

    def predict(self, X: Any) -> Array:
        """Look the rows up.

        Raises
        ------
        DeclarationError
            For a row that is not among the known ones.
        """
        features = as_numbers(X, "X")
        both, place = distinct_rows(np.vstack([self.rows, features.reshape(-1, self.rows.shape[1])]))
        known, asked = place[: len(self.rows)], place[len(self.rows) :]
        found = np.full(len(both), -1, dtype=np.int64)
        found[known] = self.values
        if (found[asked] < 0).any():
            at = int(np.argmax(found[asked] < 0))
            raise DeclarationError(f"X[{at}] is no row that the classifier was learnt from")
        return found[asked]

    def __repr__(self) -> str:
        if self.values.max(initial=0) > 1:
            return f"{self.name} ({len(self.values)} rows, classes {np.unique(self.values).tolist()})"
        return f"{self.name} ({int(self.values.sum())} of {len(self.values)} rows positive)"


class ListedHypotheses(Hypotheses):
    """A finite class of N classifiers on n records, numbered from 0, whose costs are all computed at once."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of classifiers, N."""

    @property
    @abstractmethod
    def records(self) -> int:
        """The number of records, n."""

    @abstractmethod
    def predictions(self, which: Array) -> Array:
        """The probabilities of predicting 1 of some classifiers, shape ``(len(which), n)``."""

    @abstractmethod
    def predict(self, which: Array, features: Any) -> Array:
        """The same for other records, shape ``(len(which), len(features))``."""

    @abstractmethod
    def total_costs(self, costs: Array) -> Array:
        """The cost of every classifier, where predicting 1 costs ``costs[..., i]`` on record i.

        Parameters
        ----------
        costs : Array
            Shape ``(..., n)``.

        Returns
        -------
        Array
            Shape ``(..., N)``.
        """

    def best(self, costs: Array) -> Array:
        """The classifier of the least total cost, shape ``(...)``: the oracle of cost-sensitive learning."""
        return np.asarray(self.total_costs(costs).argmin(axis=-1))

    @abstractmethod
    def constant_classifiers(self) -> Array:
        """The numbers of the classifiers that predict the same for every record."""

    @abstractmethod
    def classifier(self, number: int, features: Array) -> Classifier:
        """A classifier by its number, for records with these features and others."""

    def oracle(self, features: Array) -> ListedOracle:
        """The oracle compares all classifiers; the first of the best wins.

        Raises
        ------
        DeclarationError
            If the number of records differs.
        """
        if self.records != len(features):
            raise DeclarationError(
                f"hypotheses: the class is over {self.records} records; there are {len(features)}"
            )
        return ListedOracle(self, features)


class ListedOracle(Oracle):
    """Compares all classifiers of a listed class."""

    def __init__(self, listed: ListedHypotheses, features: Array) -> None:
        self.listed, self.features = listed, features

    def best(self, costs: Array) -> Hypothesis:
        """The first classifier of least cost."""
        return self.hypothesis(int(self.listed.best(costs)))

    def bests(self, costs: Array) -> list[Hypothesis]:
        """The first classifier of least cost for each row of costs, compared at once."""
        numbers, place = np.unique(self.listed.best(costs), return_inverse=True)
        found = [self.hypothesis(k) for k in numbers.tolist()]
        return [found[k] for k in place.tolist()]

    def constants(self) -> list[Hypothesis]:
        """The constant classifiers of the class."""
        return [self.hypothesis(int(i)) for i in self.listed.constant_classifiers()]

    def all(self) -> list[Hypothesis]:
        """All classifiers."""
        return [self.hypothesis(i) for i in range(self.listed.count)]

    def hypothesis(self, number: int) -> Hypothesis:
        """A classifier by its number."""
        predictions = as_cells(self.listed.predictions(np.array([number]))[0], 2)
        return Hypothesis(lambda: self.listed.classifier(number, self.features), predictions)

    def listing(self, linear: sp.csr_array) -> Listing:
        """As the base; the map costs no table of all predictions."""
        if type(self) is not ListedOracle:
            return super().listing(linear)
        mapped = self.listed.total_costs(sp.csr_array(linear).toarray())
        count = self.listed.count
        return count, mapped, self.hypothesis, lambda: self.listed.predictions(np.arange(count))


class Finite(ListedHypotheses):
    """The rows of a table: each is a classifier, given by its predictions for the records.

    Attributes
    ----------
    table : Numbers
        The probabilities of predicting 1, usually 0 or 1; shape ``(N, n)``. `FairClassification` takes 0 and
        1 alone, or the numbers of several classes; `LexifairClassification` takes probabilities.

    Examples
    --------
    >>> Finite([[0, 0, 1], [0, 1, 1]]).oracle(np.zeros((3, 1))).best(np.array([1.0, -1.0, 0.0])).classifier
    hypothesis 1
    """

    table: Numbers

    @field_validator("table")
    @classmethod
    def _are_probabilities(cls, table: Array) -> Array:
        require(table.ndim == 2 and table.size, "the shape", table.shape, "be (classifiers, records)")
        outside = (table < 0) | ((table > 1) & (table % 1 != 0))
        check_entries(table, outside, "the array", "it must be from 0 to 1, or the number of a class")
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
        return TableRow(number, as_cells(self.table[number], 2), features)

    def oracle(self, features: Array) -> ListedOracle:
        """The oracle compares all rows; ties go to the first.

        Raises
        ------
        DeclarationError
            If the number of records differs, or the table holds other numbers than 0 and 1.
        """
        wrong = (self.table != 0) & (self.table != 1)
        check_entries(self.table, wrong, "hypotheses: table", "it must be 0 or 1")
        return super().oracle(features)

    def class_oracle(self, features: Array, classes: int) -> FiniteClassesOracle:
        """The same for several classes, whose numbers are the entries of the table."""
        wrong, rule = (self.table % 1 != 0) | (self.table >= classes), f"from 0 to {classes - 1}"
        check_entries(self.table, wrong, "hypotheses: table", f"it must be a whole number {rule}")
        super().oracle(features)  # as many records?
        return FiniteClassesOracle(self, features, classes)


class FiniteClassesOracle(ListedOracle):
    """Compares all rows of a table of classes."""

    def __init__(self, listed: Finite, features: Array, classes: int) -> None:
        super().__init__(listed, features)
        self.cells = as_cells(listed.table, classes)

    def best(self, costs: Array) -> Hypothesis:
        """The first row of least cost."""
        return self.hypothesis(int(np.argmin(self.cells @ costs)))

    def hypothesis(self, number: int) -> Hypothesis:
        """A row by its number."""
        return Hypothesis(lambda: self.listed.classifier(number, self.features), self.cells[number])


@dataclass(frozen=True, eq=False)
class TableRow:
    """A hypothesis of a table; it predicts for the records that it was declared with.

    Attributes
    ----------
    index : int
        Which row of the table.
    predictions : Array
        The class of each record, 0 or 1 or more, or a probability of 1.
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
                f"hypothesis {self.index} predicts differently for records with the same features, or "
                "probabilities, so it does not define predictions for other records"
            )
        return Lookup(rows, values)

    def __repr__(self) -> str:
        return f"hypothesis {self.index}"


MOST_LISTED = 16


class AllFunctions(Hypotheses):
    """Every function of the features: records with the same features are treated alike, all others freely.

    Its mixtures are all probabilities for the distinct rows, so that the linear program has one column a row.
    The learned values do not extend to other rows.

    Examples
    --------
    >>> from forcopt.fairness import DemographicParity
    >>> from forcopt.models import FairClassification
    >>> from forcopt.models.fair_classification import AllFunctions
    >>> x, y, group = [[0], [1], [2], [3]], [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> p = FairClassification(x, y, group, DemographicParity(0.0), hypotheses=AllFunctions())
    >>> round(p.solve("lp").objective, 6)
    0.0
    """

    def oracle(self, features: Array) -> AllFunctionsOracle:
        """The oracle: each row by itself."""
        return AllFunctionsOracle(features)

    def class_oracle(self, features: Array, classes: int) -> AllFunctionsOracle:
        """The same for several classes."""
        return AllFunctionsOracle(features, classes)


class AllFunctionsOracle(Oracle):
    """Decides each of the m distinct rows by itself.

    Attributes
    ----------
    rows
        The distinct rows, shape ``(m, d)``.
    place
        Which of them each record has, shape ``(n,)``.
    classes
        The number of classes.
    """

    def __init__(self, features: Array, classes: int = 2) -> None:
        self.rows, self.place = distinct_rows(features)
        self.classes = classes

    def best(self, costs: Array) -> Hypothesis:
        """The cheapest class of each row; the first of equals."""
        table = costs_by_class(costs, self.classes)
        total = [np.bincount(self.place, column, len(self.rows)) for column in table.T]
        return self.hypothesis(np.argmin(total, axis=0))

    def hypothesis(self, values: Array) -> Hypothesis:
        """The function with these values, a class for each distinct row."""
        values = values.astype(np.int64)
        return Hypothesis(Lookup(self.rows, values), as_cells(values[self.place], self.classes))

    def constants(self) -> list[Hypothesis]:
        """One for each class."""
        return constants(len(self.place), self.classes)

    def all(self) -> list[Hypothesis]:
        """All functions, for at most 2^16 of them."""
        m, c = len(self.rows), self.classes
        if m * math.log2(c) > MOST_LISTED:
            raise DeclarationError(f"there are {c}^{m} functions of {m} rows; the most is 2^{MOST_LISTED}")
        return [self.hypothesis(k // c ** np.arange(m) % c) for k in range(c**m)]

    def hull(self, model: Model, linear: sp.csr_array, single: bool = False) -> Hull:
        """One probability for each distinct row; with several classes, for each row and class."""
        m, n = len(self.rows), len(self.place)
        name, shape = model.unused_name("probability"), (m,) if self.classes == 2 else (m, self.classes)
        first = np.unique(self.place, return_index=True)[1]
        probability = model.variable(name, shape, lower=0.0, upper=1.0, integer=single)
        if len(shape) > 1:
            model.subject_to(probability.sum(axis=1) == 1, name=model.unused_name("one_class"))
        members = sp.csr_array((np.ones(n), (np.arange(n), self.place)))
        members = sp.csr_array(sp.kron(members, sp.eye_array(probability.size // m)))

        def start(weights: Array, predictions: Array) -> dict[Variable, Array]:
            return {probability: (weights @ predictions).reshape(n, -1)[first].reshape(probability.shape)}

        mapped = sp.csr_array(linear @ members) @ probability.reshape((probability.size,))
        return Hull(mapped, lambda solution: self.decompose(solution[probability]), start)

    def decompose(self, probability: Array) -> tuple[Array, list[Hypothesis]]:
        """A mixture of at most m (C - 1) + 1 functions with these probabilities of the distinct rows.

        One number u is drawn for everybody. The class of a row is the last one for which the probability of
        this class or a later one exceeds u.
        """
        chance = np.clip(probability, 0.0, 1.0)
        if chance.ndim == 1:
            later = chance[:, None]
        else:
            chance = chance / chance.sum(axis=1, keepdims=True)
            later = np.clip(np.cumsum(chance[:, :0:-1], axis=1)[:, ::-1], 0.0, 1.0)
        ends = np.unique(np.concatenate([[0.0], later.ravel(), [1.0]]))
        return np.diff(ends), [self.hypothesis((later > low).sum(axis=1)) for low in ends[:-1]]
