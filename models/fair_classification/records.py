"""The columns of the records: features, dense or sparse, some values missing; and groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from forcopt.arrays import Array, as_numbers, is_missing
from forcopt.errors import DeclarationError
from forcopt.fairness.records import read_groups
from forcopt.privacy import ObservedGroups, RandomizedResponse

KEYS = ("shape", "rows", "columns", "values")


def as_table(X: Any) -> Any:
    """Features as classifiers take them: a float array, or a sparse array by rows.

    Parameters
    ----------
    X : Any
        An array, a frame of numbers, or a sparse array or matrix of scipy; shape ``(n, d)``.
    """
    return sp.csr_array(X, dtype=float) if sp.issparse(X) else np.asarray(X, dtype=float)


def _read_features(value: Any) -> Any:
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
    PlainValidator(_read_features),
    PlainSerializer(_plain),
    WithJsonSchema(
        {
            "description": "numbers by record and feature, null where missing, or entries of a sparse table",
            "anyOf": [{"type": "array", "items": {}}, {"type": "object"}],
        }
    ),
]
"""A field that takes a table of numbers, dense or sparse, with NaN or None where a value is missing."""


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """n records and the groups that they report.

    Attributes
    ----------
    codes : Array
        The position in `names` of each record's report, -1 where it is missing; shape ``(n,)``.
    names : tuple[str, ...]
        Of the K groups.
    channel : RandomizedResponse, optional
        The channel between the true groups and the reports; None if the reports are true.
    """

    codes: Array
    names: tuple[str, ...]
    channel: RandomizedResponse | None = None

    @property
    def shares(self) -> Array:
        """How much each record counts to each true group, shape ``(n, K)``.

        Sums over records are then the counts of the true groups, or unbiased estimates of them: 0 or 1 if
        groups are known; a column of the inverted channel for each report, which may be negative (Mozannar
        et al. 2020, Lemma 1); 0 throughout where the report is missing.
        """
        count = len(self.names)
        of_report = np.eye(count) if self.channel is None or count < 2 else self.channel.inverse(count).T
        return np.vstack([of_report, np.zeros(count)])[self.codes]

    def to_dict(self) -> Any:
        """The column as plain data: a list, with None where missing; with a channel, both by name."""
        reports = [None if code < 0 else self.names[code] for code in self.codes.tolist()]
        return reports if self.channel is None else {"reports": reports, "channel": self.channel.to_dict()}


def _read_groups(value: Any) -> GroupColumn:
    if isinstance(value, GroupColumn):
        return value
    channel = None
    if isinstance(value, ObservedGroups):
        value, channel = value.reports, value.channel
    elif isinstance(value, Mapping):
        if set(value) != {"reports", "channel"}:
            raise DeclarationError(f"the keys are {', '.join(value)}; they must be reports and channel")
        value, channel = value["reports"], RandomizedResponse.from_dict(value["channel"])
    column = np.asarray(value, dtype=object)
    if column.ndim != 1:
        raise DeclarationError(f"the shape is {column.shape}; it must be one column")
    known = np.array([not is_missing(v) for v in column.tolist()], dtype=bool)
    if not known.any():
        raise DeclarationError("no record has a group; at least one must")
    codes = np.full(len(column), -1, dtype=np.int64)
    codes[known], names = read_groups(column[known].tolist())
    codes.flags.writeable = False
    return GroupColumn(codes, names, channel)


Groups = Annotated[
    GroupColumn,
    PlainValidator(_read_groups),
    PlainSerializer(GroupColumn.to_dict),
    WithJsonSchema(
        {
            "description": "the group of each record, null where missing; or reports and the channel they "
            "came through",
            "anyOf": [{"type": "array", "items": {}}, {"type": "object"}],
        }
    ),
]
"""A field that takes a column of groups, with None or NaN where missing, or a channel's reports."""
