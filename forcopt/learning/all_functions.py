"""All functions of the features: one free decision for each distinct row."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.learning.hypotheses import Hull, Hypotheses, Hypothesis, Oracle, constants
from forcopt.learning.lookup import Lookup, distinct_rows

__all__ = ["AllFunctions", "AllFunctionsOracle"]

MOST_LISTED = 16


class AllFunctions(Hypotheses):
    """Every function of the features: records with the same features are treated alike, all others freely.

    Its mixtures are all probabilities for the distinct rows, so that the linear program has one column a row.
    The learned values do not extend to other rows.
    """

    def oracle(self, features: Array) -> AllFunctionsOracle:
        """The oracle: each row by itself."""
        return AllFunctionsOracle(features)


class AllFunctionsOracle(Oracle):
    """Decides each of the m distinct rows by itself.

    Attributes
    ----------
    rows
        The distinct rows, shape ``(m, d)``.
    place
        Which of them each record has, shape ``(n,)``.
    """

    def __init__(self, features: Array) -> None:
        self.rows, self.place = distinct_rows(features)

    def best(self, costs: Array) -> Hypothesis:
        """1 exactly where that is cheaper."""
        return self.hypothesis(np.bincount(self.place, costs, len(self.rows)) < 0)

    def hypothesis(self, values: Array) -> Hypothesis:
        """The function with these values, 0 or 1 for each distinct row."""
        values = values.astype(np.int64)
        return Hypothesis(Lookup(self.rows, values), values[self.place])

    def constants(self) -> list[Hypothesis]:
        """Both."""
        return constants(len(self.place))

    def all(self) -> list[Hypothesis]:
        """All 2^m functions, for m up to 16."""
        m = len(self.rows)
        if m > MOST_LISTED:
            raise DeclarationError(
                f"there are 2^{m} functions of {m} rows; at most 2^{MOST_LISTED} are listed"
            )
        return [self.hypothesis((np.arange(2**m)[k] >> np.arange(m)) & 1) for k in range(2**m)]

    def hull(self, model: Model, linear: sp.csr_array, single: bool = False) -> Hull:
        """One probability for each distinct row."""
        name = model.unused_name("probability")
        probability = model.variable(name, len(self.rows), lower=0.0, upper=1.0, integer=single)
        first = np.unique(self.place, return_index=True)[1]
        members = sp.csr_array((np.ones(len(self.place)), (np.arange(len(self.place)), self.place)))
        return Hull(
            sp.csr_array(linear @ members) @ probability,
            lambda solution: self.decompose(solution[probability]),
            lambda weights, predictions: {probability: (weights @ predictions)[first]},
        )

    def decompose(self, probability: Array) -> tuple[Array, list[Hypothesis]]:
        """A mixture of functions with these probabilities of the distinct rows: at most m + 1 of them.

        One number u is drawn for everybody, and a row is 1 if its probability exceeds u.
        """
        levels = np.unique(np.clip(probability, 0.0, 1.0))
        ends = np.unique(np.concatenate([[0.0], levels, [1.0]]))
        parts = [self.hypothesis(probability > low) for low in ends[:-1]]
        return np.diff(ends), parts
