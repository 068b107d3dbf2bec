"""The moments of a constraint: a linear map of a classifier's predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.fairness import GroupRates, Notion
from forcopt.language.expression import Expression

__all__ = ["Moments"]


class Moments:
    """The map from predictions to how much of each cell is predicted 1, and to the records in pairs.

    A cell (group, label) sums the records of that label, each by how much it counts to the group. That is
    linear in the predictions whether groups are known, missing or debiased.

    Parameters
    ----------
    shares : Array
        How much each record counts to each group, shape ``(n, K)``; see `GroupColumn.shares`.
    labels : Array
        0 or 1, shape ``(n,)``.
    weights : Array
        Of the records, shape ``(n,)``.
    constraint : Notion
        Whose records to add.
    names : tuple[str, ...]
        Of the groups.

    Attributes
    ----------
    matrix
        Shape ``(q, n)``: 2 K cells, then the records that the constraint looks at one by one.
    mass
        Of each cell, shape ``(K, 2)``.
    names : tuple[str, ...]
        Of the K groups.
    """

    def __init__(
        self, shares: Array, labels: Array, weights: Array, constraint: Notion, names: tuple[str, ...]
    ) -> None:
        n, count = shares.shape
        by_label = np.stack([weights * (labels == y) for y in (0, 1)])
        cells = (shares.T[:, None, :] * by_label).reshape(2 * count, n)
        self.records = constraint.records
        k = len(self.records)
        picked = sp.csr_array((np.ones(k), (np.arange(k), self.records)), shape=(k, n))
        self.matrix = sp.csr_array(sp.vstack([sp.csr_array(cells), picked]))
        self.mass = cells.sum(axis=1).reshape(count, 2)
        self.names = names

    def rates(self, moments: Any) -> GroupRates:
        """The rates that belong to moments: numbers or an expression, shape ``(q,)``.

        Of ``predicted`` in them, only the entries of records in pairs are filled.
        """
        cells = 2 * len(self.names)
        predicted = None
        if len(self.records):
            k = len(self.records)
            back = sp.csr_array((np.ones(k), (self.records, np.arange(k))), shape=(self.matrix.shape[1], k))
            predicted = back @ moments[cells:]
        positives = moments[:cells].reshape(self.mass.shape)
        if not isinstance(positives, Expression):
            positives = np.asarray(positives)
        return GroupRates(positives, self.mass, self.names, predicted)
