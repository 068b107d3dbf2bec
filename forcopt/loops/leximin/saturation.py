"""Leximin of convex models: raise all utilities together, fix the stuck ones, repeat with the others.

A utility whose row has a positive multiplier is as high in every optimum, so that it can be fixed. The
multipliers add up to 1: every solve fixes at least one. At most n linear programs of n rows. A backend that
gives no multipliers is asked by how much each of the lowest utilities can rise.

References
----------
J. A. M. Potters and S. H. Tijs, "The nucleolus of a matrix game and other nucleoli", Mathematics of
Operations Research 17 (1992).
A. S. El-Bakry, R. A. Tapia and Y. Zhang, "A study of indicators for identifying zero variables in
interior-point methods", SIAM Review 36 (1994).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import RawResult
from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.leximin import LeximinStages, Utilities, register_leximin
from forcopt.compile.program import StageCost
from forcopt.language.relations import only_columns
from forcopt.loops.leximin.stage import Layout, StageRun, realized
from forcopt.loops.tolerances import ZERO_MULTIPLIER
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.loops.exact_lp import Exact, LinearProgram, Rational


@dataclass(frozen=True, slots=True, eq=False)
class SaturationLayout(Layout):
    """The columns and rows of the saturation strategy.

    Attributes
    ----------
    level : int
        The column that is raised.
    spares : Array
        Columns of the rows ``values + spares >= level``; a spare lets a fixed value fall behind the level.
    rows : int
        The first of these rows.
    """

    level: int = -1
    spares: Array = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    rows: int = -1

    def run(self, stage: StageCost, run: StageRun) -> RawResult:
        """Raise the level and fix utilities until all are fixed.

        Returns
        -------
        RawResult
            The first result that is no optimum, if any; else the last.
        """
        free = np.ones(len(self.values), dtype=bool)
        while True:
            result = run.solve()
            if result.status is not Status.OPTIMAL:
                return result
            assert result.x is not None
            values = realized(self, run.session.program, result.x)
            height = float(values[free].min())
            above = np.where(free, values - height, np.inf) / max(1.0, abs(height))
            fixed = self.tight(result, above, run.accuracy)
            if not fixed.any():
                lowest = free & (values <= height + ZERO_MULTIPLIER * run.accuracy * max(1.0, abs(height)))
                run.floors.hold({self.level: height})
                fixed, failure = self._stuck(run, lowest, height)
                if failure is not None:
                    return failure
                run.session.set_stage(stage)
            free &= ~fixed
            held = dict.fromkeys(self.values[fixed].tolist(), height)
            run.floors.hold(held, self.spares[fixed])
            if not free.any():
                return result

    def hold(self, stage: StageCost, run: StageRun, x: Array, last: bool) -> None:
        """Do nothing: the utilities are held one by one."""

    def tight(self, result: RawResult, above: Array, accuracy: float) -> Array:
        """The utilities that the multipliers show to be as high as they can be.

        An interior point leaves no multiplier at 0. A utility counts as free if it is further `above` the
        level than its multiplier is large.

        Parameters
        ----------
        result : RawResult
            An optimum; no utility is tight if it has no multipliers.
        above : Array
            How far each utility is above the level, relative; infinite for a fixed one. Shape ``(n,)``.
        accuracy : float
            The backend's.
        """
        if result.row_dual is None:
            return np.zeros(len(above), dtype=bool)
        shares = result.row_dual[self.rows : self.rows + len(above)]
        found: Array = shares > np.maximum(above, min(ZERO_MULTIPLIER * accuracy, 0.5 / len(above)))
        return found

    def _stuck(self, run: StageRun, lowest: Array, height: float) -> tuple[Array, RawResult | None]:
        """The lowest utilities that cannot rise, at least the one that rises least; or a failed solve."""
        rises = np.full(len(lowest), np.inf)
        for j in np.flatnonzero(lowest).tolist():
            cost = np.zeros(run.session.program.columns)
            cost[self.values[j]] = -1.0
            run.session.set_stage(StageCost(cost, 0.0, True))
            result = run.solve()
            if result.x is not None:
                rises[j] = self.at(result.x)[j] - height
            elif result.status is not Status.UNBOUNDED and not result.ambiguous:
                return lowest, result
        found: Array = rises <= max(
            ZERO_MULTIPLIER * run.accuracy * max(1.0, abs(height)), float(rises.min())
        )
        return found & lowest, None

    def prove(self, lp: LinearProgram) -> tuple[LinearProgram, list[Exact]]:
        """Run the strategy in exact rational arithmetic; give the optimal face and the sums of the worst.

        By complementary slackness a utility with a positive multiplier stands at the level in every optimum.
        """
        from flint import fmpq

        from forcopt.loops.exact_lp import exact_optimum

        sums: list[Exact] = []
        total: Rational = fmpq(0)
        free = list(range(len(self.values)))
        while free:
            found = exact_optimum(lp)
            if not found.proved or found.dual is None or found.value is None:
                return lp, [*sums, replace(found, bound=None)]
            tight = [j for j in free if found.dual[self.rows + j] > 0]
            lower, upper = list(lp.lower), list(lp.upper)
            for j in tight:
                lower[self.values[j]], upper[self.spares[j]] = -found.value, None
                total += found.value
                sums.append(replace(found, value=total, bound=total))
            lp = replace(lp, lower=lower, upper=upper)
            free = [j for j in free if j not in tight]
        return lp, sums


@register_leximin("saturation", convex_only=True)
def write(utilities: Utilities, context: BridgeContext) -> LeximinStages:
    """Write a common level below all values, and a spare for each value."""
    values = utilities.values
    level = context.column("level", ())
    spare = context.column("spare", values.size, 0.0, 0.0)
    first = context.model.row_count + sum(row.expression.size for row in context.rows)
    context.row(values + spare - level >= 0)
    layout = SaturationLayout(level=int(only_columns(level)[0]), spares=only_columns(spare), rows=first)
    return LeximinStages(layout, [level], [[]])
