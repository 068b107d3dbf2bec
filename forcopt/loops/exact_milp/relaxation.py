"""The relaxation of a system in floating point, solved by HiGHS's dual simplex method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.highs import new_highs
from forcopt.loops.exact_lp import WIDE, Rational
from forcopt.loops.exact_milp.system import Row, System
from forcopt.rationals import fmpq

_FAR = 1e9
"""Derived bounds beyond it are not shown to the solver."""

_DENOMINATOR = 10**5
"""Multipliers of rows of the tableau are taken for fractions with denominators up to it."""

_STEPS = 60
"""Iterations of a trial."""


@dataclass(frozen=True, eq=False, slots=True)
class Solved:
    """What HiGHS says: a point with multipliers of the rows, or multipliers that show that there is none."""

    status: str
    value: float
    x: Array
    dual: Array | None


class Relaxation:
    """Keeps HiGHS's program the same as a system.

    Parameters
    ----------
    system : System
        With its bounds as they are now.
    """

    def __init__(self, system: System) -> None:
        import highspy

        self.system = system
        self.kept = len(system.rows)  # rows behind these are cuts
        self.kind = highspy.HighsModelStatus
        self.highs = highs = new_highs()
        options: dict[str, Any] = {"solver": "simplex", "parallel": "off"}
        options |= {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
        for name, value in options.items():
            highs.setOptionValue(name, value)
        n = system.columns
        if n > WIDE * len(system.rows):
            highs.setOptionValue("presolve", "off")
        cost = np.zeros(n)
        for j, a in system.cost.coefficients.items():
            cost[j] = float(a) / system.cost.unit
        highs.addVars(n, np.full(n, -np.inf), np.full(n, np.inf))
        highs.changeColsCost(n, np.arange(n, dtype=np.int32), cost)
        self.set_bounds()
        self._append(system.rows)

    def _append(self, rows: Sequence[Row]) -> None:
        starts = np.cumsum([0] + [len(row.coefficients) for row in rows])[:-1].astype(np.int32)
        indices = np.array([j for row in rows for j in row.coefficients], dtype=np.int32)
        data = np.array([float(a) / row.unit for row in rows for a in row.coefficients.values()])
        low = np.array([-np.inf if row.low is None else float(row.low) / row.unit for row in rows])
        high = np.array([np.inf if row.high is None else float(row.high) / row.unit for row in rows])
        self.highs.addRows(len(rows), low, high, len(data), starts, indices, data)

    def add(self, rows: Sequence[Row]) -> None:
        """Add cuts, to the system as well."""
        self.system.rows.extend(rows)
        self.system.refresh()
        self._append(rows)

    def drop_slack(self) -> None:
        """Remove cuts that are not tight at the present vertex, from the system as well."""
        import highspy

        basic = self.highs.getBasis().row_status
        gone = [i for i in range(self.kept, len(basic)) if basic[i] == highspy.HighsBasisStatus.kBasic]
        if gone:
            self.highs.deleteRows(len(gone), np.array(gone, dtype=np.int32))
            rows, drop = self.system.rows, set(gone)
            self.system.rows = [row for i, row in enumerate(rows) if i not in drop]
            self.system.refresh()

    def _bounds(self, j: int) -> tuple[float, float]:
        system = self.system
        low, high = system.lower[j], system.upper[j]
        ends = (-np.inf if low is None else low / system.grid, np.inf if high is None else high / system.grid)
        return (ends[0] if ends[0] > -_FAR else -np.inf, ends[1] if ends[1] < _FAR else np.inf)

    def set_bounds(self) -> None:
        """Take over all bounds of the system."""
        n = self.system.columns
        low, high = np.array([self._bounds(j) for j in range(n)]).reshape(n, 2).T.copy()
        self.highs.changeColsBounds(n, np.arange(n, dtype=np.int32), low, high)

    def set_bound(self, j: int) -> None:
        """Take over the bounds of a column."""
        self.highs.changeColBounds(j, *self._bounds(j))

    def solve(self) -> Solved:
        """Solve the program as it is now."""
        highs = self.highs
        highs.run()  # the first time with presolve, which keeps no ray; then from the basis
        status = highs.getModelStatus()
        if status == self.kind.kInfeasible and not highs.getDualRay()[1]:
            status = self.kind.kUnknown
        if status not in (self.kind.kOptimal, self.kind.kInfeasible):
            highs.setOptionValue("presolve", "off")
            highs.clearSolver()
            highs.run()
            status = highs.getModelStatus()
        if status == self.kind.kOptimal:
            found = highs.getSolution()
            value = highs.getInfo().objective_function_value
            return Solved("optimal", value, np.array(found.col_value), np.array(found.row_dual))
        if status == self.kind.kInfeasible:
            ray = highs.getDualRay()
            return Solved("infeasible", np.inf, np.empty(0), np.array(ray[2]) if ray[1] else None)
        return Solved("unknown", np.nan, np.empty(0), None)

    def trial(self, j: int, side: int, x: float, value: float) -> tuple[float, float]:
        """The gain of the optimum after some steps with a column rounded to one side, and its distance."""
        highs = self.highs
        low, high = self._bounds(j)
        basis = highs.getBasis()
        highs.changeColBounds(j, *map(float, (np.ceil(x), high) if side == 0 else (low, np.floor(x))))
        highs.setOptionValue("simplex_iteration_limit", _STEPS)
        highs.run()
        status = highs.getModelStatus()
        highs.setOptionValue("simplex_iteration_limit", 2**31 - 1)
        gain = max(highs.getInfo().objective_function_value - value, 0.0)
        if status == self.kind.kInfeasible:
            gain = max(10 * abs(value), 1.0)
        highs.changeColBounds(j, low, high)
        highs.setBasis(basis)
        return gain, float(np.ceil(x) - x if side == 0 else x - np.floor(x))

    def tableau(self, columns: Sequence[int]) -> list[dict[int, Rational]]:
        """The multipliers of the rows that give the tableau's rows of basic columns."""
        basic = {int(j): k for k, j in enumerate(self.highs.getBasicVariables()[1].tolist()) if j >= 0}
        out = []
        for j in columns:
            if j not in basic:
                continue
            weights = np.asarray(self.highs.getBasisInverseRow(basic[j])[1])
            chosen = {}
            for i in np.flatnonzero(np.abs(weights) > 1e-9).tolist():
                near = Fraction(float(weights[i])).limit_denominator(_DENOMINATOR)
                if near:
                    chosen[i] = fmpq(near.numerator, near.denominator * int(self.system.rows[i].unit))
            if chosen:
                out.append(chosen)
        return out
