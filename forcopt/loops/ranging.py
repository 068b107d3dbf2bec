"""Sensitivity ranges of linear programs: how far a cost or a right-hand side may move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import SolveOptions
from forcopt.backends.registry import get_backend
from forcopt.compile.compiler import compile_model
from forcopt.errors import BackendError, DeclarationError
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model, Variable
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.backends.highs import HighsSession

__all__ = ["Range", "Ranging", "ranging"]


class Range(NamedTuple):
    """The least and the greatest value within which the optimal basis stays optimal.

    Attributes
    ----------
    lower, upper : Array
        Shaped like the variable or the constraint; infinite where there is no end.
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

    def __init__(self, model: Model, records: Any, sign: float) -> None:
        self._model, self._records, self._sign = model, records, sign

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
        part = slice(variable.start, variable.start + variable.size)
        low, high = (
            self._sign * np.array(r.value_[part])
            for r in (self._records.col_cost_dn, self._records.col_cost_up)
        )
        return _ordered(low, high, variable.shape)

    def right_hand_side(self, constraint: Constraint) -> Range:
        """Return the values of the active right-hand side for which the shadow price holds.

        For a row that is not active: from its activity on, in the direction that loosens it.

        Raises
        ------
        DeclarationError
            If the constraint is not in the model.
        """
        if constraint.start < 0 or constraint.model is not self._model:
            raise DeclarationError(f"the constraint {constraint.name!r} is not in model {self._model.name!r}")
        part = slice(constraint.start, constraint.start + constraint.expression.size)
        low, high = (
            np.array(r.value_[part]) for r in (self._records.row_bound_dn, self._records.row_bound_up)
        )
        return _ordered(low, high, constraint.shape)


def _ordered(low: Array, high: Array, shape: tuple[int, ...]) -> Range:
    low, high = (np.where(np.abs(v) >= 1e20, np.copysign(np.inf, v), v) for v in (low, high))
    return Range(np.minimum(low, high).reshape(shape), np.maximum(low, high).reshape(shape))


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
        For a model with integers, cones or several objectives, and for one without an optimum.

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
    program = compile_model(model, solver.capabilities, solver.name)
    if program.is_staged or program.is_integer or program.lazies:
        raise DeclarationError("ranging needs a continuous linear model with one objective")
    session: HighsSession = solver.session(program)  # type: ignore[assignment]
    result = session.solve(SolveOptions())
    if result.status is not Status.OPTIMAL:
        raise DeclarationError(f"ranging needs an optimum; the status is {result.status}")
    found = session.highs.getRanging()
    records = found[1] if isinstance(found, tuple) else found
    if not records.valid:
        raise BackendError("HiGHS: no ranging information for this basis")
    return Ranging(model, records, program.stages[0].sign)
