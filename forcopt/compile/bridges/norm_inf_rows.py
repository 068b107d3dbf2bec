"""``t >= max_j |x_j|`` as ``t >= x_j`` and ``t >= -x_j`` for every j.

Takes ``norm_inf``, gives rows: 2 d for each element. Exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation


@bridge("norm_inf")
def norm_inf_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """Bound the result from below by both signs of every coordinate."""
    (x,) = relation.arguments
    draft.row(relation.result[:, None] >= x)
    draft.row(relation.result[:, None] >= -x)
