"""Classes of classifiers, their members and oracles; features by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.loops.solution import ModelSolution


def as_cells(codes: Any, classes: int) -> Array:
    """The predictions as methods compare them.

    Parameters
    ----------
    codes : array_like
        The predicted class of each record, from 0; of two classes also a probability; shape ``(..., n)``.
    classes : int
        Their number, C.

    Returns
    -------
    Array
        The codes themselves for two classes; for more, 1 where record i has class c, at place ``i * C + c``
        of shape ``(..., n * C)``. Either way costs and rates are linear in the entries.

    Examples
    --------
    >>> as_cells([2, 0], 3).tolist()
    [0, 0, 1, 1, 0, 0]
    """
    given: Array = np.asarray(codes)
    if classes == 2:
        return given if given.dtype.kind == "f" and (given % 1).any() else given.astype(np.int64)
    given = given.astype(np.int64)
    return np.eye(classes, dtype=np.int64)[given].reshape(*given.shape[:-1], -1)


def costs_by_class(costs: Array, classes: int) -> Array:
    """The cost of each class for each record, shape ``(n, C)``, from the costs of the cells of `as_cells`.

    Examples
    --------
    >>> costs_by_class(np.array([0.5, -1.0]), 2).tolist()
    [[0.0, 0.5], [0.0, -1.0]]
    """
    return np.column_stack([np.zeros(len(costs)), costs]) if classes == 2 else costs.reshape(-1, classes)


class Classifier(Protocol):
    """Anything that predicts."""

    def predict(self, X: Any, /) -> Any:
        """The class of each row of X, 0 or 1 or more, shape ``(n,)``."""


@dataclass(frozen=True)
class Constant:
    """Predicts the same for everybody.

    Attributes
    ----------
    label : int
        0 or 1.

    Examples
    --------
    >>> Constant(1).predict([[0.5], [2.0]]).tolist()
    [1, 1]
    """

    label: int

    def predict(self, X: Any) -> Array:
        """The label, once for each row of X."""
        return np.full(np.shape(X)[0], self.label, dtype=np.int64)

    def __repr__(self) -> str:
        return f"always {self.label}"


class Hypothesis:
    """A classifier and its predictions for the records of the problem.

    Parameters
    ----------
    classifier : Classifier | Callable[[], Classifier]
        Or a function that makes it when it is first used, where this is expensive.
    predictions : Array
        See above.

    Attributes
    ----------
    predictions : Array
        0 or 1, or a probability of 1, shape ``(n,)``; with more than two classes the cells of `as_cells`.
    """

    def __init__(self, classifier: Classifier | Callable[[], Classifier], predictions: Array) -> None:
        self.predictions = predictions
        self._classifier = classifier

    @cached_property
    def classifier(self) -> Classifier:
        """For other records, too."""
        made = self._classifier
        return made() if not hasattr(made, "predict") else made


@dataclass(frozen=True, eq=False)
class Hull:
    """All mixtures of a class, written into a model.

    Attributes
    ----------
    mapped : Expression
        The linear map that was asked for, of the expected predictions.
    mixture : Callable[[ModelSolution], tuple[Array, list[Hypothesis]]]
        Reads weights and hypotheses from a solution.
    start : Callable[[Array, Array], Mapping[Variable, Array]]
        The inverse: the values of variables for weights and the predictions of hypotheses, shape
        ``(k, n)``; raises `DeclarationError` for others than the class holds.
    """

    mapped: Expression
    mixture: Callable[[ModelSolution], tuple[Array, list[Hypothesis]]]
    start: Callable[[Array, Array], Mapping[Variable, Array]]


Listing = tuple[int, Array, Callable[[int], Hypothesis], Callable[[], Array]]
"""See `Oracle.listing`."""


class OracleTimeout(TimeoutError):
    """The deadline of an oracle has passed before it could prove its answer."""


class Oracle(ABC):
    """Finds hypotheses for a fixed set of n records.

    Attributes
    ----------
    exact : bool, default True
        Whether `best` is a minimiser, and not merely good.
    closed_form : bool, default True
        Whether it is that without calling a solver.
    deadline : Deadline
        For oracles that call a solver; none by default.
    """

    exact: bool = True
    closed_form: bool = True
    deadline: Deadline = Deadline()

    @abstractmethod
    def best(self, costs: Array) -> Hypothesis:
        """The cost-sensitive oracle: a hypothesis h of least ``sum(costs * h)``.

        Parameters
        ----------
        costs : Array
            The cost of predicting 1 less the cost of predicting 0, for each record; shape ``(n,)``.

        Raises
        ------
        OracleTimeout
            If the deadline passed first.
        """

    def bests(self, costs: Array) -> list[Hypothesis]:
        """The answer of `best` to each row of costs, shape ``(m, n)``."""
        return [self.best(row) for row in costs]

    def recall(self, costs: Array) -> list[Hypothesis]:
        """Good hypotheses that earlier calls left behind, for oracles whose calls take long; best first."""
        return []

    def good(self, costs: Array) -> Hypothesis:
        """The answer of `best`, or one that earlier calls left behind if that is better."""
        answers = [self.best(costs), *self.recall(costs)]
        return min(answers, key=lambda h: float((costs * h.predictions).sum()))

    def fresh(self) -> Oracle:
        """An oracle that remembers nothing; itself, unless calls leave something behind."""
        return self

    def constants(self) -> list[Hypothesis]:
        """The constant hypotheses of the class; they make most notions of fairness feasible."""
        return []

    def all(self) -> list[Hypothesis]:
        """Every hypothesis that differs on the records.

        Raises
        ------
        DeclarationError
            If they cannot be listed.
        """
        raise DeclarationError(
            "these hypotheses cannot be listed; column-generation finds those that are needed, also under a "
            "constraint of your own, a Notion"
        )

    def hull(self, model: Model, linear: sp.csr_array, single: bool = False) -> Hull:
        """Write the mixtures of the class into a model: by default, a weight for each hypothesis.

        If they cannot be listed, by the oracle: see `OracleHull`.

        Parameters
        ----------
        model : Model
            To write to.
        linear : sp.csr_array
            The map of the expected predictions that is wanted, shape ``(q, n)``.
        single : bool, default False
            Only the hypotheses themselves, by integer variables.
        """
        try:
            count, mapped, pick, table = self.listing(linear)
        except DeclarationError:
            if single:
                raise
            from forcopt.learning.hull import write_hull

            return write_hull(self, model, linear)
        weights = model.variable(model.unused_name("weight"), count, lower=0.0, upper=1.0, integer=single)
        model.subject_to(weights.sum() == 1, name=model.unused_name("mixture"))

        def mixture(solution: ModelSolution) -> tuple[Array, list[Hypothesis]]:
            used = np.flatnonzero(solution[weights] > 0)
            return solution[weights][used], [pick(k) for k in used.tolist()]

        def start(given: Array, predictions: Array) -> dict[Variable, Array]:
            known, values = table(), np.zeros(count)
            for weight, row in zip(given, predictions, strict=True):
                same = np.flatnonzero((known == row).all(axis=1))
                if not len(same):
                    raise DeclarationError("the decision mixes a classifier that is not among the hypotheses")
                values[same[0]] += weight
            return {weights: values}

        return Hull(model.lift(mapped @ weights), mixture, start)

    def listing(self, linear: sp.csr_array) -> Listing:
        """How many hypotheses there are, the map of each, a hypothesis by number, and their predictions."""
        listed = self.all()
        table = np.stack([h.predictions for h in listed])
        return len(listed), np.asarray(linear @ table.T.astype(float)), listed.__getitem__, lambda: table


class Hypotheses(Declared):
    """A class of classifiers among which to learn."""

    @abstractmethod
    def oracle(self, features: Array) -> Oracle:
        """The oracle for records with these features, shape ``(n, d)``.

        Raises
        ------
        DeclarationError
            If the class does not fit the features.
        """

    def class_oracle(self, features: Array, classes: int) -> Oracle:
        """The oracle for C classes, above two.

        Its costs and predictions are of the cells of `as_cells`, shape ``(n * C,)``: `Oracle.best` minimises
        the sum of the costs of the predicted classes.

        Raises
        ------
        DeclarationError
            If the classifiers have two classes only.
        """
        raise DeclarationError(
            f"hypotheses: {type(self).__name__} has two classes, not {classes}; Learner, AllFunctions and "
            "Finite have any number"
        )


def constants(count: int, classes: int = 2) -> list[Hypothesis]:
    """The constant hypotheses on a number of records."""
    return [Hypothesis(Constant(y), as_cells(np.full(count, y), classes)) for y in range(classes)]


def names_of(X: Any) -> tuple[str, ...]:
    """The names of the columns of a frame; none of an array, or if they are no text or not all different."""
    names = tuple(getattr(X, "columns", ()))
    return names if all(isinstance(n, str) for n in names) and len(set(names)) == len(names) else ()


def aligned(X: Any, names: Sequence[str], given: Sequence[str] = ()) -> Any:
    """The columns of a table in the order of these names.

    Parameters
    ----------
    X : Any
        A frame, or an array, whose columns count by position.
    names : Sequence[str]
        Of the features that a policy learned; empty if it knows none, then X is left as it is.
    given : Sequence[str], optional
        The names of the columns of an array.

    Raises
    ------
    DeclarationError
        For a column that is missing or unknown, by its name, and for another number of columns.

    Examples
    --------
    >>> import pandas as pd
    >>> aligned(pd.DataFrame({"debt": [1], "income": [2]}), ["income", "debt"]).to_numpy().tolist()
    [[2, 1]]
    """
    found = list(given or getattr(X, "columns", ()))
    if not names or not found:
        width = X.shape[1] if hasattr(X, "shape") and len(X.shape) == 2 else len(names)
        if names and width != len(names):
            raise DeclarationError(f"X has {width} columns; the policy has {len(names)}: {', '.join(names)}")
        return X
    missing, known = [str(name) for name in names if name not in found], ", ".join(map(str, names))
    surplus = [str(name) for name in found if name not in names]
    twice = [str(name) for name in dict.fromkeys(found) if found.count(name) > 1]
    for what, wrong in (("lacks", missing), ("has the unknown", surplus), ("has twice the", twice)):
        if wrong:
            raise DeclarationError(f"X {what} column {', '.join(map(repr, wrong))}; the features are {known}")
    if given and not hasattr(X, "iloc"):
        return X[:, [found.index(name) for name in names]]
    return X if found == list(names) else X[list(names)]


def take_names(data: Any, field: str = "features") -> Any:
    """Fill the field ``feature_names`` of a declaration from the frame in another field."""
    if isinstance(data, dict) and not data.get("feature_names") and (names := names_of(data.get(field))):
        return {**data, "feature_names": names}
    return data
