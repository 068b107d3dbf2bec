"""``t >= |x_1| + ... + |x_d|`` with one absolute value a coordinate.

Takes ``norm_1``, gives rows: 2 d + 1 for each element, with d new columns. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation


@bridge("norm_1")
def norm_1_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """Bound each coordinate's size, and the result by their sum."""
    (x,) = relation.arguments
    low, high = draft.reach(x)
    size = draft.column("size", x.shape, 0.0, np.maximum(-low, high), implied_integer=draft.is_integral(x))
    draft.row(size >= x)
    draft.row(size >= -x)
    draft.row(relation.result >= size.sum(axis=1))
