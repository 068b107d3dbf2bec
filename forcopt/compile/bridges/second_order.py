"""Squares and Euclidean norms as second-order cones.

All are exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.atom import SUM_SQUARES
from forcopt.language.joins import concatenate, stack
from forcopt.language.relations import AtomRelation, SecondOrderCone


@bridge("norm_2", gives=("second_order",))
def norm_2_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= norm2(x)`` is the second-order cone itself.

    Takes ``norm_2``, gives ``second_order``: one cone for each element. Exact.
    """
    draft.relation(SecondOrderCone(relation.result, relation.arguments[0], relation))


@bridge("sum_squares", gives=("second_order",))
def sum_squares_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= sum_j x_j**2`` as ``norm2(2 x, t - 1) <= t + 1``.

    Takes ``sum_squares``, gives ``second_order``: one cone for each element. Exact. A sum of squares
    that occurs in the objective only is passed to quadratic backends as it is; then this bridge is not
    used.
    """
    t = relation.result
    draft.relation(SecondOrderCone(t + 1, concatenate([2 * relation.arguments[0], (t - 1)[:, None]], axis=1)))


@bridge("quad_over_lin", gives=("second_order",))
def quad_over_lin_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= sum_j x_j**2 / y``, ``y >= 0``, as ``norm2(2 x, t - y) <= t + y``.

    Takes ``quad_over_lin``, gives ``second_order``: one cone for each element. Exact on the closure (y
    may be 0 if x is).
    """
    x, y = relation.arguments
    t = relation.result
    draft.relation(SecondOrderCone(t + y, concatenate([2 * x, (t - y)[:, None]], axis=1)))


@bridge("inverse", gives=("second_order",))
def inverse_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= 1 / x``, ``x > 0``, as ``norm2(2, t - x) <= t + x``.

    Takes ``inverse``, gives ``second_order``: one cone for each element. Exact.
    """
    (x,) = relation.arguments
    t = relation.result
    draft.relation(SecondOrderCone(t + x, stack([0 * x + 2.0, t - x], axis=1)))


@bridge("huber", gives=("sum_squares", "rows"))
def huber_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= huber(x)`` as ``t >= q + 2 M s`` with ``|x| <= n + s``, ``q >= n**2``, ``n, s >= 0``.

    The least such t has n = min(|x|, M) and s = |x| - n. Takes ``huber``, gives ``sum_squares`` and
    rows: one square and three rows for each element, with three new columns. Exact.
    """
    (x,) = relation.arguments
    near = draft.column("near", x.shape, 0.0)
    far = draft.column("far", x.shape, 0.0)
    square = draft.column("square", x.shape, 0.0)
    draft.relation(AtomRelation(SUM_SQUARES, square, (near[:, None],)))
    draft.row(near + far >= x)
    draft.row(near + far >= -x)
    draft.row(relation.result >= square + 2 * relation.parameter * far)
