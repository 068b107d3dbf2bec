"""Keep a compiled model and its solver between solves that differ in numbers only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveOptions
from forcopt.backends.conditioned import ScaledSession, conditioned, open_session
from forcopt.backends.outer import OuterSession
from forcopt.compile.parametric import ParametricProgram
from forcopt.compile.program import Program, RowBlock
from forcopt.language.model import Model
from forcopt.language.structure import same_marks


@dataclass(eq=False)
class _Prepared:
    """The state that is kept after the last solve on a backend."""

    marks: tuple[Any, ...]
    compiled: ParametricProgram
    settings: tuple[Any, ...] = ()
    session: _TrimmedSession | None = None


def prepared(
    model: Model,
    backend: Backend,
    key: str,
    options: SolveOptions,
    compile_anew: Callable[[], ParametricProgram],
) -> tuple[Program, Session]:
    """The program for the current values of a model's parameters, in a session that may be warm.

    Parameters
    ----------
    model : Model
        With parameters, or edited after it was declared.
    backend : Backend
        Solves it.
    key : str
        Names the way of compiling.
    options : SolveOptions
        A session is only kept for the same options of the solver.
    compile_anew : Callable[[], ParametricProgram]
        Called if the model has changed otherwise.
    """
    marks = model.marks()
    kept = model.prepared.get(key)
    if kept is None or not same_marks(kept.marks, marks):
        compiled = compile_anew()
        if kept is not None and kept.session is not None and kept.session.goes_on(compiled):
            kept = _Prepared(marks, compiled, kept.settings, kept.session)
        else:
            kept = _Prepared(marks, compiled)
    model.prepared.pop(key, None)  # back in place only after all has gone well
    program = kept.compiled.at_values()
    settings = (options.seed, options.threads, sorted(options.extra.items(), key=str))
    session = kept.session
    # Cutting planes and stages leave rows behind, scales depend on the numbers.
    lasting = not model.lazies and not program.is_staged
    if session is not None and lasting and kept.settings == settings:
        session.update(program)
    elif lasting:
        session = _TrimmedSession(backend, program, kept.compiled.gone)
    kept.session, kept.settings = (session if lasting and session and session.lasting else None), settings
    model.prepared[key] = kept
    return program, session if lasting and session else open_session(backend, program)


class _TrimmedSession(Session):
    """A session that does not show the solver the columns into which values were put; they are empty."""

    def __init__(self, backend: Backend, program: Program, gone: Array) -> None:
        super().__init__(program)
        self._keep = ~gone
        self._left = np.flatnonzero(self._keep)
        self._place = np.cumsum(self._keep) - 1
        self._indices = self._placed = np.zeros(0, np.int32)
        stage = program.stages[0]
        self._stage, self._left_stage = stage, replace(stage, cost=stage.cost[self._left])
        # The values of parameters move the bounds of no column that stays, an edit does.
        self._bounds = program.lower[self._left], program.upper[self._left]
        self._integer = program.integer[self._left]
        first = self._trimmed(program)
        self._backend, self.inner = backend, open_session(backend, first)
        self.lasting = self.inner.program is first and not isinstance(self.inner, ScaledSession)

    def goes_on(self, compiled: ParametricProgram) -> bool:
        """Whether a program that was compiled anew has other numbers only; if so, take its bounds."""
        old, new = self.program, compiled.program
        plain = not (old.cones or new.cones or old.is_conditional or new.is_conditional)
        if not plain or (old.columns, old.rows.count) != (new.columns, new.rows.count):
            return False
        if not (np.array_equal(old.integer, new.integer) and np.array_equal(self._keep, ~compiled.gone)):
            return False
        self._bounds = new.lower[self._left], new.upper[self._left]
        return True

    def _trimmed(self, program: Program) -> Program:
        if program.cones or program.is_conditional or program.stages[0].quadratic is not None:
            return program.without(np.flatnonzero(~self._keep))
        rows, stage = program.rows, program.stages[0]
        if rows.indices is not self._indices:
            self._indices, self._placed = rows.indices, self._place[rows.indices].astype(np.int32)
        if stage is not self._stage:
            cost = self._left_stage.cost if stage.cost is self._stage.cost else stage.cost[self._left]
            self._stage, self._left_stage = stage, replace(stage, cost=cost)
        return replace(
            program,
            lower=self._bounds[0],
            upper=self._bounds[1],
            integer=self._integer,
            rows=RowBlock(rows.indptr, self._placed, rows.data, rows.lower, rows.upper),
            stages=(self._left_stage,),
            column_name=self._column_name,
        )

    def _column_name(self, column: int) -> str:
        return self.program.column_name(int(self._left[column]))

    def update(self, program: Program) -> None:
        """Replace the numbers of the program."""
        super().update(program)
        trimmed = self._trimmed(program)
        clean, scaling = conditioned(self._backend, trimmed)
        if scaling is None and (clean is trimmed or isinstance(self.inner, OuterSession)):
            self.inner.update(trimmed)
        else:  # what it holds has other units
            self.inner, self.lasting = open_session(self._backend, trimmed), False

    def solve(self, options: SolveOptions) -> RawResult:
        """Solve without the empty columns and put them back."""
        if options.start is not None:
            options = replace(options, start=options.start[self._left])
        result = self.inner.solve(options)
        if result.x is not None:
            result.x = self._whole(result.x)
        if result.reduced_cost is not None:
            reduced = np.zeros(self.program.columns)
            reduced[self._left] = result.reduced_cost
            result.reduced_cost = reduced
        return result

    def _whole(self, point: Array) -> Array:
        x = self.program.lower.copy()
        x[self._left] = point
        return x
