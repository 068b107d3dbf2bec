"""The features of the records: a dense or a sparse table, with missing values where a learner takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from forcopt.arrays import Array, as_numbers, is_missing
from forcopt.errors import DeclarationError

__all__ = ["Features", "as_table"]

KEYS = ("shape", "rows", "columns", "values")


def as_table(X: Any) -> Any:
    """Features as classifiers take them: a float array, or a sparse array by rows.

    Parameters
    ----------
    X : Any
        An array, a frame of numbers, or a sparse array or matrix of scipy; shape ``(n, d)``.
    """
    return sp.csr_array(X, dtype=float) if sp.issparse(X) else np.asarray(X, dtype=float)


def _read(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) != set(KEYS):
            raise DeclarationError(f"the keys are {', '.join(value)}; they must be {', '.join(KEYS)}")
        entries = _with_missing(value["values"])
        value = sp.csr_array((entries, (value["rows"], value["columns"])), shape=tuple(value["shape"]))
    if not sp.issparse(value):
        out = _with_missing(value)
        out.flags.writeable = False
        return out
    table = sp.csr_array(value, dtype=float, copy=True)
    table.sum_duplicates()
    table.data = _with_missing(table.data)
    for part in (table.data, table.indices, table.indptr):
        part.flags.writeable = False
    return table


def _with_missing(value: Any) -> Array:
    """Numbers, of which some may be NaN or None."""
    given = np.asarray(value)
    if given.dtype == object:
        missing = np.array([is_missing(entry) for entry in given.flat], dtype=bool).reshape(given.shape)
    else:
        missing = given != given
    numbers = as_numbers(np.where(missing, 0.0, given) if missing.any() else value, "the array")
    numbers[missing] = np.nan
    return numbers


def _plain(features: Any) -> Any:
    if sp.issparse(features):
        entries: Any = features.tocoo()
        row, column = entries.coords
        values: Any = np.where(np.isnan(entries.data), None, entries.data)
        plain = (list(features.shape), row.tolist(), column.tolist(), values.tolist())
        return dict(zip(KEYS, plain, strict=True))
    missing = np.isnan(features)
    plain_or_none: Any = np.where(missing, None, features) if missing.any() else features
    return plain_or_none.tolist()


Features = Annotated[
    Any,
    PlainValidator(_read),
    PlainSerializer(_plain),
    WithJsonSchema(
        {
            "description": "numbers by record and feature, null where missing, or entries of a sparse table",
            "anyOf": [{"type": "array", "items": {}}, {"type": "object"}],
        }
    ),
]
"""A field that takes a table of numbers, dense or sparse, with NaN or None where a value is missing."""
