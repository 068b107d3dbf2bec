"""Solvers through Pyomo: ``pyomo:NAME`` for any that Pyomo finds; most are run as programs that read a file.

GLPK and CBC take linear and integer models. Ipopt takes linear and convex quadratic ones.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveOptions, without_solver
from forcopt.backends.highs import fresh_threads
from forcopt.backends.registry import register_backend, register_family
from forcopt.backends.tolerances import DROPPED
from forcopt.clock import Deadline
from forcopt.compile.compiler import Capabilities
from forcopt.compile.program import Program
from forcopt.errors import BackendError, DeclarationError, unknown
from forcopt.status import Status

if TYPE_CHECKING:
    import pyomo.environ as pyo


QUADRATIC = Capabilities(frozenset({"rows", "integer", "quadratic"}))
"""The capabilities of a `ConcreteModel`, for any solver."""


@dataclass(frozen=True)
class _Traits:
    """Facts about a solver that Pyomo does not report.

    Attributes
    ----------
    program : str, default ""
        The executable, if it is one.
    package : str, default ""
        Else the package that brings it.
    install : str, default ""
        The command that installs it.
    kinds : frozenset[str], optional
        See `Capabilities`.
    own : Mapping[str, str], optional
        Our options by the solver's own names; a time limit is Pyomo's to pass on unless named here.
    defaults : Mapping[str, Any], optional
        Options that make its answers as accurate as stated.
    careful : Mapping[str, Any], optional
        See `Backend`.
    whole_seconds : bool, default False
        It counts time in integers.
    ends : Mapping[str, str], optional
        Lines of its log that show its end more precisely than Pyomo: `TerminationCondition` by text.
    bound : str, default ""
        Finds in its log the bounds that a search proved; the last one counts.
    refuses : str, default ""
        The warning of the solver for an unknown option, which it then ignores.
    """

    program: str = ""
    package: str = ""
    install: str = ""
    kinds: frozenset[str] = frozenset({"rows", "integer"})
    own: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    careful: Mapping[str, Any] = field(default_factory=dict)
    whole_seconds: bool = False
    ends: Mapping[str, str] = field(default_factory=dict)
    bound: str = ""
    refuses: str = ""


_SOLVERS = {
    "glpk": _Traits(
        "glpsol",
        install="apt-get install glpk-utils",
        own={"gap": "mipgap", "seed": "seed"},
        careful={"dual": "", "xcheck": ""},  # the points of its primal simplex may be off by 1e-5
        whole_seconds=True,
        # Pyomo reports "optimal" for any feasible basis, "unbounded" for some infeasible models, or "other".
        ends={
            "LIMIT EXCEEDED": "maxTimeLimit",
            "HAS NO PRIMAL FEASIBLE SOLUTION": "infeasible",
            "HAS UNBOUNDED PRIMAL SOLUTION": "unbounded",
            "HAS NO DUAL FEASIBLE SOLUTION": "infeasibleOrUnbounded",
            "MIP GAP TOLERANCE REACHED": "optimal",
        },
        bound=r"mip =.* >= +(\S+) ",
    ),
    "cbc": _Traits(
        "cbc",
        install="apt-get install coinor-cbc",
        own={"gap": "ratioGap", "seed": "randomCbcSeed", "threads": "threads"},
        refuses="No match for",
    ),
    "ipopt": _Traits(
        "ipopt",
        install="conda install -c conda-forge ipopt",
        kinds=QUADRATIC.kinds - {"integer"},
        own={"time_limit": "max_cpu_time"},
        # By default it may violate a constraint by 1e-4, and a bound by 1e-8.
        defaults={"constr_viol_tol": 1e-7, "bound_relax_factor": 0.0},
    ),
    "appsi_highs": _Traits(
        package="highspy",
        install="pip install 'highspy>=1.13,!=1.14.*,!=1.15.*'",
        own={"gap": "mip_rel_gap", "seed": "random_seed", "threads": "threads"},
    ),
}


@dataclass(frozen=True)
class _Built:
    """A `ConcreteModel` and its parts.

    Attributes
    ----------
    columns : list[Any]
        Its variables, one for each column.
    rows : list[Any]
        A constraint for each row, None for rows without bounds or columns.
    """

    model: pyo.ConcreteModel
    columns: list[Any]
    rows: list[Any]


def _build(program: Program, names: Sequence[Any], row_names: Sequence[Any], natural: bool = False) -> _Built:
    import pyomo.environ as pyo

    model = pyo.ConcreteModel(name=program.name)
    model.x = pyo.Var(names)
    columns = [model.x[name] for name in names]
    for variable, lower, upper, kind in zip(
        columns, program.lower.tolist(), program.upper.tolist(), program.integer.tolist(), strict=True
    ):
        if kind == 1:
            variable.domain = pyo.Integers
            if not natural:  # GLPK refuses an integer column with a fractional bound
                lower, upper = (
                    b if math.isinf(b) else float(to(b))
                    for to, b in ((math.ceil, lower), (math.floor, upper))
                )
        variable.setlb(None if lower == -math.inf else lower)
        variable.setub(None if upper == math.inf else upper)
    stage = program.stages[0]
    priced = np.flatnonzero(stage.cost)
    value = _linear(columns, priced, stage.cost[priced], stage.offset if natural else 0.0)
    if stage.quadratic is not None:
        q = stage.quadratic.tocoo()
        parts = zip(q.data.tolist(), q.row.tolist(), q.col.tolist(), strict=True)
        value = value + pyo.quicksum(0.5 * a * columns[i] * columns[j] for a, i, j in parts)
    flip = natural and stage.maximize
    sense = pyo.maximize if flip else pyo.minimize
    model.objective = pyo.Objective(expr=-value if flip else value, sense=sense)
    model.rows = pyo.Constraint(row_names)
    rows = program.rows
    held: list[Any] = []
    for i, name in enumerate(row_names):
        at = slice(rows.indptr[i], rows.indptr[i + 1])
        indices, coefficients = rows.indices[at], rows.data[at]
        lower, upper = float(rows.lower[i]), float(rows.upper[i])
        if natural and not len(indices):  # Pyomo takes no constraint without a variable
            indices, coefficients = np.zeros(1, int), np.zeros(1)
        if not len(indices) or (lower == -math.inf and upper == math.inf):
            held.append(None)
        else:
            held.append(model.rows.add(name, _between(lower, _linear(columns, indices, coefficients), upper)))
    return _Built(model, columns, held)


def _linear(columns: list[Any], indices: Array, coefficients: Array, constant: float = 0.0) -> Any:
    from pyomo.core.expr.numeric_expr import LinearExpression

    variables = [columns[j] for j in indices.tolist()]
    return LinearExpression(constant=constant, linear_coefs=coefficients.tolist(), linear_vars=variables)


def _between(lower: float, body: Any, upper: float) -> tuple[Any, ...]:
    if lower == upper:
        return (body, lower)
    return (None if lower == -math.inf else lower, body, None if upper == math.inf else upper)


# -- solving ---------------------------------------------------------------------------------------------


class PyomoSession(Session):
    """A program that is translated anew at every solve."""

    def __init__(self, program: Program, backend: Pyomo) -> None:
        super().__init__(program)
        self.backend = backend

    def solve(self, options: SolveOptions) -> RawResult:
        """Translate, solve and read the answer; the time limit covers all three."""
        import pyomo.environ as pyo
        from pyomo.common.errors import InfeasibleConstraintException

        deadline = Deadline(options.time_limit)
        program, backend = self.program, self.backend
        known = without_solver(program, backend.accuracy)
        if known is not None:
            return known
        built = _build(program, range(program.columns), range(program.rows.count))
        if not program.is_integer:
            built.model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
        solver = pyo.SolverFactory(backend.solver)
        arguments: dict[str, Any] = {"tee": options.log, "load_solutions": False}
        if options.start is not None:
            for variable, value in zip(built.columns, options.start.tolist(), strict=True):
                if not math.isnan(value):
                    variable.set_value(value, skip_validation=True)
            if solver.warm_start_capable():
                arguments["warmstart"] = True
        left = options.within(deadline.seconds)
        if left.time_limit == 0:
            return RawResult(Status.LIMIT, message=f"{backend.solver}: no time was left to call it")
        if left.time_limit is not None:
            arguments["timelimit"] = (
                math.ceil(left.time_limit) if backend.traits.whole_seconds else left.time_limit
            )
        arguments["options"] = backend.settings(left)
        if backend.traits.package == "highspy":
            fresh_threads(left)
        try:
            answer = solver.solve(built.model, **arguments)
        except subprocess.TimeoutExpired as error:
            return RawResult(Status.LIMIT, message=f"{backend.solver}: stopped from outside: {error}")
        except InfeasibleConstraintException as error:
            return RawResult(Status.INFEASIBLE, message=f"Pyomo: {error}")
        except Exception as error:  # whatever a solver or its interface throws is its own words
            printed = f"; it printed: {_log(solver)[-2000:]}" if _log(solver) else ""
            raise BackendError(
                f"{backend.solver} through Pyomo: {type(error).__name__}: {error}{printed}"
            ) from error
        result = _read(program, backend, built, answer, _log(solver))
        result.log = _log(solver)
        return result


def _log(solver: Any) -> str:
    """The output of a solver that ran as a program."""
    return getattr(solver, "_log", None) or ""


def _read(program: Program, backend: Pyomo, built: _Built, answer: Any, log: str) -> RawResult:
    """Translate Pyomo's answer.

    An unbounded ray proves nothing until some point is feasible, so "unbounded" is ambiguous. After a limit
    the point is kept if it is feasible.
    """
    from pyomo.opt import SolverStatus, TerminationCondition

    kind, traits = TerminationCondition, backend.traits
    if traits.refuses and traits.refuses in log:
        line = next(line for line in log.splitlines() if traits.refuses in line)
        raise BackendError(f"{backend.solver} through Pyomo refuses an option: {line}")
    phrase = next((text for text in traits.ends if text in log), "")
    condition = kind(traits.ends[phrase]) if phrase else answer.solver.termination_condition
    words = phrase or f"{condition} {_given(answer.solver.message)}".strip()
    nodes = _given(answer.solver.statistics.branch_and_bound.number_of_bounded_subproblems)
    result = RawResult(Status.FAILED, message=f"{backend.solver}: {words}", nodes=int(nodes or 0))
    if condition == kind.infeasible and "unbounded" in log:  # from CBC's presolve
        condition = kind.infeasibleOrUnbounded
    if condition in (kind.unbounded, kind.infeasibleOrUnbounded):
        result.status, result.ambiguous = Status.UNBOUNDED, True
        return result
    if condition == kind.infeasible:
        result.status = Status.INFEASIBLE
        return result
    optimal = condition in (kind.optimal, kind.locallyOptimal, kind.globallyOptimal)
    if len(answer.solution):
        answer.solver.status = SolverStatus.ok  # so that Pyomo loads the point without a warning
        built.model.solutions.load_from(answer)
        x = np.array([math.nan if v.value is None else v.value for v in built.columns])
        x = np.where(np.isnan(x), np.clip(0.0, program.lower, program.upper), x)  # columns that are not used
        if optimal or program.violation(x) <= backend.accuracy:
            result.x, result.objective = x, program.stages[0].value(x)
            result.status = Status.OPTIMAL if optimal else Status.FEASIBLE
            if optimal and not program.is_integer:
                result.row_dual, result.reduced_cost = _duals(program, built, x)
    limits = ("maxTimeLimit", "maxIterations", "maxEvaluations", "feasible", "intermediateNonInteger")
    if result.x is None and condition in map(kind, limits):
        result.status = Status.LIMIT
    result.bound = _bound(program, traits, answer, log, result.objective if optimal else math.inf)
    return result


def _given(value: Any) -> str:
    """A field of Pyomo's results as text; empty if it is not filled."""
    text = str(value)
    return "" if text in ("<undefined>", "None") else text


def _bound(program: Program, traits: _Traits, answer: Any, log: str, optimum: float) -> float:
    """The bound that a search proved, plus the constant that is not passed to the solver.

    Parameters
    ----------
    program : Program
        Was solved.
    traits : _Traits
        Of the solver.
    answer : Any
        Pyomo's.
    log : str
        The output that the solver printed.
    optimum : float
        Infinite if none is proved; the bound of a convex program.
    """
    if program.is_integer:
        printed = re.findall(traits.bound, log)[-1:] if traits.bound else []
        for bound in (*printed, _given(answer.problem.lower_bound)):
            if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", bound):
                return min(float(bound) + program.stages[0].offset, optimum)
    return optimum if math.isfinite(optimum) else -math.inf


def _duals(program: Program, built: _Built, x: Array) -> tuple[Array | None, Array | None]:
    """Return the duals of the rows, and the reduced costs: the objective's gradient less the rows' share."""
    dual = built.model.dual
    if not len(dual):
        return None, None

    stage = program.stages[0]
    row_dual = np.array([0.0 if c is None else dual.get(c, 0.0) for c in built.rows])
    reduced = stage.cost - program.matrix().T @ row_dual
    if stage.quadratic is not None:
        reduced = reduced + stage.quadratic @ x
    return row_dual, reduced


class Pyomo(Backend):
    """A solver that Pyomo calls.

    Parameters
    ----------
    name : str
        Of the backend.
    solver : str
        Its name in Pyomo, or an executable that speaks AMPL.

    Raises
    ------
    UnknownNameError
        If there is neither.
    """

    through = "pyomo"

    def __init__(self, name: str, solver: str) -> None:
        if solver not in _SOLVERS and find_spec("pyomo"):
            _require_known(solver)
        self.name, self.solver = name, solver
        self.traits = _SOLVERS.get(solver, _Traits())
        install = self.traits.install or "see the solver's own documentation"
        self.install = install if find_spec("pyomo") else "pip install pyomo"
        self.capabilities = Capabilities(self.traits.kinds, smallest=DROPPED)
        self.careful = self.traits.careful

    def missing(self) -> str | None:
        """Whether Pyomo and the solver are there."""
        if not find_spec("pyomo"):
            return "the package pyomo is missing"
        if self.traits.program:
            found: Any = shutil.which(self.traits.program)
        elif self.traits.package:
            found = find_spec(self.traits.package)
        else:
            import pyomo.environ as pyo

            found = pyo.SolverFactory(self.solver).available(exception_flag=False)
        lacking = f"executable {self.traits.program}" if self.traits.program else f"solver {self.solver}"
        return None if found else f"the {lacking} is not found"

    def version(self) -> str:
        """The solver's version if Pyomo reports it, else Pyomo's."""
        import pyomo.environ as pyo

        found = pyo.SolverFactory(self.solver).version()
        return ".".join(str(part) for part in found) if found else f"Pyomo {version('pyomo')}"

    def session(self, program: Program) -> PyomoSession:
        """Hold the program; it is translated when solved."""
        return PyomoSession(program, self)

    native_capabilities = QUADRATIC

    def native(self, program: Program) -> pyo.ConcreteModel:
        """Give a program's first stage as a `ConcreteModel` in the model's own sense.

        Its columns are ``x[name]``, its rows ``rows[name]``, its objective is ``objective``; cones come as
        variables ``cone0``, ``cone1``, ... with constraints of their own.

        Raises
        ------
        DeclarationError
            If two columns or two rows have the same name.
        """
        names = [program.column_name(j) for j in range(program.columns)]
        row_names = [program.row_name(i) for i in range(program.rows.count)]
        for subject, given in (("columns", names), ("rows", row_names)):
            for name, times in Counter(given).items():
                if times > 1:
                    raise DeclarationError(f"{times} {subject} are named {name!r}; Pyomo's names must differ")
        return _build(program, names, row_names, natural=True).model

    def settings(self, options: SolveOptions) -> dict[str, Any]:
        """Spell the options as the solver does.

        A gap, a seed or a thread count that changes nothing in a known solver is left out.

        Raises
        ------
        UnsupportedError
            For such an option of an unknown solver.
        """
        needless = ("time_limit", *(("gap", "seed", "threads") if self.solver in _SOLVERS else ()))
        given = options.translated(self, self.solver, self.traits.own, needless)
        return {**self.traits.defaults, **given, **options.extra}


def _require_known(solver: str) -> None:
    import pyomo.environ as pyo

    known = [name for name in pyo.SolverFactory if not name.startswith("_")]
    if solver not in known and shutil.which(solver) is None:
        raise unknown("solver of Pyomo", solver, known)


for _name in ("glpk", "cbc", "ipopt"):
    register_backend(Pyomo(f"pyomo:{_name}", _name))
register_family(
    "pyomo",
    lambda name: Pyomo(f"pyomo:{name}", name),
    lambda: [n for n in _SOLVERS if Pyomo(n, n).missing() is None],
)
