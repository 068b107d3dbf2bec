"""``t = f(x)`` for a piecewise linear f of any shape, by filling its segments one after the other.

``x = L + sum_k d_k`` and ``t = f(L) + sum_k slope_k d_k`` with ``0 <= d_k <= length_k``, where a binary marks
that segment k is full before the next may begin: ``length_k z_k <= d_k`` and
``d_(k+1) <= length_(k+1) z_k`` (the incremental formulation of Markowitz and Manne, 1957, which is locally
ideal: Padberg, 2000). The ends ``L <= x <= U`` come from the bounds of the columns. Takes
``piecewise_linear``, gives rows and integers: for K segments within the bounds K columns, K - 1 binaries and
2 K rows for each element. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation


@bridge("piecewise_linear", gives=("rows", "integer"))
def piecewise_linear_binaries(relation: AtomRelation, draft: BridgeContext) -> None:
    """Cut the segments to the bounds of the argument and fill them in order."""
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
