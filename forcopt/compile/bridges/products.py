"""Products of expressions: with binaries as rows, of any as columns, or by a relaxation that bounds them."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.compile.bridge_context import BridgeContext, adds_exactly, bridge
from forcopt.compile.program import Products
from forcopt.language.expression import Expression
from forcopt.language.relations import Multiplication, Product, only_columns


@bridge("product")
def product_rows(relation: Product, draft: BridgeContext) -> None:
    """``z = b x`` for a binary b and a bounded x, by its four McCormick rows.

    ``L b <= z <= U b`` and ``x - U (1 - b) <= z <= x - L (1 - b)`` with ``L <= x <= U`` derived from the
    columns' bounds. Takes ``product``, gives rows: four for each element. Exact for binary b.
    """
    z, b, x = relation.result, relation.scale, relation.factor
    lower, upper = draft.finite_interval(x, "product_rows")
    draft.row(z >= b * lower, z <= b * upper)
    rounded = bool(x.constant.any()) and not adds_exactly(lower, upper, x.constant)
    draft.row(z >= x - (1 - b) * upper, z <= x - (1 - b) * lower, rounded=rounded)


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


@bridge("mccormick")
def mccormick_rows(relation: Multiplication, draft: BridgeContext) -> None:
    """``z = x y`` relaxed to its convex hull over a box (McCormick, 1976; Al-Khayyal and Falk, 1983).

    ``z >= L y + l x - L l``, ``z >= U y + u x - U u``, ``z <= U y + l x - U l``, ``z <= L y + u x - L u``
    for ``L <= x <= U`` and ``l <= y <= u`` from the bounds of the columns. Takes ``mccormick``, which a
    solve with ``mccormick=1`` asks for, gives rows: four for each element. A relaxation: it bounds the model.
    """
    x, y = relation.scale, relation.factor
    low, high = draft.finite_interval(x, "mccormick_rows")
    _hull(relation.result, x, y, np.ones(1), (low, high), draft.finite_interval(y, "mccormick_rows"), draft)


@bridge("piecewise_mccormick", gives=("rows", "integer"))
def piecewise_mccormick_binaries(relation: Multiplication, draft: BridgeContext) -> None:
    """``z = x y`` relaxed to its convex hulls over K pieces of the range of x, of which one is chosen.

    ``x = sum_k x_k`` and ``y = sum_k y_k``, where a binary b_k is 1 for one k, and x_k, y_k and z_k are 0
    for the others; the McCormick rows of each piece (Bergamini, Aguirre and Grossmann, 2005; Wicaksono and
    Karimi, 2008). Takes ``piecewise_mccormick``, which a solve with ``mccormick=K`` asks for, gives rows and
    integers: for each element K binaries, 3 K columns and 8 K + 4 rows. A relaxation: its gap falls with K.
    """
    name = "piecewise_mccormick_binaries"
    x, y, pieces = relation.scale, relation.factor, relation.pieces
    low, high = draft.finite_interval(x, name)
    least, most = (end[:, None] for end in draft.finite_interval(y, name))
    ends = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, pieces + 1)
    ends[:, -1] = high
    start, stop = ends[:, :-1], ends[:, 1:]
    shape = start.shape
    chosen = draft.column("piece", shape, 0.0, 1.0, integer=True)
    part = draft.column("part", shape, np.minimum(start, 0.0), np.maximum(stop, 0.0))
    other = draft.column("other", shape, np.minimum(least, 0.0), np.maximum(most, 0.0))
    area = draft.column("area", shape)
    draft.row(chosen.sum(axis=1) == 1)
    for whole, parts in ((x, part), (y, other), (relation.result, area)):
        draft.row(parts.sum(axis=1) == whole)
    for value, lower, upper in ((part, start, stop), (other, least, most)):
        draft.row(value >= lower * chosen, value <= upper * chosen)
    _hull(area, part, other, chosen, (start, stop), (least, most), draft)


def _hull(
    z: Expression,
    x: Expression,
    y: Expression,
    on: Expression | Array,
    ends: tuple[Array, Array],
    limits: tuple[Array, Array],
    draft: BridgeContext,
) -> None:
    """The McCormick rows of ``z = x y``, x between `ends` and y between `limits`, both times `on`."""
    for end, limit in zip(ends, limits, strict=True):
        draft.row(z >= end * y + limit * x - (end * limit) * on)
    for end, limit in zip(ends, reversed(limits), strict=True):
        draft.row(z <= end * y + limit * x - (end * limit) * on)
