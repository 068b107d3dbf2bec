"""``t >= exp(x)`` as ``(x, 1, t)`` in the exponential cone.

Takes ``exp``, gives ``exponential``: one cone for each element. Exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, ExponentialCone


@bridge("exp", gives=("exponential",))
def exp_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Put (argument, 1, result) into the cone."""
    (x,) = relation.arguments
    draft.relation(ExponentialCone(x, 0 * x + 1.0, relation.result, relation))
