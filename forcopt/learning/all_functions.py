"""All functions of the features: one free decision for each distinct row."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.model import Model, Variable
from forcopt.learning.finite import Lookup, distinct_rows
from forcopt.learning.hypotheses import (
    Hull,
    Hypotheses,
    Hypothesis,
    Oracle,
    as_cells,
    constants,
    costs_by_class,
)

__all__ = ["AllFunctions", "AllFunctionsOracle"]

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
            raise DeclarationError(
                f"there are {c}^{m} functions of {m} rows; at most 2^{MOST_LISTED} are listed"
            )
        return [self.hypothesis(k // c ** np.arange(m) % c) for k in range(c**m)]

    def hull(self, model: Model, linear: sp.csr_array, single: bool = False) -> Hull:
        """One probability for each distinct row; with several classes, for each row and class."""
        m, n = len(self.rows), len(self.place)
        name = model.unused_name("probability")
        first = np.unique(self.place, return_index=True)[1]
        members = sp.csr_array((np.ones(n), (np.arange(n), self.place)))
        if self.classes == 2:
            probability = model.variable(name, m, lower=0.0, upper=1.0, integer=single)
            chosen: Expression = probability
        else:
            shape = (m, self.classes)
            probability = model.variable(name, shape, lower=0.0, upper=1.0, integer=single)
            model.subject_to(probability.sum(axis=1) == 1, name=model.unused_name("one_class"))
            members = sp.csr_array(sp.kron(members, sp.eye_array(self.classes)))
            chosen = probability.reshape((m * self.classes,))

        def start(weights: Array, predictions: Array) -> dict[Variable, Array]:
            mean = weights @ predictions
            return {probability: mean.reshape(n, -1)[first].reshape(probability.shape)}

        return Hull(
            sp.csr_array(linear @ members) @ chosen,
            lambda solution: self.decompose(solution[probability]),
            start,
        )

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
        parts = [self.hypothesis((later > low).sum(axis=1)) for low in ends[:-1]]
        return np.diff(ends), parts
