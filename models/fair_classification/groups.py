"""The group of each record: known, seen through a channel, or missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from forcopt.arrays import Array, is_missing
from forcopt.errors import DeclarationError
from forcopt.fairness.records import read_groups
from forcopt.privacy import ObservedGroups, RandomizedResponse

__all__ = ["GroupColumn", "Groups"]


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


def _read(value: Any) -> GroupColumn:
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
    PlainValidator(_read),
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
