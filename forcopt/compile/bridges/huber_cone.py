"""``t >= huber(x)`` as ``t >= q + 2 M s`` with ``|x| <= n + s``, ``q >= n**2``, ``n, s >= 0``.

The least such t has n = min(|x|, M) and s = |x| - n. Takes ``huber``, gives ``sum_squares`` and rows: one
square and three rows for each element, with three new columns. Exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.atom import SUM_SQUARES
from forcopt.language.relations import AtomRelation


@bridge("huber", gives=("sum_squares", "rows"))
def huber_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Split the size of the argument into a part that is squared and a part that is not."""
    (x,) = relation.arguments
    near = draft.column("near", x.shape, 0.0)
    far = draft.column("far", x.shape, 0.0)
    square = draft.column("square", x.shape, 0.0)
    draft.relation(AtomRelation(SUM_SQUARES, square, (near[:, None],)))
    draft.row(near + far >= x)
    draft.row(near + far >= -x)
    draft.row(relation.result >= square + 2 * relation.parameter * far)
