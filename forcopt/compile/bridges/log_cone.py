"""``t <= log(x)`` as ``(t, 1, x)`` in the exponential cone.

Takes ``log``, gives ``exponential``: one cone for each element. Exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, ExponentialCone


@bridge("log", gives=("exponential",))
def log_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Put (result, 1, argument) into the cone."""
    (x,) = relation.arguments
    draft.relation(ExponentialCone(relation.result, 0 * x + 1.0, x, relation))
