"""``b = 1`` implies ``lower <= x <= upper``, by rows that the least sufficient constants switch off.

``x <= upper + (U - upper) (1 - b)`` and ``x >= lower - (lower - L) (1 - b)``, with ``L <= x <= U`` derived
from the columns' bounds, never guessed. Takes ``indicator``, gives rows: one for each finite side that the
bounds do not guarantee anyway. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import Indicator


@bridge("indicator")
def big_m(relation: Indicator, draft: BridgeContext) -> None:
    """Write each finite side with its own constant."""
    off = 1 - relation.binary if relation.active else relation.binary
    x = relation.row
    for sign, bound in ((1, relation.upper), (-1, -np.asarray(relation.lower))):
        side = np.broadcast_to(bound, x.shape)
        at = np.flatnonzero(np.isfinite(side) & (draft.interval(sign * x)[1] > side))  # others hold anyway
        if at.size:
            row = sign * x[at]
            draft.row(row - off[at] * (draft.greatest(row, "big_m") - side[at]) <= side[at])
