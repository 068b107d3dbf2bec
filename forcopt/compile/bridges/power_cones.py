"""Powers ``x**p`` as power cones.

Each takes one kind of power and gives ``power_cone`` (and a row ``x >= 0`` where the domain needs it): one
cone for each element. All are exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, PowerCone


@bridge("even_power", gives=("power_cone",))
def even_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t >= |x|**p`` as ``t**(1/p) * 1**(1 - 1/p) >= |x|``."""
    (x,) = relation.arguments
    draft.relation(PowerCone(relation.result, 0 * x + 1.0, x, 1.0 / relation.parameter, relation))


@bridge("convex_power", gives=("power_cone", "rows"))
def convex_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t >= x**p``, p > 1, ``x >= 0``, as for even powers."""
    even_power_cone(relation, draft)
    draft.row(relation.arguments[0] >= 0)


@bridge("concave_power", gives=("power_cone",))
def concave_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t <= x**p``, 0 < p < 1, as ``x**p * 1**(1 - p) >= |t|``; more of t never hurts."""
    (x,) = relation.arguments
    draft.relation(PowerCone(x, 0 * x + 1.0, relation.result, relation.parameter, relation))


@bridge("negative_power", gives=("power_cone",))
def negative_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t >= x**p``, p < 0, as ``t**a * x**(1 - a) >= 1`` with ``a = 1 / (1 - p)``."""
    (x,) = relation.arguments
    draft.relation(PowerCone(relation.result, x, 0 * x + 1.0, 1.0 / (1.0 - relation.parameter), relation))
