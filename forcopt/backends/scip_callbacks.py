"""The cuts and heuristics of a model inside SCIP: a separator, and primal heuristics.

A cut goes to SCIP's separation storage, never to the program: SCIP checks points against the constraints
alone. The premise that cuts exclude no feasible point is tested at every point at hand. A proposal is checked
against the model; if it leaves columns open, they are determined by a solve with the others fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import RawResult, SolveMonitor, SolveOptions
from forcopt.backends.tolerances import EXCLUDED, FEASIBLE, WHOLE
from forcopt.compile.assemble import assemble
from forcopt.compile.program import Program, RowBlock
from forcopt.compile.separation import relaxed_value, violated_cuts
from forcopt.errors import BackendError, DeclarationError
from forcopt.language.constraint import Cut, Heuristic
from forcopt.language.evaluator import read_values

if TYPE_CHECKING:
    import pyscipopt


_NODES = 1000
"""The nodes that may be searched for the columns that a proposal leaves open."""


@dataclass
class _Count:
    """The outcomes of a callback's calls."""

    taken: int = 0
    refused: int = 0
    reason: str = ""


class ScipCallbacks:
    """The callbacks of a program's model during one run of SCIP.

    Parameters
    ----------
    program : Program
        As SCIP has it, with callbacks.
    options : SolveOptions
        Of the run.
    monitor : SolveMonitor
        Keeps the exceptions of the callbacks.
    point : Callable[[Any], Array]
        Gives the columns' values in a solution of SCIP; of None, in the relaxation's.
    solution : Callable[[Array, Any], Any]
        Makes a solution of SCIP from the columns' values.
    solve : Callable[[Program, SolveOptions], RawResult]
        Solves a program with some columns fixed.
    """

    def __init__(
        self,
        program: Program,
        options: SolveOptions,
        monitor: SolveMonitor,
        point: Callable[[Any], Array],
        solution: Callable[[Array, Any], Any],
        solve: Callable[[Program, SolveOptions], RawResult],
    ) -> None:
        self.program, self.options, self.monitor = program, options, monitor
        self.point, self.solution, self.solve = point, solution, solve
        self.model = program.callbacks[0].model
        self.cuts = [c for c in program.callbacks if isinstance(c, Cut)]
        self.heuristics = [c for c in program.callbacks if isinstance(c, Heuristic)]
        self.counts = {c.name: _Count() for c in program.callbacks}
        self.kept: list[tuple[Cut, RowBlock]] = []

    def include(self, scip: pyscipopt.Model, columns: list[Any]) -> None:
        """Add the callbacks to SCIP."""
        if self.cuts:
            scip.includeSepa(_separator(self, columns), "cut", "cuts of the model", priority=100, freq=1)
        for k, heuristic in enumerate(self.heuristics):
            _include_heuristic(self, scip, heuristic, k)

    def relaxed(self) -> Array:
        """The values of the model's columns in the current relaxation."""
        x = self.program.in_units(self.point(None))
        near = (self.program.integer == 1) & (np.abs(x - np.round(x)) <= WHOLE)
        return np.where(near, np.round(x), x)

    # -- cuts ----------------------------------------------------------------------------------------------

    def separate(self, tolerance: float) -> Iterable[RowBlock]:
        """The rows of cuts that the relaxation's point violates, in the program's units."""
        x = self.relaxed()
        for family in self.cuts:
            found = violated_cuts(family, x, tolerance)
            if not found:
                continue
            rows = assemble([(c.expression, *c.row_bounds()) for c in found])
            self._refute(family, rows, x, "the relaxation's point")
            self.kept.append((family, rows))
            self.counts[family.name].taken += int((rows.excess(x) > tolerance).sum())
            yield self.program.in_program_units(rows)

    def check(self, points: Iterable[Array]) -> None:
        """Test the cuts at the points that a search found, best first, and at its start.

        Raises
        ------
        DeclarationError
            If a cut excludes a feasible one.
        """
        if not self.cuts:
            return
        start = self.options.start
        named = [(self.program.in_units(x), "a point that the search found") for x in points]
        asked = named[:1]
        if start is not None and not np.isnan(start[: self.model.column_count][self._given()]).any():
            given = np.where(np.isnan(start), 0.0, self.program.in_units(start))
            named.append((self._completed(given), "the start"))
            asked.append(named[-1])
        for x, subject in named:
            for family, rows in self.kept:
                self._refute(family, rows, x, subject)
        for x, subject in asked:
            for family in self.cuts:
                if found := violated_cuts(family, x, EXCLUDED):
                    rows = assemble([(c.expression, *c.row_bounds()) for c in found])
                    self._refute(family, rows, x, subject)

    def _refute(self, family: Cut, rows: RowBlock, x: Array, subject: str) -> None:
        """Raise an error if a feasible point violates rows of a family of cuts."""
        integer = self.program.integer == 1
        if np.abs(x - np.round(x)).max(initial=0.0, where=integer) > FEASIBLE:
            return
        x = self._completed(np.where(integer, np.round(x), x))
        off = float(rows.excess(x).max(initial=0.0))
        if off > EXCLUDED and not self._violated(x):
            raise DeclarationError(
                f"cut {family.name!r} excludes {subject}, which is feasible, by {off:.3g}; "
                "every feasible point must satisfy a cut"
            )

    # -- heuristics ----------------------------------------------------------------------------------------

    def proposal(self, heuristic: Heuristic) -> Array | None:
        """The columns' values of a feasible proposal, or None."""
        x = self.relaxed()
        given = heuristic.propose(relaxed_value(self.model, x))
        if given is None:
            return None
        read = read_values(self.model, given, f"heuristic {heuristic.name!r}")
        values = np.full(self.program.columns, np.nan)
        values[: len(read)] = read
        reason = (
            self._translate(values)
            or self._determine(values)
            or self._violated(self.program.in_units(values))
        )
        if reason:
            self.refuse(heuristic, reason)
            return None
        return values

    def refuse(self, heuristic: Heuristic, reason: str) -> None:
        """Count a proposal that SCIP does not get."""
        count = self.counts[heuristic.name]
        count.refused, count.reason = count.refused + 1, reason

    def _translate(self, values: Array) -> str:
        """Put values, some NaN, into SCIP's units; give the reason if no feasible point has them."""
        model, columns = self.model, self.model.columns()
        known = np.flatnonzero(~np.isnan(values[: model.column_count]))
        x = values[known]
        beyond = np.maximum(columns.lower[known] - x, x - columns.upper[known])
        off = np.where(columns.integer[known] == 1, np.abs(x - np.round(x)), 0.0)
        for subject, amount in (("bounds", beyond), ("integrality", off)):
            if (amount > FEASIBLE).any():
                worst = int(np.argmax(amount))
                return f"{model.column_name(int(known[worst]))} is {x[worst]:g}, against its {subject}"
        x = np.clip(x, columns.lower[known], columns.upper[known])
        values[known] = np.where(columns.integer[known] == 1, np.round(x), x)
        if self.program.units is not None:
            values /= self.program.units
        return ""

    def _determine(self, values: Array) -> str:
        """Fill the open columns by a solve with the others fixed; the reason if that fails."""
        fixed = ~np.isnan(values)
        if fixed.all():
            return ""
        program = replace(
            self.program,
            lower=np.where(fixed, values, self.program.lower),
            upper=np.where(fixed, values, self.program.upper),
            callbacks=(),
        )
        left = SolveOptions(self.options.time_limit, extra={"limits/nodes": _NODES})
        try:
            result = self.solve(program, left.within(self.monitor.deadline.seconds))
        except BackendError as error:
            return str(error)
        if result.x is None:
            return f"no values of the other variables complete it ({result.message})"
        values[:] = np.where(self.program.integer == 1, np.round(result.x), result.x)
        return ""

    # -- both ----------------------------------------------------------------------------------------------

    def message(self) -> str:
        """The counts of all callbacks, to follow SCIP's message."""
        words = ""
        for callback in self.program.callbacks:
            count = self.counts[callback.name]
            if callback.kind == "cut":
                words += f"; cut {callback.name!r}: {count.taken} rows"
                continue
            words += f"; heuristic {callback.name!r}: {count.taken} points taken, {count.refused} refused"
            words += f" (last: {count.reason})" if count.reason else ""
        return words

    def _given(self) -> Array:
        """The columns of variables; the others are atoms' and products' results."""
        inside = np.ones(self.model.column_count, dtype=bool)
        for relation in self.model.relations:
            if (results := getattr(relation, "result_columns", None)) is not None:
                inside[results] = False
        return inside

    def _completed(self, x: Array) -> Array:
        wide = self.model.column_count
        return np.concatenate([self.model.complete(x[:wide]), x[wide:]])

    def _violated(self, x: Array) -> str:
        """The worst violation of the model at a point; empty if it is feasible."""
        found = self.model.violations(self.model.complete(x[: self.model.column_count]))
        worst = max(found, key=lambda name: found[name], default="")
        return f"it violates {worst!r} by {found[worst]:.3g}" if worst and found[worst] > FEASIBLE else ""


def _separator(run: ScipCallbacks, columns: list[Any]) -> pyscipopt.Sepa:
    import pyscipopt

    results = pyscipopt.SCIP_RESULT

    class Separator(pyscipopt.Sepa):  # type: ignore[misc]
        def sepaexeclp(self) -> dict[str, Any]:
            result = results.DIDNOTFIND
            with run.monitor.capture(self.model.interruptSolve):
                for rows in run.separate(self.model.feastol()):
                    result = results.CUTOFF if self._add(rows) else results.SEPARATED
                    if result == results.CUTOFF:
                        break
            return {"result": result}

        def _add(self, rows: RowBlock) -> bool:
            """Add rows; whether one of them cuts off the node."""
            scip = self.model
            ends, indices, data = rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()
            for i, (low, high) in enumerate(zip(rows.lower.tolist(), rows.upper.tolist(), strict=True)):
                low, high = (end if np.isfinite(end) else None for end in (low, high))
                row = scip.createEmptyRowSepa(self, "cut", low, high, local=False)
                scip.cacheRowExtensions(row)
                for j, value in zip(indices[ends[i] : ends[i + 1]], data[ends[i] : ends[i + 1]], strict=True):
                    scip.addVarToRow(row, scip.getTransformedVar(columns[j]), value)
                scip.flushRowExtensions(row)
                cutoff = scip.addCut(row)
                scip.releaseRow(row)
                if cutoff:
                    return True
            return False

    return Separator()


def _include_heuristic(run: ScipCallbacks, scip: pyscipopt.Model, heuristic: Heuristic, number: int) -> None:
    import pyscipopt

    results = pyscipopt.SCIP_RESULT

    class Proposals(pyscipopt.Heur):  # type: ignore[misc]
        def heurexec(self, timing: Any, infeasible: bool) -> dict[str, Any]:
            result = results.DIDNOTFIND
            if infeasible or self.model.getLPSolstat() != pyscipopt.SCIP_LPSOLSTAT.OPTIMAL:
                return {"result": results.DIDNOTRUN}
            with run.monitor.capture(self.model.interruptSolve):
                x = run.proposal(heuristic)
                if x is not None and run.program.stages[0].value(x) < self.model.getPrimalbound():
                    if self.model.trySol(run.solution(x, self)):
                        run.counts[heuristic.name].taken += 1
                        result = results.FOUNDSOL
                    else:
                        run.refuse(heuristic, "SCIP's tolerances are stricter")
            return {"result": result}

    timing = pyscipopt.SCIP_HEURTIMING.AFTERLPNODE
    scip.includeHeur(
        Proposals(),
        f"proposals{number + 1}",
        "a heuristic of the model",
        "P",
        priority=1_000_000,
        timingmask=timing,
    )
