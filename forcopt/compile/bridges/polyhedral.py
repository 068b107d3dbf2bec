"""Maxima, absolute values and sums of the largest as linear rows.

All are exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation


@bridge("abs")
def absolute(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= |x|`` as ``t >= x`` and ``t >= -x``.

    Takes ``abs``, gives rows: two for each element. Exact, since the result is only used where smaller
    is better.
    """
    (x,) = relation.arguments
    draft.row(relation.result >= x)
    draft.row(relation.result >= -x)


@bridge("maximum")
def maximum_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= max(x_1, ..., x_d)`` as ``t >= x_j`` for every j.

    Takes ``maximum``, gives rows: d for each element. Exact, since the result is only used where smaller
    is better.
    """
    (x,) = relation.arguments
    draft.row(relation.result[:, None] >= x)


@bridge("norm_1")
def norm_1_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= |x_1| + ... + |x_d|`` with one absolute value a coordinate.

    Takes ``norm_1``, gives rows: 2 d + 1 for each element, with d new columns. Exact.
    """
    (x,) = relation.arguments
    low, high = draft.reach(x)
    size = draft.column("size", x.shape, 0.0, np.maximum(-low, high), implied_integer=draft.is_integral(x))
    draft.row(size >= x)
    draft.row(size >= -x)
    draft.row(relation.result >= size.sum(axis=1))


@bridge("norm_inf")
def norm_inf_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= max_j |x_j|`` as ``t >= x_j`` and ``t >= -x_j`` for every j.

    Takes ``norm_inf``, gives rows: 2 d for each element. Exact.
    """
    (x,) = relation.arguments
    draft.row(relation.result[:, None] >= x)
    draft.row(relation.result[:, None] >= -x)


@bridge("sum_largest")
def sum_largest_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >=`` the sum of the k largest of d numbers, by its linear programming dual.

    The sum of the k largest x_j is the least ``k q + sum_j s_j`` with ``s_j >= x_j - q``, ``s_j >= 0``
    (Ogryczak and Tamir, 2003). Takes ``sum_largest``, gives rows: d + 1 for each element, with d + 1 new
    columns. Exact; for integral arguments q and s are integral at an optimum (q is the k-th largest).
    """
    (x,) = relation.arguments
    whole = draft.is_integral(x)
    low, high = draft.reach(x)
    least = low.min(axis=1, keepdims=True)
    threshold = draft.column("threshold", x.shape[0], least[:, 0], high.max(axis=1), implied_integer=whole)
    excess = draft.column("excess", x.shape, 0.0, np.maximum(high - least, 0.0), implied_integer=whole)
    draft.row(excess >= x - threshold[:, None])
    draft.row(relation.result >= relation.parameter * threshold + excess.sum(axis=1))
