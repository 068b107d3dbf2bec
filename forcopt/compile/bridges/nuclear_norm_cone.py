"""``t >= ||M||_*`` as: ``[[U, M], [M', V]]`` is positive semidefinite and ``tr U + tr V <= 2 t``.

The least such t is the sum of the singular values (Fazel, Hindi and Boyd, 2001, Lemma 1). Takes
``nuclear_norm``, gives ``semidefinite_cone`` and rows: for each p-by-q element one cone of order p + q and
one row, with columns for the lower triangles of U and V. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.joins import concatenate
from forcopt.language.relations import AtomRelation, SemidefiniteCone


@bridge("nuclear_norm", gives=("semidefinite_cone", "rows"))
def nuclear_norm_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Border the matrix with two symmetric ones."""
    (flat,) = relation.arguments
    p, q = relation.parameter
    count = flat.shape[0]
    left = draft.column("left", (count, p * (p + 1) // 2))
    right = draft.column("right", (count, q * (q + 1) // 2))
    everything = concatenate([left, right, flat], axis=1)
    rows, columns = np.tril_indices(p + q)
    first = left.shape[1]
    place = np.where(
        rows < p,
        rows * (rows + 1) // 2 + columns,
        np.where(
            columns < p,
            first + right.shape[1] + columns * q + (rows - p),  # M' stands below the diagonal
            first + (rows - p) * (rows - p + 1) // 2 + (columns - p),
        ),
    )
    draft.relation(SemidefiniteCone(everything[:, place], p + q))
    diagonals = [np.arange(1, n + 1) * np.arange(2, n + 2) // 2 - 1 for n in (p, q)]
    draft.row(left[:, diagonals[0]].sum(axis=1) + right[:, diagonals[1]].sum(axis=1) <= 2 * relation.result)
