"""Convex solvers through cvxpy: Clarabel, SCS and OSQP by name, and ``cvxpy:NAME`` for any that cvxpy finds.

Rows and column bounds go over as one matrix in at most three constraints (equalities, lower sides, upper
sides), so that their duals come back as arrays: the change of the optimum per unit of right-hand side.
A time limit is the solver's own: the first-order methods do not look at the clock while they factorise.
"""

from __future__ import annotations

import logging
import operator
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from threading import get_ident
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveOptions, lacking, without_solver
from forcopt.backends.highs import fresh_threads
from forcopt.backends.registry import register_backend, register_family
from forcopt.backends.tolerances import CAREFUL, DROPPED, FIRST_ORDER, LEAST_RAY, OFF_OSQP, REDUCED, TIGHT
from forcopt.clock import Deadline
from forcopt.compile.compiler import Capabilities
from forcopt.compile.program import Cone, Program, triangle
from forcopt.errors import BackendError, unknown
from forcopt.status import Status

if TYPE_CHECKING:
    import cvxpy


# At import, cvxpy prints a line for every solver that it cannot load, wanted or not.
logging.getLogger("__cvxpy__").addFilter(lambda record: "importing solver" not in record.getMessage())

_CONES = frozenset({"second_order", "exponential", "power_cone", "semidefinite_cone"})

CONVEX = Capabilities(frozenset({"rows", "integer", "quadratic"}) | _CONES)
"""The capabilities of a `cvxpy.Problem`, for any solver."""


@dataclass(frozen=True)
class _Traits:
    """Facts about a solver that cvxpy does not report.

    Attributes
    ----------
    package : str
        The package of the solver, as pip and Python name it.
    accuracy : float, default 1e-06
        See `Backend`.
    own : Mapping[str, str], optional
        Our options by the solver's own names; ``group.name`` is nested in a dictionary.
    defaults : Mapping[str, Any], optional
        Options that make its answers as accurate as stated.
    tight : Mapping[str, Any], optional
        Further ones for linear programs, whose rows may be larger than the solver's relative
        tolerance allows for, and for programs in stages, of which later ones build on the rounding of
        earlier ones. If they name two tolerances, the solver may end at the second; see `loose`.
    again : Mapping[str, Any], optional
        Further ones for a second run, if the first got stuck.
    careful : Mapping[str, Any], optional
        See `Backend`.
    scales : bool, default False
        See `Backend`.
    loose : str, default ""
        The solver's message in this case.
    printed : bool, default False
        It prints through Python, where its words can be kept.
    warm : bool, default False
        It starts from the last point of a program that has changed.
    duals : bool, default True
        Whether the values that cvxpy reads from the solver can be trusted.
    """

    package: str
    accuracy: float = 1e-6
    own: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    tight: Mapping[str, Any] = field(default_factory=dict)
    again: Mapping[str, Any] = field(default_factory=dict)
    careful: Mapping[str, Any] = field(default_factory=dict)
    scales: bool = False
    loose: str = ""
    printed: bool = False
    warm: bool = False
    duals: bool = True


_FIRST_ORDER = dict.fromkeys(("eps_abs", "eps_rel"), FIRST_ORDER)
_GAPS = ("tol_gap_abs", "tol_gap_rel", "tol_feas")


def _own(prefix: str, *names: str) -> dict[str, str]:
    """A solver's names of the limits on time and gap, and of seed and threads."""
    return {ours: prefix + name for ours, name in zip(("time_limit", "gap", "seed", "threads"), names)}  # noqa: B905


_SOLVERS = {
    "CLARABEL": _Traits(
        "clarabel",
        own={"time_limit": "time_limit", "threads": "max_threads"},
        # Where it got stuck it still gives its point, which is then checked.
        defaults={"accept_unknown": True},
        tight=dict.fromkeys((*_GAPS, "tol_infeas_abs", "tol_infeas_rel"), TIGHT)
        | dict.fromkeys((f"reduced_{name}" for name in _GAPS), REDUCED),
        again={"linesearch_backtrack_step": 0.5},  # steps are halved, not cut to 0.8
        careful=dict.fromkeys(_GAPS, CAREFUL),
        scales=True,  # its own scaling ends at factors of 10,000
        loose="AlmostSolved",
        printed=True,
    ),
    "SCS": _Traits("scs", 1e-4, {"time_limit": "time_limit_secs"}, _FIRST_ORDER, printed=True, warm=True),
    "OSQP": _Traits(
        "osqp",
        OFF_OSQP,
        {"time_limit": "time_limit"},
        # OSQP 1.1 adapts its step every 50 iterations by default; on linear programs it then cycles.
        {**_FIRST_ORDER, "max_iter": 100_000, "adaptive_rho_interval": 500},
        printed=True,
        warm=True,
    ),
    "SCIP": _Traits(
        "pyscipopt",
        own=_own(
            "scip_params.",
            "limits/time",
            "limits/gap",
            "randomization/randomseedshift",
            "parallel/maxnthreads",
        ),
        printed=True,
        duals=False,  # by cvxpy's own account
    ),
    "HIGHS": _Traits("highspy", own=_own("", "time_limit", "mip_rel_gap", "random_seed", "threads")),
    "SCIPY": _Traits("scipy", own=_own("scipy_options.", "time_limit", "mip_rel_gap")),
    "GLOP": _Traits("ortools", own=_own("", "time_limit_sec")),
    # It computes in single precision, unless JAX is told else.
    "MPAX": _Traits("mpax", 1e-4, defaults=dict.fromkeys(_FIRST_ORDER, 10 * FIRST_ORDER)),
    "ECOS": _Traits("ecos"),
    "CVXOPT": _Traits("cvxopt", printed=True),
    "QOCO": _Traits("qoco"),
    "PIQP": _Traits("piqp"),
    "GUROBI": _Traits("gurobipy", own=_own("", "TimeLimit", "MIPGap", "Seed", "Threads")),
    "MOSEK": _Traits(
        "mosek",
        own=_own(
            "mosek_params.MSK_",
            "DPAR_OPTIMIZER_MAX_TIME",
            "DPAR_MIO_TOL_REL_GAP",
            "IPAR_MIO_SEED",
            "IPAR_NUM_THREADS",
        ),
    ),
}


@dataclass(frozen=True)
class _Built:
    """A `cvxpy.Problem` and its parts.

    Attributes
    ----------
    linear : tuple[tuple[Array, float, cvxpy.Constraint], ...]
        Each constraint's positions among the rows and then the columns, the sign that turns its dual into the
        change of the optimum per unit of right-hand side, and the constraint.
    cones : list[list[cvxpy.Constraint]]
        The constraints of each block of cones.
    """

    problem: cvxpy.Problem
    x: cvxpy.Variable
    linear: tuple[tuple[Array, float, cvxpy.Constraint], ...]
    cones: list[list[cvxpy.Constraint]]


def _build(program: Program, natural: bool = False) -> _Built:
    import cvxpy as cp

    whole = np.flatnonzero(program.integer == 1)
    x = cp.Variable(program.columns, name="x", integer=[whole] if whole.size else False)
    stage = program.stages[0]
    value = stage.cost @ x + (stage.offset if natural else 0.0)
    if stage.quadratic is not None:
        value = value + 0.5 * cp.quad_form(x, cp.psd_wrap(stage.quadratic))
    objective = cp.Maximize(-value) if natural and stage.maximize else cp.Minimize(value)
    matrix = sp.csr_array(sp.vstack([program.matrix(), sp.eye_array(program.columns)], format="csr"))
    lower = np.concatenate([program.rows.lower, program.lower])
    upper = np.concatenate([program.rows.upper, program.upper])
    equal = lower == upper
    passed = (np.diff(matrix.indptr) > 0) | natural  # cvxpy's SCIP stumbles over empty rows
    linear = []
    for mask, side, relate, sign in (
        (equal, lower, operator.eq, -1.0),
        (np.isfinite(lower) & ~equal, lower, operator.ge, 1.0),
        (np.isfinite(upper) & ~equal, upper, operator.le, -1.0),
    ):
        at = np.flatnonzero(mask & passed)
        if at.size:
            linear.append((at, sign, relate(matrix[at] @ x, side[at])))
    cones = [_cone(cone, x) for cone in program.cones]
    constraints = [*(c for _, _, c in linear), *(c for several in cones for c in several)]
    if not constraints and not natural:  # SCS needs one: a column below another that is free
        constraints = [x[:1] <= cp.Variable(1)]
    return _Built(cp.Problem(objective, constraints), x, tuple(linear), cones)


def _cone(cone: Cone, x: cvxpy.Variable) -> list[cvxpy.Constraint]:
    """All cones of a block as one constraint, semidefinite ones as one each."""
    import cvxpy as cp

    if cone.kind == "semidefinite_cone":
        order, place = cone.order, triangle(cone.order).reshape(-1)
        starts = range(0, cone.matrix.shape[0], cone.size)
        wide = ((cone.matrix[start + place] @ x + cone.offset[start + place]) for start in starts)
        return [cp.PSD(cp.reshape(flat, (order, order), order="F")) for flat in wide]

    def entry(start: int, stop: int) -> cvxpy.Expression:
        """Entries start to stop of every cone, one cone after the other."""
        rows = np.arange(cone.matrix.shape[0]).reshape(-1, cone.size)[:, start:stop].reshape(-1)
        return cone.matrix[rows] @ x + cone.offset[rows]

    if cone.kind == "second_order":
        head, tail = entry(0, 1), entry(1, cone.size)
        return [cp.SOC(head, cp.reshape(tail, (cone.size - 1, head.size), order="F"), axis=0)]
    first, second, third = (entry(i, i + 1) for i in range(3))
    if cone.kind == "exponential":
        return [cp.ExpCone(first, second, third)]
    return [cp.PowCone3D(first, second, third, cone.alpha)]


class CvxpySession(Session):
    """A program that is translated anew at every solve."""

    def __init__(self, program: Program, backend: Cvxpy) -> None:
        super().__init__(program)
        self.backend, self.staged = backend, program.is_staged
        self.tight = self.staged or not (program.cones or program.stages[0].quadratic is not None)
        self._cache: dict[str, Any] = {}  # cvxpy keeps the solver there, for the next start

    def solve(self, options: SolveOptions) -> RawResult:
        """Translate, solve and read the answer; the time limit covers all three.

        A solver that gets stuck in a single stage is run again with its own tolerances and other steps.
        """
        deadline = Deadline(options.time_limit)
        result = self._run(options, self.tight)
        stuck = result.status in (Status.FEASIBLE, Status.FAILED) and not deadline.passed
        traits = self.backend.traits
        if stuck and not self.staged and (traits.again or (self.tight and traits.tight)):
            left = options.within(deadline.seconds)
            second = self._run(replace(left, extra={**traits.again, **options.extra}), False)
            result = second if self.tight or second.status is Status.OPTIMAL else result
        return result

    def _run(self, options: SolveOptions, tight: bool) -> RawResult:
        deadline = Deadline(options.time_limit)
        backend, solver = self.backend, self.backend.solver
        known = without_solver(self.program, backend.accuracy)
        if known is not None:
            return known
        settings = backend.settings(options, tight)
        try:
            built = _build(self.program)
            warm = backend.traits.warm and bool(self._cache)
            built.problem._solver_cache = self._cache
            data, chain, inverse = built.problem.get_problem_data(
                solver, ignore_dpp=True, solver_opts=settings
            )
            left = options.within(deadline.seconds)
            if left.time_limit == 0:  # to some solvers 0 means no limit
                return RawResult(Status.LIMIT, message=f"{solver}: no time was left to call it")
            verbose = options.log or backend.traits.printed
            tee: Any = _Tee(sys.stdout or StringIO(), options.log)  # None without a console
            if backend.traits.package == "highspy":
                fresh_threads(options)
            with redirect_stdout(tee):
                raw = chain.solve_via_data(built.problem, data, warm, verbose, backend.settings(left, tight))
            solution = chain.invert(raw, inverse)
        except Exception as error:  # whatever a solver throws is its own words
            raise BackendError(f"{solver} through cvxpy: {type(error).__name__}: {error}") from error
        late = options.time_limit is not None and deadline.seconds >= 0.99 * options.time_limit
        result = _read(self.program, backend, built, raw, solution, late, tight)
        result.loose = result.loose and self.staged
        result.log = "".join(tee.lines)
        return result


def _read(
    program: Program, backend: Cvxpy, built: _Built, raw: Any, solution: Any, late: bool, tight: bool
) -> RawResult:
    """Translate cvxpy's answer.

    Only a plain "optimal" is taken as a proof. After a limit or an "inaccurate" solve the point is kept if it
    is feasible; an "inaccurate" certificate is no proof. An unbounded ray proves nothing until some point is
    feasible, so "unbounded" is ambiguous.
    """
    import cvxpy.settings as status

    words = _words(raw) or solution.status
    result = RawResult(Status.FAILED, message=f"{backend.solver}: {words}")
    result.iterations = int(np.max(solution.attr.get(status.NUM_ITERS, 0)))
    result.seconds = float(solution.attr.get(status.SOLVE_TIME) or np.nan)
    result.loose = tight and words == backend.traits.loose
    optimal = solution.status == status.OPTIMAL or words == "gaplimit" or result.loose
    if solution.status in status.SOLUTION_PRESENT:
        built.problem.unpack(solution)
        x = np.asarray(built.x.value, dtype=float).reshape(-1)
        if optimal or program.violation(x) <= backend.accuracy:
            result.x, result.objective = x, program.stages[0].value(x)
            result.status = Status.OPTIMAL if optimal else Status.FEASIBLE
            if optimal or program.is_integer:
                result.bound = _bound(program, raw, result.objective if optimal else np.inf)
            if (optimal or not program.cones) and backend.traits.duals and not program.is_integer:
                result.row_dual, result.reduced_cost = np.split(_duals(program, built), [program.rows.count])
                result.cone_duals = _cone_duals(program, built)
            return result
    elif solution.status == status.INFEASIBLE:
        result.status = Status.INFEASIBLE
        return result
    elif (
        solution.status in (status.UNBOUNDED, status.INFEASIBLE_OR_UNBOUNDED)
        or "unbounded or infeasible" in words
    ):
        result.status, result.ambiguous = Status.UNBOUNDED, True
        return result
    if late or solution.status == status.USER_LIMIT or "reached" in words:
        result.status = Status.LIMIT
    return result


def _duals(program: Program, built: _Built) -> Array:
    """The change of the optimum per unit of each row's right-hand side, then of each column's bound."""
    out = np.zeros(program.rows.count + program.columns)
    for at, sign, constraint in built.linear:
        out[at] += sign * np.asarray(constraint.dual_value, dtype=float).reshape(-1)
    return out


def _cone_duals(program: Program, built: _Built) -> list[Array]:
    """Multipliers of the entries of every block of cones."""
    out = []
    for cone, several in zip(program.cones, built.cones, strict=True):
        if cone.kind == "second_order":
            head, tail = (np.asarray(v, dtype=float) for v in several[0].dual_value)
            out.append(np.concatenate([head.reshape(-1, 1), tail.reshape(-1, head.size).T], axis=1).ravel())
        elif cone.kind == "semidefinite_cone":
            rows, columns = np.tril_indices(cone.order)
            # An entry below the diagonal stands for two of the matrix.
            twice = np.where(rows == columns, 1.0, 2.0)
            matrices = (np.asarray(c.dual_value, dtype=float) for c in several)
            out.append(np.concatenate([twice * (0.5 * (z + z.T))[rows, columns] for z in matrices]))
        else:
            triples = [np.asarray(v, dtype=float).ravel() for v in several[0].dual_value]
            out.append(np.stack(triples, axis=1).ravel())
    return out


def _dig(raw: Any, path: str) -> Any:
    """Follow ``a.b`` through dictionaries and attributes; None where it ends early."""
    for name in path.split("."):
        raw = raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
    return raw


def _words(raw: Any) -> str:
    """The solver's own status, wherever it keeps it."""
    paths = ("scip_status", "model_status", "info.status", "message", "status")
    return next((str(word) for word in (_dig(raw, p) for p in paths) if word is not None), "")


def _bound(program: Program, raw: Any, optimum: float) -> float:
    """The bound that a search proved, or the dual objective, plus the constant that the solver did not get.

    Parameters
    ----------
    program : Program
        Was solved.
    raw : Any
        The solver's answer.
    optimum : float
        The bound; infinite if the solver proves none.
    """
    if program.is_integer:
        bounds = [_dig(raw, "info.mip_dual_bound"), _dig(raw, "mip_dual_bound")]
        if _dig(raw, "scip_status") is not None:
            bounds.append(raw["model"].getDualbound())
    else:
        bounds = [_dig(raw, "obj_val_dual"), _dig(raw, "info.dobj"), _dig(raw, "info.dual_obj_val")]
    for bound in bounds:
        if bound is not None:
            return min(float(bound) + program.stages[0].offset, optimum)
    return optimum if np.isfinite(optimum) else -np.inf


class _Tee:
    """A stand-in for standard output: it keeps the output of one thread and passes on the other threads'."""

    def __init__(self, stream: TextIO, show: bool) -> None:
        self.stream, self.show, self.thread = stream, show, get_ident()
        self.lines: list[str] = []

    def write(self, text: str) -> int:
        if get_ident() != self.thread:
            return self.stream.write(text)
        self.lines.append(text)
        return self.stream.write(text) if self.show else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Cvxpy(Backend):
    """A solver that cvxpy calls.

    Parameters
    ----------
    name : str
        Of the backend.
    solver : str
        Its name in cvxpy.
    capabilities : Capabilities, optional
        Read from cvxpy if left out, which imports it.
    """

    through = "cvxpy"

    def __init__(self, name: str, solver: str, capabilities: Capabilities | None = None) -> None:
        self.name, self.solver = name, solver
        self.traits = _SOLVERS.get(solver, _Traits("", OFF_OSQP))
        self.accuracy, self.careful = self.traits.accuracy, self.traits.careful
        self.scales = self.traits.scales
        self.install = f"pip install cvxpy {self.traits.package}".strip()
        self.capabilities = capabilities or _capabilities(solver)

    def missing(self) -> str | None:
        """Whether cvxpy and the solver's package are there, and cvxpy, once it is loaded, agrees."""
        for package in ("cvxpy", self.traits.package):
            if package and (lack := lacking(package)):
                return lack
        if "cvxpy" in sys.modules and self.solver not in _installed():
            return f"cvxpy {version('cvxpy')} finds no {self.solver}, or none that it takes"
        return None

    def version(self) -> str:
        """The version of the solver's package."""
        return version(self.traits.package or "cvxpy")

    def session(self, program: Program) -> CvxpySession:
        """Hold the program; it is translated when solved."""
        return CvxpySession(program, self)

    native_capabilities = CONVEX

    def native(self, program: Program) -> cvxpy.Problem:
        """Give a `cvxpy.Problem` over one vector ``x``."""
        return _build(program, natural=True).problem

    def settings(self, options: SolveOptions, tight: bool = False) -> dict[str, Any]:
        """Give the options under the solver's names, with the tight tolerances if asked for.

        A gap, a seed or a thread count that changes nothing in a known solver is left out.

        Raises
        ------
        UnsupportedError
            For a time limit that the solver cannot keep, or any of an unknown solver.
        """
        out: dict[str, Any] = {**self.traits.defaults, **(self.traits.tight if tight else {})}
        needless = ("gap", "seed", "threads") if self.traits.package else ()
        for path, value in options.translated(self, self.solver, self.traits.own, needless).items():
            group, _, name = path.rpartition(".")
            (out.setdefault(group, {}) if group else out)[name] = value
        for name, value in options.extra.items():
            out[name] = {**out[name], **value} if isinstance(out.get(name), dict) else value
        return out


def _installed() -> list[str]:
    """The solvers that cvxpy found when it was loaded. Another query would import them, and warn, again."""
    from cvxpy.reductions.solvers.defines import INSTALLED_SOLVERS

    return list(INSTALLED_SOLVERS)


def _capabilities(solver: str) -> Capabilities:
    """Read the capabilities of a solver from cvxpy."""
    if find_spec("cvxpy") is None:
        return Capabilities(frozenset({"rows"}))
    from cvxpy import constraints as kinds
    from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC, SOLVER_MAP_QP

    conic, quadratic = SOLVER_MAP_CONIC.get(solver), SOLVER_MAP_QP.get(solver)
    if conic is None and quadratic is None:
        raise unknown("solver of cvxpy", solver, list({**SOLVER_MAP_CONIC, **SOLVER_MAP_QP}))
    cones = {
        kinds.SOC: "second_order",
        kinds.ExpCone: "exponential",
        kinds.PowCone3D: "power_cone",
        kinds.PSD: "semidefinite_cone",
    }
    if hasattr(kinds, "SvecPSD"):  # cvxpy 1.9 has two classes for the one cone
        cones[kinds.SvecPSD] = "semidefinite_cone"
    takes, conflicts = {"rows"}, []
    if conic is not None:
        takes |= {kind for cone, kind in cones.items() if cone in conic.SUPPORTED_CONSTRAINTS}
        with_integers = getattr(conic, "MI_SUPPORTED_CONSTRAINTS", conic.SUPPORTED_CONSTRAINTS)
        conflicts = [
            {"integer", kind} for cone, kind in cones.items() if kind in takes and cone not in with_integers
        ]
    direct = conic is not None and solver in _installed() and conic.supports_quad_obj()
    if direct or quadratic is not None:
        takes.add("quadratic")
    if any(s is not None and s.MIP_CAPABLE for s in (conic, quadratic)):
        takes.add("integer")
        if not (direct or (quadratic is not None and quadratic.MIP_CAPABLE)):
            conflicts.append({"integer", "quadratic"})
    apart = tuple(frozenset(c) for c in conflicts if c <= takes)
    return Capabilities(frozenset(takes), apart, smallest=DROPPED)


_CONIC = frozenset({"rows", "quadratic"}) | _CONES
register_backend(Cvxpy("clarabel", "CLARABEL", Capabilities(_CONIC, smallest=LEAST_RAY)))
register_backend(Cvxpy("scs", "SCS", Capabilities(_CONIC, smallest=LEAST_RAY)))
register_backend(Cvxpy("osqp", "OSQP", Capabilities(frozenset({"rows", "quadratic"}), smallest=LEAST_RAY)))
register_family(
    "cvxpy",
    lambda name: Cvxpy(f"cvxpy:{name}", name.upper()),
    lambda: [n for n, t in _SOLVERS.items() if not (lacking("cvxpy") or lacking(t.package))],
)
