"""``t >= log(sum_j exp(x_j))`` as ``exp(x_j - t) <= u_j`` for every j and ``sum_j u_j <= 1``.

Takes ``log_sum_exp``, gives ``exponential`` and rows: d cones and one row for each element, with d new
columns. Exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, ExponentialCone


@bridge("log_sum_exp", gives=("exponential", "rows"))
def log_sum_exp_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """Bound every exponential by a column; these add up to at most one."""
    (x,) = relation.arguments
    share = draft.column("share", x.shape, 0.0, 1.0)
    inside = (x - relation.result[:, None]).ravel()
    draft.relation(ExponentialCone(inside, 0 * inside + 1.0, share.ravel()))
    draft.row(share.sum(axis=1) <= 1)
