"""Labelled records with groups, the result of every loader, and keys that stand once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, lists_by_key
from forcopt.errors import DeclarationError, check_known

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Dataset:
    """n records of people.

    Attributes
    ----------
    name : str
        Of the data.
    frame : pd.DataFrame
        All columns of the file for these records, index 0 to n - 1.
    features : Array
        To learn from, without group and label; floats of shape ``(n, d)``.
    feature_names : tuple[str, ...]
        Of its d columns.
    labels : Array
        0 or 1, shape ``(n,)``.
    groups : Array
        The name of each record's group, shape ``(n,)``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from forcopt.data import Dataset
    >>> frame = pd.DataFrame({"score": [1.0, 2.0, 3.0], "town": ["a", "b", "b"]})
    >>> labels, towns = np.array([0, 1, 1]), frame.town.to_numpy()
    >>> d = Dataset("scores", frame, frame[["score"]].to_numpy(), ("score",), labels, towns)
    >>> d.of_groups("b").labels.tolist()
    [1, 1]
    """

    name: str
    frame: pd.DataFrame = field(repr=False)
    features: Array = field(repr=False)
    feature_names: tuple[str, ...]
    labels: Array = field(repr=False)
    groups: Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    def of_groups(self, *names: str) -> Dataset:
        """Keep the records of these groups only.

        Raises
        ------
        UnknownNameError
            For a group that no record has.
        """
        known = sorted(set(self.groups.tolist()))
        for name in names:
            check_known(f"group of {self.name}", name, known)
        keep = np.isin(self.groups, names)
        return replace(
            self,
            frame=self.frame[keep].reset_index(drop=True),
            features=self.features[keep],
            labels=self.labels[keep],
            groups=self.groups[keep],
        )


_MOST_NAMED = 5
"""Rows of a key that an error names."""


def refuse_doubles(subject: str, keys: Sequence[Hashable], rows: Sequence[Any] | None = None) -> None:
    """Refuse a key that stands in two rows; the parts of a tuple are shown with a dash between them.

    Raises
    ------
    DeclarationError
        Naming the key and its rows.

    Examples
    --------
    >>> refuse_doubles("names", ["Ann", "Bo", "Ann"])
    Traceback (most recent call last):
    ...
    forcopt.errors.DeclarationError: names: 'Ann' is in rows 0, 2; it must be in one row
    """
    named = map(str, range(len(keys)) if rows is None else rows)
    for key, found in lists_by_key(zip(keys, named, strict=True)).items():
        if len(found) > 1:
            shown = " - ".join(map(str, key)) if isinstance(key, tuple) else key
            more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
            rows_found = ", ".join(found[:_MOST_NAMED]) + more
            raise DeclarationError(f"{subject}: {shown!r} is in rows {rows_found}; it must be in one row")
