"""Ask the oracles of families of constraints that are too large to list."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Constraint, Cut, Lazy
from forcopt.language.expression import Expression
from forcopt.language.model import Model


def violated_constraints(model: Model, x: Array, tolerance: float) -> list[Constraint]:
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

    Raises
    ------
    DeclarationError
        If an oracle yields something else than an affine constraint of the model.
    """
    point = model.complete(x[: model.column_count])
    asked = (_violated(family, f"lazy family {family.name!r}", point, tolerance) for family in model.lazies)
    return [constraint for found in asked for constraint in found]


def violated_cuts(family: Cut, x: Array, tolerance: float) -> list[Constraint]:
    """Ask a family of cuts for the constraints that a relaxation's point violates.

    Parameters
    ----------
    family : Cut
        Of a model.
    x : Array
        The values of all columns in the relaxation (the columns of bridges may follow).
    tolerance : float
        A constraint violated by no more than this, relative to the larger of 1 and its bound, is left out.

    Raises
    ------
    DeclarationError
        If it yields something else than an affine constraint of the model.
    """
    return _violated(family, f"cut {family.name!r}", _relaxed(family.model, x), tolerance)


def relaxed_value(model: Model, x: Array) -> Callable[[Expression], Array]:
    """The function that evaluates expressions at a relaxation's point, for cuts and heuristics.

    A product has the relaxation's value there, which may differ from its factors'; cuts may exclude that.
    Curved atoms have their own value.
    """
    return _reader(model, _relaxed(model, x))


def _relaxed(model: Model, x: Array) -> Array:
    wide = model.column_count
    out: Array = np.where(model.columns().curvature == 0, x[:wide], model.complete(x[:wide]))
    return out


def _reader(model: Model, point: Array) -> Callable[[Expression], Array]:
    return lambda expression: model.lift(expression).evaluate(point)


def _violated(family: Lazy | Cut, label: str, point: Array, tolerance: float) -> list[Constraint]:
    model, found = family.model, []
    for constraint in family.separate(_reader(model, point)):
        if not isinstance(constraint, Constraint):
            raise DeclarationError(f"{label} gave {constraint!r}, not a constraint")
        model.lift(constraint.expression)
        model.check_curvature(constraint.expression, 0, label)
        if constraint.relative_violation(point).max(initial=0.0) > tolerance:
            found.append(constraint)
    return found
