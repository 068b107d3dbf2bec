"""Sensitivity ranges of linear programs: how far a cost or a right-hand side may move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from forcopt.arrays import Array
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import conditioned
from forcopt.backends.registry import get_backend
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import Program
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.loops.tolerances import NO_MOVE
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.backends.highs import HighsSession


class Range(NamedTuple):
    """The least and the greatest value within which the optimal basis stays optimal.

    Attributes
    ----------
    lower, upper : Array
        Shaped like the variable or the constraint; infinite where there is no end, NaN where HiGHS gives no
        basis.
    """

    lower: Array
    upper: Array


class Ranging:
    """The sensitivity ranges of an optimal basis of a linear model.

    Notes
    -----
    A degenerate optimum has several optimal bases, and each has ranges of its own; the true range of a shadow
    price contains them.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0)
    >>> need = m.subject_to(x[0] + 2 * x[1] >= 4)
    >>> m.minimize(3 * x[0] + 4 * x[1])
    >>> ranges = m.ranging()
    >>> ranges.cost(x).upper.tolist(), ranges.right_hand_side(need).upper.item()
    ([inf, 6.0], inf)
    """

    def __init__(self, model: Model, program: Program, highs: Any) -> None:
        self._records = highs.getRanging()[1]
        self._model, self._program = model, program
        basis, point = highs.getBasis(), highs.getSolution()
        self._values = np.concatenate([point.col_value, point.row_value])
        self._statuses = np.array([int(s) for s in [*basis.col_status, *basis.row_status]], dtype=int)
        self._basic = np.flatnonzero(self._statuses == _BASIC)
        self._factors: Any = None

    def cost(self, variable: Variable) -> Range:
        """Return the objective coefficients of a variable for which the optimal point stays optimal.

        Raises
        ------
        DeclarationError
            If it is no variable, but an entry of one, or not in the model.
        """
        if not isinstance(variable, Variable):
            raise DeclarationError(
                f"cost takes a whole variable, not {variable!r}; its range has entries: cost(x).lower[0]"
            )
        self._model.lift(variable)
        part, program = slice(variable.start, variable.start + variable.size), self._program
        if not program.rows.data.any():  # HiGHS ranges no program without entries: the cost's sign decides
            cost, tied = (
                program.stages[0].sign * program.stages[0].cost[part],
                (program.lower == program.upper)[part],
            )
            low, high = np.where(tied | (cost < 0), -np.inf, 0.0), np.where(tied | (cost > 0), np.inf, 0.0)
            return Range(low.reshape(variable.shape), high.reshape(variable.shape))
        if not self._records.valid:
            return Range(np.full(variable.shape, np.nan), np.full(variable.shape, np.nan))
        ends = (np.array(r.value_[part]) for r in (self._records.col_cost_dn, self._records.col_cost_up))
        low, high = (
            self._program.stages[0].sign * np.where(np.abs(v) >= 1e20, np.copysign(np.inf, v), v)
            for v in ends
        )
        least, most = np.minimum(low, high), np.maximum(low, high)
        return Range(least.reshape(variable.shape), most.reshape(variable.shape))

    def right_hand_side(self, constraint: Constraint) -> Range:
        """Return the values of the right-hand side for which the basis and the shadow price hold.

        For a row of the basis, which has the shadow price 0: the values that its activity allows. Of a row
        with two sides, the right-hand side is the one at which the row is, or else the nearer one; it stays
        on its side of the other one.

        Raises
        ------
        DeclarationError
            If the constraint is not in the model.

        Notes
        -----
        The values of the basis move in proportion to the right-hand side, until one of them reaches a bound
        (Chvatal, Linear Programming, 1983, chapter 10). One factorization, and one solve a row.
        """
        if constraint.start < 0 or constraint.model is not self._model:
            raise DeclarationError(f"the constraint {constraint.name!r} is not in model {self._model.name!r}")
        low, high = np.full((2, constraint.expression.size), np.nan)
        if len(self._basic) == self._program.rows.count:
            for at in range(constraint.expression.size):
                low[at], high[at] = self._of_row(constraint.start + at)
        return Range(low.reshape(constraint.shape), high.reshape(constraint.shape))

    def _of_row(self, row: int) -> tuple[float, float]:
        """The ends of one row's right-hand side."""
        program = self._program
        lower, upper = float(program.rows.lower[row]), float(program.rows.upper[row])
        place = program.columns + row
        activity = float(self._values[place])
        at_lower = activity - lower <= upper - activity
        if self._statuses[place] == _BASIC and lower == upper:  # other rows hold it there
            return lower, upper
        if self._statuses[place] == _BASIC:
            return (-np.inf, min(activity, upper)) if at_lower else (max(activity, lower), np.inf)
        if self._factors is None:
            system = sp.hstack([program.matrix(), -sp.eye_array(program.rows.count)], format="csc")
            self._factors = splu(system[:, self._basic])
        unit = np.zeros(program.rows.count)
        unit[row] = 1.0
        rate = self._factors.solve(unit)
        ends = np.hstack([[program.lower, program.upper], [program.rows.lower, program.rows.upper]])
        room = np.maximum(np.abs(ends[:, self._basic] - self._values[self._basic]), 0.0)
        moves = np.abs(rate) > NO_MOVE * max(1.0, float(np.abs(rate).max(initial=0.0)))
        toward = np.where(rate > 0, room[1], room[0])[moves] / np.abs(rate[moves])
        away = np.where(rate > 0, room[0], room[1])[moves] / np.abs(rate[moves])
        side = lower if at_lower else upper
        least, greatest = side - away.min(initial=np.inf), side + toward.min(initial=np.inf)
        if lower < upper:
            least, greatest = (least, min(greatest, upper)) if at_lower else (max(least, lower), greatest)
        return least, greatest


_BASIC = 1
"""HiGHS's number of the status of a column or a row in the basis."""


def ranging(model: Model) -> Ranging:
    """Solve a linear model by HiGHS's simplex method and compute its sensitivity ranges.

    Parameters
    ----------
    model : Model
        Linear and continuous, with one objective, and with an optimum.

    Returns
    -------
    Ranging
        Ranges of costs and right-hand sides.

    Raises
    ------
    DeclarationError
        For a model with integers, cones or several objectives, with rows or costs so small that HiGHS needs
        another unit, and for one without an optimum.

    Examples
    --------
    >>> from forcopt import Model
    >>> m = Model()
    >>> x = m.variable("x", 2, lower=0)
    >>> time = m.subject_to(x[0] + 2 * x[1] <= 8, name="time")
    >>> steel = m.subject_to(3 * x[0] + x[1] <= 9, name="steel")
    >>> m.maximize(2 * x[0] + 3 * x[1])
    >>> ranges = m.ranging()
    >>> ranges.cost(x).lower.round(6).tolist(), ranges.cost(x).upper.round(6).tolist()
    ([1.5, 0.666667], [9.0, 4.0])
    >>> [round(float(end), 6) for end in ranges.right_hand_side(time)]
    [3.0, 18.0]
    """
    solver = get_backend("highs:simplex")
    program, scaling = conditioned(solver, compile_model(model, solver.capabilities, solver.name))
    if scaling is not None:
        raise DeclarationError("ranging needs rows and costs above 1e-5: give smaller ones another unit")
    if program.is_staged or program.is_integer or program.lazies:
        raise DeclarationError("ranging needs a continuous linear model with one objective")
    session: HighsSession = solver.session(program)  # type: ignore[assignment]
    result = session.solve(SolveOptions())
    if result.status is not Status.OPTIMAL:
        raise DeclarationError(f"ranging needs an optimum; the status is {result.status}")
    if not session.highs.getRanging()[1].valid:  # presolve may solve a program without a basis
        session.highs.setOptionValue("presolve", "off")
        session.highs.clearSolver()
        session.highs.run()
    return Ranging(model, program, session.highs)
