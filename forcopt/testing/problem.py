"""What every declared problem keeps."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError, UnsupportedError, required
from forcopt.problem import Problem
from forcopt.status import Status
from forcopt.testing.method import check_bound, check_method


def check_problem(problem: Problem, *, time_limit: float = 2.0) -> None:
    """Check what every problem keeps, and each of its methods by `check_method`.

    Copies, pickles and files are equal problems with equal hashes; none carries what was computed. The schema
    of the class accepts the file. Text is no number, in any field. Exact methods that prove an optimum agree,
    and no bound excludes the decision of another method.

    Parameters
    ----------
    problem : Problem
        A small one.
    time_limit : float, default 2.0
        Seconds of each run of a method.

    Raises
    ------
    AssertionError
        If a rule is broken; the message names it.

    Examples
    --------
    >>> import forcopt as fo
    >>> from forcopt.testing import check_problem
    >>> check_problem(fo.load("strategic/four-agents"))
    """
    check_declaration(problem)
    found = {}
    for method in problem.methods:
        with suppress(DeclarationError, UnsupportedError):  # some methods take some declarations only
            problem.method(method)
            found[method] = check_method(problem, method, time_limit=time_limit)
    name = type(problem).__name__
    assert problem.default_method in found, f"{name}: the default method does not take it"
    proved = {m: s.objective for m, s in found.items() if s.status is Status.OPTIMAL}
    values = list(proved.values())
    room = 1e-5 * max(1.0, *map(abs, values), 1.0)
    assert not values or max(values) - min(values) <= room, f"{name}: optima differ: {proved}"
    for method, one in found.items():
        for other in found.values():
            check_bound(one, f"{name}.{method}", other)


def check_declaration(problem: Problem) -> None:
    """The part of `check_problem` that solves nothing.

    Parameters
    ----------
    problem : Problem
        Any.
    """
    name, cls = type(problem).__name__, type(problem)
    plain = json.loads(json.dumps(problem.to_dict()))
    for made, same in _copies(problem, plain).items():
        assert same is not problem and same == problem, f"{name}: {made} is not an equal problem"
        assert hash(same) == hash(problem), f"{name}: {made} has another hash"
        assert same.to_dict() == problem.to_dict(), f"{name}: {made} has another file"
    schema = cls.file_schema()
    assert accepts(schema, plain), f"{name}: file_schema() does not accept a file of the class"
    assert not accepts(schema, {**plain, "no field": 1}), f"{name}: file_schema() accepts any field"
    for field in sorted(problem.model_fields_set):
        text = as_text(getattr(problem, field))
        if text is None:
            continue
        try:
            problem.replace(**{field: text})
        except DeclarationError as error:
            assert field in str(error), f"{name}: text in {field} is refused without its name: {error}"
        else:
            raise AssertionError(f"{name}: takes the text {text!r} for the numbers of {field}")
    _check_caches(problem.replace())


def _copies(problem: Problem, plain: Mapping[str, Any]) -> dict[str, Problem]:
    return {
        "replace()": problem.replace(),
        "model_copy()": problem.model_copy(),
        "copy.copy": copy.copy(problem),
        "copy.deepcopy": copy.deepcopy(problem),
        "copy()": problem.copy(),
        "__replace__()": problem.__replace__(),
        "a pickle": pickle.loads(pickle.dumps(problem)),
        "Problem.from_dict": Problem.from_dict(plain),
        "its class's from_dict": type(problem).from_dict(plain),
    }


def _check_caches(problem: Problem) -> None:
    """Check that no copy of a problem carries what was computed from the fields."""
    cls = type(problem)
    for name, attribute in inspect.getmembers(cls):
        if isinstance(attribute, cached_property):
            with suppress(DeclarationError):  # some are for some declarations only
                getattr(problem, name)
    hash(problem)
    fresh = set(cls(**{name: getattr(problem, name) for name in problem.model_fields_set}).__dict__)
    for made, other in _copies(problem, problem.to_dict()).items():
        carried = set(other.__dict__) - fresh
        assert made.endswith("from_dict") or not carried, f"{cls.__name__}: {made} carries {sorted(carried)}"


def as_text(value: Any) -> Any:
    """A number, or a few of them, as text; None for other values.

    Parameters
    ----------
    value : Any
        Of a field.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, np.ndarray):
        return value.astype(str).tolist() if value.size else None
    if isinstance(value, tuple) and value:
        texts = tuple(as_text(entry) for entry in value)
        return None if None in texts else texts
    if isinstance(value, dict) and value:
        named = {key: as_text(entry) for key, entry in value.items()}
        return None if None in named.values() else named
    return None


def accepts(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a JSON schema accepts plain data.

    Parameters
    ----------
    schema : Mapping[str, Any]
        Of a class, as ``file_schema()`` gives it.
    value : Any
        Numbers, texts, lists and dictionaries.

    Raises
    ------
    NotInstalledError
        If the package jsonschema is missing.
    """
    return bool(required("jsonschema", "check_problem").Draft202012Validator(schema).is_valid(value))
