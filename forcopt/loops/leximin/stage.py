"""Run one stage of a leximin objective: the interface of the strategies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import RawResult, Session
from forcopt.compile.program import LeximinLayout, Program, RowBlock, StageCost
from forcopt.loops.tolerances import LEAST_SLACK, MOST_SLACK
from forcopt.status import Status


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
        slack = 10 * max(self.slack, LEAST_SLACK)
        if not self._held or slack > MOST_SLACK:
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


def hold_objective(stage: StageCost, value: float, tolerance: float) -> RowBlock:
    """A row that keeps a stage's objective at a value, within a relative tolerance.

    Parameters
    ----------
    stage : StageCost
        To be minimised.
    value : float
        Its optimum.
    tolerance : float
        Relative to the larger of 1 and the value's size.

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
    row = sp.csr_array(stage.cost.reshape(1, -1))
    limit = value - stage.offset + tolerance * max(1.0, abs(value))
    return RowBlock(
        row.indptr.astype(np.int32),
        row.indices.astype(np.int32),
        row.data,
        np.array([-np.inf]),
        np.array([limit]),
    )


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
