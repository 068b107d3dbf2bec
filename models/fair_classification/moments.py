"""The moments of a constraint: a linear map of a classifier's predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.fairness import ClassRates, GroupRates, Notion
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
    classes : tuple[str, ...], default ()
        The names of the C classes, if there are more than two. A cell then is a group, a class and whether
        it is the label; the predictions are those of `as_cells`.

    Attributes
    ----------
    matrix
        Shape ``(q, n)``: 2 K cells, then the records that the constraint looks at one by one. With several
        classes ``(2 C K, n C)``.
    mass
        Of each cell, shape ``(K, 2)``; with several classes ``(C, K, 2)``.
    names : tuple[str, ...]
        Of the K groups.
    """

    def __init__(
        self,
        shares: Array,
        labels: Array,
        weights: Array,
        constraint: Notion,
        names: tuple[str, ...],
        classes: tuple[str, ...] = (),
    ) -> None:
        n, count = shares.shape
        several = len(classes)
        codes = range(several) if several else (1,)
        columns = np.eye(several) if several else np.ones((2, 1))
        parts = []
        for c in codes:
            by_label = np.stack([weights * (labels != c), weights * (labels == c)])
            cells = sp.csr_array((shares.T[:, None, :] * by_label).reshape(2 * count, n))
            parts.append(sp.kron(cells, columns[c : c + 1]))
        self.mass = np.stack([part.sum(axis=1).reshape(count, 2) for part in parts])
        self.mass = self.mass if several else self.mass[0]
        self.records = constraint.records
        k = len(self.records)
        if k:
            parts.append(sp.csr_array((np.ones(k), (np.arange(k), self.records)), shape=(k, n)))
        self.matrix = sp.csr_array(sp.vstack(parts))
        self.names, self.classes = names, classes

    def rates(self, moments: Any) -> GroupRates | ClassRates:
        """The rates that belong to moments: numbers or an expression, shape ``(q,)``.

        Of ``predicted`` in them, only the entries of records in pairs are filled.
        """
        cells = self.mass.size
        predicted = None
        if len(self.records):
            k = len(self.records)
            back = sp.csr_array((np.ones(k), (self.records, np.arange(k))), shape=(self.matrix.shape[1], k))
            predicted = back @ moments[cells:]
        positives = moments[:cells].reshape(self.mass.shape)
        if not isinstance(positives, Expression):
            positives = np.asarray(positives)
        if self.classes:
            return ClassRates(positives, self.mass, self.names, self.classes)
        return GroupRates(positives, self.mass, self.names, predicted)
