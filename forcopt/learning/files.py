"""Policies as JSON files with a version, so that they can be deployed without a pickle."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.learning.finite import Lookup, TableRow
from forcopt.learning.fitted import TRUSTED, fitted_from_plain, fitted_to_plain, plain_numbers
from forcopt.learning.halfspaces import Halfspace
from forcopt.learning.hypotheses import Classifier, Constant
from forcopt.learning.learner import ScoreCut, ScoreOffsets
from forcopt.learning.thresholds import Threshold
from forcopt.learning.tolerances import ROUNDING, SAME_SCORE, SUM

VERSION = 1


class PolicyFile:
    """A mixin for policies that can be written to a JSON file and read from it."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The policy as plain data, ready for JSON."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The policy of plain data."""

    def save(self, path: str | Path) -> None:
        """Write the policy to a JSON file.

        Parameters
        ----------
        path : str or Path
            The file; it is replaced.

        Raises
        ------
        DeclarationError
            If a part of the policy has no plain form.
        """
        data = {"policy": type(self).__name__, "version": VERSION, **self.to_dict()}
        Path(path).write_text(json.dumps(data, allow_nan=False, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path, *, trusted: bool = False) -> Self:
        """Read a policy from a file that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.
        trusted : bool, default False
            Whether the file may hold a pickle, which can run any code.

        Raises
        ------
        DeclarationError
            For a file that holds another kind of policy, or a later version, and for a pickle in a file that
            is not trusted.
        """
        try:
            data = json.loads(Path(path).read_text())
        except ValueError as error:
            raise DeclarationError(f"{path} is no JSON file: {error}") from None
        if not isinstance(data, dict) or data.get("policy") != cls.__name__:
            kind = data.get("policy") if isinstance(data, dict) else None
            raise DeclarationError(f"{path} holds policy {kind!r}; it must be {cls.__name__!r}")
        if not isinstance(data.get("version"), int) or not 1 <= data["version"] <= VERSION:
            raise DeclarationError(
                f"{path} has version {data.get('version')!r}; this one reads up to {VERSION}"
            )
        fields = _Fields(data)
        token = TRUSTED.set(trusted)
        try:
            policy = cls.from_dict(fields)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of pickles, which the writer saw
                again = json.loads(json.dumps(policy.to_dict()))
        except DeclarationError as error:
            raise DeclarationError(f"{path}: {error}") from None
        except KeyError as error:
            place = "" if error.args == (fields.last,) else f" of {fields.last}"
            raise DeclarationError(f"{path} is incomplete: the field {error}{place} is missing") from None
        except (TypeError, AttributeError, ValueError, OverflowError, IndexError) as error:
            raise DeclarationError(f"{path}: {fields.last} is wrong: {error}") from None
        finally:
            TRUSTED.reset(token)
        for name, value in data.items():
            if name not in ("policy", "version") and (place := _difference(name, value, again.get(name))):
                raise DeclarationError(f"{path}: {place}")
        return policy


class _Fields(dict[str, Any]):
    """Plain data that knows which field was read last."""

    last = "the file"

    def __getitem__(self, name: str) -> Any:
        self.last = name
        return super().__getitem__(name)


def _difference(place: str, given: Any, read: Any) -> str:
    """Where plain data differ from those that the policy made of them writes; empty if they agree."""
    if place.endswith(("._sklearn_version", ".pickle")):  # scikit-learn warns of another version itself
        return ""
    if isinstance(given, dict) and isinstance(read, dict) and set(given) == set(read):
        pairs = [(f"{place}.{name}", given[name], read[name]) for name in given]
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        pairs = [(f"{place}[{i}]", *both) for i, both in enumerate(zip(given, read, strict=True))]
    elif given == read and isinstance(given, bool) == isinstance(read, bool):
        return ""
    else:
        return f"{place} is {given!r}, which would be read as {read!r}"
    return next(filter(None, (_difference(*pair) for pair in pairs)), "")


def numbers_from_plain(values: Any) -> Array:
    """The array that `plain_numbers` wrote, of floats."""
    return np.array(values, dtype=float)


def finite_numbers(data: Mapping[str, Any], name: str, size: int | None = None) -> Array:
    """A field of plain data that lists finite numbers, and a given number of them.

    Raises
    ------
    DeclarationError
        Naming the field.
    """
    values = as_numbers(data[name], name)
    if values.ndim != 1 or size not in (None, len(values)):
        raise DeclarationError(
            f"{name} has shape {values.shape}; it must be ({'n' if size is None else size},)"
        )
    return values


def distribution(values: Any, name: str) -> Array:
    """A list of probabilities that add up to 1.

    Raises
    ------
    DeclarationError
        Naming the list.
    """
    chances = finite_numbers({name: values}, name)
    if (chances < 0).any() or abs(chances.sum() - 1) > SUM:
        raise DeclarationError(f"{name} must not be negative and add up to 1, not to {chances.sum():g}")
    return chances


@dataclass(frozen=True, eq=False)
class StoredClassifiers:
    """The classifiers of a mixture that was read from a file, numbered from 0.

    Attributes
    ----------
    classifiers : tuple[Classifier, ...]
        The classifiers that the mixture draws.
    """

    classifiers: tuple[Classifier, ...]

    def predict(self, which: Array, features: Any) -> Array:
        """The predictions of some classifiers for rows of features, shape ``(len(which), n)``."""
        return np.array(
            [self.classifiers[k].predict(features) for k in np.asarray(which).tolist()], dtype=float
        )

    def classifier(self, number: int, features: Array) -> Classifier:
        """A classifier by its number; `features` are not used."""
        return self.classifiers[number]


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Predicts the class with the largest linear score.

    Attributes
    ----------
    normals : Array
        Shape ``(C, d)``.
    offsets : Array
        Shape ``(C,)``; minus infinite for a class that is never predicted.
    """

    normals: Array
    offsets: Array

    def predict(self, X: Any) -> Array:
        """The class of each row of X."""
        scores = np.asarray(X, dtype=float) @ self.normals.T + self.offsets
        return np.asarray(scores.argmax(axis=1))


def linear_form(estimator: Any) -> tuple[Array, Array]:
    """Normals and offsets of a fitted linear classifier of scikit-learn, with or without a `StandardScaler`.

    Parameters
    ----------
    estimator : estimator
        With ``coef_`` and ``intercept_``, or a pipeline of a `StandardScaler` and such an estimator.

    Returns
    -------
    tuple[Array, Array]
        The scores are ``normals @ x + offsets``, one for two classes; shapes ``(r, d)`` and ``(r,)``.

    Raises
    ------
    DeclarationError
        For another estimator, and if ``decision_function`` is another function.
    """
    steps = [step for _, step in getattr(estimator, "steps", [("", estimator)])]
    last, before = steps[-1], steps[:-1]
    coefficients = getattr(last, "coef_", None)
    scalers = [step for step in before if hasattr(step, "scale_") and hasattr(step, "mean_")]
    linear = coefficients is not None and hasattr(last, "decision_function")
    if not linear or len(scalers) != len(before) or len(scalers) > 1:
        raise DeclarationError(
            f"{estimator!r} has no plain form: only linear classifiers, with a StandardScaler before or "
            "without, are written to a file; write others with pickle"
        )
    normals = np.atleast_2d(np.asarray(coefficients, dtype=float))
    offsets = np.broadcast_to(np.ravel(np.asarray(last.intercept_, dtype=float)), len(normals)).copy()
    for scaler in scalers:
        if scaler.scale_ is not None:
            normals = normals / scaler.scale_
        if scaler.with_mean:
            offsets -= normals @ scaler.mean_
    if not _is_score(estimator, normals, offsets):
        raise DeclarationError(f"{estimator!r} has no plain form: its score is not that of its coefficients")
    return normals, offsets


def _is_score(estimator: Any, normals: Array, offsets: Array) -> bool:
    """Whether the decision function is this affine map, at points that determine it and at others."""
    width = normals.shape[1]
    points = np.vstack([np.zeros(width), np.eye(width), np.random.default_rng(0).normal(size=(20, width))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of columns
        scores = np.asarray(estimator.decision_function(points), dtype=float)
    size = np.abs(points) @ np.abs(normals).T + np.abs(offsets)
    ours = points @ normals.T + offsets
    theirs = scores[:, None] if scores.ndim == 1 else scores
    return ours.shape == theirs.shape and bool((np.abs(ours - theirs) <= SAME_SCORE * size + ROUNDING).all())


def _halfspace(estimator: Any, cut: float | None = None) -> dict[str, Any]:
    """A linear classifier of two classes; without a cut it predicts 1 where the score is above 0."""
    normals, offsets = linear_form(estimator)
    if len(normals) > 1:
        raise DeclarationError(f"{estimator!r} has no plain form: it has more than two classes")
    offset = float(offsets[0])
    return {
        "type": "Halfspace",
        "normal": normals[0].tolist(),
        "offset": float(np.nextafter(offset, -np.inf)) if cut is None else offset - cut,
    }


def _linear_scores(estimator: Any, given: Array) -> dict[str, Any]:
    """A linear classifier of several classes, some of which it may never have met."""
    normals, offsets = linear_form(estimator)
    known = np.asarray(estimator.classes_).astype(np.int64)
    if len(known) == 2 and len(normals) == 1:
        normals, offsets = np.vstack([0 * normals, normals]), np.append(0.0, offsets)
    if len(normals) != len(known):
        raise DeclarationError(f"{estimator!r} has no plain form: it has no score for each class")
    every, total = np.zeros((len(given), normals.shape[1])), np.full(len(given), -np.inf)
    every[known], total[known] = normals, offsets + given[known]
    return {"type": "LinearScores", "normals": every.tolist(), "offsets": plain_numbers(total)}


def _linear(classifier: Any) -> dict[str, Any]:
    """A linear learner with its cut or offsets, without the estimator."""
    if isinstance(classifier, ScoreOffsets):
        return _linear_scores(classifier.estimator, classifier.offsets)
    if isinstance(classifier, ScoreCut):
        return _halfspace(classifier.estimator, float(classifier.cut))
    return _halfspace(classifier)


def _learnt(classifier: Any) -> dict[str, Any]:
    """Any other learner, with its cut or offsets."""
    cut = isinstance(classifier, ScoreCut | ScoreOffsets)
    estimator = fitted_to_plain(classifier.estimator if cut else classifier)
    if isinstance(classifier, ScoreCut):
        return {"type": "ScoreCut", "estimator": estimator, "cut": float(classifier.cut)}
    if isinstance(classifier, ScoreOffsets):
        offsets = plain_numbers(classifier.offsets)
        return {"type": "ScoreOffsets", "estimator": estimator, "offsets": offsets}
    return {"type": "Learner", "estimator": estimator}


def classifier_to_dict(classifier: Classifier) -> dict[str, Any]:
    """A classifier as plain data: constants, thresholds, halfspaces, lookups, table rows and learners.

    A row of a table becomes a lookup by features, a linear learner a halfspace or linear scores. Of other
    learners the fitted attributes are written, see `fitted_to_plain`.

    Raises
    ------
    DeclarationError
        For any other classifier.

    Examples
    --------
    >>> classifier_to_dict(Threshold(0, 1.5, True))
    {'type': 'Threshold', 'column': 0, 'cut': 1.5, 'above': True}
    """
    if isinstance(classifier, Constant):
        return {"type": "Constant", "label": int(classifier.label)}
    if isinstance(classifier, Threshold):
        cut, above = float(classifier.cut), bool(classifier.above)
        return {"type": "Threshold", "column": int(classifier.column), "cut": cut, "above": above}
    if isinstance(classifier, Halfspace):
        return {"type": "Halfspace", "normal": classifier.normal.tolist(), "offset": float(classifier.offset)}
    if isinstance(classifier, TableRow):
        classifier = classifier.lookup()
    if isinstance(classifier, Lookup):
        return {"type": "Lookup", "rows": classifier.rows.tolist(), "values": classifier.values.tolist()}
    if isinstance(classifier, LinearScores):
        offsets = plain_numbers(classifier.offsets)
        return {"type": "LinearScores", "normals": classifier.normals.tolist(), "offsets": offsets}
    if isinstance(classifier, ScoreCut | ScoreOffsets) or hasattr(classifier, "get_params"):
        try:
            return _linear(classifier)
        except DeclarationError:
            return _learnt(classifier)
    raise DeclarationError(f"{classifier!r} has no plain form, so it cannot be written to a file")


def classifier_from_dict(data: dict[str, Any]) -> Classifier:
    """The classifier of plain data.

    Raises
    ------
    DeclarationError
        For an unknown type.
    """
    kind = data.get("type")
    if kind == "Constant":
        return Constant(int(data["label"]))
    if kind == "Threshold":
        if not data["column"] >= 0:
            raise DeclarationError(f"column is {data['column']!r}; it must be at least 0")
        return Threshold(int(data["column"]), float(data["cut"]), bool(data["above"]))
    if kind == "Halfspace":
        return Halfspace(np.asarray(data["normal"], dtype=float), float(data["offset"]))
    if kind == "Lookup":
        return Lookup(np.asarray(data["rows"], dtype=float), np.asarray(data["values"], dtype=np.int64))
    if kind == "ScoreCut":
        return ScoreCut(fitted_from_plain(data["estimator"]), float(data["cut"]))
    if kind == "ScoreOffsets":
        return ScoreOffsets(fitted_from_plain(data["estimator"]), numbers_from_plain(data["offsets"]))
    if kind == "Learner":
        made: Classifier = fitted_from_plain(data["estimator"])
        return made
    if kind == "LinearScores":
        return LinearScores(numbers_from_plain(data["normals"]), numbers_from_plain(data["offsets"]))
    raise DeclarationError(
        f"a classifier has type {kind!r}; it must be Constant, Threshold, Halfspace, LinearScores, Lookup, "
        "ScoreCut, ScoreOffsets or Learner"
    )
