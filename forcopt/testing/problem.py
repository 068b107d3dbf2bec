"""What every declared problem keeps."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError, UnsupportedError
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
    assert accepts(schema, plain, schema), f"{name}: file_schema() does not accept a file of the class"
    assert not accepts(schema, {**plain, "no field": 1}, schema), f"{name}: file_schema() accepts any field"
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


_KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def accepts(schema: Mapping[str, Any], value: Any, top: Mapping[str, Any]) -> bool:
    """Whether plain data fit a JSON schema, as far as schemas of declarations go.

    Parameters
    ----------
    schema : Mapping[str, Any]
        Of the value.
    value : Any
        Plain data.
    top : Mapping[str, Any]
        The schema with the definitions.
    """
    if "$ref" in schema:
        return accepts(top["$defs"][schema["$ref"].rpartition("/")[2]], value, top)
    if "anyOf" in schema:
        return any(accepts(kind, value, top) for kind in schema["anyOf"])
    if "const" in schema:
        return bool(value == schema["const"])
    if "enum" in schema:
        return value in schema["enum"]
    if "type" in schema and not isinstance(value, _KINDS[schema["type"]]):
        # The schema of an array of numbers stands for a single number too.
        return schema["type"] == "array" and schema.get("items") == {} and isinstance(value, int | float)
    if isinstance(value, dict):
        return all(_of_object(schema, value, top))
    if isinstance(value, list):
        heads = schema.get("prefixItems", [])
        long = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", np.inf)
        each = [*heads, *[schema.get("items", {})] * (len(value) - len(heads))]
        return long and all(accepts(s, v, top) for s, v in zip(each, value, strict=False))
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", -np.inf), schema.get("maximum", np.inf)
        over, under = schema.get("exclusiveMinimum", -np.inf), schema.get("exclusiveMaximum", np.inf)
        return bool(low <= value <= high and over < value < under)
    return True


def _of_object(schema: Mapping[str, Any], value: Mapping[str, Any], top: Mapping[str, Any]) -> Iterator[bool]:
    known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield set(schema.get("required", ())) <= set(value)
    yield rest is not False or set(value) <= set(known)
    for key, entry in value.items():
        yield accepts(known.get(key, rest if isinstance(rest, dict) else {}), entry, top)
