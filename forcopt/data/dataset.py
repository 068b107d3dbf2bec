"""Labelled records with groups, the result of every loader of people's data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import unknown

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Dataset"]


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
            if name not in known:
                raise unknown(f"group of {self.name}", name, known)
        keep = np.isin(self.groups, names)
        return replace(
            self,
            frame=self.frame[keep].reset_index(drop=True),
            features=self.features[keep],
            labels=self.labels[keep],
            groups=self.groups[keep],
        )
