"""The least changes of right-hand sides and bounds that make an infeasible model feasible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import get_backend
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import Program, RowBlock, elastic, row_scales
from forcopt.errors import DeclarationError, require
from forcopt.language.constraint import Condition, Constraint
from forcopt.language.model import Model
from forcopt.loops.solve import default_backend
from forcopt.loops.tolerances import NOISE
from forcopt.status import Status


@dataclass(frozen=True)
class Change:
    """A right-hand side or bound to move.

    Attributes
    ----------
    name : str
        Of the row, such as ``need[2]``, or of the variable.
    side : str
        ``"<="`` or ``">="``.
    bound : float
        The present right-hand side or bound, without the constants of the left-hand side.
    amount : float
        The move, above 0: an upper side rises, a lower one falls.
    """

    name: str
    side: str
    bound: float
    amount: float

    @property
    def needed(self) -> float:
        """The right-hand side or bound after the move."""
        return self.bound + self.amount if self.side == "<=" else self.bound - self.amount

    def __str__(self) -> str:
        verb = "raise" if self.side == "<=" else "lower"
        return f"{verb} {self.name} {self.side} {self.bound:g} by {self.amount:g}, to {self.needed:g}"


@dataclass(frozen=True)
class FeasibilityRelaxation:
    """The least changes with which a model is feasible.

    Attributes
    ----------
    status : Status
        OPTIMAL if no smaller weighted sum of changes will do; INFEASIBLE if hard constraints contradict
        each other.
    total : float
        The weighted sum of the changes; NaN without any.
    changes : tuple[Change, ...]
        Empty if the model is feasible as it is.
    point : Array, optional
        The values of the model's columns that satisfy the changed model.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0)
    >>> _ = m.subject_to(x.sum() >= 3, name="need")
    >>> _ = m.subject_to(2 * x.sum() <= 2, name="stock")
    >>> found = m.feasibility_relaxation()
    >>> found.total, found.changes[0]
    (2.0, Change(name='need', side='>=', bound=3.0, amount=2.0))
    """

    status: Status
    total: float
    changes: tuple[Change, ...] = ()
    point: Array | None = None

    def __str__(self) -> str:
        if not self.status.has_solution:
            return f"no relaxation was found: {self.status}"
        return "; ".join(map(str, self.changes)) or "the model is feasible"


def feasibility_relaxation(
    model: Model,
    backend: str | None = None,
    *,
    constraints: Sequence[Constraint] | None = None,
    bounds: bool = False,
    weights: Mapping[Constraint, float | Array] | None = None,
    time_limit: float | None = None,
) -> FeasibilityRelaxation:
    """Find the least weighted sum of changes of right-hand sides that makes a model feasible.

    Parameters
    ----------
    model : Model
        Feasible or not; its objective is left aside.
    backend : str, optional
        By default the one for the kind of the model.
    constraints : Sequence[Constraint], optional
        Rows that may change; all linear rows by default. Cones, conditions and integrality never change.
    bounds : bool, default False
        Whether bounds of variables may change, too, each at a cost of 1 per unit.
    weights : Mapping[Constraint, float or Array], optional
        The cost per unit of a constraint's change, above 0: a number, or one for each row. 1 by default.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    FeasibilityRelaxation
        The changes by row, and a point of the changed model.

    Raises
    ------
    DeclarationError
        For a constraint of another model, a weight that is not positive, or a model with lazy families.

    Notes
    -----
    One program of the same kind, with a slack column for each side that may change.

    References
    ----------
    J. W. Chinneck, Feasibility and Infeasibility in Optimization, Springer 2008, section 6.1.

    Examples
    --------
    >>> from forcopt import Model
    >>> m = Model()
    >>> x = m.variable("x", 3, lower=0, upper=4)
    >>> week = m.subject_to(x.sum() <= 5, name="week")
    >>> need = m.subject_to(x[0] + x[1] >= 6, name="need")
    >>> print(m.feasibility_relaxation())
    lower need >= 6 by 1, to 5
    """
    if model.lazies:
        raise DeclarationError("feasibility_relaxation: lazy families cannot change; the model has some")
    conditions = [r for r in model.relations if isinstance(r, Condition)]
    name = backend or default_backend(model)
    solver = get_backend(name)
    program = compile_model(model, solver.capabilities, name, only=[*model.constraints, *conditions])
    costs = _costs(model, program, constraints, {} if weights is None else weights)
    if bounds:
        program, costs = _bounds_as_rows(program, model.column_count, costs)
    units = np.minimum(row_scales(program.rows), 1.0)  # a slack is as large as its row
    costs = np.where(np.isfinite(costs), costs * units, np.inf)
    softened, at, signs = elastic(program, units, costs)
    result = open_session(solver, softened).solve(SolveOptions(time_limit=time_limit))
    if result.x is None:
        return FeasibilityRelaxation(result.status, float("nan"))
    slack, changes = result.x[program.columns :], []
    for row, sign, amount in zip(at, signs, slack * units[at], strict=True):
        side = float(program.rows.lower[row] if sign > 0 else program.rows.upper[row])
        if amount > NOISE * max(units[row], abs(side)):
            changes.append(Change(program.row_name(row), ">=" if sign > 0 else "<=", side, float(amount)))
    total = float(np.sum(costs[at] * slack))
    return FeasibilityRelaxation(result.status, total, tuple(changes), result.x[: model.column_count])


def _costs(
    model: Model,
    program: Program,
    constraints: Sequence[Constraint] | None,
    weights: Mapping[Constraint, float | Array],
) -> Array:
    """The cost of a change of each row; infinite for rows that may not change."""
    costs = np.full(program.rows.count, np.inf)
    require(isinstance(weights, Mapping), "weights", weights, "give numbers to constraints, as in {c: 2}")
    for field, given in (("constraints", constraints or ()), ("weights", weights)):
        for c in given:
            if not isinstance(c, Constraint) or c.model is not model or c.start < 0:
                raise DeclarationError(f"{field}: {c} is not a constraint of the model {model.name!r}")
    for c in model.constraints if constraints is None else constraints:
        costs[c.start : c.start + c.expression.size] = 1.0
    for c, weight in weights.items():
        numbers = np.broadcast_to(as_numbers(weight, f"the weight of {c.name!r}"), c.shape).reshape(-1)
        require((numbers > 0).all(), f"the weight of {c.name!r}", weight, "be above 0")
        part = slice(c.start, c.start + c.expression.size)
        costs[part] = np.where(np.isfinite(costs[part]), numbers, np.inf)
    return costs


def _bounds_as_rows(program: Program, count: int, costs: Array) -> tuple[Program, Array]:
    """Write the bounds of the first `count` columns as rows after the others."""
    free = np.flatnonzero(np.isfinite(program.lower[:count]) | np.isfinite(program.upper[:count]))
    own = sp.eye_array(program.columns, format="csr")[free]
    block = RowBlock.of(own, program.lower[free], program.upper[free])
    lower, upper = program.lower.copy(), program.upper.copy()
    lower[free], upper[free] = -np.inf, np.inf
    first, column_name, row_name = program.rows.count, program.column_name, program.row_name

    def named(row: int) -> str:
        return row_name(row) if row < first else column_name(int(free[row - first]))

    wide = replace(program.with_rows(block), lower=lower, upper=upper, row_name=named)
    return wide, np.concatenate([costs, np.ones(len(free))])
