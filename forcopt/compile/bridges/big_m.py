"""``b = 1`` implies ``lower <= x <= upper``, by rows that the least sufficient constants switch off.

``x <= upper + (U - upper) (1 - b)`` and ``x >= lower - (lower - L) (1 - b)``, with ``L <= x <= U`` derived from the
columns' bounds, never guessed. Takes ``indicator``, gives rows: one for each finite side. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridges.base import bridge
from forcopt.compile.draft import Draft
from forcopt.language.relations import Indicator


@bridge("indicator")
def big_m(relation: Indicator, draft: Draft) -> None:
    """Write each finite side with its own constant."""
    off = 1 - relation.binary if relation.active else relation.binary
    x = relation.row
    low, high = draft.interval(x)
    for side, reach, sign in ((relation.upper, high, 1.0), (relation.lower, low, -1.0)):
        needed = np.isfinite(side) & (sign * (reach - side) > 0)  # other rows hold anyway
        if not needed.any():
            continue
        at = np.flatnonzero(needed)
        if not np.isfinite(reach[at]).all():
            draft.finite_interval(x[at], "big_m")
        row = x[at] - off[at] * (reach - np.where(needed, side, 0.0))[at]
        draft.row(row.between(-np.inf, side[at]) if sign > 0 else row.between(side[at], np.inf))
