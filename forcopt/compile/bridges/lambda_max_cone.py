"""``t >= lambda_max(M)`` as: ``t I - M`` is positive semidefinite.

Takes ``lambda_max``, gives ``semidefinite_cone``: one of order n for each element. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, SemidefiniteCone


@bridge("lambda_max", gives=("semidefinite_cone",))
def lambda_max_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Put ``t I - M`` into the cone."""
    (flat,) = relation.arguments
    order = round(flat.shape[1] ** 0.5)
    rows, columns = np.tril_indices(order)
    top = relation.result[:, None] * (rows == columns).astype(float)
    draft.relation(SemidefiniteCone(top - flat[:, rows * order + columns], order))
