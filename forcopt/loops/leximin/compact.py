"""Leximin by sums of the smallest utilities, each written as its linear programming dual.

Stage k maximizes the sum of the k smallest, the greatest ``k q - sum_j d_j`` with ``d_j >= q - u_j`` and
``d >= 0``: n stages, O(n^2) rows and columns.

References
----------
W. Ogryczak and T. Sliwinski, "On direct methods for lexicographic min-max optimization", ICCSA 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from forcopt.arrays import Array
from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.leximin import LeximinStages, Utilities, register_leximin
from forcopt.compile.program import StageCost
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.relations import only_columns
from forcopt.loops.leximin.stage import Layout, StageRun, realized


@dataclass(frozen=True, slots=True, eq=False)
class SumsLayout(Layout):
    """A strategy with columns for the sums of the smallest utilities.

    Attributes
    ----------
    sums : Array
        Columns held at or below the sums of the 1, 2, ..., n smallest values.
    """

    sums: Array = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def hold(self, stage: StageCost, run: StageRun, x: Array, last: bool) -> None:
        """Hold the sum that the stage maximized at its value at the point."""
        worst = np.sort(realized(self, run.session.program, x))
        run.floors.hold({int(self.sums[stage.rank - 1]): float(worst[: stage.rank].sum())})


@dataclass(frozen=True, slots=True, eq=False)
class CompactLayout(SumsLayout):
    """The columns of the compact strategy."""


def sum_columns(utilities: Utilities, context: BridgeContext) -> Expression:
    """Add columns for the sums of the 1, 2, ..., n smallest values."""
    low, high = utilities.lower, utilities.upper
    return context.column(
        "sum",
        low.size,
        np.cumsum(np.sort(low)),
        np.cumsum(np.sort(high)),
        implied_integer=utilities.integral,
    )


@register_leximin("compact")
def write(utilities: Utilities, context: BridgeContext) -> LeximinStages:
    """Write one threshold and n shortfalls for each stage but the first and the last."""
    values, low, high = utilities.values, utilities.lower, utilities.upper
    count, whole = values.size, utilities.integral
    sums = sum_columns(utilities, context)
    context.row(values >= sums[0])
    rows: list[list[Constraint]] = [[]]
    for k in range(2, count):
        most = np.maximum(high.max() - low, 0.0)
        threshold = context.column("threshold", (), low.min(), high.max(), implied_integer=whole)
        shortfall = context.column("shortfall", count, 0.0, most, implied_integer=whole)
        rows.append([shortfall + values >= threshold, k * threshold - shortfall.sum() >= sums[k - 1]])
    if count > 1:
        rows.append([values.sum() >= sums[count - 1]])
    layout = CompactLayout(sums=only_columns(sums))
    return LeximinStages(layout, [sums[k] for k in range(count)], rows)
