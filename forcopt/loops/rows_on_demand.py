"""A session that gives its solver only those rows of a linear program that some optimum has needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.clock import Deadline
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.loops.tolerances import OUTSIDE
from forcopt.status import Status

AT_ONCE = 50
"""So many of the most violated rows join together."""


class RowsOnDemand(Session):
    """Solves a linear program with the equations and the violated rows, and adds rows until none is violated.

    Its answers are those for all rows: a row that never joined has the shadow price 0.

    Parameters
    ----------
    backend : Backend
        Solves the programs of some rows.
    program : Program
        A linear program.

    References
    ----------
    Dantzig, Fulkerson and Johnson (1954): Solution of a large-scale traveling-salesman problem.
    """

    def __init__(self, backend: Backend, program: Program) -> None:
        super().__init__(program)
        self.joined = np.flatnonzero(program.rows.lower == program.rows.upper)
        self.inner = open_session(backend, replace(program, rows=self._taken(self.joined)))

    def _taken(self, which: Array) -> RowBlock:
        rows, matrix = self.program.rows, self.program.matrix()[which]
        entries = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data
        return RowBlock(*entries, rows.lower[which], rows.upper[which])

    def add_columns(self, cost: Array, lower: Array, upper: Array, matrix: sp.csc_array) -> None:
        """Append columns, to the solver with the rows that have joined."""
        super().add_columns(cost, lower, upper, matrix)
        self.inner.add_columns(cost, lower, upper, sp.csc_array(sp.csr_array(matrix)[self.joined]))

    def set_stage(self, stage: StageCost) -> None:
        """Replace the objective."""
        super().set_stage(stage)
        self.inner.set_stage(stage)

    def set_bounds(self, lower: Array, upper: Array) -> None:
        """Replace all column bounds."""
        super().set_bounds(lower, upper)
        self.inner.set_bounds(lower, upper)

    def solve(self, options: SolveOptions) -> RawResult:
        """Solve with the rows so far until the optimum violates no other row."""
        deadline, iterations = Deadline(options.time_limit), 0
        while True:
            result = self.inner.solve(options.within(deadline.seconds))
            iterations += result.iterations
            worst = self._missing(result)
            if not len(worst):
                break
            self.inner.add_rows(self._taken(worst))
            self.joined = np.concatenate([self.joined, worst])
        result.iterations = iterations
        if result.row_dual is not None:
            every = np.zeros(self.program.rows.count)
            every[self.joined] = result.row_dual
            result.row_dual = every
        return result

    def _missing(self, result: RawResult) -> Array:
        """The rows to join: the most violated ones, or all others if those so far leave the optimum open."""
        rows = self.program.rows
        if result.status is Status.UNBOUNDED:
            return np.setdiff1d(np.arange(rows.count), self.joined)
        if result.status is not Status.OPTIMAL or result.x is None:
            return np.zeros(0, dtype=np.intp)
        excess = rows.excess(result.x)
        excess[self.joined] = 0.0
        worst = np.argsort(-excess, kind="stable")[:AT_ONCE]
        return worst[excess[worst] > OUTSIDE]
