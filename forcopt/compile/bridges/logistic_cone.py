"""``t >= log(1 + exp(x))`` as ``exp(-t) + exp(x - t) <= 1``.

Takes ``logistic``, gives ``exponential`` and rows: two cones and one row for each element, with two new
columns. Exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, ExponentialCone


@bridge("logistic", gives=("exponential", "rows"))
def logistic_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Bound both exponentials by columns whose sum is at most one."""
    (x,) = relation.arguments
    t = relation.result
    one = 0 * x + 1.0
    first = draft.column("logistic", x.shape, lower=0.0, upper=1.0)
    second = draft.column("logistic", x.shape, lower=0.0, upper=1.0)
    draft.relation(ExponentialCone(-t, one, first))
    draft.relation(ExponentialCone(x - t, one, second))
    draft.row(first + second <= 1)
