"""``t >=`` the sum of the k largest of d numbers, by its linear programming dual.

The sum of the k largest x_j is the least ``k q + sum_j s_j`` with ``s_j >= x_j - q``, ``s_j >= 0`` (Ogryczak
and Tamir, 2003). Takes ``sum_largest``, gives rows: d + 1 for each element, with d + 1 new columns. Exact;
for integral arguments q and s are integral at an optimum (q is the k-th largest).
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation


@bridge("sum_largest")
def sum_largest_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write the dual of choosing the k largest."""
    (x,) = relation.arguments
    whole = draft.is_integral(x)
    low, high = draft.reach(x)
    least = low.min(axis=1, keepdims=True)
    threshold = draft.column("threshold", x.shape[0], least[:, 0], high.max(axis=1), implied_integer=whole)
    excess = draft.column("excess", x.shape, 0.0, np.maximum(high - least, 0.0), implied_integer=whole)
    draft.row(excess >= x - threshold[:, None])
    draft.row(relation.result >= relation.parameter * threshold + excess.sum(axis=1))
