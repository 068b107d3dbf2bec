"""``z = min(b_1, ..., b_d)`` for binaries: ``z <= b_j`` for every j and ``z >= sum_j b_j - (d - 1)``.

Takes ``all_of``, gives rows: d + 1 for each element. Exact for binary b; the rows are the convex hull.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation


@bridge("all_of")
def all_of_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write the hull of the conjunction."""
    (b,) = relation.arguments
    draft.row(relation.result[:, None] <= b)
    draft.row(relation.result >= b.sum(axis=1) - (b.shape[1] - 1))
    draft.row(relation.result >= 0)
