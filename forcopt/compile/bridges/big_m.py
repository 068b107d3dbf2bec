"""``b = 1`` implies ``lower <= x <= upper``, by rows that the least sufficient constants switch off.

``x <= upper + (U - upper) (1 - b)`` and ``x >= lower - (lower - L) (1 - b)``, with ``L <= x <= U`` derived
from the columns' bounds, never guessed. Takes ``indicator``, gives rows: one for each finite side that the
bounds do not guarantee anyway. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext, adds_exactly
from forcopt.compile.bridges.base import bridge
from forcopt.errors import UnboundedExpressionError
from forcopt.language.relations import Indicator

_LARGEST = 1e12
"""Beyond it, doubles next to each other are more than 1e-4 apart."""


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
            constant = draft.greatest(row, "big_m") - side[at]
            if draft.outward:
                constant = np.where(constant == np.round(constant), constant, np.nextafter(constant, np.inf))
            if constant.max() > _LARGEST:
                worst = int(constant.argmax())
                raise UnboundedExpressionError(
                    f"big_m needs the constant {constant[worst]:g} for {row[worst]._short()}, too large for "
                    "solvers to resolve; tighten the bounds of its variables, or use a "
                    "backend that takes the constraint as it is, such as scip"
                )
            draft.row(
                row - off[at] * constant <= side[at],
                rounded=not adds_exactly(side[at], constant, row.constant),
            )
