"""At most one element, or two neighbours, may differ from 0: special ordered sets (Beale and Tomlin, 1970).

With ``L <= x <= U`` from the bounds of the columns. Type 1: ``L_j b_j <= x_j <= U_j b_j``, ``sum_j b_j <= 1``
with d binaries and 2 d + 1 rows for each set. Type 2: a binary for each pair of neighbours, of which at most
one is chosen: d - 1 binaries, 2 d + 1 rows. Takes ``special_ordered_set``, gives rows and integers. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.joins import concatenate
from forcopt.language.special_sets import SpecialOrderedSet


@bridge("special_ordered_set", gives=("rows", "integer"))
def special_ordered_set_binaries(relation: SpecialOrderedSet, draft: BridgeContext) -> None:
    """Choose the element, or the pair of neighbours."""
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
