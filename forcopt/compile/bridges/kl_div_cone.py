"""``t >= x log(x / y) - x + y`` as ``x exp(-(t + x - y) / x) <= y``.

Takes ``kl_div``, gives ``exponential``: one cone for each element. Exact on the closure.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, ExponentialCone


@bridge("kl_div", gives=("exponential",))
def kl_div_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Put (y - x - result, x, y) into the cone."""
    x, y = relation.arguments
    draft.relation(ExponentialCone(y - x - relation.result, x, y))
