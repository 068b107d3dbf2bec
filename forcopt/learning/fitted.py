"""Fitted objects of scikit-learn as plain data: no code of the file runs when they are read."""

from __future__ import annotations

import base64
import copyreg
import pickle
import warnings
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
    if "pickle" in data:
        if not TRUSTED.get():
            raise DeclarationError("the file holds a pickle, which may run any code: read it by trusted=True")
        return pickle.loads(base64.b64decode(data["pickle"]))
    kind = next(iter(data), "")
    value: Any = data.get(kind)
    if kind == "array":
        return _array(data)
    if kind == "object":
        return _object(data)
    if kind == "dict":
        return {fitted_from_plain(k): fitted_from_plain(v) for k, v in value}
    if kind in ("tuple", "slice"):
        return (tuple if kind == "tuple" else lambda parts: slice(*parts))(map(fitted_from_plain, value))
    if kind == "partial":
        function, arguments, named = map(fitted_from_plain, value)
        return partial(function, *arguments, **named)
    if kind == "float":
        return float(value)
    if kind == "dtype":
        return np.dtype(value)
    if kind == "type":
        return _TYPES.get(value) or np.dtype(value).type
    if kind == "ufunc" and isinstance(found := getattr(np, value, None), np.ufunc):
        return found
    if data == {"function": "check_array"}:
        return import_module("sklearn.utils").check_array
    raise DeclarationError(f"{kind!r} is no part of a fitted estimator")


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray | np.generic):
        return _plain_array(np.asarray(value))
    if kind is list:
        return [_plain(v) for v in value]
    if kind is tuple:
        return {"tuple": [_plain(v) for v in value]}
    if kind is slice:
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, dict):
        return {"dict": [[_plain(k), _plain(v)] for k, v in value.items()]}
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # fits alone draw
    if isinstance(value, np.dtype):
        return {"dtype": value.str}
    if kind is type and (value.__name__ in _TYPES or issubclass(value, np.generic)):
        return {"type": value.__name__}
    if isinstance(value, np.ufunc):
        return {"ufunc": value.__name__}
    if isinstance(value, partial):
        return {"partial": [_plain(part) for part in (value.func, list(value.args), value.keywords)]}
    if getattr(value, "__module__", "") == "sklearn.utils.validation" and value.__name__ == "check_array":
        return {"function": "check_array"}
    own = kind.__module__.startswith("sklearn.")
    make, given, state, *_ = (*value.__reduce_ex__(2), None) if own else (None, (), ())
    if not isinstance(state, dict | None):
        raise DeclarationError(f"{kind.__module__}.{kind.__qualname__} has no plain form")
    if make is copyreg.__newobj__:  # type: ignore[attr-defined]
        given = given[1:]
    elif given and given[0] is kind and given[2] is None:  # Cython's, after it a checksum
        given = ()
    attributes = None if state is None else {name: _plain(part) for name, part in state.items()}
    return {
        "object": f"{kind.__module__}.{kind.__name__}",
        "arguments": [_plain(part) for part in given],
        "state": attributes,
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
    made: Any = getattr(import_module(module), name)
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
