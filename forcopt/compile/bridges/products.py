"""Products of expressions: with binaries as rows, of any as columns, or by a relaxation that bounds them."""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext, adds_exactly, bridge
from forcopt.compile.program import Products
from forcopt.language.relations import Multiplication, Product, only_columns


@bridge("product")
def product_rows(relation: Product, draft: BridgeContext) -> None:
    """``z = b x`` for a binary b and a bounded x, by its four McCormick rows.

    ``L b <= z <= U b`` and ``x - U (1 - b) <= z <= x - L (1 - b)`` with ``L <= x <= U`` derived from the
    columns' bounds. Takes ``product``, gives rows: four for each element. Exact for binary b.
    """
    z, b, x = relation.result, relation.scale, relation.factor
    lower, upper = draft.finite_interval(x, "product_rows")
    draft.row(z >= b * lower)
    draft.row(z <= b * upper)
    rounded = bool(x.constant.any()) and not adds_exactly(lower, upper, x.constant)
    draft.row(z >= x - (1 - b) * upper, rounded)
    draft.row(z <= x - (1 - b) * lower, rounded)


@bridge("multiplication", gives=("nonconvex", "rows"))
def multiplication_columns(relation: Multiplication, draft: BridgeContext) -> None:
    """``z = x y`` over single columns, as a solver of nonconvex programs takes it.

    An expression that is no column becomes one. Takes ``multiplication``, gives ``nonconvex`` and rows.
    Exact.
    """
    factors = (
        draft.columns_of(part, "multiplied", *draft.interval(part))
        for part in (relation.scale, relation.factor)
    )
    draft.relation(Products(only_columns(relation.result), *factors))
