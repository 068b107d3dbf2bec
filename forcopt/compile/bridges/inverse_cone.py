"""``t >= 1 / x``, ``x > 0``, as ``norm2(2, t - x) <= t + x``.

Takes ``inverse``, gives ``second_order``: one cone for each element. Exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.joins import stack
from forcopt.language.relations import AtomRelation, SecondOrderCone


@bridge("inverse", gives=("second_order",))
def inverse_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write the rotated cone t x >= 1."""
    (x,) = relation.arguments
    t = relation.result
    draft.relation(SecondOrderCone(t + x, stack([0 * x + 2.0, t - x], axis=1)))
