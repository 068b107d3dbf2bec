"""Powers, p-norms and geometric means as power cones.

All are exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, PowerCone


@bridge("even_power", gives=("power_cone",))
def even_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t >= |x|**p`` as ``t**(1/p) * 1**(1 - 1/p) >= |x|``."""
    (x,) = relation.arguments
    draft.relation(PowerCone(relation.result, 0 * x + 1.0, x, 1.0 / relation.parameter, relation))


@bridge("convex_power", gives=("power_cone", "rows"))
def convex_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t >= x**p``, p > 1, ``x >= 0``, as for even powers."""
    even_power_cone(relation, draft)
    draft.row(relation.arguments[0] >= 0)


@bridge("concave_power", gives=("power_cone",))
def concave_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t <= x**p``, 0 < p < 1, as ``x**p * 1**(1 - p) >= |t|``; more of t never hurts."""
    (x,) = relation.arguments
    draft.relation(PowerCone(x, 0 * x + 1.0, relation.result, relation.parameter, relation))


@bridge("negative_power", gives=("power_cone",))
def negative_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t >= x**p``, p < 0, as ``t**a * x**(1 - a) >= 1`` with ``a = 1 / (1 - p)``."""
    (x,) = relation.arguments
    draft.relation(PowerCone(relation.result, x, 0 * x + 1.0, 1.0 / (1.0 - relation.parameter), relation))


@bridge("norm_p", gives=("power_cone", "rows"))
def norm_p_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= (sum_j |x_j|**p)**(1/p)`` as ``r_j**(1/p) * t**(1 - 1/p) >= |x_j|`` and ``sum_j r_j <= t``.

    Takes ``norm_p`` (p > 1), gives ``power_cone`` and rows: d cones and one row for each element, with d
    new columns. Exact.
    """
    (x,) = relation.arguments
    share = draft.column("share", x.shape, 0.0)
    whole = relation.result[:, None].broadcast_to(x.shape)
    draft.relation(PowerCone(share.ravel(), whole.ravel(), x.ravel(), 1.0 / relation.parameter))
    draft.row(share.sum(axis=1) <= relation.result)


@bridge("geometric_mean", gives=("power_cone", "rows"))
def geometric_mean_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t <= x_1**w_1 * ... * x_d**w_d``, weights that sum to one, as a chain of power cones.

    ``y_1 = x_1`` and ``y_k <= y_(k-1)**a * x_k**(1 - a)`` with ``a = (w_1 + ... + w_(k-1)) / (w_1 + ...
    + w_k)``; ``t = y_d``. Takes ``geometric_mean``, gives ``power_cone`` and rows: d - 1 cones for each
    element, with d - 2 new columns (two rows and no cone if d is 1). Exact, since a larger t is never
    worse.
    """
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
