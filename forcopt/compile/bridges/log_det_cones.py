"""``t <= log det M`` by a triangular factor: ``[[M, Z], [Z', diag Z]]`` semidefinite, ``t <= sum log Z_ii``.

Z is lower triangular; ``Z = L D`` for ``M = L D L'`` gives the greatest sum (Ben-Tal and Nemirovski,
2001, section 4.2). Takes ``log_det``, gives ``semidefinite_cone``, ``exponential`` and rows: for each element
of order n one cone of order 2 n, n exponential cones and one row, with n (n + 3) / 2 new columns. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.joins import concatenate
from forcopt.language.relations import AtomRelation, ExponentialCone, SemidefiniteCone


@bridge("log_det", gives=("semidefinite_cone", "exponential", "rows"))
def log_det_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """Border the matrix with a triangular one and take the logarithms of its diagonal."""
    (flat,) = relation.arguments
    count, n = flat.shape[0], round(flat.shape[1] ** 0.5)
    factor = draft.column("factor", (count, n * (n + 1) // 2))
    logs = draft.column("log", (count, n))
    diagonal = factor[:, np.arange(1, n + 1) * np.arange(2, n + 2) // 2 - 1]
    everything = concatenate([flat, factor, 0 * flat[:, :1]], axis=1)
    rows, columns = np.tril_indices(2 * n)
    below, zero = rows - n, n * n + factor.shape[1]
    # The block below the diagonal is Z', whose entry (i, j) is Z[j, i]; the last one is diag Z.
    turned = np.where(columns >= below, n * n + columns * (columns + 1) // 2 + below, zero)
    last = np.where(rows == columns, n * n + below * (below + 1) // 2 + below, zero)
    place = np.where(rows < n, rows * n + columns, np.where(columns < n, turned, last))
    draft.relation(SemidefiniteCone(everything[:, place], 2 * n))
    one = 0 * diagonal + 1.0
    draft.relation(ExponentialCone(logs.ravel(), one.ravel(), diagonal.ravel()))
    draft.row(relation.result <= logs.sum(axis=1))
