"""``t >= norm2(x)`` is the second-order cone itself.

Takes ``norm_2``, gives ``second_order``: one cone for each element. Exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, SecondOrderCone


@bridge("norm_2", gives=("second_order",))
def norm_2_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Put (result, argument) into the cone."""
    draft.relation(SecondOrderCone(relation.result, relation.arguments[0], relation))
