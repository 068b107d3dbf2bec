"""``t <= -x log(x)`` as ``(t, x, 1)`` in the exponential cone: ``x exp(t / x) <= 1``.

Takes ``entropy``, gives ``exponential``: one cone for each element. Exact on the closure (``0 log 0 = 0``).
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, ExponentialCone


@bridge("entropy", gives=("exponential",))
def entropy_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Put (result, argument, 1) into the cone."""
    (x,) = relation.arguments
    draft.relation(ExponentialCone(relation.result, x, 0 * x + 1.0, relation))
