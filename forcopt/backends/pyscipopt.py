"""SCIP through PySCIPOpt: mixed-integer convex programs, and branch-and-cut for lazy families.

A lazy family is a constraint handler: it is asked about every point that satisfies all else, in the tree
(where it adds the rows that the point violates) and from heuristics (where it rejects the point). It locks
all variables in both directions, and the reductions that would trust the listed constraints alone are off.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveMonitor, SolveOptions
from forcopt.backends.registry import register_backend
from forcopt.backends.tolerances import CONES, DROPPED
from forcopt.clock import catch_interrupt
from forcopt.compile.assemble import assemble
from forcopt.compile.compiler import Capabilities
from forcopt.compile.program import Cone, Products, Program, RowBlock
from forcopt.compile.separation import violated_constraints
from forcopt.errors import BackendError
from forcopt.status import Status

if TYPE_CHECKING:
    import pyscipopt


_HUGE = 1e15
"""Where SCIP's arithmetic ends (its parameter ``numerics/hugeval``)."""


class ScipSession(Session):
    """A program that is handed to SCIP anew for every run."""

    def solve(self, options: SolveOptions) -> RawResult:
        """Run SCIP and read its answer."""
        monitor = SolveMonitor(self.program, options)
        # A folder for a temporary file takes longer to remove than SCIP takes for a small program.
        handle, name = tempfile.mkstemp()
        os.close(handle)
        log = Path(name)
        try:
            run = _Run(self.program, options, monitor)
            try:
                run.scip.setLogfile(str(log))
                run.scip.optimize()
            except Exception as error:  # PySCIPOpt turns SCIP's return codes into many kinds of exceptions
                monitor.reraise()
                raise BackendError(f"SCIP: {error}") from error
            finally:
                run.scip.setLogfile(None)
                monitor.log = log.read_text(errors="replace")
        finally:
            log.unlink()
        monitor.reraise()
        if run.scip.getStatus() == "userinterrupt" and not monitor.stop:
            catch_interrupt()
        for cuts in run.cuts:  # SCIP's claims rest on these cuts of the oracles
            self.add_rows(cuts)
        return run.read()


class _Run:
    """A program inside a SCIP instance."""

    def __init__(self, program: Program, options: SolveOptions, monitor: SolveMonitor) -> None:
        import pyscipopt
        from pyscipopt.scip import Term

        self.program, self.monitor = program, monitor
        self.scip = scip = pyscipopt.Model(program.name)
        self.columns: list[Any] = []
        self.cuts: list[RowBlock] = []
        bounded = (program.lower >= 0) & (program.upper <= 1)
        kinds = np.where(program.integer == 1, np.where(bounded, "B", "I"), "C")
        ends = zip(kinds.tolist(), program.lower.tolist(), program.upper.tolist(), strict=True)
        for j, (kind, low, high) in enumerate(ends):
            cost = float(program.stages[0].cost[j])
            self.columns.append(scip.addVar(f"x{j}", kind, _finite(low), _finite(high), cost))
        self.terms = [Term(x) for x in self.columns]
        scip.addObjoffset(program.stages[0].offset)
        scip.hideOutput(not options.log)
        self._add_constraints()
        self._set_options(options)
        self._give_start(options.start)
        scip.includeEventhdlr(_best_point_handler(self), "improvements", "reports every better point")
        if program.lazies:
            self._add_lazies()

    # -- building ------------------------------------------------------------------------------------------

    def _linear(self, columns: Iterable[int], values: Iterable[float], low: float, high: float) -> Any:
        from pyscipopt.scip import Expr, ExprCons

        terms = dict(zip((self.terms[j] for j in columns), values, strict=True))
        return ExprCons(Expr(terms), _finite(low), _finite(high))

    def add_rows(self, rows: RowBlock) -> None:
        """Add linear rows, also while SCIP runs."""
        for row in _each(rows):
            if np.isfinite(row[2:]).any():
                self.scip.addCons(self._linear(*row))

    def _add_constraints(self) -> None:
        program, scip = self.program, self.scip
        self.add_rows(program.rows)
        for indicator in program.indicators:
            switches = [self.columns[j] for j in indicator.columns.tolist()]
            for switch, (columns, data, low, high) in zip(switches, _each(indicator.rows), strict=True):
                for side in ((low, np.inf), (-np.inf, high)):  # SCIP's have one side
                    if np.isfinite(side).any():
                        row = self._linear(columns, data, *side)
                        scip.addConsIndicator(row, switch, activeone=bool(indicator.active))
        if program.stages[0].quadratic is not None:
            self._add_quadratic(program.stages[0].quadratic)
        for cone in program.cones:
            self._add_cone(cone)
        for products in program.products:
            self._add_products(products)

    def _add_quadratic(self, quadratic: sp.csc_array) -> None:
        """SCIP's objectives are linear: minimise a new column that is at least the quadratic part."""
        from pyscipopt.scip import Expr, ExprCons, Term

        height = self.scip.addVar("quadratic", "C", None, None, 1.0)
        triangle = sp.coo_array(sp.triu(quadratic) - 0.5 * sp.diags_array(quadratic.diagonal()))
        entries = zip(triangle.row.tolist(), triangle.col.tolist(), triangle.data.tolist(), strict=True)
        terms = {Term(self.columns[i], self.columns[j]): value for i, j, value in entries}
        self.scip.addCons(ExprCons(Expr({**terms, Term(height): -1.0}), None, 0.0))

    def _add_products(self, products: Products) -> None:
        from pyscipopt.scip import Expr, ExprCons, Term

        x = self.columns
        for z, left, right in zip(*(a.tolist() for a in products.columns), strict=True):
            self.scip.addCons(ExprCons(Expr({Term(x[left], x[right]): 1.0, Term(x[z]): -1.0}), 0.0, 0.0))

    def _add_cone(self, cone: Cone) -> None:
        """Write a cone on new columns, one for each entry that is not constant."""
        nonnegative = {"second_order": (0,), "exponential": (1, 2), "power_cone": (0, 1)}[cone.kind]
        entries: list[Any] = []
        for columns, data, _, negated in _each(RowBlock.of(cone.matrix, -cone.offset, -cone.offset)):
            if not columns:
                entries.append(-negated)
                continue
            entries.append(self.scip.addVar(lb=0.0 if len(entries) % cone.size in nonnegative else None))
            self.scip.addCons(self._linear(columns, data, negated, negated).expr - entries[-1] == negated)
        for first in range(0, len(entries), cone.size):
            for constraint in _inequalities(cone, entries[first : first + cone.size]):
                self.scip.addCons(constraint)

    def _add_lazies(self) -> None:
        scip = self.scip
        for name in ("misc/allowstrongdualreds", "misc/allowweakdualreds"):
            scip.setParam(name, False)
        for name in ("misc/usesymmetry", "constraints/components/maxprerounds"):
            scip.setParam(name, 0)
        # Asked last: the oracles expect points that satisfy everything else.
        last = -9_999_999
        scip.includeConshdlr(_lazy_handler(self), "lazy", "lazy families", 0, last, last, needscons=False)

    def _set_options(self, options: SolveOptions) -> None:
        values: dict[str, Any] = {}
        if not self.program.is_integer:  # they fix columns between the vertices
            values["misc/allowweakdualreds"] = False
        if self.program.cones or self.program.products:  # its tolerance is one of each row, ours of the cone
            values["numerics/feastol"] = CONES
        if (limit := options.within(self.monitor.deadline.seconds).time_limit) is not None:
            values["limits/time"] = min(limit, 1e20)  # handing over 280,000 columns took 6 s
        if np.isfinite(left := self.monitor.deadline.memory.left):
            values["limits/memory"] = left / 2**20
        values |= options.named(gap="limits/gap", seed="randomization/randomseedshift")
        for name, value in values.items():
            try:
                self.scip.setParam(name, value)
            except (KeyError, TypeError, ValueError, LookupError) as error:
                raise BackendError(f"SCIP refuses the option {name}={value!r}: {error}") from None

    def _give_start(self, start: Array | None) -> None:
        if start is None:
            return
        known = np.flatnonzero(~np.isnan(start))
        point = self.scip.createSol() if len(known) == len(start) else self.scip.createPartialSol()
        for j in known.tolist():
            self.scip.setSolVal(point, self.columns[j], float(start[j]))
        self.scip.addSol(point)

    # -- reading -------------------------------------------------------------------------------------------

    def point(self, solution: Any) -> Array:
        """The columns' values in a solution of SCIP; None stands for the current relaxation's solution."""
        return np.array([self.scip.getSolVal(solution, x) for x in self.columns])

    def bound(self) -> float:
        """The lower bound that SCIP has proved."""
        bound = self.scip.getDualbound()
        return float(bound) if abs(bound) < self.scip.infinity() else -np.inf

    def read(self) -> RawResult:
        """Translate the answer."""
        scip, program = self.scip, self.program
        end = scip.getStatus()
        name = {"gaplimit": "optimal", "inforunbd": "infeasible"}.get(end, end)
        settled = name in ("optimal", "infeasible", "unbounded")
        status = Status(name) if settled else Status.FEASIBLE if scip.getNSols() else Status.LIMIT
        x = self.point(scip.getBestSol()) if status.has_solution else np.zeros(0)
        if np.abs(x).max(initial=0.0) >= _HUGE:  # no optimum, but no ray that would prove it either
            status, end = Status.FAILED, f"{end}, at a point beyond its range of numbers"
        result = self.monitor.result(status, f"SCIP: {end}", end == "memlimit", bound=self.bound())
        result.ambiguous, result.seconds = end == "inforunbd", scip.getSolvingTime()
        result.iterations, result.nodes = scip.getNLPIterations(), scip.getNTotalNodes()
        if status.has_solution:
            result.x, result.objective = x, program.stages[0].value(x)
        return result


def _each(rows: RowBlock) -> Iterable[tuple[list[int], list[float], float, float]]:
    """Columns, coefficients and bounds of each row."""
    ends, columns, data = rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()
    for i, (low, high) in enumerate(zip(rows.lower.tolist(), rows.upper.tolist(), strict=True)):
        part = slice(ends[i], ends[i + 1])
        yield columns[part], data[part], low, high


def _inequalities(cone: Cone, entries: list[Any]) -> Iterable[Any]:
    """Write one cone in the form in which SCIP's tolerance of 1e-6 spoils least.

    ``sum(x**2) <= t**2`` would leave 1e-3 on t near the apex, ``exp(x) <= z`` any error on x where z is
    small.
    """
    from pyscipopt.scip import exp, log, sqrt

    if cone.kind == "second_order":
        t, *vector = entries
        yield sqrt(sum(x * x for x in vector)) <= t
        return
    x, y, z = entries
    if cone.kind == "power_cone":
        reach = x**cone.alpha * y ** (1 - cone.alpha)
        yield reach >= z
        yield reach >= -z
    elif any(isinstance(e, float) and e <= 0.0 for e in (y, z)):  # the closure: y = 0 and x <= 0
        yield from (e <= 0 for e in (x, y) if not isinstance(e, float))
    else:  # x <= y log(z / y)
        part = [math.log(e) if isinstance(e, float) else log(e) for e in (z, y)]
        yield y * part[0] - y * part[1] >= x
        if isinstance(y, float) and not isinstance(z, float):  # implied, but it proves bounds much faster
            yield y * exp(x / y) <= z


def _best_point_handler(run: _Run) -> pyscipopt.Eventhdlr:
    import pyscipopt

    class BestPoint(pyscipopt.Eventhdlr):  # type: ignore[misc]
        def eventinit(self) -> None:
            self.model.catchEvent(pyscipopt.SCIP_EVENTTYPE.BESTSOLFOUND, self)

        def eventexit(self) -> None:
            self.model.dropEvent(pyscipopt.SCIP_EVENTTYPE.BESTSOLFOUND, self)

        def eventexec(self, event: Any) -> None:
            with run.monitor.capture(self.model.interruptSolve):
                run.monitor.improved(self.model.getSolObjVal(self.model.getBestSol()), run.bound())

    return BestPoint()


def _lazy_handler(run: _Run) -> pyscipopt.Conshdlr:
    import pyscipopt

    program, monitor = run.program, run.monitor
    model = program.lazies[0].model
    results = pyscipopt.SCIP_RESULT

    class Lazy(pyscipopt.Conshdlr):  # type: ignore[misc]
        def _cuts(self, solution: Any) -> RowBlock | None:
            """The rows that a point violates, None if it is fine; no rows if an oracle fails."""
            rows: RowBlock | None = assemble([])
            with monitor.capture(self.model.interruptSolve):
                x = program.in_units(run.point(solution))
                x = np.where(program.integer == 1, np.round(x), x)
                cuts = violated_constraints(model, x, self.model.feastol())
                rows = assemble([(c.expression, *c.row_bounds()) for c in cuts]) if cuts else None
                if rows is not None:
                    rows = program.in_program_units(rows)
                    run.cuts.append(rows)
            return rows

        def conscheck(self, constraints: Any, solution: Any, *flags: Any) -> dict[str, Any]:
            return {"result": results.FEASIBLE if self._cuts(solution) is None else results.INFEASIBLE}

        def consenfolp(self, constraints: Any, useful: int, infeasible: bool) -> dict[str, Any]:
            if infeasible:  # something else will cut this point off
                return {"result": results.FEASIBLE}
            cuts = self._cuts(None)
            if cuts is None:
                return {"result": results.FEASIBLE}
            run.add_rows(cuts)
            return {"result": results.CONSADDED if cuts.count else results.INFEASIBLE}

        def consenfops(self, constraints: Any, useful: int, infeasible: bool, worse: bool) -> dict[str, Any]:
            return self.consenfolp(constraints, useful, infeasible)

        def conslock(self, constraint: Any, kind: Any, positive: int, negative: int) -> None:
            for x in run.columns[: model.column_count]:
                self.model.addVarLocksType(x, kind, positive + negative, positive + negative)

    return Lazy()


def _finite(bound: float) -> float | None:
    return bound if np.isfinite(bound) else None


class Scip(Backend):
    """SCIP; options by its own names such as ``limits/nodes``.

    Its search with indicator rows loses optima (version 10.0): it gets them only where bounds give no big-M
    rows. It searches with one thread whatever is asked for. It gives no duals: even without presolving, SCIP
    turns rows of one column into bounds, and their multipliers are lost.
    """

    through = "pyscipopt"
    install = "pip install pyscipopt"
    capabilities = Capabilities(
        frozenset({"rows", "integer", "quadratic", "indicator", "lazy", "nonconvex"})
        | {"second_order", "exponential", "power_cone"},
        smallest=DROPPED,
        reluctant=frozenset({"indicator"}),
    )

    def __init__(self, name: str) -> None:
        self.name = name

    def version(self) -> str:
        """The version of SCIP and of PySCIPOpt."""
        import pyscipopt

        return f"{pyscipopt.Model().version()} (pyscipopt {version('pyscipopt')})"

    def session(self, program: Program) -> ScipSession:
        """Hold the program for SCIP."""
        return ScipSession(program)


register_backend(Scip("pyscipopt"))
if find_spec("pyscipopt"):
    register_backend(Scip("scip"))
