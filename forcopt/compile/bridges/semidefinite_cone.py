"""Symmetric semidefinite matrices as cones over their lower triangles.

Takes ``semidefinite``, gives ``semidefinite_cone`` and rows: one cone for each matrix, and one row for each
pair of entries across the diagonal that are different expressions. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.matrices import Semidefinite, asymmetric_entries
from forcopt.language.relations import SemidefiniteCone


@bridge("semidefinite", gives=("semidefinite_cone", "rows"))
def semidefinite_cone(relation: Semidefinite, draft: BridgeContext) -> None:
    """Put the lower triangles into the cone and make the upper ones equal to them."""
    matrices = relation.expression
    rows, columns = np.tril_indices(matrices.shape[1])
    draft.relation(SemidefiniteCone(matrices[:, rows, columns], matrices.shape[1], relation))
    which, i, j = asymmetric_entries(matrices)
    if which.size:
        draft.row(matrices[which, i, j] == matrices[which, j, i])
