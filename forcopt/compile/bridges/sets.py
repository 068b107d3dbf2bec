"""Sets that need new binaries: semicontinuous, ordered, all different, piecewise linear.

All are exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.joins import concatenate
from forcopt.language.relations import AtomRelation
from forcopt.language.special_sets import AllDifferent, Semicontinuous, SpecialOrderedSet


@bridge("semicontinuous", gives=("rows", "integer"))
def semicontinuous_binaries(relation: Semicontinuous, draft: BridgeContext) -> None:
    """``x = 0`` or ``lower <= x <= upper``, by a binary: ``lower b <= x <= upper b``.

    An infinite upper end is replaced by the bound that follows from the columns. Takes
    ``semicontinuous``, gives rows and integers: two rows and one binary for each element. Exact.
    """
    x = relation.expression
    lower, upper = relation.lower, relation.upper
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        low, high = draft.finite_interval(x, "semicontinuous_binaries")
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    on = draft.column("on", x.shape, 0.0, 1.0, integer=True)
    draft.row(x >= lower * on)
    draft.row(x <= upper * on)


@bridge("special_ordered_set", gives=("rows", "integer"))
def special_ordered_set_binaries(relation: SpecialOrderedSet, draft: BridgeContext) -> None:
    """At most one element, or two neighbours, may differ from 0: special ordered sets (Beale and Tomlin,
    1970).

    With ``L <= x <= U`` from the bounds of the columns. Type 1: ``L_j b_j <= x_j <= U_j b_j``, ``sum_j
    b_j <= 1`` with d binaries and 2 d + 1 rows for each set. Type 2: a binary for each pair of
    neighbours, of which at most one is chosen: d - 1 binaries, 2 d + 1 rows. Takes
    ``special_ordered_set``, gives rows and integers. Exact.
    """
    x = relation.expression
    count, dim = x.shape
    if dim <= relation.order:
        return
    low, high = draft.finite_interval(x, "special_ordered_set_binaries")
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    chosen = draft.column("chosen", (count, dim - relation.order + 1), 0.0, 1.0, integer=True)
    draft.row(chosen.sum(axis=1) <= 1)
    on = chosen
    if relation.order == 2:
        none = np.zeros((count, 1))
        on = concatenate([chosen, none], axis=1) + concatenate([none, chosen], axis=1)
    draft.row(x >= low * on)
    draft.row(x <= high * on)


@bridge("all_different", gives=("rows", "integer"))
def all_different_assignment(relation: AllDifferent, draft: BridgeContext) -> None:
    """Integers that are all different, as an assignment of values.

    ``x_i = sum_v v y_iv``, ``sum_v y_iv = 1``, ``sum_i y_iv <= 1`` for the values v between the bounds
    of the columns. Takes ``all_different``, gives rows and integers: for n elements and V values n V
    binaries and 2 n + V rows. Exact.
    """
    x = relation.expression
    low, high = draft.finite_interval(x, "all_different_assignment")
    values = np.arange(np.ceil(low.min()), np.floor(high.max()) + 1)
    able = (low[:, None] <= values) & (values <= high[:, None])
    takes = draft.column("takes", able.shape, 0.0, able.astype(float), integer=True)
    draft.row(takes.sum(axis=1) == 1)
    draft.row(takes.sum(axis=0) <= 1)
    draft.row(takes @ values == x)


@bridge("piecewise_linear", gives=("rows", "integer"))
def piecewise_linear_binaries(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t = f(x)`` for a piecewise linear f of any shape, by filling its segments one after the other.

    ``x = L + sum_k d_k`` and ``t = f(L) + sum_k slope_k d_k`` with ``0 <= d_k <= length_k``, where a
    binary marks that segment k is full before the next may begin: ``length_k z_k <= d_k`` and ``d_(k+1)
    <= length_(k+1) z_k`` (the incremental formulation of Markowitz and Manne, 1957, which is locally
    ideal: Padberg, 2000). The ends ``L <= x <= U`` come from the bounds of the columns. Takes
    ``piecewise_linear``, gives rows and integers: for K segments within the bounds K columns, K - 1
    binaries and 2 K rows for each element. Exact.
    """
    (x,) = relation.arguments
    low, high = draft.finite_interval(x, "piecewise_linear_binaries")
    inner = np.clip(relation.parameter[0], low[:, None], high[:, None])
    ends = np.concatenate([low[:, None], inner, high[:, None]], axis=1)
    values = relation.atom.evaluate([ends], relation.parameter)
    used = np.flatnonzero((np.diff(ends, axis=1) > 0).any(axis=0))
    length = np.diff(ends, axis=1)[:, used]
    slope = np.divide(np.diff(values, axis=1)[:, used], length, out=np.zeros_like(length), where=length > 0)
    filled = draft.column("filled", length.shape, 0.0, length)
    draft.row(x == low + filled.sum(axis=1))
    draft.row(relation.result == values[:, 0] + (slope * filled).sum(axis=1))
    if len(used) > 1:
        full = draft.column("full", (len(low), len(used) - 1), 0.0, 1.0, integer=True)
        draft.row(filled[:, :-1] >= length[:, :-1] * full)
        draft.row(filled[:, 1:] <= length[:, 1:] * full)
