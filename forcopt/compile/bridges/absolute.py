"""``t >= |x|`` as ``t >= x`` and ``t >= -x``.

Takes ``abs``, gives rows: two for each element. Exact, since the result is only used where smaller is better.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation


@bridge("abs")
def absolute(relation: AtomRelation, draft: BridgeContext) -> None:
    """Bound the result from below by both signs of the argument."""
    (x,) = relation.arguments
    draft.row(relation.result >= x)
    draft.row(relation.result >= -x)
