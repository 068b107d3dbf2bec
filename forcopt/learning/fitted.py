"""Fitted objects of scikit-learn as plain data: no code of the file runs when they are read."""

from __future__ import annotations

import base64
import copyreg
import pickle
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError

TRUSTED: ContextVar[bool] = ContextVar("TRUSTED", default=False)
"""Whether the reader of a file lets the file run code, which a pickle may."""

_TYPES = {kind.__name__: kind for kind in (bool, int, float, str, object)}


def plain_numbers(values: Any) -> Any:
    """An array as nested lists for JSON, with None for NaN and text for infinite entries.

    Examples
    --------
    >>> plain_numbers(np.array([[1.0, np.nan], [np.inf, 0.5]]))
    [[1.0, None], ['inf', 0.5]]
    """
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list):
        return [plain_numbers(v) for v in values]
    if isinstance(values, float) and not np.isfinite(values):
        return None if np.isnan(values) else str(values)
    return values


def fitted_to_plain(estimator: Any) -> Any:
    """A fitted estimator as plain data; as a pickle, with a warning, if it is not scikit-learn's own.

    Parameters
    ----------
    estimator : Any
        A fitted estimator: a learner, or a pipeline with its transformers.

    Returns
    -------
    Any
        Plain data for JSON. Numbers keep every digit, so that predictions are the same.

    Notes
    -----
    The data name classes of scikit-learn and hold their fitted attributes. Their meaning may change between
    releases; scikit-learn warns if it reads those of another one.
    """
    try:
        return _plain(estimator)
    except DeclarationError as error:
        warnings.warn(
            f"{error}; the file holds a pickle of it, which is read with trusted=True only, and by the same "
            "versions of the packages",
            stacklevel=2,
        )
        return {"pickle": base64.b64encode(pickle.dumps(estimator)).decode()}


def fitted_from_plain(data: Any) -> Any:
    """The estimator of the data that `fitted_to_plain` wrote.

    Raises
    ------
    DeclarationError
        For a class outside scikit-learn, and for a pickle in a file that is not trusted.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[1.0], [2.0]], ["no", "yes"])
    >>> fitted_from_plain(fitted_to_plain(tree)).predict([[3.0]]).tolist()
    ['yes']
    """
    if not isinstance(data, dict):
        return [fitted_from_plain(v) for v in data] if isinstance(data, list) else data
    kind = next(iter(data), "nothing")
    if kind in _WHOLE:
        return _WHOLE[kind](data)
    if kind not in _PARTS:
        raise DeclarationError(f"{kind!r} is no part of a fitted estimator")
    return _PARTS[kind][2](data[kind])


def _unpickled(data: dict[str, Any]) -> Any:
    if not TRUSTED.get():
        raise DeclarationError("the file holds a pickle, which may run any code: read it by trusted=True")
    return pickle.loads(base64.b64decode(data["pickle"]))


def _named(kind: str, value: str) -> Any:
    """A universal function of numpy, or the check of tables of scikit-learn: no other function is run."""
    if kind == "ufunc" and isinstance(found := getattr(np, value, None), np.ufunc):
        return found
    if (kind, value) == ("function", "check_array"):
        return import_module("sklearn.utils").check_array
    raise DeclarationError(f"{kind!r} {value!r} is no part of a fitted estimator")


def _partial(parts: Any) -> Any:
    function, arguments, named = fitted_from_plain(parts)
    return partial(function, *arguments, **named)


def _type_name(kind: type) -> str:
    if _TYPES.get(kind.__name__) is not kind and not issubclass(kind, np.generic):
        raise DeclarationError(f"{kind} has no plain form")
    return kind.__name__


_PARTS: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "float": (float, str, float),
    "tuple": (tuple, lambda v: _plain(list(v)), lambda v: tuple(fitted_from_plain(v))),
    "slice": (slice, lambda v: [v.start, v.stop, v.step], lambda v: slice(*v)),
    "dict": (
        dict,
        lambda v: [_plain(list(pair)) for pair in v.items()],
        lambda v: dict(fitted_from_plain(v)),
    ),
    "partial": (partial, lambda v: _plain([v.func, list(v.args), v.keywords]), _partial),
    "dtype": (np.dtype, lambda v: v.str, np.dtype),
    "type": (type, _type_name, lambda v: _TYPES.get(v) or np.dtype(v).type),
    "ufunc": (np.ufunc, lambda v: v.__name__, lambda v: _named("ufunc", v)),
    "function": ((), str, lambda v: _named("function", v)),
}
"""For each kind of part its type, how it is written and how it is read."""


def _plain(value: Any) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # fits alone draw
    if isinstance(value, np.ndarray | np.generic):
        return _plain_array(np.asarray(value))
    if isinstance(value, float) and np.isfinite(value):
        return value
    if type(value) is list:
        return [_plain(v) for v in value]
    for kind, (made, write, _) in _PARTS.items():
        if isinstance(value, made):
            return {kind: write(value)}
    if getattr(value, "__name__", "") == "check_array" and value.__module__ == "sklearn.utils.validation":
        return {"function": "check_array"}
    return _plain_object(value)


def _plain_object(value: Any) -> dict[str, Any]:
    """An object of scikit-learn by its class, the arguments that make it, and its attributes."""
    kind = type(value)
    own = kind.__module__.startswith("sklearn.")
    make, given, state, *_ = (*value.__reduce_ex__(2), None) if own else (None, (), ())
    if not isinstance(state, dict | None):
        raise DeclarationError(f"{kind.__module__}.{kind.__qualname__} has no plain form")
    if make is copyreg.__newobj__:  # type: ignore[attr-defined]
        given = given[1:]
    elif given and given[0] is kind and not given[2]:  # Cython's, with a checksum
        given = ()
    return {
        "object": f"{kind.__module__}.{kind.__name__}",
        "arguments": _plain(list(given)),
        "state": None if state is None else {name: _plain(part) for name, part in state.items()},
    }


def _plain_array(array: Any) -> dict[str, Any]:
    """Structured arrays by their fields, others entry by entry."""
    shape = list(array.shape)
    if array.dtype.names is None:
        flat = array.ravel().tolist()
        entries = [_plain(v) for v in flat] if array.dtype.hasobject else plain_numbers(flat)
        return {"array": entries, "shape": shape, "dtype": array.dtype.str}
    formats, offsets = zip(*(array.dtype.fields[name][:2] for name in array.dtype.names), strict=True)
    layout = {"names": list(array.dtype.names), "formats": [f.str for f in formats], "offsets": list(offsets)}
    entries = [plain_numbers(array[name].ravel()) for name in array.dtype.names]
    return {"array": entries, "shape": shape, "dtype": {**layout, "itemsize": array.dtype.itemsize}}


def _array(data: dict[str, Any]) -> Any:
    dtype: Any = np.dtype(data["dtype"])
    found: Any = np.zeros(data["shape"], dtype=dtype)
    if dtype.names is not None:
        for name, entries in zip(dtype.names, data["array"], strict=True):
            found[name] = np.array(entries, dtype=dtype.fields[name][0]).reshape(found.shape)
    elif dtype.hasobject:
        found.flat = [fitted_from_plain(v) for v in data["array"]]
    else:
        entries = data["array"]
        found.flat = np.array(entries, dtype=float if dtype.kind == "f" else dtype)
    return found[()]


def _object(data: dict[str, Any]) -> Any:
    module, _, name = str(data["object"]).rpartition(".")
    if module.partition(".")[0] != "sklearn":  # a file must not run arbitrary code
        raise DeclarationError(f"the object is {data['object']}; a file may name classes of sklearn only")
    made = getattr(import_module(module), name)
    if not isinstance(made, type):
        raise DeclarationError(f"the object is {data['object']}, which is no class")
    arguments = [fitted_from_plain(part) for part in data["arguments"]]
    found: Any = made(*arguments) if arguments or data["state"] is None else made.__new__(made)  # type: ignore[call-overload]
    if data["state"] is not None:
        state = {name: fitted_from_plain(part) for name, part in data["state"].items()}
        if hasattr(found, "__setstate__"):
            found.__setstate__(state)
        else:
            vars(found).update(state)
    return found


_WHOLE = {"array": _array, "object": _object, "pickle": _unpickled}
"""How data of several fields are read, by the first of them."""
