"""``t <= x_1**w_1 * ... * x_d**w_d``, weights that sum to one, as a chain of power cones.

``y_1 = x_1`` and ``y_k <= y_(k-1)**a * x_k**(1 - a)`` with ``a = (w_1 + ... + w_(k-1)) / (w_1 + ... + w_k)``;
``t = y_d``. Takes ``geometric_mean``, gives ``power_cone`` and rows: d - 1 cones for each element, with d - 2
new columns (two rows and no cone if d is 1). Exact, since a larger t is never worse.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, PowerCone


@bridge("geometric_mean", gives=("power_cone", "rows"))
def geometric_mean_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """Multiply one element after the other."""
    (x,) = relation.arguments
    count, dim = x.shape
    if dim == 1:
        draft.row(relation.result <= x[:, 0])
        draft.row(x[:, 0] >= 0)
        return
    total = np.cumsum(relation.parameter)
    mean = x[:, 0]
    for k in range(1, dim):
        longer = relation.result if k == dim - 1 else draft.column("mean", count, 0.0)
        draft.relation(PowerCone(mean, x[:, k], longer, float(total[k - 1] / total[k])))
        mean = longer
