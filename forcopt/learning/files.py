"""Policies as JSON files with a version, so that they can be deployed without a pickle."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, require_shape
from forcopt.learning.finite import Lookup, TableRow
from forcopt.learning.fitted import TRUSTED, fitted_from_plain, fitted_to_plain, plain_numbers
from forcopt.learning.halfspaces import Halfspace
from forcopt.learning.hypotheses import Classifier, Constant
from forcopt.learning.learner import ScoreCut, ScoreOffsets
from forcopt.learning.thresholds import Threshold
from forcopt.learning.tolerances import SUM

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
        try:
            text = json.dumps(data, allow_nan=False, indent=1)
        except TypeError as error:
            raise DeclarationError(f"{type(self).__name__} has no plain form: {error}") from None
        Path(path).write_text(f"{text}\n")

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
            raise DeclarationError(f"{path} has version {data.get('version')!r}; this reads up to {VERSION}")
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
    fits = values.ndim == 1 and size in (None, len(values))
    require_shape(fits, f"{name} has", values, f"be ({'n' if size is None else size},)")
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


_KINDS: dict[type, dict[str, Callable[[Any], Any]]] = {
    Constant: {"label": int},
    Threshold: {"column": int, "cut": float, "above": bool},
    Halfspace: {"normal": numbers_from_plain, "offset": float},
    Lookup: {"rows": numbers_from_plain, "values": lambda v: np.array(v, dtype=np.int64)},
    ScoreCut: {"estimator": fitted_from_plain, "cut": float},
    ScoreOffsets: {"estimator": fitted_from_plain, "offsets": numbers_from_plain},
}
"""The fields of the classifiers that files hold, and how each is read."""


def classifier_to_dict(classifier: Classifier) -> dict[str, Any]:
    """A classifier as plain data: constants, thresholds, halfspaces, lookups, table rows and learners.

    A row of a table becomes a lookup by features. Of learners the fitted attributes are written, see
    `fitted_to_plain`.

    Raises
    ------
    DeclarationError
        For any other classifier.

    Examples
    --------
    >>> classifier_to_dict(Threshold(0, 1.5, True))
    {'type': 'Threshold', 'column': 0, 'cut': 1.5, 'above': True}
    """
    if isinstance(classifier, TableRow):
        classifier = classifier.lookup()
    if known := _KINDS.get(type(classifier)):
        given = {name: getattr(classifier, name) for name in known}
        plain = {
            name: fitted_to_plain(value) if name == "estimator" else plain_numbers(known[name](value))
            for name, value in given.items()
        }
        return {"type": type(classifier).__name__, **plain}
    if hasattr(classifier, "get_params"):  # an estimator with its own cut
        return {"type": "Learner", "estimator": fitted_to_plain(classifier)}
    raise DeclarationError(f"{classifier!r} has no plain form, so it cannot be written to a file")


def classifier_from_dict(data: dict[str, Any]) -> Classifier:
    """The classifier of plain data.

    Raises
    ------
    DeclarationError
        For an unknown type.
    """
    kind, kinds = data.get("type"), {known.__name__: known for known in _KINDS}
    if kind == "Learner":
        made: Classifier = fitted_from_plain(data["estimator"])
        return made
    if kind not in kinds:
        raise DeclarationError(f"a classifier has type {kind!r}; it must be {', '.join(kinds)} or Learner")
    if kind == "Threshold" and not data["column"] >= 0:
        raise DeclarationError(f"column is {data['column']!r}; it must be at least 0")
    read: Classifier = kinds[kind](**{name: of(data[name]) for name, of in _KINDS[kinds[kind]].items()})
    return read
