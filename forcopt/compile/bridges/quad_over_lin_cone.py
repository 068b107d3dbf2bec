"""``t >= sum_j x_j**2 / y``, ``y >= 0``, as ``norm2(2 x, t - y) <= t + y``.

Takes ``quad_over_lin``, gives ``second_order``: one cone for each element. Exact on the closure (y may be 0
if x is).
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.joins import concatenate
from forcopt.language.relations import AtomRelation, SecondOrderCone


@bridge("quad_over_lin", gives=("second_order",))
def quad_over_lin_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write the rotated cone t y >= |x|^2."""
    x, y = relation.arguments
    t = relation.result
    draft.relation(SecondOrderCone(t + y, concatenate([2 * x, (t - y)[:, None]], axis=1)))
