"""HiGHS through highspy: arrays are passed whole; rows, costs, bounds and columns change in place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveMonitor, SolveOptions
from forcopt.backends.registry import register_backend
from forcopt.backends.tolerances import DROPPED, LEAST_ENTRY, LOST, REGULARIZATION, STAGED
from forcopt.clock import watches_interrupts
from forcopt.compile.compiler import Capabilities
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.compile.scaling import without_dust
from forcopt.errors import BackendError, UnsupportedError
from forcopt.status import Status

if TYPE_CHECKING:
    import highspy


_ROWWISE, _TRIANGULAR, _MINIMIZE, _MAXIMIZE = 2, 1, 1, -1

_MANY = 2000
"""More changed entries of the matrix than this are passed with the whole model."""

_DENSE, _LARGE = 0.25, 100_000
"""The share of entries, and their number, from which a linear program is solved without presolve.

HiGHS 1.13 and 1.16 presolve a dense matrix without a look at the clock, and call nothing back: 13 s for 1500
rows of 3000 entries, and 1 s to solve; under a limit of 3 s, 1.16.0 took 18 s on a busy machine. Without
presolve, dense programs of 300 to 1000 rows took between a tenth and all of the time.
"""


_BY_BASIS = 0
"""HiGHS's option ``simplex_strategy``: primal simplex from a feasible basis, dual simplex from any other."""


def pass_program(highs: highspy.Highs, program: Program, natural: bool = False) -> None:
    """Hand a program's arrays over.

    Parameters
    ----------
    highs : highspy.Highs
        An empty solver.
    program : Program
        Its first stage becomes the objective.
    natural : bool, default False
        Keep the model's own sense instead of minimising always.
    """
    stage, rows = program.stages[0], program.rows
    flip = natural and stage.maximize
    cost, offset = (-stage.cost, -stage.offset) if flip else (stage.cost, stage.offset)
    sense = _MAXIMIZE if flip else _MINIMIZE
    integrality = (program.integer == 1).astype(np.int32)
    head: list[Any] = [program.columns, rows.count, rows.data.size]
    body: list[Any] = [cost, program.lower, program.upper, rows.lower, rows.upper]
    matrix: list[Any] = [rows.indptr, rows.indices, rows.data]
    if stage.quadratic is None:
        status = highs.passModel(*head, _ROWWISE, sense, offset, *body, *matrix, integrality)
    else:
        triangle = sp.csc_array(sp.tril(-stage.quadratic if flip else stage.quadratic, format="csc"))
        triangle.sort_indices()
        q = [triangle.indptr.astype(np.int32), triangle.indices.astype(np.int32), triangle.data]
        head = [*head, triangle.nnz, _ROWWISE, _TRIANGULAR]
        status = highs.passModel(*head, sense, offset, *body, *matrix, *q, integrality)
    _check(status, "passing the model")


def highs_of(program: Program) -> highspy.Highs:
    """Give a silent HiGHS that holds a program in its own units, not run.

    Raises
    ------
    UnsupportedError
        For a coefficient that HiGHS takes for zero under any options, unless it is rounding dust.
    """
    program, _ = without_dust(program)
    rows = program.rows
    small = (rows.data != 0) & (np.abs(rows.data) <= LEAST_ENTRY)
    if small.any():
        at = int(np.argmax(small))
        owner = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise UnsupportedError(
            f"row {program.row_name(owner)} holds the coefficient {rows.data[at]:g} of "
            f"{program.column_name(int(rows.indices[at]))}, but HiGHS drops values up to {LEAST_ENTRY:g}; "
            "give the variable another unit"
        )
    out = silent_highs()
    pass_program(out, program, natural=True)
    return out


@cache
def _silent_class() -> type[highspy.Highs]:
    """HiGHS 1.16 prints its version while it is made, unless its output is off by then."""
    import highspy

    class Silent(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            self.setOptionValue("large_matrix_value", np.inf)  # 1e15 by default
            super().enableCallbacks()

    return Silent


def new_highs() -> highspy.Highs:
    """An empty HiGHS with its output off, which takes coefficients of any size."""
    return _silent_class()()


def silent_highs() -> highspy.Highs:
    """An empty HiGHS that prints nothing and drops as few entries as it can."""
    out = new_highs()
    out.setOptionValue("small_matrix_value", LEAST_ENTRY)
    out.setOptionValue("log_to_console", False)
    out.setOptionValue("output_flag", True)
    out.setOptionValue("log_file", os.devnull)  # HiGHS calls back with its log only if it also writes it
    return out


def _check(status: Any, doing: str) -> None:
    import highspy

    if status == highspy.HighsStatus.kError:
        raise BackendError(f"HiGHS: error while {doing}")


class HighsSession(Session):
    """A program inside a HiGHS instance, re-solved warm."""

    def __init__(self, program: Program, algorithm: str) -> None:
        super().__init__(program)
        self._options: tuple[Any, ...] = ()
        self.highs = new_highs()
        if algorithm:
            self.highs.setOptionValue("solver", algorithm)
        if program.is_staged and program.is_integer:
            # With presolve, HiGHS 1.13.1 took 4 of 21,360 small stages for infeasible or settled that were
            # not; without it, none. Versions 1.11 to 1.16 err likewise. It was no faster on large stages.
            self.highs.setOptionValue("presolve", "off")
        elif program.is_staged:  # later stages build on the rounding of earlier ones
            for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
                self.highs.setOptionValue(name, STAGED)
        # Presolve of a large dense program would take longer than it spares.
        size, dense = program.rows.data.size, _DENSE * program.rows.count * program.columns
        if not program.is_integer and size >= _LARGE and size >= dense:
            self.highs.setOptionValue("presolve", "off")
        pass_program(self.highs, program)
        # New costs and new columns leave the last basis feasible; the primal simplex goes on from there, and
        # on netlib's programs with other costs it took half the time of the dual one.
        quadratic = program.stages[0].quadratic is not None
        self._may_go_primal = not (program.is_staged or program.is_integer or quadratic)

    def add_rows(self, rows: RowBlock) -> None:
        """Append rows; the basis stays."""
        super().add_rows(rows)
        status = self.highs.addRows(
            rows.count, rows.lower, rows.upper, rows.data.size, rows.indptr[:-1], rows.indices, rows.data
        )
        _check(status, "adding rows")

    def set_stage(self, stage: StageCost) -> None:
        """Replace the objective; the basis stays."""
        previous = self.program.stages[0]
        super().set_stage(stage)
        if previous.quadratic is not None or stage.quadratic is not None:
            pass_program(self.highs, self.program)
            return
        columns = np.arange(len(stage.cost), dtype=np.int32)
        _check(self.highs.changeColsCost(len(columns), columns, stage.cost), "changing costs")
        self.highs.changeObjectiveOffset(stage.offset)

    def set_bounds(self, lower: Array, upper: Array) -> None:
        """Replace all column bounds; the basis stays."""
        super().set_bounds(lower, upper)
        columns = np.arange(len(lower), dtype=np.int32)
        _check(self.highs.changeColsBounds(len(columns), columns, lower, upper), "changing bounds")

    def update(self, program: Program) -> None:
        """Pass on the numbers that differ; the basis stays."""
        old, new = self.program.stages[0], program.stages[0]
        rows, before = program.rows, self.program.rows
        same = before.data is rows.data or (
            len(before.data) == len(rows.data)
            and np.array_equal(before.indptr, rows.indptr)
            and np.array_equal(before.indices, rows.indices)
        )
        changed = np.zeros(0, np.int64)
        if same and before.data is not rows.data:
            changed = np.flatnonzero(before.data != rows.data)
        if not same or len(changed) > _MANY or old.quadratic is not None or new.quadratic is not None:
            basis = self.highs.getBasis()
            self.program = program
            pass_program(self.highs, program)
            if basis.valid:
                self.highs.setBasis(basis)
            return
        if len(changed):
            owner = np.searchsorted(rows.indptr, changed, side="right") - 1
            for i, j, value in zip(
                owner.tolist(), rows.indices[changed].tolist(), rows.data[changed].tolist(), strict=True
            ):
                _check(self.highs.changeCoeff(i, j, value), "changing a coefficient")
        moved = _moved((before.lower, rows.lower), (before.upper, rows.upper))
        if moved.size:
            status = self.highs.changeRowsBounds(len(moved), moved, rows.lower[moved], rows.upper[moved])
            _check(status, "changing rows")
        priced = _moved((old.cost, new.cost))
        if priced.size:
            _check(self.highs.changeColsCost(len(priced), priced, new.cost[priced]), "changing costs")
        if old.offset != new.offset:
            self.highs.changeObjectiveOffset(new.offset)
        held = _moved((self.program.lower, program.lower), (self.program.upper, program.upper))
        if held.size:
            status = self.highs.changeColsBounds(len(held), held, program.lower[held], program.upper[held])
            _check(status, "changing bounds")
        self.program = program

    def add_columns(self, cost: Array, lower: Array, upper: Array, matrix: sp.csc_array) -> None:
        """Append columns; the basis stays."""
        super().add_columns(cost, lower, upper, matrix)
        by_column = sp.csc_array(matrix)
        starts, indices = by_column.indptr[:-1].astype(np.int32), by_column.indices.astype(np.int32)
        status = self.highs.addCols(
            len(cost), cost, lower, upper, by_column.nnz, starts, indices, by_column.data
        )
        _check(status, "adding columns")

    def solve(self, options: SolveOptions) -> RawResult:
        """Run HiGHS and read its answer."""
        highs, program = self.highs, self.program
        size = (program.columns, program.rows.count)
        wanted = (options.gap, options.seed, options.log, dict(options.extra), size)
        if options.time_limit is not None or options.threads is not None or wanted != self._options:
            self._options = ()  # until all are set
            _set_options(highs, options, program.is_integer)
            # A limit counts from the start of the run, and threads are shared by all sessions.
            self._options = wanted if options.time_limit is None and options.threads is None else ()
        monitor, before = SolveMonitor(program, options), highs.getRunTime()
        attached = _attach(highs, monitor, program.is_integer)
        try:
            if highs.getOptionValue("solver")[1] in ("ipm", "ipx", "hipo"):  # 1.16 may crash in a second run
                highs.clearSolver()
            if options.start is not None:
                known = np.flatnonzero(~np.isnan(options.start)).astype(np.int32)
                highs.setSolution(len(known), known, options.start[known])
            _check_run(highs)
            if options.start is not None and _gives_the_start(highs, program):
                highs.clearSolver()
                if options.time_limit is not None:
                    highs.setOptionValue(
                        "time_limit", max(0.0, options.time_limit - highs.getRunTime() + before)
                    )
                _check_run(highs)
        finally:
            for kind in attached:
                highs.stopCallback(kind)
        if self._may_go_primal and "simplex_strategy" not in options.extra:
            highs.setOptionValue("simplex_strategy", _BY_BASIS)
            self._may_go_primal = False
        result = _read(highs, program, monitor)
        result.seconds = highs.getRunTime() - before  # it counts on over all runs
        return result


def _gives_the_start(highs: highspy.Highs, program: Program) -> bool:
    """Whether HiGHS 1.16 has an optimum but gives the point that completes its start, which is worse."""
    if highs.getModelStatus().name != "kOptimal":
        return False
    given, told = program.stages[0].value(_numbers(highs.getSolution().col_value)), highs.getObjectiveValue()
    return bool(abs(given - told) > LOST * max(1.0, abs(told)))


def _moved(*pairs: tuple[Array, Array]) -> Array:
    """The places at which arrays differ from the ones before them; one object holds the same numbers."""
    apart = [before != after for before, after in pairs if before is not after]
    if not apart:
        return np.zeros(0, np.int32)
    return np.flatnonzero(apart[0] if len(apart) == 1 else np.logical_or(*apart)).astype(np.int32)


def fresh_threads(options: SolveOptions) -> None:
    """HiGHS refuses another number of threads than its last run in the process had: let it start anew."""
    import highspy

    if options.threads is not None:
        highspy.Highs.resetGlobalScheduler(True)


def _set_options(highs: highspy.Highs, options: SolveOptions, integer: bool) -> None:
    import highspy

    # HiGHS counts its limit over all runs of an instance, but in branch and bound and PDLP anew in each.
    spent = 0.0 if integer or highs.getOptionValue("solver")[1] == "pdlp" else highs.getRunTime()
    limit = float("inf") if options.time_limit is None else spent + options.time_limit
    values: dict[str, Any] = {"time_limit": limit, "output_flag": True, "log_to_console": False}
    values["log_file"] = os.devnull  # HiGHS calls back with its log only if it also writes it somewhere
    # The QP solver does not check the clock in every loop; a limit on iterations ends a run that cycles.
    values["qp_iteration_limit"] = _CYCLES + 100 * (highs.getNumCol() + highs.getNumRow())
    values["mip_rel_gap"] = options.gap or 0.0  # the default of HiGHS accepts a gap of 1e-4 as optimal
    values["mip_heuristic_run_feasibility_jump"] = highs.getNumNz() > _TINY
    fresh_threads(options)
    for name, value in {**values, **options.named(seed="random_seed", threads="threads")}.items():
        try:
            refused = highs.setOptionValue(name, value) == highspy.HighsStatus.kError
        except TypeError:
            refused = True
        if refused:
            raise BackendError(f"HiGHS refuses the option {name}={value!r}")
    if not options.log and highs.getOptionValue("solver")[1] == "pdlp":
        highs.setOptionValue("output_flag", False)  # it prints past the callback for the log


_TINY = 200
"""Entries of a matrix up to which a feasibility jump, which takes 10 ms, takes longer than all else."""

_CYCLES = 100_000
"""Iterations of the QP solver, and a hundred for each row and column, after which it most likely cycles."""


def _check_run(highs: highspy.Highs) -> None:
    """Run HiGHS; where it stumbles over what it continued from, run once more from scratch.

    The model is passed anew, since HiGHS 1.13 to 1.16 keeps part of its state over ``clearSolver``. A
    quadratic program on which it cycles is run once more with less regularization.

    Raises
    ------
    BackendError
        If it fails from scratch too, with its own words.
    """
    import highspy

    kind = highspy.HighsModelStatus
    broken = (kind.kNotset, kind.kModelError)
    ended, status = highs.run(), highs.getModelStatus()
    if status == kind.kIterationLimit and highs.getInfo().qp_iteration_count > _CYCLES:
        highs.setOptionValue("qp_regularization_value", 0.01 * REGULARIZATION)
        highs.run()
        highs.setOptionValue("qp_regularization_value", REGULARIZATION)
        return
    if status != kind.kUnknown and (ended != highspy.HighsStatus.kError or status not in broken):
        return
    model = highs.getModel()
    highs.clearModel()
    highs.passModel(model)
    if highs.run() == highspy.HighsStatus.kError and (status := highs.getModelStatus()) in broken:
        raise BackendError(f"HiGHS: {highs.modelStatusToString(status)}")


def _attach(highs: highspy.Highs, monitor: SolveMonitor, integer: bool) -> list[Any]:
    """Let HiGHS call the monitor back; returns the kinds of calls, to stop after the run."""
    import highspy

    kind = highspy.cb.HighsCallbackType

    # The events of highspy, one for each line of the log, take a twentieth of a small solve.
    def call(event: Any, message: str, out: Any, answer: Any, _: Any) -> None:
        if event == kind.kCallbackLogging:
            monitor.log_text(message)
        elif event == kind.kCallbackMipImprovingSolution:
            # While HiGHS completes a start, its bound is that of the program with the start's values fixed.
            bound = -np.inf if monitor.options.start is not None else float(out.mip_dual_bound)
            monitor.improved(float(out.objective_function_value), bound)
        elif monitor.stop:
            answer.user_interrupt = True

    kinds = [kind.kCallbackLogging]
    if integer:  # branch and bound may take ever more memory
        kinds += [kind.kCallbackMipImprovingSolution, kind.kCallbackMipInterrupt]
    if watches_interrupts():
        kinds += [kind.kCallbackSimplexInterrupt, kind.kCallbackIpmInterrupt]
    highs.setCallback(call, None)
    for wanted in kinds:
        highs.startCallback(wanted)
    return kinds


_SETTLED = {
    "kOptimal": Status.OPTIMAL,
    "kInfeasible": Status.INFEASIBLE,
    "kUnbounded": Status.UNBOUNDED,
    "kUnboundedOrInfeasible": Status.INFEASIBLE,
}
"""The ends of a run that decide the program, by their names in HiGHS."""

_STOPPED = ("kTimeLimit", "kIterationLimit", "kSolutionLimit", "kObjectiveBound", "kInterrupt")
"""The ends that leave it open."""


def _numbers(values: list[float]) -> Array:
    """An array of floats; a third of the time of `numpy.array` on a list."""
    return np.frombuffer(bytearray(pack(f"{len(values)}d", *values)))


def _read(highs: highspy.Highs, program: Program, monitor: SolveMonitor) -> RawResult:
    import highspy

    def info(name: str) -> Any:
        return highs.getInfoValue(name)[1]

    end = highs.getModelStatus()
    kind = highspy.HighsModelStatus
    feasible = info("primal_solution_status") == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    rows = program.rows
    if end == kind.kModelEmpty:  # HiGHS does not look at rows without columns
        holds = bool((rows.lower <= 0).all() and (rows.upper >= 0).all())
        status = Status.OPTIMAL if holds else Status.INFEASIBLE
    elif end.name in _STOPPED:
        status = Status.FEASIBLE if feasible else Status.LIMIT
    else:
        status = _SETTLED.get(end.name, Status.FAILED)
    result = monitor.result(status, f"HiGHS: {highs.modelStatusToString(end)}")
    result.ambiguous = end == kind.kUnboundedOrInfeasible
    result.iterations = max(info("simplex_iteration_count"), 0) + max(info("ipm_iteration_count"), 0)
    result.nodes = max(info("mip_node_count"), 0)
    if status.has_solution:
        solution = highs.getSolution()
        result.x = _numbers(solution.col_value)
        result.objective = program.stages[0].value(result.x)
        if program.is_integer:
            result.bound = info("mip_dual_bound")
        elif status is Status.OPTIMAL:
            result.bound = result.objective
            if solution.dual_valid:
                result.row_dual = _numbers(solution.row_dual)
                result.reduced_cost = _numbers(solution.col_dual)
            elif end == kind.kModelEmpty:
                result.row_dual, result.reduced_cost = np.zeros(rows.count), np.zeros(0)
            if program.stages[0].quadratic is not None and (fall := _fall(program, solution)) > _FLAT:
                words = f"{result.message}, at a point from which the objective still falls by {fall:.2g}"
                return RawResult(Status.FAILED, message=words, log=result.log)
        elif solution.dual_valid:
            result.row_dual = _numbers(solution.row_dual)
    elif status is Status.LIMIT and program.is_integer:
        result.bound = info("mip_dual_bound")
    return result


_FLAT = 1e-3
"""By how much, relative to its parts, a quadratic objective may seem to fall from an optimum."""


def _fall(program: Program, solution: Any) -> float:
    """Bound by how much the objective falls if every column and row moves by at most its own magnitude.

    HiGHS adds a tiny multiple of the identity to the objective, and so finds "optima" of unbounded programs.
    """
    stage, rows = program.stages[0], program.rows
    assert stage.quadratic is not None
    x, y, activity = (np.array(a) for a in (solution.col_value, solution.row_dual, solution.row_value))
    square = stage.quadratic @ x
    slope = stage.cost + square - program.matrix().T @ y
    total = 0.0
    for pull, value, lower, upper in (
        (slope, x, program.lower, program.upper),
        (y, activity, rows.lower, rows.upper),
    ):
        room = np.where(pull > 0, value - lower, upper - value)
        total += float(np.abs(pull) @ np.clip(room, 0.0, np.maximum(1.0, np.abs(value))))
    return total / max(1.0, abs(float(stage.cost @ x)), abs(float(x @ square)))


class Highs(Backend):
    """HiGHS, with its own choice of algorithm or a given one for LPs."""

    through = "highspy"
    install = "pip install 'highspy>=1.13,!=1.14.*,!=1.15.*'"
    capabilities = Capabilities(
        frozenset({"rows", "integer", "quadratic"}),
        conflicts=(frozenset({"integer", "quadratic"}),),
        smallest=DROPPED,
    )

    def __init__(
        self, name: str, algorithm: str = "", kinds: Sequence[str] = (), accuracy: float = 1e-6
    ) -> None:
        self.name, self.algorithm, self.accuracy = name, algorithm, accuracy
        self.careful = {"presolve": "off"}
        if kinds:
            self.capabilities = Capabilities(frozenset(kinds), smallest=DROPPED)

    def version(self) -> str:
        """HiGHS's own version."""
        return str(new_highs().version())

    def session(self, program: Program) -> HighsSession:
        """Pass the program to a new HiGHS instance."""
        return HighsSession(program, self.algorithm)

    @property
    def native_capabilities(self) -> Capabilities:  # type: ignore[override]
        """The capabilities of HiGHS."""
        return self.capabilities

    def native(self, program: Program) -> highspy.Highs:
        """Give a silent `highspy.Highs` that holds the program, not run; see `highs_of`."""
        return highs_of(program)


register_backend(Highs("highs"))
register_backend(Highs("highs:simplex", "simplex", ["rows"]))
register_backend(Highs("highs:ipm", "ipm", ["rows"]))
register_backend(Highs("highs:pdlp", "pdlp", ["rows"], accuracy=1e-4))
