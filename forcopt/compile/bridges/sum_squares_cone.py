"""``t >= sum_j x_j**2`` as ``norm2(2 x, t - 1) <= t + 1``.

Takes ``sum_squares``, gives ``second_order``: one cone for each element. Exact. A sum of squares that occurs
in the objective only is passed to quadratic backends as it is; then this bridge is not used.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.joins import concatenate
from forcopt.language.relations import AtomRelation, SecondOrderCone


@bridge("sum_squares", gives=("second_order",))
def sum_squares_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write the rotated cone t * 1 >= |x|^2."""
    t = relation.result
    draft.relation(SecondOrderCone(t + 1, concatenate([2 * relation.arguments[0], (t - 1)[:, None]], axis=1)))
