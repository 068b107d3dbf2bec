"""A classifier that stores the answer for each row of a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError

__all__ = ["Lookup", "distinct_rows"]


def distinct_rows(features: Array) -> tuple[Array, Array]:
    """The distinct rows of features, sorted, and for each record which of them it has."""
    rows, place = np.unique(features + 0.0, axis=0, return_inverse=True)  # -0.0 is 0.0
    return rows, place.reshape(-1)


@dataclass(frozen=True, eq=False)
class Lookup:
    """Predicts for each known row of features the value in a table.

    Attributes
    ----------
    rows : Array
        Distinct, sorted rows of features, shape ``(m, d)``.
    values : Array
        The class of each, 0 or 1 or more, shape ``(m,)``.
    name : str, default "lookup"
        How it calls itself.

    Examples
    --------
    >>> import numpy as np
    >>> h = Lookup(np.array([[0.0], [1.0]]), np.array([0, 1]))
    >>> h.predict([[1.0], [0.0], [1.0]]).tolist()
    [1, 0, 1]
    """

    rows: Array = field(repr=False)
    values: Array = field(repr=False)
    name: str = "lookup"

    def predict(self, X: Any) -> Array:
        """Look the rows up.

        Raises
        ------
        DeclarationError
            For a row that is not among the known ones.
        """
        features = as_numbers(X, "X")
        both, place = distinct_rows(np.vstack([self.rows, features.reshape(-1, self.rows.shape[1])]))
        known, asked = place[: len(self.rows)], place[len(self.rows) :]
        found = np.full(len(both), -1, dtype=np.int64)
        found[known] = self.values
        if (found[asked] < 0).any():
            at = int(np.argmax(found[asked] < 0))
            raise DeclarationError(f"X[{at}] is no row that the classifier was learnt from")
        return found[asked]

    def __repr__(self) -> str:
        if self.values.max(initial=0) > 1:
            return f"{self.name} ({len(self.values)} rows, classes {np.unique(self.values).tolist()})"
        return f"{self.name} ({int(self.values.sum())} of {len(self.values)} rows positive)"
