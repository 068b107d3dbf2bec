"""Changes to a model: remove variables and constraints, fix values, relax integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_bounds, check_order, lists_by_key, spread
from forcopt.errors import DeclarationError, UnsupportedError
from forcopt.language.constraint import Condition, Constraint
from forcopt.language.evaluator import variable_values
from forcopt.language.expression import Expression
from forcopt.language.relations import AtomRelation, Product
from forcopt.language.terms import mark
from forcopt.language.variable import Variable

if TYPE_CHECKING:
    from forcopt.language.structure import Structure


def remove(model: Structure, things: Sequence[Any]) -> None:
    """Take things out of a model, see `Model.remove`."""
    chosen: dict[int, Any] = {}
    listed = [one for thing in things for one in (thing if isinstance(thing, list | tuple) else (thing,))]
    for thing in listed:
        found = model[thing] if isinstance(thing, str) else thing
        if found is None or model._names.get(getattr(found, "name", "")) is not found:
            raise DeclarationError(f"remove: {found!r} is not in model {model.name!r}")
        chosen[id(found)] = found
    left = [c for c in model.constraints if id(c) not in chosen]
    relations = [r for r in model.relations if id(r) not in chosen]
    gone = [thing for thing in chosen.values() if isinstance(thing, Variable)]
    before = model.constraints, model.relations
    model.constraints, model.relations = left, relations
    try:
        _check_unused(model, gone)
    except DeclarationError:
        model.constraints, model.relations = before
        raise
    model.lazies = [f for f in model.lazies if id(f) not in chosen]
    for thing in chosen.values():
        del model._names[thing.name]
        if isinstance(thing, Constraint):
            thing.start = -1
    model.row_count = 0
    for constraint in left:
        constraint.start = model.row_count
        model.row_count += constraint.expression.size
    if gone:
        _discard(model, gone)


def fix(model: Structure, part: Expression, values: Any) -> None:
    """Hold a part of a variable at values, see `Model.fix`."""
    if not isinstance(part, Expression):
        raise DeclarationError(f"fix needs a variable or a part of one, not {part!r}")
    given = variable_values(model, {part: values}, "fix")
    columns = np.flatnonzero(~np.isnan(given))
    for position, inside in _by_block(model, columns):
        block, at = model._store.declared(position), given[inside]
        whole = np.broadcast_to(block.integer, block.shape).reshape(-1)[inside - block.start] == 1
        low, high = (
            np.broadcast_to(b, block.shape).reshape(-1)[inside - block.start]
            for b in (block.lower, block.upper)
        )
        for wrong, rule in (
            ((at < low) | (at > high), "within its bounds"),
            (whole & (at != np.round(at)), "an integer"),
        ):
            if wrong.any():
                first = int(np.argmax(wrong))
                name = model.column_name(int(inside[first]))
                limits = f" [{low[first]:g}, {high[first]:g}]" if "bounds" in rule else ""
                raise DeclarationError(f"fix: {name} is {at[first]:g}; it must be {rule}{limits}")
    for position, inside in _by_block(model, columns):
        block = model.blocks[position]
        low, high = (np.array(np.broadcast_to(b, block.shape)) for b in (block.lower, block.upper))
        low.reshape(-1)[inside - block.start] = high.reshape(-1)[inside - block.start] = given[inside]
        model._store.change(position, lower=low, upper=high)


def set_bounds(variable: Variable, **bounds: Any) -> None:
    """Declare other bounds of a variable, see `Variable.lower`."""
    model, subject = variable.model, f"variable {variable.name}: "
    model._check_present(variable)
    position = variable.position
    declared = model._store.declared(position)
    lower, upper = (
        variable.aligned(bounds[which], subject + which) if which in bounds else getattr(declared, which)
        for which in ("lower", "upper")
    )
    low, high = as_bounds(lower, upper, subject)
    for which, bound in (("lower", low), ("upper", high)):
        spread(bound, variable.shape, subject + which)
    check_order(low, high, variable.shape, subject.rstrip(": "))
    if (low < declared.lower).any() or (high > declared.upper).any():
        mine = np.zeros(model.column_count, dtype=bool)
        mine[variable.start : variable.start + variable.size] = True
        for relation in model.relations:
            if any(_reads(operand, mine) for operand in relation.operands):
                raise DeclarationError(
                    f"{subject}its bounds cannot widen: {_label(model, relation)} was written for the old "
                    "ones; declare the variable with wider bounds, and tighten them"
                )
    block = model.blocks[position]
    held = (block.lower != declared.lower) | (block.upper != declared.upper)
    if (held & ((block.lower < low) | (block.upper > high))).any():
        raise DeclarationError(f"{subject}an entry is fixed outside the new bounds; unfix it before")
    model._store.redeclare(position, low, high)


def unfix(model: Structure, part: Expression) -> None:
    """Give a part of a variable its declared bounds back, see `Model.unfix`."""
    if not isinstance(part, Expression):
        raise DeclarationError(f"unfix needs a variable or a part of one, not {part!r}")
    for position, inside in _by_block(model, model.columns_of(part, "unfix")):
        block, declared = model.blocks[position], model._store.declared(position)
        if block is declared:
            continue
        bounds = {}
        for field in ("lower", "upper"):
            now = np.array(np.broadcast_to(getattr(block, field), block.shape))
            then = np.broadcast_to(getattr(declared, field), block.shape).reshape(-1)
            now.reshape(-1)[inside - block.start] = then[inside - block.start]
            bounds[field] = now
        model._store.change(position, **bounds)


def relax(model: Structure) -> Callable[[], None]:
    """Make all variables continuous, see `Model.relax`."""
    for relation in model.needed_relations():
        atom = relation.atom if isinstance(relation, AtomRelation) else None
        if atom is None or atom.curvature == 0:
            label = _label(model, relation)
            raise UnsupportedError(f"relax: {label} ({relation.kind}) needs its integer variables")
    changed = []
    for position, block in enumerate(model.blocks):
        if np.any(block.integer):
            changed.append((position, block.integer))
            model._store.change(position, integer=np.zeros((), np.int8))

    def undo() -> None:
        for position, integer in changed:
            model._store.change(position, integer=integer)

    return undo


def _reads(expression: Expression, columns: Array) -> bool:
    used = np.zeros(len(columns), dtype=bool)
    mark(expression.terms, used)
    return bool((used & columns).any())


def _check_unused(model: Structure, variables: Sequence[Variable]) -> None:
    """Check that no constraint, condition, needed atom or objective reads the variables."""
    if not variables:
        return
    marked = np.zeros(model.column_count, dtype=bool)
    for variable in variables:
        marked[variable.start : variable.start + variable.size] = True
    users: list[tuple[str, tuple[Expression, ...]]] = [(c.name, (c.expression,)) for c in model.constraints]
    users += [("the objective", (s.expression,)) for s in (model.objective.stages if model.objective else ())]
    users += [(_label(model, relation), relation.operands) for relation in model.needed_relations()]
    for label, operands in users:
        if any(_reads(operand, marked) for operand in operands):
            names = ", ".join(v.name for v in variables)
            raise DeclarationError(f"remove: {names} cannot go: {label} uses it; remove that first")


def _label(model: Structure, relation: AtomRelation | Product | Condition) -> str:
    if isinstance(relation, Condition):
        return relation.name
    return model.block_of(int(relation.result_columns[0])).name


def _discard(model: Structure, variables: Sequence[Variable]) -> None:
    """Hold the columns of the variables, and of the atoms over them, at 0 for good."""
    removed = np.zeros(model.column_count, dtype=bool)
    removed[: len(model._removed)] = model._removed
    for variable in variables:
        removed[variable.start : variable.start + variable.size] = True
        if variable.size:
            position = model._store.position(variable.start)
            model._store.change(position, lower=np.zeros(()), upper=np.zeros(()), integer=2)
    kept = []
    for relation in model.relations:
        if not isinstance(relation, Condition) and any(_reads(e, removed) for e in relation.operands):
            removed[relation.result_columns] = True
        else:
            kept.append(relation)
    model.relations = kept
    model._removed = removed
    model._column_names = None


def _by_block(model: Structure, columns: Array) -> list[tuple[int, Array]]:
    found = lists_by_key((model._store.position(column), column) for column in np.unique(columns).tolist())
    return [(position, np.array(inside)) for position, inside in found.items()]
