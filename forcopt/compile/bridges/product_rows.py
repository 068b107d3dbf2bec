"""``z = b x`` for a binary b and a bounded x, by its four McCormick rows.

``L b <= z <= U b`` and ``x - U (1 - b) <= z <= x - L (1 - b)`` with ``L <= x <= U`` derived from the columns'
bounds. Takes ``product``, gives rows: four for each element. Exact for binary b.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext, adds_exactly
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import Product


@bridge("product")
def product_rows(relation: Product, draft: BridgeContext) -> None:
    """Write the convex hull of {(b, x, b x)}."""
    z, b, x = relation.result, relation.binary, relation.factor
    lower, upper = draft.finite_interval(x, "product_rows")
    draft.row(z >= b * lower)
    draft.row(z <= b * upper)
    rounded = not adds_exactly(lower, upper, x.constant)
    draft.row(z >= x - (1 - b) * upper, rounded)
    draft.row(z <= x - (1 - b) * lower, rounded)
