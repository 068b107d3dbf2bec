"""Cones for solvers of linear rows: outer approximation by tangents, added where a point is outside.

Every relaxation bounds the program, so the last bound is valid even if the rounds are stopped. With integers
a search over the rows proposes them; with these held, a linear program is cut until its point is in the
cones, within the tolerance. This gives a point of the program and the tangents there, so that no choice of
integers is proposed twice.

References
----------
M. A. Duran and I. E. Grossmann, "An outer-approximation algorithm for a class of mixed-integer nonlinear
programs", *Mathematical Programming* 36 (1986). J. P. Vielma, I. Dunning, J. Huchette and M. Lubin, "Extended
formulations in mixed integer conic quadratic programming", *Mathematical Programming Computation* 9 (2017).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveMonitor, SolveOptions
from forcopt.backends.tolerances import ACCURATE, FALLS, INSIDE, MEETS, STAGED
from forcopt.compile.compiler import Capabilities
from forcopt.compile.program import Program, RowBlock, StageCost, recession
from forcopt.compile.tangents import as_rows, first_tangents, outside, tangents
from forcopt.status import Status

_STUCK = 25
"""Rounds of tangents without a better bound and without a point nearer to the cones, after which they end."""

_BOXES = (1e3, 1e6)
"""Bounds on all columns, in turn, while the tangents found so far leave a program unbounded."""


def with_tangents(backend: Backend) -> Capabilities:
    """The capabilities of a backend, with cones by tangents if it has accurate rows and no cones."""
    own = backend.capabilities
    if own.only_integer or "second_order" in own.kinds or backend.accuracy > ACCURATE:
        return own
    conflicts = (*own.conflicts, frozenset({"quadratic", "tangents"}))
    return replace(own, kinds=own.kinds | {"tangents"}, conflicts=conflicts)


class OuterSession(Session):
    """A program with cones in sessions of its rows: one of linear programs, and one with integers, if any.

    Parameters
    ----------
    program : Program
        With second-order or semidefinite cones.
    backend : Backend
        Solves the rows.
    opened : Callable[[Program], Session]
        Opens a session of the backend.
    """

    def __init__(self, program: Program, backend: Backend, opened: Callable[[Program], Session]) -> None:
        super().__init__(program)
        self.backend, self.opened = backend, opened
        self._tolerance = STAGED if program.is_staged else INSIDE  # later stages magnify what is outside
        rows = replace(program, cones=())
        # Indicators and products need their integers; what is called linear is a search of its own then.
        relaxed = program.integer if program.is_conditional else np.zeros_like(program.integer)
        self.linear = opened(replace(rows, integer=relaxed))
        self.search = opened(rows) if program.is_integer else None
        self._own = np.ones(program.rows.count, dtype=bool)  # the program's rows, among those of `linear`
        self._cuts: list[tuple[int, Array, Array]] = []
        self._unseen = program.rows.picked(np.zeros(program.rows.count, dtype=bool), program.columns)
        for block, cone in enumerate(program.cones):
            self._cut(block, *first_tangents(cone))
        self._tell(None)

    def _both(self) -> list[Session]:
        return [self.linear] if self.search is None else [self.linear, self.search]

    def _cut(self, block: int, cones: Array, weights: Array) -> None:
        """Add the rows that weights of the entries of cones of a block give."""
        if not len(cones):
            return
        rows = as_rows(self.program.cones[block], cones, weights)
        self.linear.add_rows(rows)
        self._unseen = self._unseen.extended(rows)
        self._own = np.append(self._own, np.zeros(len(cones), dtype=bool))
        self._cuts.append((block, cones, weights))

    def _tell(self, x: Array | None) -> None:
        """Give the search the tangents that hold a point back, of those that it does not have; else all."""
        if self.search is None or not self._unseen.count:
            return
        rows, width = self._unseen, self.program.columns
        near = np.ones(rows.count, dtype=bool)
        if x is not None:
            near = rows.matrix(width) @ x <= rows.lower + INSIDE * np.maximum(1.0, np.abs(rows.lower))
        self.search.add_rows(rows.picked(near, width))
        self._unseen = rows.picked(~near, width)

    def add_rows(self, rows: RowBlock) -> None:
        """Append rows."""
        super().add_rows(rows)
        for session in self._both():
            session.add_rows(rows)
        self._own = np.append(self._own, np.ones(rows.count, dtype=bool))

    def set_stage(self, stage: StageCost) -> None:
        """Replace the objective."""
        super().set_stage(stage)
        for session in self._both():
            session.set_stage(stage)

    def set_bounds(self, lower: Array, upper: Array) -> None:
        """Replace all column bounds."""
        super().set_bounds(lower, upper)
        for session in self._both():
            session.set_bounds(lower, upper)

    def update(self, program: Program) -> None:
        """Start again with another program: tangents do not hold for other cones."""
        self.__init__(program, self.backend, self.opened)  # type: ignore[misc]

    def add_columns(self, cost: Array, lower: Array, upper: Array, matrix: sp.csc_array) -> None:
        """Append columns, and start again."""
        super().add_columns(cost, lower, upper, matrix)
        self.update(self.program)

    def solve(self, options: SolveOptions) -> RawResult:
        """Cut the linear relaxation until it is in the cones, then search for integers."""
        self._monitor = SolveMonitor(self.program, options)
        self._iterations = self._nodes = 0
        plain = replace(options, start=None, on_improvement=None)
        self.linear.set_bounds(self.program.lower, self.program.upper)
        result = self._inside(plain)
        if self.search is None:
            self._read_multipliers(result)
        elif result.status is Status.OPTIMAL:
            result = replace(self._searched(self.search, plain, options.start, result), row_dual=None)
        result.log, result.trace = self._monitor.log, self._monitor.trace
        result.iterations, result.nodes = self._iterations, self._nodes
        return result

    def _ask(self, session: Session, options: SolveOptions) -> RawResult:
        """Solve a session within the time that is left."""
        result = session.solve(options.within(self._monitor.deadline.seconds))
        self._monitor.log += result.log
        self._iterations, self._nodes = self._iterations + result.iterations, self._nodes + result.nodes
        return result

    def _inside(self, options: SolveOptions, boxes: Sequence[float] = _BOXES) -> RawResult:
        """Cut the linear program until its point is in the cones, as far as its solver's accuracy allows."""
        last = least = np.inf
        bound, stuck = -np.inf, 0
        for count in itertools.count(1):
            result = self._ask(self.linear, options)
            if result.ambiguous or result.status is Status.UNBOUNDED:
                if not boxes:
                    return result
                result = self._bounded(options, result, boxes)
            if result.status is not Status.OPTIMAL:
                break
            assert result.x is not None
            x = result.x
            worst = max(float(outside(cone, x).max(initial=0.0)) for cone in self.program.cones)
            if worst <= self._tolerance or (worst <= self.backend.accuracy and worst >= last):
                result.message += f"; tangents of cones in {count} rounds"
                return result
            if self._monitor.stop:
                result = RawResult(Status.LIMIT, message=self._monitor.deadline.end)
                break
            rises = not result.bound <= bound + INSIDE * max(1.0, abs(bound))
            stuck = 0 if rises or worst < least else stuck + 1
            last, least, bound = worst, min(worst, least), max(bound, result.bound)
            if stuck:  # the solver does not move for a row that is violated within its tolerance
                options = replace(options, extra={**options.extra, **self.backend.careful})
            if stuck > _STUCK:
                words = f"; after {count} rounds of tangents its point is outside the cones by {worst:.2g}"
                result = RawResult(Status.LIMIT, message=result.message + words)
                break
            for block, cone in enumerate(self.program.cones):
                self._cut(block, *tangents(cone, x, self._tolerance))
        if result.status.has_solution:  # of a relaxation
            result = RawResult(Status.LIMIT, message=result.message)
        if result.status is not Status.INFEASIBLE:
            result.bound = max(result.bound, bound)
        return result

    def _bounded(self, options: SolveOptions, result: RawResult, boxes: Sequence[float]) -> RawResult:
        """Find tangents within boxes, until they bound the linear program; or show that none do."""
        stage = self.program.stages[0]
        if result.ambiguous:
            self.linear.set_stage(StageCost(np.zeros(self.program.columns), 0.0, False))
            result = self._inside(options, ())
            self.linear.set_stage(stage)
            if result.status is not Status.OPTIMAL:
                return replace(result, status=Status.INFEASIBLE) if result.ambiguous else result
        lower, upper = self.linear.program.lower, self.linear.program.upper
        for box in boxes:
            least = np.where(np.isfinite(lower), lower, np.minimum(upper, box) - 2 * box)
            most = np.where(np.isfinite(upper), upper, np.maximum(lower, -box) + 2 * box)
            self.linear.set_bounds(least, most)
            self._inside(options, ())
            self.linear.set_bounds(lower, upper)
            result = self._ask(self.linear, options)
            if not (result.ambiguous or result.status is Status.UNBOUNDED):
                return result
        ray = OuterSession(recession(self.program), self.backend, self.opened).solve(options)
        falls = ray.objective - stage.offset < FALLS * np.abs(stage.cost).max(initial=0.0)
        if ray.status is Status.OPTIMAL and falls:
            return replace(result, status=Status.UNBOUNDED, ambiguous=True)
        words = "; tangents of cones leave it unbounded: give the variables bounds"
        return RawResult(Status.FAILED, message=result.message + words)

    def _searched(
        self, search: Session, options: SolveOptions, start: Array | None, relaxed: RawResult
    ) -> RawResult:
        """Let a search propose integers, and solve the linear program of each proposal."""
        program, monitor, best = self.program, self._monitor, RawResult(Status.LIMIT)
        x, bound = relaxed.x, relaxed.bound
        whole, tried = program.integer == 1, set[bytes]()
        while True:
            self._tell(x)
            found = self._ask(search, replace(options, start=start))
            bound = max(bound, found.bound)
            if found.x is None:
                break
            held = np.where(whole, np.round(found.x), 0.0)
            self.linear.set_bounds(np.where(whole, held, program.lower), np.where(whole, held, program.upper))
            trial = self._inside(options)
            x = trial.x
            if trial.x is not None and not trial.objective >= best.objective:
                best, start = trial, trial.x
                monitor.improved(trial.objective, bound)
            again = held.tobytes() in tried  # the search's own accuracy is reached
            gap = max(options.gap or 0.0, MEETS) * max(1.0, abs(best.objective))
            settled = again and trial.x is not None and found.status is Status.OPTIMAL
            if settled or best.objective - bound <= gap:
                words = f"{best.message}; integers proposed: {len(tried) + 1}"
                return replace(best, bound=min(bound, best.objective), message=words)
            if again or found.status is not Status.OPTIMAL or monitor.stop:
                break
            tried.add(held.tobytes())
        if best.x is not None:
            return replace(best, status=Status.FEASIBLE, bound=bound, message=found.message)
        open_end = Status.LIMIT if found.status is Status.FEASIBLE or monitor.stop else Status.FAILED
        status = found.status if found.x is None else open_end
        return RawResult(status, ambiguous=found.ambiguous, bound=bound, message=found.message)

    def _read_multipliers(self, result: RawResult) -> None:
        """Split the multipliers of the linear program's rows into those of rows and of cones."""
        if result.row_dual is None:
            return
        dual, result.row_dual = result.row_dual[~self._own], result.row_dual[self._own]
        result.cone_duals = [np.zeros((len(c.offset) // c.size, c.size)) for c in self.program.cones]
        at = 0
        for block, cones, weights in self._cuts:
            np.add.at(result.cone_duals[block], cones, dual[at : at + len(cones), None] * weights)
            at += len(cones)
        result.cone_duals = [values.ravel() for values in result.cone_duals]
