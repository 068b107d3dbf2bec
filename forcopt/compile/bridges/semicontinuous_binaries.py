"""``x = 0`` or ``lower <= x <= upper``, by a binary: ``lower b <= x <= upper b``.

An infinite upper end is replaced by the bound that follows from the columns. Takes ``semicontinuous``, gives
rows and integers: two rows and one binary for each element. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.special_sets import Semicontinuous


@bridge("semicontinuous", gives=("rows", "integer"))
def semicontinuous_binaries(relation: Semicontinuous, draft: BridgeContext) -> None:
    """Switch both ends on together."""
    x = relation.expression
    lower, upper = relation.lower, relation.upper
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        low, high = draft.finite_interval(x, "semicontinuous_binaries")
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    on = draft.column("on", x.shape, 0.0, 1.0, integer=True)
    draft.row(x >= lower * on)
    draft.row(x <= upper * on)
