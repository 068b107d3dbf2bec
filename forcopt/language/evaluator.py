"""A model at a point: the values of atoms and products, and by how much the point violates the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_numbers, spread
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, require
from forcopt.language.constraint import Condition
from forcopt.language.expression import Expression
from forcopt.language.relations import AtomRelation, Product

if TYPE_CHECKING:
    from forcopt.language.structure import Structure


def read_values(
    model: Structure, values: Mapping[Any, Any], subject: str = "start", unknown: bool = True
) -> Array:
    """The values of all columns that are given, see `variable_values`, and of parameters; NaN elsewhere."""
    out = variable_values(model, values, subject, unknown)
    if model.parameters:
        columns, numbers = model.parameter_values()
        out[columns] = numbers
    return out


def variable_values(
    model: Structure, values: Mapping[Any, Any], subject: str = "start", unknown: bool = True
) -> Array:
    """The values of all columns that are given; NaN elsewhere, for parameters too.

    Parameters
    ----------
    model : Model
        Whose variables they are.
    values : Mapping[Variable, Any]
        For each variable, or part of one such as ``x[0]``, finite numbers that broadcast to its shape (or a
        series or frame with its labels); NaN where unknown.
    subject : str, default "start"
        The purpose of the values, in messages.
    unknown : bool, default True
        Whether NaN may stand for an unknown value.

    Raises
    ------
    DeclarationError
        For a key that is no variable of the model, and a value that is infinite or does not broadcast.
    """
    require(isinstance(values, Mapping), subject, values, "give values to variables, as in {x: 1}")
    out = np.full(model.column_count, np.nan)
    for variable, value in values.items():
        if not isinstance(variable, Expression):
            raise DeclarationError(f"{subject} gives values to variables, not to {variable!r}")
        name = getattr(variable, "name", "") or variable._short()
        columns = model.columns_of(variable, f"{subject}: {name}")
        label = f"{subject}: the value of {name}"
        data = variable.aligned(value, label)
        if unknown:
            try:
                data = np.asarray(data, dtype=float)
            except (TypeError, ValueError, OverflowError) as error:
                raise DeclarationError(f"{label} must be numbers: {error}") from None
        numbers = as_numbers(np.where(np.isnan(data), 0.0, data) if unknown else data, label)
        out[columns] = spread(data if unknown else numbers, variable.shape, label).reshape(-1)
    return out


def point(model: Structure, values: Mapping[Any, Any]) -> Array:
    """Compute the values of all columns from the variables' values, see `Model.point`."""
    given = read_values(model, values, "a point", unknown=False)
    return complete(model, np.where(np.isnan(given), 0.0, given))


def complete(model: Structure, values: Array) -> Array:
    """Recompute the result columns of atoms and products, see `Model.complete`."""
    out = np.array(values, dtype=float)
    with np.errstate(invalid="ignore"):  # an infinite value of an atom may be multiplied by 0
        for relation in model.relations:
            if isinstance(relation, AtomRelation):
                arguments = [a.evaluate(out) for a in relation.arguments]
                out[relation.result_columns] = relation.atom.evaluate(arguments, relation.parameter)
            elif isinstance(relation, Product):
                scale, factor = relation.scale.evaluate(out), relation.factor.evaluate(out)
                out[relation.result_columns] = scale * factor
    return out


def violations(model: Structure, values: Array) -> dict[str, float]:
    """Compute by how much a completed point violates the model, see `Model.violations`."""
    found: dict[str, float] = {}

    def note(name: str, amount: Array | float) -> None:
        worst = float(np.max(np.where(np.isnan(amount), np.inf, amount), initial=0.0))
        if worst > 0:
            found[name] = max(worst, found.get(name, 0.0))

    columns = model.columns()
    with np.errstate(invalid="ignore"):
        beyond = np.maximum(columns.lower - values, values - columns.upper)
        outside = np.flatnonzero(~(beyond <= 0))
        for column in outside[columns.curvature[outside] == 0].tolist():  # atoms bound the others
            note(f"bounds of {model.block_of(column).name}", beyond[column])
        whole = np.flatnonzero(columns.integer == 1)
        off = np.abs(values[whole] - np.round(values[whole])) if whole.size else whole
        for place in np.flatnonzero(~(off <= 0)).tolist():
            note(f"integrality of {model.block_of(int(whole[place])).name}", off[place])
    for group in model.gathered_constraints():
        over = group.relative_violation(values)
        if len(group.members) == 1:
            note(group.members[0].name, over)
        else:
            for row in np.flatnonzero(~(over <= 0)).tolist():
                note(group.members[row].name, over[row])
    products_only = all(isinstance(relation, Product) for relation in model.relations)
    for relation in () if products_only else model.needed_relations():
        if isinstance(relation, AtomRelation):
            name = model.block_of(relation.result_columns[0]).name
            outside = relation.atom.outside([a.evaluate(values) for a in relation.arguments])
            poles = ~np.isfinite(values[relation.result_columns])
            note(f"domain of {name}", np.where(poles, np.inf, outside))
        elif isinstance(relation, Condition):
            note(relation.name, relation.violation(values))
    for family in model.lazies:
        family.deadline = Deadline()
        for constraint in family.separate(lambda e: model.lift(e).evaluate(values)):
            note(family.name, constraint.relative_violation(values))
    return found
