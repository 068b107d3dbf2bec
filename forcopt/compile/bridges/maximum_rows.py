"""``t >= max(x_1, ..., x_d)`` as ``t >= x_j`` for every j.

Takes ``maximum``, gives rows: d for each element. Exact, since the result is only used where smaller is
better.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation


@bridge("maximum")
def maximum_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """Bound the result from below by every argument."""
    (x,) = relation.arguments
    draft.row(relation.result[:, None] >= x)
