"""Strategies for leximin objectives: each writes its stages and runs them.

`forcopt.leximin` compares them. A leximax of losses is a leximin of the losses with their signs changed.

- ``saturation``, for convex models: raise all utilities together, fix the stuck ones, repeat with the others.
  A utility whose row has a positive multiplier is as high in every optimum, so that it can be fixed. The
  multipliers add up to 1: every solve fixes at least one. At most n linear programs of n rows. A backend that
  gives no multipliers is asked by how much each of the lowest utilities can rise.
- ``compact``: stage k maximizes the sum of the k smallest utilities, written as its linear programming dual,
  the greatest ``k q - sum_j d_j`` with ``d_j >= q - u_j`` and ``d >= 0``: n stages, O(n^2) rows and columns.
- ``cuts``: stage k maximizes a column below the sums of all subsets of size k. The singletons and the full
  set are rows from the start; other subsets become rows once a point violates them.
- ``ordered-values``, over few possible values v_1 < ... < v_K: minimize the total shortfall from v_2, then
  v_3, ... The first stage counts the utilities at v_1: K - 1 stages of n rows.

References
----------
J. A. M. Potters and S. H. Tijs, "The nucleolus of a matrix game and other nucleoli", Mathematics of
Operations Research 17 (1992).
A. S. El-Bakry, R. A. Tapia and Y. Zhang, "A study of indicators for identifying zero variables in
interior-point methods", SIAM Review 36 (1994).
W. Ogryczak and T. Sliwinski, "On direct methods for lexicographic min-max optimization", ICCSA 2006.
M. Henzinger, C. Peale, O. Reingold and J. H. Shen, "Leximax approximations and representative cohort
selection", FORC 2022, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import RawResult, Session
from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.leximin import LeximinStages, Utilities, register_leximin
from forcopt.compile.program import LeximinLayout, Program, RowBlock, StageCost
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.relations import only_columns
from forcopt.loops import tolerances as tol
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.loops.exact_lp import Exact, LinearProgram, Rational

__all__ = [
    "CutsLayout",
    "Floors",
    "Layout",
    "OrderedValuesLayout",
    "SaturationLayout",
    "StageRun",
    "SubsetCuts",
    "SumsLayout",
    "hold_objective",
]


class Floors:
    """Lower bounds that hold columns at values that a point attains.

    The values are computed from the point, not taken from the solver, and they are held as lower bounds on
    columns. The point therefore satisfies the next solve's bounds up to rounding. Where a solver still finds
    none, all floors are lowered together, ten times as much each time, and the message reports it.

    Parameters
    ----------
    session : Session
        Its bounds are set.
    tolerance : float
        Relative to the larger of 1 and the value.

    Attributes
    ----------
    slack : float
        The tolerance, or the larger slack that was needed.
    relaxed : bool
        Whether the slack had to grow.
    """

    def __init__(self, session: Session, tolerance: float) -> None:
        self.session = session
        self.slack = tolerance
        self.relaxed = False
        self._held: dict[int, float] = {}

    def hold(self, held: dict[int, float], spare: Array | None = None) -> None:
        """Hold columns at values; columns in `spare` lose their upper bounds."""
        self._held |= held
        self._apply(spare)

    def relax(self) -> bool:
        """Lower the floors ten times as much as before; False beyond the limit."""
        slack = 10 * max(self.slack, tol.LEAST_SLACK)
        if not self._held or slack > tol.MOST_SLACK:
            return False
        self.slack, self.relaxed = slack, True
        self._apply()
        return True

    def _apply(self, spare: Array | None = None) -> None:
        program = self.session.program
        lower, upper = program.lower.copy(), program.upper
        columns = np.fromiter(self._held, dtype=int)
        values = np.fromiter(self._held.values(), dtype=float)
        lower[columns] = np.minimum(values - self.slack * np.maximum(1.0, np.abs(values)), upper[columns])
        if spare is not None:
            upper = upper.copy()
            upper[spare] = np.inf
        self.session.set_bounds(lower, upper)


@dataclass(eq=False)
class StageRun:
    """The state of a lexicographic solve that strategies read and change.

    Attributes
    ----------
    session : Session
        Holds the program at the current stage.
    floors : Floors
        Hold the values that earlier stages reached.
    call : callable
        Solves the session once; its second argument is `best`.
    accuracy : float
        The backend's.
    tolerance : float
        By how much later stages may worsen earlier ones.
    last : bool, default False
        Whether no stage follows.
    best : RawResult, optional
        The last result with a point.
    results : list of RawResult
        Of all solves.
    memory : dict
        A strategy's own state between its stages, by ``id`` of its layout.
    """

    session: Session
    floors: Floors
    call: Callable[[Session, RawResult | None], RawResult]
    accuracy: float
    tolerance: float
    last: bool = False
    best: RawResult | None = None
    results: list[RawResult] = field(default_factory=list)
    memory: dict[int, Any] = field(default_factory=dict)

    def solve(self) -> RawResult:
        """Solve the session and keep the result."""
        result = self.call(self.session, self.best)
        # The point of the solve before is feasible: lower the floors until the solver finds that, too.
        while result.status in (Status.INFEASIBLE, Status.FAILED) and self.floors.relax():
            result = self.call(self.session, self.best)
        self.results.append(result)
        if result.status.has_solution:
            self.best = result
        return result


@dataclass(frozen=True, slots=True, eq=False)
class Layout(LeximinLayout):
    """The columns of a strategy and how to run its stages; by default: solve once, hold the objective."""

    def run(self, stage: StageCost, run: StageRun) -> RawResult:
        """Solve the stage."""
        return run.solve()

    def hold(self, stage: StageCost, run: StageRun, x: Array, last: bool) -> None:
        """Hold the values of the stage at the point `x`; `last` if no stage follows."""
        if not last:
            run.session.add_rows(hold_objective(stage, stage.value(x), run.tolerance))

    def conclude(self, program: Program, run: StageRun, results: list[RawResult]) -> None:
        """Correct the best result once all stages are done; `results` holds the results of all solves."""


_SMALL = 2.0**-7
"""Costs below this are small beside the tolerances of solvers."""


def hold_objective(stage: StageCost, value: float, tolerance: float) -> RowBlock:
    """A row that keeps a stage's objective at a value, within a relative tolerance.

    Parameters
    ----------
    stage : StageCost
        To be minimised.
    value : float
        Its optimum.
    tolerance : float
        Relative to the larger of 1 and the value's size. Costs that are all small are divided by a power of
        two, which takes the place of 1.

    Returns
    -------
    RowBlock
        One row.

    Examples
    --------
    >>> stage = StageCost(np.array([1.0, 2.0]), 0.0, False)
    >>> hold_objective(stage, 3.0, 1e-6).upper.round(9).tolist()
    [3.000003]
    """
    largest = float(np.abs(stage.cost).max(initial=0.0))
    unit = 2.0 ** np.round(np.log2(largest)) if 0 < largest < _SMALL else 1.0
    limit = (value - stage.offset + tolerance * max(unit, abs(value))) / unit
    return RowBlock.of(sp.csr_array(stage.cost.reshape(1, -1) / unit), np.array([-np.inf]), np.array([limit]))


def realized(layout: LeximinLayout, program: Program, x: Array) -> Array:
    """Return the utilities at a point; in an integer program the smaller ones before and after rounding.

    Parameters
    ----------
    layout : LeximinLayout
        The rows that give the utilities.
    program : Program
        The program of `x`.
    x : Array
        A point, shape ``(columns,)``.

    Returns
    -------
    Array
        Shape ``(utilities,)``.
    """
    found = layout.at(x)
    if program.is_integer:
        found = np.minimum(found, layout.at(np.where(program.integer == 1, np.round(x), x)))
    return found


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
                room = tol.ZERO_MULTIPLIER * run.accuracy * max(1.0, abs(height))
                lowest = free & (values <= height + room)
                run.floors.hold({self.level: height})
                fixed, failure = self._stuck(run, lowest, height)
                if failure is not None:
                    return failure
                run.session.set_stage(stage)
            free &= ~fixed
            run.floors.hold(dict.fromkeys(self.values[fixed].tolist(), height), self.spares[fixed])
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
        return shares > np.maximum(above, min(tol.ZERO_MULTIPLIER * accuracy, 0.5 / len(above)))

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
        room = tol.ZERO_MULTIPLIER * run.accuracy * max(1.0, abs(height))
        found: Array = rises <= max(room, float(rises.min()))
        return found & lowest, None

    def prove(self, lp: LinearProgram) -> tuple[LinearProgram, list[Exact]]:
        """Run the strategy in exact rational arithmetic; give the optimal face and the sums of the worst.

        By complementary slackness a utility with a positive multiplier stands at the level in every optimum.
        """
        from forcopt.loops.exact_lp import exact_optimum
        from forcopt.rationals import fmpq

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
def write_saturation(utilities: Utilities, context: BridgeContext) -> LeximinStages:
    """Write a common level below all values, and a spare for each value."""
    values = utilities.values
    level = context.column("level", ())
    spare = context.column("spare", values.size, 0.0, 0.0)
    first = context.model.row_count + sum(row.expression.size for row in context.rows)
    context.row(values + spare - level >= 0)
    layout = SaturationLayout(level=int(only_columns(level)[0]), spares=only_columns(spare), rows=first)
    return LeximinStages(layout, [level], [[]])


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


def sum_columns(utilities: Utilities, context: BridgeContext) -> Expression:
    """Add columns for the sums of the 1, 2, ..., n smallest values."""
    low, high = utilities.lower, utilities.upper
    return context.column(
        "sum", low.size, np.cumsum(np.sort(low)), np.cumsum(np.sort(high)), implied_integer=utilities.integral
    )


@register_leximin("compact")
def write_compact(utilities: Utilities, context: BridgeContext) -> LeximinStages:
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
    return LeximinStages(SumsLayout(sums=only_columns(sums)), [sums[k] for k in range(count)], rows)


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
            rows = cuts.rows(cuts.violated(values, demanded, max(run.tolerance, tol.LEAST_CUT)))
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
def write_cuts(utilities: Utilities, context: BridgeContext) -> LeximinStages:
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
        sizes = np.flatnonzero(short > np.maximum(tolerance, tol.SUM_ROUNDING * np.abs(sums))) + 1
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
        if (off > tol.OFF_OUTCOME * np.maximum(1.0, np.abs(values))).any():
            at = int(np.argmax(off))
            best.status = Status.FAILED
            best.message = f"element {at} takes the value {abs(values[at]):.6g}, which is no outcome"


@register_leximin("ordered-values")
def write_ordered_values(utilities: Utilities, context: BridgeContext) -> LeximinStages:
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
