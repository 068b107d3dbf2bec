"""Scale a program on its way to a solver that would drop its small coefficients, and unscale the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveOptions
from forcopt.backends.outer import OuterSession, with_tangents
from forcopt.clock import Improvement
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.compile.scaling import Scaling, geometric, lifted, objective_factor, scaling_of, without_dust


def open_session(backend: Backend, program: Program, *, scaled: bool | None = None) -> Session:
    """Translate a program to a solver so that it reads every coefficient.

    Rounding dust is dropped, and rows and columns are scaled by powers of two where a coefficient is below
    the solver's threshold, or where `Backend.scales` is set. An objective whose costs are all far below 1 is
    scaled, since a solver's tolerances are absolute. The results hold for the program as given; the solver's
    own log speaks of the scaled one.

    Parameters
    ----------
    backend : Backend
        The solver.
    program : Program
        The program.
    scaled : bool, optional
        Instead of `Backend.scales`.

    Raises
    ------
    UnsupportedError
        If no scaling brings a coefficient into the solver's range.
    """
    begin = backend.session
    if program.cones and "tangents" in with_tangents(backend).kinds:
        begin = partial(OuterSession, backend=backend, opened=partial(open_session, backend, scaled=scaled))
        clean, scaling = program, _further(program, lifted(program))
    else:
        clean, scaling = conditioned(backend, program, scaled=scaled)
    return begin(clean) if scaling is None else ScaledSession(begin, clean, scaling)


def conditioned(
    backend: Backend, program: Program, *, scaled: bool | None = None
) -> tuple[Program, Scaling | None]:
    """The program without dust, and its scaling for a solver; None if it needs none. See `open_session`."""
    clean, _ = without_dust(program)
    scaling = scaling_of(clean, backend.capabilities.smallest)
    plain = not (clean.cones or clean.indicators or clean.is_staged or clean.stages[0].quadratic is not None)
    if scaling is None and plain and (backend.scales if scaled is None else scaled):
        scaling = geometric(clean)
    return clean, _further(clean, scaling)


def _further(program: Program, scaling: Scaling | None) -> Scaling | None:
    """A scaling of the cones and the objective, too; None if none of them needs one."""
    given = scaling or Scaling(np.ones(program.rows.count), np.ones(program.columns))
    if any((given.cone_factors(cone) > 1).any() for cone in program.cones):
        scaling = given
    factors = [objective_factor(stage, scaling) for stage in program.stages]
    return replace(given, objective=factors[0]) if any(factor != 1.0 for factor in factors) else scaling


class ScaledSession(Session):
    """A session of a scaled program that speaks in the units of the given one.

    Parameters
    ----------
    begin : Callable[[Program], Session]
        Opens a session of the scaled program.
    program : Program
        As given.
    scaling : Scaling
        Of the program.
    """

    def __init__(self, begin: Callable[[Program], Session], program: Program, scaling: Scaling) -> None:
        super().__init__(program)
        self.scaling = scaling
        self.inner = begin(scaling.program(program))
        self._factors = scaling.rows

    def solve(self, options: SolveOptions) -> RawResult:
        """Solve the scaled program and undo the scaling."""
        columns, unit = self.scaling.columns, 1 / self.scaling.objective
        if options.start is not None:
            options = replace(options, start=options.start / columns)
        if (tell := options.on_improvement) is not None:
            options = replace(options, on_improvement=lambda step: tell(_times(step, unit)))
        result = self.inner.solve(options)
        own = self.inner.program.rows.from_row(self.program.rows.count)  # of lazy families
        if own.count:
            factors = np.ones(own.count)
            super().add_rows(Scaling(factors, 1 / columns).block(own, factors))
            self._factors = np.concatenate([self._factors, factors])
        result.bound *= unit
        result.trace = [_times(step, unit) for step in result.trace]
        if result.x is not None:
            result.x = result.x * columns
            result.objective = self.program.stages[0].value(result.x)
        if result.row_dual is not None:
            result.row_dual = result.row_dual * self._factors * unit
        if result.reduced_cost is not None:
            result.reduced_cost = result.reduced_cost / columns * unit
        if result.cone_duals is not None:
            told = zip(self.program.cones, result.cone_duals, strict=True)
            result.cone_duals = [dual * self.scaling.cone_factors(cone) * unit for cone, dual in told]
        return result

    def add_rows(self, rows: RowBlock) -> None:
        """Append rows, scaled so that their largest entries are near 1."""
        super().add_rows(rows)
        factors = self.scaling.factors(rows)
        self._factors = np.concatenate([self._factors, factors])
        self.inner.add_rows(self.scaling.block(rows, factors))

    def set_stage(self, stage: StageCost) -> None:
        """Replace the objective."""
        super().set_stage(stage)
        self.scaling = replace(self.scaling, objective=objective_factor(stage, self.scaling))
        self.inner.set_stage(self.scaling.stage(stage))

    def set_bounds(self, lower: Array, upper: Array) -> None:
        """Replace all column bounds."""
        super().set_bounds(lower, upper)
        self.inner.set_bounds(lower / self.scaling.columns, upper / self.scaling.columns)

    def add_columns(self, cost: Array, lower: Array, upper: Array, matrix: sp.csc_array) -> None:
        """Append columns in their own units."""
        super().add_columns(cost, lower, upper, matrix)
        columns = np.concatenate([self.scaling.columns, np.ones(len(cost))])
        self.scaling = replace(self.scaling, columns=columns)
        self.inner.add_columns(
            cost * self.scaling.objective, lower, upper, sp.csc_array(sp.diags_array(self._factors) @ matrix)
        )


def _times(step: Improvement, unit: float) -> Improvement:
    return replace(step, objective=step.objective * unit, bound=step.bound * unit)
