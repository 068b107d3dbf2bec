"""Leximin by sums of the smallest utilities, each bounded by subset sums that are separated by sorting.

Stage k maximizes a column below the sums of all subsets of size k. The singletons and the full set are rows
from the start; other subsets become rows once a point violates them.

References
----------
M. Henzinger, C. Peale, O. Reingold and J. H. Shen, "Leximax approximations and representative cohort
selection", FORC 2022, Algorithm 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import RawResult
from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.leximin import LeximinStages, Utilities, register_leximin
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.language.constraint import Constraint
from forcopt.language.relations import only_columns
from forcopt.loops.leximin.compact import SumsLayout, sum_columns
from forcopt.loops.leximin.stage import StageRun, realized
from forcopt.loops.tolerances import LEAST_CUT, SUM_ROUNDING
from forcopt.status import Status


@dataclass(frozen=True, slots=True, eq=False)
class CutsLayout(SumsLayout):
    """The columns of the cuts strategy."""

    def run(self, stage: StageCost, run: StageRun) -> RawResult:
        """Maximize the sum of the ``stage.rank`` smallest utilities, adding violated subsets as rows."""
        cuts: SubsetCuts = run.memory.setdefault(id(self), SubsetCuts(self))
        sums = self.sums[: stage.rank]
        if run.best is not None and run.best.x is not None:  # its smallest utilities bound the first solve
            at = np.argsort(self.at(run.best.x), kind="stable")
            if (rows := cuts.rows([at[: stage.rank]])) is not None:
                run.session.add_rows(rows)
        while True:
            result = run.solve()
            if result.x is None:
                return result
            program = run.session.program
            demanded = np.append(program.lower[sums[:-1]], result.x[sums[-1]])
            values = realized(self, program, result.x)
            rows = cuts.rows(cuts.violated(values, demanded, max(run.tolerance, LEAST_CUT)))
            if rows is None:
                return result
            if result.status is not Status.OPTIMAL:
                return replace(result, status=Status.LIMIT, x=None, objective=float("nan"))
            run.session.add_rows(rows)

    def conclude(self, program: Program, run: StageRun, results: list[RawResult]) -> None:
        """Report the number of subsets that became rows."""
        if run.best is not None and id(self) in run.memory:
            run.best.message += f"; {len(run.memory[id(self)].pool)} of 2**{len(self.values)} - 1 subsets"


@register_leximin("cuts")
def write(utilities: Utilities, context: BridgeContext) -> LeximinStages:
    """Write the rows of the singletons now, and the row of the full set for the last stage."""
    values, count = utilities.values, utilities.values.size
    sums = sum_columns(utilities, context)
    context.row(values >= sums[0])
    rows: list[list[Constraint]] = [[] for _ in range(count)]
    if count > 1:
        rows[-1] = [values.sum() >= sums[count - 1]]
    return LeximinStages(CutsLayout(sums=only_columns(sums)), [sums[k] for k in range(count)], rows)


class SubsetCuts:
    """The subsets of utilities whose sums are rows, and the search for violated ones.

    Parameters
    ----------
    layout : CutsLayout
        Of the program.

    Attributes
    ----------
    pool : set of frozenset of int
        The subsets that are rows.

    Notes
    -----
    Among all subsets of one size, the smallest utilities have the smallest sum. It is enough to check the n
    prefix sums of the sorted vector: O(n log n).
    """

    def __init__(self, layout: SumsLayout) -> None:
        self.layout = layout
        count = len(layout.values)
        self.pool = {frozenset(range(count)), *(frozenset([j]) for j in range(count))}

    def violated(self, values: Array, sums: Array, tolerance: float) -> list[Array]:
        """The sets of smallest utilities, of sizes 1, 2, ..., whose sum is below the demanded one.

        Parameters
        ----------
        values : Array
            The utilities at a point, shape ``(n,)``.
        sums : Array
            The demanded sum for each size 1, ..., ``len(sums)``.
        tolerance : float
            Smaller violations do not count; absolute.
        """
        order = np.argsort(values, kind="stable")
        short = sums - np.cumsum(values[order])[: len(sums)]
        sizes = np.flatnonzero(short > np.maximum(tolerance, SUM_ROUNDING * np.abs(sums))) + 1
        return [order[:k] for k in sizes.tolist()]

    def rows(self, sets: list[Array]) -> RowBlock | None:
        """Return rows for the sets without one; None if all have one."""
        fresh = [s for s in sets if frozenset(s.tolist()) not in self.pool]
        if not fresh:
            return None
        self.pool.update(frozenset(s.tolist()) for s in fresh)
        columns = [np.append(self.layout.values[s], self.layout.sums[len(s) - 1]) for s in fresh]
        data = [np.append(np.ones(len(s)), -1.0) for s in fresh]
        ends = np.cumsum([0, *map(len, columns)]).astype(np.int32)
        indices, count = np.concatenate(columns).astype(np.int32), len(fresh)
        return RowBlock(ends, indices, np.concatenate(data), np.zeros(count), np.full(count, np.inf))
