"""Any scikit-learn classifier that takes weights, as a heuristic oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.learning.fitted import fitted_from_plain, fitted_to_plain
from forcopt.learning.hypotheses import Hypotheses, Hypothesis, Oracle, as_cells, constants, costs_by_class
from forcopt.learning.tables import rows_of
from forcopt.learning.thresholds import Cuts, Offsets, best_cuts
from forcopt.learning.tolerances import LEAST


def _read(value: Any) -> Any:
    estimator = read_estimator(value)
    if hasattr(estimator, "__sklearn_tags__"):
        from sklearn.base import is_classifier

        if not is_classifier(estimator):
            raise DeclarationError("an estimator is given that is no classifier")
    return estimator


def read_estimator(value: Any) -> Any:
    """An estimator of scikit-learn, or the one that plain data name."""
    if not isinstance(value, Mapping):
        if isinstance(value, type):
            raise DeclarationError(f"a class is given, not an instance such as {value.__name__}()")
        if not (hasattr(value, "fit") and hasattr(value, "get_params")):
            raise DeclarationError(f"{value!r} is no scikit-learn estimator: it lacks fit and get_params")
        return value
    if set(value) != {"class", "parameters"}:
        raise DeclarationError(f"the keys are {', '.join(value)}; they must be class and parameters")
    module, _, name = str(value["class"]).rpartition(".")
    if module.partition(".")[0] != "sklearn":  # a file must not run arbitrary code
        raise DeclarationError(f"the class is {value['class']}; a file may name classes of sklearn only")
    return getattr(import_module(module), name)(**value["parameters"])


def plain_estimator(estimator: Any) -> dict[str, Any]:
    """An estimator as plain data: its class and the parameters that are not the default."""
    kind = type(estimator)
    given = estimator.get_params(deep=False)
    default = kind().get_params(deep=False) if kind.__module__.startswith("sklearn.") else {}
    changed = {k: v for k, v in given.items() if k not in default or not _same(v, default[k])}
    bad = [k for k, v in changed.items() if not isinstance(v, str | int | float | bool | None)]
    if bad or not kind.__module__.startswith("sklearn."):
        subject = f"its parameter {bad[0]}" if bad else "a class outside sklearn"
        raise DeclarationError(f"the learner {estimator!r} cannot be written to a file: {subject}")
    return {"class": f"{kind.__module__}.{kind.__name__}", "parameters": changed}


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or a != a)


Estimator = Annotated[
    Any, PlainValidator(_read), PlainSerializer(plain_estimator), WithJsonSchema({"type": "object"})
]


class Learner(Hypotheses):
    """Classifiers that a scikit-learn learner finds on weighted records (Agarwal et al., 2018).

    To make costs c small, it learns to predict 1 where c < 0, each record weighted by ``|c|``. Then the cut
    of its score (``decision_function``, or the probability of 1) is moved to where the costs are least, by
    one sort. With C classes a record counts once for each class, weighted by how much less that class costs
    than the dearest (Abe, Zadrozny and Langford, 2004): the weighted error of a classifier then is its cost,
    less a constant; and an offset of each class's score is chosen, see `Offsets`. Logistic regression and
    most others minimise a stand-in for the error, so the oracle is a heuristic, and an optimum over the
    classifiers that it finds need not be one over all.

    Attributes
    ----------
    estimator : Estimator
        Takes ``sample_weight`` in ``fit``; a `Pipeline` passes it to its last step. It is cloned before each
        fit, unless it (or the last step of a pipeline) has ``warm_start=True``: then each fit goes on
        from the one before.
    cut : Literal["best", "default"], default "best"
        ``"best"`` moves the cut, and lets methods try all cuts of scores that are already learnt before they
        fit another; ``"default"`` leaves it to the estimator, as is needed without a score.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> oracle = Learner(DecisionTreeClassifier(max_depth=1)).oracle(np.array([[1.0], [2.0], [3.0]]))
    >>> oracle.best(np.array([1.0, -1.0, -2.0])).predictions.tolist()
    [0, 1, 1]
    """

    estimator: Estimator
    cut: Literal["best", "default"] = "best"

    def oracle(self, features: Array) -> LearnerOracle:
        """The oracle for these records."""
        return LearnerOracle(self.estimator, features, self.cut == "best")

    def class_oracle(self, features: Array, classes: int) -> LearnerOracle:
        """The oracle for these records and several classes."""
        return LearnerOracle(self.estimator, features, self.cut == "best", classes)


@dataclass(frozen=True, eq=False)
class FittedScore:
    """The score of a fitted classifier; of several classes the predicted label, as text.

    Attributes
    ----------
    estimator : Any
        A fitted classifier. Its score is ``predict_proba``, else ``decision_function``, else its label.
    classes : tuple[Any, ...]
        Its labels.
    """

    estimator: Any
    classes: tuple[Any, ...]

    def predict(self, X: Any) -> Array:
        """The score or the label of each row of X, shape ``(n,)``.

        Raises
        ------
        DeclarationError
            If the estimator predicts another label.
        """
        if len(self.classes) == 2 and hasattr(self.estimator, "predict_proba"):
            return np.asarray(self.estimator.predict_proba(X), dtype=float)[:, 1]
        if len(self.classes) == 2 and hasattr(self.estimator, "decision_function"):
            return np.asarray(self.estimator.decision_function(X), dtype=float)
        found = np.asarray(self.estimator.predict(X))
        known = np.isin(found, np.array(self.classes))
        if not known.all():
            raise DeclarationError(f"estimator predicts {found[np.argmin(known)]!r}, which is no label of y")
        if len(self.classes) == 2:
            return np.asarray(found == self.classes[1], dtype=float)
        return np.array(list(map(str, found.tolist())))

    def to_dict(self) -> dict[str, Any]:
        """The estimator and its labels as plain data."""
        return {"estimator": fitted_to_plain(self.estimator), "classes": list(self.classes)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The score of plain data."""
        return cls(fitted_from_plain(data["estimator"]), tuple(data["classes"]))


def weight_name(estimator: Any) -> str:
    """The name of the weights in ``fit``: of a pipeline those of its last step.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_name(make_pipeline(make_pipeline(LogisticRegression())))
    'pipeline__logisticregression__sample_weight'
    """
    steps = getattr(estimator, "steps", None)
    return f"{steps[-1][0]}__{weight_name(steps[-1][1])}" if steps else "sample_weight"


def _score(fitted: Any) -> Callable[[Any], Any] | None:
    """The function that gives the learner's score, if it has one."""
    if hasattr(fitted, "decision_function"):
        return lambda X: np.asarray(fitted.decision_function(X))
    if hasattr(fitted, "predict_proba"):
        return lambda X: np.asarray(fitted.predict_proba(X))[:, 1]
    return None


def _class_scores(fitted: Any, classes: int, features: Any) -> Array | None:
    """The score of each class, minus infinite for classes not learnt from; None without scores."""
    known = np.asarray(fitted.classes_).astype(np.int64)
    if hasattr(fitted, "decision_function"):
        found = np.asarray(fitted.decision_function(features), dtype=float)
        found = np.column_stack([np.zeros(len(found)), found]) if found.ndim == 1 else found
    elif hasattr(fitted, "predict_proba"):
        found = np.log(np.maximum(fitted.predict_proba(features), LEAST))
    else:
        return None
    if found.shape[1] != len(known):  # one score for each pair of classes
        return None
    scores = np.full((len(found), classes), -np.inf)
    scores[:, known] = found
    return scores


@dataclass(frozen=True, eq=False)
class ScoreCut:
    """Predicts 1 where the score of a fitted estimator is at least `cut`."""

    estimator: Any
    cut: float

    def predict(self, X: Any) -> Array:
        """0 or 1 for each row of X."""
        score = _score(self.estimator)
        assert score is not None
        return np.asarray(score(X) >= self.cut, dtype=np.int64)

    def __repr__(self) -> str:
        return f"score >= {self.cut:.4g} of {self.estimator!r}"


@dataclass(frozen=True, eq=False)
class ScoreOffsets:
    """Predicts the class whose score by a fitted estimator, plus an offset, is largest.

    Attributes
    ----------
    estimator : Any
        A fitted classifier of scikit-learn.
    offsets : Array
        Shape ``(C,)``.
    """

    estimator: Any
    offsets: Array

    def predict(self, X: Any) -> Array:
        """The class of each row of X."""
        scores = _class_scores(self.estimator, len(self.offsets), X)
        assert scores is not None
        return np.asarray((scores + self.offsets).argmax(axis=1))

    def __repr__(self) -> str:
        return f"scores plus {np.round(self.offsets, 4).tolist()} of {self.estimator!r}"


class LearnerOracle(Oracle):
    """Weighted classification, then the best cut of the score; counts its fits.

    Attributes
    ----------
    fits
        How often the estimator was fitted.
    """

    exact = False
    closed_form = False

    def __init__(self, estimator: Any, features: Array, moves_cut: bool, classes: int = 2) -> None:
        self.estimator, self.features, self.moves_cut, self.fits = estimator, features, moves_cut, 0
        self.classes = classes
        self.scores: list[Cuts | Offsets] = []
        self.before: list[tuple[Array, Any]] = []  # scaled costs and fits to go on from
        steps = getattr(estimator, "steps", None)
        self.goes_on = bool(getattr(steps[-1][1] if steps else estimator, "warm_start", False))
        self.weights = weight_name(estimator)

    def best(self, costs: Array) -> Hypothesis:
        """Fit the estimator to the records, weighted by their savings; a constant if one class saves most."""
        table = costs_by_class(costs, self.classes)
        saved = table.max(axis=1, keepdims=True) - table
        rows, targets = np.nonzero(saved)
        if not len(rows) or np.ptp(targets) == 0:
            return self.constants()[int(targets[0]) if len(rows) else 0]
        scale = len(table) / saved.sum()  # regularisation sees weights of mean 1
        weights = saved[rows, targets] * scale
        from sklearn import config_context

        fitted = self._fresh(costs * scale, np.unique(targets))
        every = len(rows) == len(table) and bool((rows == np.arange(len(table))).all())
        features = self.features if every else rows_of(self.features, rows)
        try:
            # a pipeline takes its last step's weights by name only while routing is off
            with config_context(enable_metadata_routing=False):
                fitted.fit(features, targets, **{self.weights: weights})
        except TypeError as error:
            raise DeclarationError(
                f"hypotheses: {self.estimator!r} cannot be fitted with sample_weight: {error}"
            ) from None
        self.fits += 1
        if self.goes_on:
            self.before.append((costs * scale, fitted))
        family = self._family(fitted) if self.moves_cut else None
        if family is None:
            codes = np.asarray(fitted.predict(self.features)).astype(np.int64)
            return Hypothesis(fitted, as_cells(codes, self.classes))
        self.scores.append(family)
        return family.best(costs)[1]

    def _family(self, fitted: Any) -> Cuts | Offsets | None:
        """The classifiers that share the learner's score, if it has one."""
        if self.classes == 2:
            score = _score(fitted)
            return None if score is None else Cuts(score(self.features), lambda cut: ScoreCut(fitted, cut))
        scores = _class_scores(fitted, self.classes, self.features)
        return None if scores is None else Offsets(scores, lambda offsets: ScoreOffsets(fitted, offsets))

    def _fresh(self, costs: Array, met: Array) -> Any:
        """The estimator to fit: a clone, or with ``warm_start`` a copy of the fit to the nearest costs.

        A fit goes on from fits of the same classes alone.
        """
        from sklearn.base import clone

        before = [fit for fit in self.before if np.array_equal(fit[1].classes_, met)]
        if not before:
            return clone(self.estimator)
        return deepcopy(min(before, key=lambda fit: float(np.abs(costs - fit[0]).sum()))[1])

    def recall(self, costs: Array) -> list[Hypothesis]:
        """The best cut of each score learnt so far."""
        return best_cuts(self.scores, costs)

    def fresh(self) -> LearnerOracle:
        """The same without the scores learnt so far."""
        return LearnerOracle(self.estimator, self.features, self.moves_cut, self.classes)

    def constants(self) -> list[Hypothesis]:
        """The constants: the oracle's results if one class is cheapest for all records."""
        return constants(self.features.shape[0], self.classes)
