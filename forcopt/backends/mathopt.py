"""OR-Tools MathOpt: Glop, PDLP and OR-Tools' own copy of SCIP.

Programs go over as protocol buffers filled from whole arrays. MathOpt's modelling classes take four times
as long for an LP of a million coefficients, and forty times as long if its rows are added one at a time.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveMonitor, SolveOptions
from forcopt.backends.registry import register_backend
from forcopt.backends.tolerances import DROPPED
from forcopt.clock import catch_interrupt
from forcopt.compile.compiler import Capabilities
from forcopt.compile.program import IndicatorRows, Program
from forcopt.errors import BackendError
from forcopt.status import Status

if TYPE_CHECKING:
    from ortools.math_opt import parameters_pb2
    from ortools.math_opt.model_pb2 import ModelProto
    from ortools.math_opt.result_pb2 import SolveResultProto
    from ortools.math_opt.sparse_containers_pb2 import SparseDoubleVectorProto


NATIVE = Capabilities(frozenset({"rows", "integer", "quadratic", "indicator", "nonconvex"}))
"""The capabilities of a MathOpt model, for any solver."""


def model_proto(program: Program, natural: bool = False) -> ModelProto:
    """Fill MathOpt's protocol buffer.

    Parameters
    ----------
    program : Program
        Its first stage becomes the objective.
    natural : bool, default False
        Keep the model's own sense instead of minimising always.
    """
    from ortools.math_opt.model_pb2 import ModelProto

    proto = ModelProto(name=program.name)
    columns, rows = program.columns, program.rows
    proto.variables.ids.extend(range(columns))
    proto.variables.lower_bounds.extend(program.lower.tolist())
    proto.variables.upper_bounds.extend(program.upper.tolist())
    proto.variables.integers.extend((program.integer == 1).tolist())
    proto.linear_constraints.ids.extend(range(rows.count))
    proto.linear_constraints.lower_bounds.extend(rows.lower.tolist())
    proto.linear_constraints.upper_bounds.extend(rows.upper.tolist())
    _matrix(proto.linear_constraint_matrix, program.matrix())
    stage = program.stages[0]
    sign = stage.sign if natural else 1.0
    proto.objective.maximize = natural and stage.maximize
    proto.objective.offset = sign * stage.offset
    _vector(proto.objective.linear_coefficients, np.arange(columns), sign * stage.cost)
    if stage.quadratic is not None:  # x' Q x / 2 by its upper triangle
        triangle = sp.csr_array(sp.triu(stage.quadratic) - 0.5 * sp.diags_array(stage.quadratic.diagonal()))
        _matrix(proto.objective.quadratic_coefficients, sign * triangle)
    for indicator in program.indicators:
        _indicators(proto, indicator, columns)
    for products in program.products:
        for z, *factors in zip(*(a.tolist() for a in products.columns), strict=True):
            held = proto.quadratic_constraints[len(proto.quadratic_constraints)]
            _vector(held.linear_terms, np.array([z]), np.array([-1.0]))
            square = held.quadratic_terms  # whose rows are not above their columns
            square.row_ids.append(min(factors))
            square.column_ids.append(max(factors))
            square.coefficients.append(1.0)
    return proto


def _vector(target: SparseDoubleVectorProto, columns: Array, values: Array) -> None:
    """Fill a sparse vector, which takes its entries by rising column."""
    order = np.argsort(columns)
    target.ids.extend(columns[order].tolist())
    target.values.extend(values[order].tolist())


def _matrix(target: Any, matrix: sp.csr_array) -> None:
    """Fill a sparse matrix, which takes its entries row by row and by rising column."""
    ordered = matrix if matrix.has_sorted_indices else matrix.sorted_indices()
    target.row_ids.extend(np.repeat(np.arange(matrix.shape[0]), np.diff(ordered.indptr)).tolist())
    target.column_ids.extend(ordered.indices.tolist())
    target.coefficients.extend(ordered.data.tolist())


def _indicators(proto: ModelProto, indicator: IndicatorRows, columns: int) -> None:
    """Add indicator rows; SCIP takes them with one side only, so a range becomes two."""
    rows = indicator.rows
    for i, column in enumerate(indicator.columns.tolist()):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        for low, high in ((rows.lower[i], np.inf), (-np.inf, rows.upper[i])):
            if np.isfinite(low) or np.isfinite(high):
                one = proto.indicator_constraints[len(proto.indicator_constraints)]
                one.indicator_id, one.activate_on_zero = column, not indicator.active
                one.lower_bound, one.upper_bound = low, high
                _vector(one.expression, rows.indices[part], rows.data[part])


class MathOptSession(Session):
    """A program that is handed to MathOpt anew for every run."""

    def __init__(self, program: Program, solver: str) -> None:
        super().__init__(program)
        self.solver = solver

    def solve(self, options: SolveOptions) -> RawResult:
        """Run the solver and read its answer."""
        from ortools.math_opt import callback_pb2, model_parameters_pb2, parameters_pb2, result_pb2
        from ortools.math_opt.core.python import solver
        from ortools.util.python.pybind_solve_interrupter import PySolveInterrupter
        from pybind11_abseil.status import StatusNotOk

        program = self.program
        monitor = SolveMonitor(program, options)
        registration = callback_pb2.CallbackRegistrationProto()
        improved = None
        if self.solver == "gscip" and options.on_improvement is not None:
            registration.request_registration.append(callback_pb2.CALLBACK_EVENT_MIP_SOLUTION)
            improved = _improved(program, monitor)
        interrupter = PySolveInterrupter()

        def logged(lines: list[str]) -> None:
            monitor.log_text("".join(f"{line}\n" for line in lines))
            if monitor.stop:
                interrupter.interrupt()

        hints = model_parameters_pb2.ModelSolveParametersProto()
        if options.start is not None and self.solver == "gscip":
            known = np.flatnonzero(~np.isnan(options.start))
            _vector(hints.solution_hints.add().variable_values, known, options.start[known])
        try:
            with _without_noise() if self.solver == "gscip" else nullcontext():
                kind = parameters_pb2.SolverTypeProto.Value(f"SOLVER_TYPE_{self.solver.upper()}")
                told = _parameters(self.solver, options, monitor.deadline.memory.left)
                given = model_proto(program), kind, parameters_pb2.SolverInitializerProto(), told, hints
                answer = solver.solve(*given, logged, registration, improved, interrupter)
        except StatusNotOk as error:
            if "found value: -inf; invalid PrimalSolutionProto.objective_value" in str(error):
                # SCIP found a point of value -inf, which MathOpt cannot pass on.
                return RawResult(
                    Status.UNBOUNDED, ambiguous=True, message=f"MathOpt ({self.solver}): {error}"
                )
            # MathOpt's own modelling classes fail with an AttributeError while they translate this one.
            raise BackendError(f"MathOpt ({self.solver}): {error}") from None
        monitor.reraise()
        if answer.termination.limit == result_pb2.LimitProto.LIMIT_INTERRUPTED and not monitor.stop:
            catch_interrupt()
        return _read(answer, program, monitor, self.solver)


_NOISE = ("scip_event.c:", "gscip_event_handler.cc:")
"""The harmless lines that SCIP writes to standard error where MathOpt calls back or may interrupt it."""


@contextmanager
def _without_noise() -> Iterator[None]:
    """Hold back the process's standard error, then pass on every line but the known harmless ones."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        original = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)
            held.seek(0)
            for line in held.read().decode(errors="replace").splitlines(keepends=True):
                if not any(noise in line for noise in _NOISE):
                    sys.stderr.write(line)


def _parameters(solver: str, options: SolveOptions, memory: float) -> parameters_pb2.SolveParametersProto:
    from google.protobuf import json_format
    from ortools.math_opt import parameters_pb2

    out = parameters_pb2.SolveParametersProto()
    if options.time_limit is not None and math.isfinite(options.time_limit):
        out.time_limit.FromNanoseconds(int(options.time_limit * 1e9))
    if solver == "gscip":
        if math.isfinite(memory):
            out.gscip.real_params["limits/memory"] = memory / 2**20
        if options.gap is not None:
            out.relative_gap_tolerance = options.gap
    elif options.threads is not None:  # SCIP would race copies of itself, each silent and without callbacks
        out.threads = options.threads
    if options.seed is not None and solver != "pdlp":  # they are deterministic
        out.random_seed = options.seed
    try:
        json_format.ParseDict({solver: dict(options.extra)}, out)
    except json_format.ParseError as error:
        raise BackendError(f"MathOpt ({solver}) refuses {dict(options.extra)!r}: {error}") from None
    return out


def _improved(program: Program, monitor: SolveMonitor) -> Any:
    from ortools.math_opt import callback_pb2

    def call(data: Any) -> Any:
        with monitor.capture():
            x = np.zeros(program.columns)
            x[list(data.primal_solution_vector.ids)] = data.primal_solution_vector.values
            bound = data.mip_stats.dual_bound or -np.inf  # it is 0 before SCIP has one
            monitor.improved(program.stages[0].value(x), bound)
        return callback_pb2.CallbackResultProto(terminate=monitor.stop)

    return call


def _read(answer: SolveResultProto, program: Program, monitor: SolveMonitor, solver: str) -> RawResult:
    from ortools.math_opt import result_pb2, solution_pb2

    end, stats = answer.termination, answer.solve_stats
    reason = result_pb2.TerminationReasonProto.Name(end.reason).removeprefix("TERMINATION_REASON_")
    first = answer.solutions[0] if answer.solutions else None
    claim = solution_pb2.SOLUTION_STATUS_FEASIBLE
    feasible = first is not None and first.primal_solution.feasibility_status == claim
    others = {"INFEASIBLE_OR_UNBOUNDED": Status.INFEASIBLE, "NO_SOLUTION_FOUND": Status.LIMIT}
    # The other ends: stopped early (FEASIBLE), unsure of its tolerances (IMPRECISE), or broken down.
    settled = {name: Status[name] for name in ("OPTIMAL", "INFEASIBLE", "UNBOUNDED")} | others
    status = settled.get(reason) or (Status.FEASIBLE if feasible else Status.FAILED)
    limit = "" if not end.limit else " " + result_pb2.LimitProto.Name(end.limit)
    words = f"MathOpt ({solver}): {reason}{limit} {end.detail}".rstrip()
    result = monitor.result(status, words, limit.endswith("_MEMORY"), nodes=stats.node_count)
    result.bound, result.ambiguous = end.objective_bounds.dual_bound, reason == "INFEASIBLE_OR_UNBOUNDED"
    result.iterations = stats.simplex_iterations + stats.barrier_iterations + stats.first_order_iterations
    result.seconds = stats.solve_time.seconds + stats.solve_time.nanos / 1e9
    if status.has_solution:
        assert first is not None
        result.x = np.array(first.primal_solution.variable_values.values)
        result.objective = program.stages[0].value(result.x)
        if first.HasField("dual_solution"):
            result.row_dual = np.array(first.dual_solution.dual_values.values)
            result.reduced_cost = np.array(first.dual_solution.reduced_costs.values)
    return result


class MathOpt(Backend):
    """One solver of MathOpt; options by its own names are the fields of its parameters' protocol buffer."""

    through = "ortools"
    install = "pip install 'ortools>=9.15' 'highspy!=1.15.*'"

    def __init__(self, name: str, solver: str, kinds: Sequence[str], accuracy: float = 1e-6) -> None:
        self.name, self.solver, self.accuracy = name, solver, accuracy
        self.careful = {"use_preprocessing": False} if solver == "glop" else {}
        reluctant = frozenset({"indicator"})  # SCIP's search loses optima
        self.capabilities = Capabilities(frozenset(kinds), smallest=DROPPED, reluctant=reluctant)

    def session(self, program: Program) -> MathOptSession:
        """Hold the program for MathOpt."""
        return MathOptSession(program, self.solver)

    native_capabilities = NATIVE

    def native(self, program: Program) -> Any:
        """Give a MathOpt `Model` with the program's names."""
        from ortools.math_opt.python import mathopt

        proto = model_proto(program, natural=True)
        proto.variables.names.extend(map(program.column_name, range(program.columns)))
        proto.linear_constraints.names.extend(map(program.row_name, range(program.rows.count)))
        return mathopt.Model.from_model_proto(proto)


_SCIP = ("rows", "integer", "quadratic", "indicator", "nonconvex")

register_backend(MathOpt("glop", "glop", ["rows"]))
register_backend(MathOpt("pdlp", "pdlp", ["rows"], accuracy=1e-4))
register_backend(MathOpt("gscip", "gscip", _SCIP))
if not find_spec("pyscipopt"):  # which takes more, and the name
    register_backend(MathOpt("scip", "gscip", _SCIP))
