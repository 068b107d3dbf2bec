"""``t >= (sum_j |x_j|**p)**(1/p)`` as ``r_j**(1/p) * t**(1 - 1/p) >= |x_j|`` and ``sum_j r_j <= t``.

Takes ``norm_p`` (p > 1), gives ``power_cone`` and rows: d cones and one row for each element, with d new
columns. Exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, PowerCone


@bridge("norm_p", gives=("power_cone", "rows"))
def norm_p_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """Give every coordinate its share of the norm."""
    (x,) = relation.arguments
    share = draft.column("share", x.shape, 0.0)
    whole = relation.result[:, None].broadcast_to(x.shape)
    draft.relation(PowerCone(share.ravel(), whole.ravel(), x.ravel(), 1.0 / relation.parameter))
    draft.row(share.sum(axis=1) <= relation.result)
