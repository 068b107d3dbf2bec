"""Leximin over few possible values v_1 < ... < v_K: minimize the total shortfall from v_2, then v_3, ...

The first stage minimizes the shortfall from v_2, which counts the utilities at v_1: K - 1 stages of n rows.

References
----------
W. Ogryczak and T. Sliwinski, "On direct methods for lexicographic min-max optimization", ICCSA 2006.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import RawResult
from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.leximin import LeximinStages, Utilities, register_leximin
from forcopt.compile.program import Program
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.loops.leximin.stage import Layout, StageRun, realized
from forcopt.loops.tolerances import OFF_OUTCOME
from forcopt.status import Status

_MOST_OUTCOMES = 1000
"""The largest number of outcomes; each needs a stage."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderedValuesLayout(Layout):
    """The columns of the ordered-values strategy.

    Attributes
    ----------
    outcomes : Array, optional
        All values that a utility can take, rising.
    """

    outcomes: Array | None = None

    def conclude(self, program: Program, run: StageRun, results: list[RawResult]) -> None:
        """Bound the smallest value, which no shortfall does, and check that all values are outcomes."""
        best = run.best
        if program.stages[0].leximin is not self:
            return
        results[0].trace, results[0].bound = [], -np.inf
        if best is None:
            return
        assert best.x is not None and self.outcomes is not None
        values = realized(self, program, best.x)
        if best.status is Status.OPTIMAL:
            results[0].bound = -float(values.min())
        off = np.abs(values[:, None] - self.outcomes).min(axis=1)
        if (off > OFF_OUTCOME * np.maximum(1.0, np.abs(values))).any():
            at = int(np.argmax(off))
            best.status = Status.FAILED
            best.message = (
                f"element {at} takes the value {abs(values[at]):.6g}, which is not among the outcomes"
            )


@register_leximin("ordered-values")
def write(utilities: Utilities, context: BridgeContext) -> LeximinStages:
    """Write n shortfalls for each outcome but the smallest."""
    stage, values, low, high = utilities.stage, utilities.values, utilities.lower, utilities.upper
    whole = utilities.integral
    if stage.outcomes is not None:
        count = len(stage.outcomes)
    elif whole and np.isfinite(low).all() and np.isfinite(high).all():
        count = int(high.max()) - int(low.min()) + 1
    else:
        raise DeclarationError(
            "leximin by 'ordered-values' needs all values that can be taken: give outcomes=..., or make the "
            "expression integral and bounded"
        )
    if count > _MOST_OUTCOMES:
        raise DeclarationError(
            f"leximin by 'ordered-values': there are {count} outcomes; it takes at most "
            f"{_MOST_OUTCOMES}, use 'compact'"
        )
    if stage.outcomes is None:
        outcomes = low.min() + np.arange(count)
    else:
        outcomes = stage.outcomes if stage.maximize else -stage.outcomes[::-1]
    whole = whole and bool((outcomes == np.round(outcomes)).all())
    targets: list[Expression] = []
    rows: list[list[Constraint]] = []
    for outcome in outcomes[1:]:
        shortfall = context.column(
            "shortfall", values.size, 0.0, outcome - outcomes[0], implied_integer=whole
        )
        rows.append([shortfall + values >= outcome])
        targets.append(-shortfall.sum())
    for row in rows[0] if rows else ():
        context.row(row)
    rows[:1] = [[]]
    layout = OrderedValuesLayout(outcomes=outcomes)
    if not targets:  # only one value can be taken
        return LeximinStages(layout, [values[0] * 0.0], [[]])
    return LeximinStages(layout, targets, rows)
