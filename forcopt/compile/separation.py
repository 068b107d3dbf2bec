"""Ask the oracles of families of constraints that are too large to list."""

from __future__ import annotations

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.compile.assemble import assemble
from forcopt.compile.scaling import small_rows, small_units
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model


class Withdrawn(Exception):
    """A lazy family took constraints back that it gave before; the solve must begin anew."""


def violated_constraints(
    model: Model, x: Array, tolerance: float, deadline: Deadline | None = None
) -> list[Constraint]:
    """Ask all lazy families of a model for the constraints that a point violates.

    Parameters
    ----------
    model : Model
        Its lazy families are asked in order.
    x : Array
        The values of all columns (the columns of bridges may follow).
    tolerance : float
        A constraint violated by no more than this, relative to the larger of 1 and its bound, is left out: a
        solver of that accuracy could give the same point again.
    deadline : Deadline, optional
        Of the oracles.

    Raises
    ------
    DeclarationError
        If an oracle yields something else than an affine constraint of the model.
    Withdrawn
        If an oracle takes back what it yielded before.
    """
    point = model.complete(x[: model.column_count])
    columns, found = model.columns(), []
    whole = columns.integer != 0
    units = small_units(columns.lower, columns.upper, whole | (not whole.any()))
    for family in model.lazies:
        label = f"lazy family {family.name!r}"
        family.deadline, family.withdrawn = deadline or Deadline(), False
        for constraint in family.separate(lambda expression: model.lift(expression).evaluate(point)):
            if not isinstance(constraint, Constraint):
                raise DeclarationError(f"{label} gave {constraint!r}, not a constraint")
            model.lift(constraint.expression)
            model.check_curvature(constraint.expression, 0, label)
            if constraint.relative_violation(point).any():
                row = _lifted(constraint, units)
                if row.relative_violation(point).max(initial=0.0) > tolerance:
                    found.append(row)
        if family.withdrawn:
            raise Withdrawn
    return found


def _lifted(constraint: Constraint, units: Array) -> Constraint:
    """Multiply rows that are small in the units of their columns by powers of two, as `scaling_of` does."""
    rows = assemble([(constraint.expression, *constraint.row_bounds())])
    factors = small_rows(rows, units).reshape(constraint.shape)
    if (factors == 1).all():
        return constraint
    low, high = constraint.lower * factors, constraint.upper * factors
    return Constraint(constraint.expression * factors, low, high)
