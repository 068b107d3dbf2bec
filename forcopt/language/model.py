"""The model: variables, constraints and an objective, declared in any order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.errors import CurvatureError, DeclarationError
from forcopt.language import objective as objectives
from forcopt.language.constraint import Connected, Constraint, Implication, Lazy, Separator
from forcopt.language.expression import Expression, as_numbers, describe_entry
from forcopt.language.intervals import integral, interval
from forcopt.language.objective import Objective
from forcopt.language.relations import AtomRelation, Product
from forcopt.language.terms import Array, Gather

if TYPE_CHECKING:
    from pathlib import Path

    from forcopt.loops.solution import ModelSolution

__all__ = ["Columns", "Model", "Variable"]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive columns that were made together: a variable, or the results of an atom."""

    name: str
    start: int
    shape: tuple[int, ...]
    lower: Array  # compact: broadcasts to the shape
    upper: Array
    integer: int | Array  # see Columns.integer; compact like the bounds
    curvature: int
    labels: Sequence[str] | None = None  # names of the columns, if they have their own

    @property
    def size(self) -> int:
        """The number of columns."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Columns:
    """All columns of a model as arrays.

    Attributes:
        lower, upper: float bounds.
        integer: int8; 0 continuous, 1 integer, 2 integer at some optimum without being told (an implied
            integer: backends that only take integers may declare it so, others need not).
        curvature: int8; 1 where only convex uses are exact, -1 for concave, 0 for any.
    """

    lower: Array
    upper: Array
    integer: Array
    curvature: Array


class Variable(Expression):
    """A decision variable of a model; an expression like any other.

    Attributes:
        name: unique in its model.
        start: its first column; the others follow in C order.
        integer: whether all its values are integers.
    """

    __slots__ = ("integer", "name", "start")

    def __init__(self, model: Model, name: str, shape: tuple[int, ...], start: int, integer: bool) -> None:
        super().__init__(model, shape, (_gather(start, shape),), np.zeros(()))
        self.name = name
        self.start = start
        self.integer = integer

    def __repr__(self) -> str:
        kind = "integer " if self.integer else ""
        return f"<{kind}variable {self.name} of shape {self.shape}>"


def _gather(start: int, shape: tuple[int, ...]) -> Gather:
    size = int(np.prod(shape, dtype=np.int64))
    columns = np.arange(start, start + size, dtype=np.int32).reshape(*shape, 1)
    return Gather(columns, np.ones((1,) * columns.ndim), True)


class Model:
    """An optimization model.

    Args:
        name: used in messages and files.

    >>> import forcopt as fo
    >>> m = fo.Model("diet")
    >>> x = m.variable("x", shape=2, lower=0)
    >>> need = m.subject_to(x[0] + 2 * x[1] >= 4, name="need")
    >>> m.minimize(3 * x[0] + 4 * x[1])
    >>> s = m.solve()
    >>> s.status, s.objective, s[x].tolist(), s.dual(need).item()
    (<Status.OPTIMAL: 'optimal'>, 8.0, [0.0, 2.0], 2.0)
    """

    def __init__(self, name: str = "model") -> None:
        self.name = name
        self.blocks: list[Block] = []
        self.constraints: list[Constraint] = []
        self.relations: list[AtomRelation | Product | Implication | Connected] = []
        self.lazies: list[Lazy] = []
        self.objective: Objective | None = None
        self.column_count = 0
        self.row_count = 0
        self._names: dict[str, Variable | Constraint | Implication | Connected | Lazy] = {}
        self._labels: dict[str, int] = {}
        self._columns: tuple[int, Columns] | None = None

    # -- variables -----------------------------------------------------------------------------------------

    def variable(
        self,
        name: str = "",
        shape: int | tuple[int, ...] = (),
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        integer: Any = False,
        binary: bool = False,
        labels: Sequence[str] | None = None,
    ) -> Variable:
        """Add a variable.

        Args:
            name: unique in the model; ``x1``, ``x2``, ... if left out.
            shape: its numpy shape; ``()`` for a scalar.
            lower: numbers that broadcast to the shape; free by default.
            upper: numbers that broadcast to the shape; free by default.
            integer: only integers; or booleans that broadcast to the shape, true where only integers.
            binary: 0 or 1; the bounds are then cut to [0, 1].
            labels: a name for each column, in C order; ``name[i,j]`` by default.

        Raises:
            DeclarationError: for a name in use, bounds of another shape, NaN, or a lower bound above an upper.
        """
        full = (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(n) for n in shape)
        if any(n < 0 for n in full):
            raise DeclarationError(f"variable {name!r}: shape {full} has a negative length")
        name = self._fresh_name(name or f"x{len(self.blocks) + 1}")
        low = self._bound(lower, name, "lower", full)
        high = self._bound(upper, name, "upper", full)
        whole = self._bound(integer, name, "integer", full) != 0
        if binary:
            low, high, whole = np.maximum(low, 0.0), np.minimum(high, 1.0), np.array(True)
        crossed = np.broadcast_to(low > high, full)
        if crossed.any():
            at = int(np.argmax(crossed))
            a, b = np.broadcast_to(low, full).flat[at], np.broadcast_to(high, full).flat[at]
            raise DeclarationError(f"variable {name}{describe_entry(full, at)}: lower {a:g} is above upper {b:g}")
        if labels is not None and len(labels) != int(np.prod(full, dtype=np.int64)):
            raise DeclarationError(f"variable {name}: {len(labels)} labels for shape {full}")
        start = self._add_block(name, full, low, high, whole.astype(np.int8), 0, labels)
        out = Variable(self, name, full, start, bool(whole.all()))
        self._names[name] = out
        return out

    def _bound(self, data: Any, name: str, which: str, shape: tuple[int, ...]) -> Array:
        values = as_numbers(data, f"variable {name}: {which}", infinite=True)
        try:
            np.broadcast_to(values, shape)
        except ValueError:
            raise DeclarationError(
                f"variable {name}: {which} has shape {values.shape}, which does not broadcast to {shape}"
            ) from None
        return values

    def _fresh_name(self, name: str) -> str:
        if name in self._names:
            raise DeclarationError(f"the name {name!r} is already in use in model {self.name!r}")
        return name

    def _add_block(
        self,
        name: str,
        shape: tuple[int, ...],
        lower: Array,
        upper: Array,
        integer: int | Array,
        curvature: int,
        labels: Sequence[str] | None = None,
    ) -> int:
        block = Block(name, self.column_count, shape, lower, upper, integer, curvature, labels)
        if self.column_count + block.size > np.iinfo(np.int32).max:
            raise DeclarationError(f"{name}: a model holds at most {np.iinfo(np.int32).max} columns")
        self.blocks.append(block)
        self.column_count += block.size
        return block.start

    def add_columns(
        self,
        label: str,
        shape: tuple[int, ...],
        lower: Any = -np.inf,
        upper: Any = np.inf,
        curvature: int = 0,
        implied_integer: bool = False,
    ) -> Expression:
        """Add the result columns of an atom; for atoms, not for users."""
        self._labels[label] = self._labels.get(label, 0) + 1
        name = f"{label}#{self._labels[label]}"
        low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        low, high = low.reshape(shape) if low.ndim else low, high.reshape(shape) if high.ndim else high
        start = self._add_block(name, shape, low, high, 2 * implied_integer, curvature)
        return Expression(self, shape, (_gather(start, shape),), np.zeros(()))

    def columns(self) -> Columns:
        """Give the bounds, integrality and curvature of all columns."""
        if self._columns is None or self._columns[0] != len(self.blocks):

            def fill(field: str, dtype: type) -> Array:
                out = np.empty(self.column_count, dtype=dtype)
                for b in self.blocks:
                    out[b.start : b.start + b.size] = np.broadcast_to(getattr(b, field), b.shape).reshape(-1)
                return out

            self._columns = (
                len(self.blocks),
                Columns(fill("lower", float), fill("upper", float), fill("integer", np.int8), fill("curvature", np.int8)),
            )
        return self._columns[1]

    @property
    def variables(self) -> list[Variable]:
        """The declared variables, in order."""
        return [v for v in self._names.values() if isinstance(v, Variable)]

    def column_name(self, column: int) -> str:
        """Name a column, such as ``x[1,2]``."""
        block = self.blocks[bisect_right(self.blocks, column, key=lambda b: b.start) - 1]
        if block.labels is not None:
            return block.labels[column - block.start]
        return block.name + describe_entry(block.shape, column - block.start).replace(" ", "")

    def row_name(self, row: int) -> str:
        """Name a row, such as ``need[0]``."""
        constraint = self.constraints[bisect_right(self.constraints, row, key=lambda c: c.start) - 1]
        if constraint.labels is not None:
            return constraint.labels[row - constraint.start]
        return constraint.name + describe_entry(constraint.shape, row - constraint.start).replace(" ", "")

    # -- what expressions ask ------------------------------------------------------------------------------

    def lift(self, value: Any, what: str = "the array") -> Expression:
        """Give an expression of this model: `value` itself, or a constant."""
        if isinstance(value, Expression):
            if value.model is not self:
                raise DeclarationError(
                    f"{what} belongs to model {value.model.name!r}, not to model {self.name!r}"
                )
            return value
        numbers = as_numbers(value, what)
        return Expression(self, numbers.shape, (), numbers)

    def interval(self, expression: Expression) -> tuple[Array, Array]:
        """Bounds on each element of an expression that follow from the bounds of the columns."""
        columns = self.columns()
        return interval(expression, columns.lower, columns.upper)

    def is_integral(self, expression: Expression) -> Array:
        """Whether each element can only take integer values."""
        return integral(expression, self.columns().integer > 0)

    def is_affine(self, expression: Expression) -> bool:
        """Whether an expression uses no atom."""
        return self._curved(expression) is None

    def _curved(self, expression: Expression) -> tuple[Array, Array, Array] | None:
        """The curved columns of an expression, their coefficients, and the coefficients' convexity signs."""
        if not any(b.curvature for b in self.blocks):
            return None
        curvature = self.columns().curvature
        found: list[tuple[Array, Array]] = []
        for term in expression.terms:
            if isinstance(term, Gather):
                picked = curvature[term.columns] != 0
                if picked.any():
                    values = np.broadcast_to(term.values, term.columns.shape)[picked]
                    found.append((term.columns[picked], values))
            elif (picked := curvature[term.indices] != 0).any():
                found.append((term.indices[picked], term.data[picked]))
        if not found:
            return None
        columns, values = (np.concatenate(part) for part in zip(*found, strict=True))
        return columns, values, np.sign(values) * curvature[columns]

    def check_curvature(self, expression: Expression, direction: int, place: str) -> None:
        """Check that every atom in `expression` is used where it keeps the model convex.

        Args:
            expression: any.
            direction: 1 if it must be convex, -1 if concave, 0 if affine.
            place: where it is used, for the message.

        Raises:
            CurvatureError: naming the atom and the place.
        """
        curved = self._curved(expression)
        if curved is None:
            return
        columns, values, signs = curved
        wrong = (signs != 0) if direction == 0 else signs * direction < 0
        if not wrong.any():
            return
        at = int(np.argmax(wrong))
        atom = self.column_name(int(columns[at]))
        needed = {1: "convex", -1: "concave", 0: "affine"}[direction]
        shape = "convex" if signs[at] > 0 else "concave"
        raise CurvatureError(
            f"{place}: the expression must be {needed}, but {values[at]:g} * {atom} is {shape}; "
            "the model would not be convex"
        )

    # -- constraints ---------------------------------------------------------------------------------------

    def subject_to(
        self,
        *conditions: Constraint | Implication | Connected | Iterable[Any],
        name: str = "",
    ) -> Any:
        """Add constraints.

        Args:
            conditions: comparisons, `implies`, `connected`, or iterables of them.
            name: for messages, files and duals; numbered if several are given.

        Returns:
            What was given: one constraint, or a list of them.
        """
        flat: list[Any] = []
        for condition in conditions:
            if isinstance(condition, Constraint | Implication | Connected):
                flat.append(condition)
            elif isinstance(condition, Iterable) and not isinstance(condition, str | Expression | np.ndarray):
                flat.extend(condition)
            else:
                flat.append(condition)
        for position, condition in enumerate(flat):
            label = name if len(flat) == 1 else f"{name}[{position}]" if name else ""
            self._add_condition(condition, label)
        return flat[0] if len(flat) == 1 and len(conditions) == 1 else flat

    def _add_condition(self, condition: Any, name: str) -> None:
        if not isinstance(condition, Constraint | Implication | Connected):
            hint = "; a comparison of two numbers is no constraint" if isinstance(condition, bool | np.bool_) else ""
            raise DeclarationError(f"subject_to needs constraints, not {condition!r}{hint}")
        if condition.model is not self:
            raise DeclarationError(
                f"a constraint of model {condition.model.name!r} cannot join model {self.name!r}"
            )
        if isinstance(condition, Constraint) and condition.start >= 0:
            raise DeclarationError(f"the constraint {condition.name!r} already is in the model")
        position = len(self.constraints) + len(self.relations) + 1
        name = self._fresh_name(name or f"c{position}")
        row = condition.constraint if isinstance(condition, Implication) else condition
        if isinstance(row, Constraint):
            self._check_row(row, f"constraint {name}")
        condition.name = name
        self._names[name] = condition
        if isinstance(condition, Constraint):
            condition.start = self.row_count
            self.row_count += condition.expression.size
            self.constraints.append(condition)
        else:
            self.relations.append(condition)

    def _check_row(self, row: Constraint, place: str) -> None:
        has_lower, has_upper = bool(np.isfinite(row.lower).any()), bool(np.isfinite(row.upper).any())
        if has_lower or has_upper:
            self.check_curvature(row.expression, has_upper - has_lower, place)

    def lazy(self, separate: Separator, name: str = "") -> Lazy:
        """Add a family of constraints too large to list.

        Args:
            separate: called with a function ``value(expression)`` at a candidate point; yields the affine
                constraints that the point violates, or nothing. It must cut off every point that is not
                allowed; a point for which it yields nothing is accepted.
            name: for messages.

        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", shape=2, lower=0, upper=10)
        >>> def separate(value):
        ...     if value(x).sum() > 3 + 1e-6:
        ...         yield x.sum() <= 3
        >>> _ = m.lazy(separate)
        >>> m.maximize(x[0] + 2 * x[1])
        >>> m.solve().objective
        6.0
        """
        name = self._fresh_name(name or f"lazy{len(self.lazies) + 1}")
        family = Lazy(self, separate, name)
        self.lazies.append(family)
        self._names[name] = family
        return family

    # -- objectives ----------------------------------------------------------------------------------------

    def optimize(self, objective: Objective) -> None:
        """Set the objective, replacing any other."""
        for number, stage in enumerate(objective.stages, 1):
            self.lift(stage.expression, "the objective")
            place = objective.kind + (f" (stage {number})" if len(objective.stages) > 1 else "")
            self.check_curvature(stage.expression, -1 if stage.maximize else 1, place)
        self.objective = objective

    def minimize(self, expression: Expression) -> None:
        """Make a convex scalar expression as small as possible."""
        self.optimize(objectives.minimize(expression))

    def maximize(self, expression: Expression) -> None:
        """Make a concave scalar expression as large as possible."""
        self.optimize(objectives.maximize(expression))

    def lexicographic(self, parts: Sequence[Objective], tolerance: float = 1e-7) -> None:
        """Optimise several objectives in order of priority; see `forcopt.lexicographic`."""
        self.optimize(objectives.lexicographic(parts, tolerance))

    def leximin(self, utilities: Expression, tolerance: float = 1e-7) -> None:
        """Raise the smallest utility first, then the next; see `forcopt.leximin`."""
        self.optimize(objectives.leximin(utilities, tolerance))

    def leximax(self, losses: Expression, tolerance: float = 1e-7) -> None:
        """Lower the largest loss first, then the next; see `forcopt.leximax`."""
        self.optimize(objectives.leximax(losses, tolerance))

    # -- evaluation ----------------------------------------------------------------------------------------

    def point(self, values: Mapping[Variable, Any]) -> Array:
        """Give all columns' values from those of the variables; atoms and products are computed.

        Args:
            values: for each variable an array that broadcasts to its shape; variables left out are 0.
        """
        out = np.zeros(self.column_count)
        for variable, value in values.items():
            self.lift(variable)
            numbers = np.broadcast_to(as_numbers(value, f"the value of {variable.name}"), variable.shape)
            out[variable.start : variable.start + variable.size] = numbers.reshape(-1)
        return self.complete(out)

    def complete(self, point: Array) -> Array:
        """Recompute the result columns of atoms and products from the variables' values."""
        out = np.array(point)
        with np.errstate(all="ignore"):  # outside its domain an atom is NaN or infinite, as it should be
            for relation in self.relations:
                if isinstance(relation, AtomRelation):
                    arguments = [a.evaluate(out) for a in relation.arguments]
                    value = relation.atom.value(*arguments, relation.parameter)
                elif isinstance(relation, Product):
                    value = relation.binary.evaluate(out) * relation.factor.evaluate(out)
                else:
                    continue
                target = relation.result.terms[0]
                assert isinstance(target, Gather)
                out[target.columns.reshape(-1)] = value
        return out

    def violations(self, point: Array) -> dict[str, float]:
        """By how much a point violates what the model demands; nothing that holds is listed.

        Args:
            point: the values of all columns, completed (see `complete`).

        Returns:
            For each violated constraint, variable's bounds or integrality, and atom's domain its name and the
            largest violation. Rows are relative to the larger of 1 and their bound.
        """
        found: dict[str, float] = {}

        def note(name: str, amount: Array) -> None:
            worst = float(np.max(np.nan_to_num(amount, nan=np.inf), initial=0.0))
            if worst > 0:
                found[name] = max(worst, found.get(name, 0.0))

        for block in self.blocks:
            values = point[block.start : block.start + block.size].reshape(block.shape)
            if block.curvature:
                note(f"domain of {block.name}", np.where(np.isfinite(values), 0.0, np.inf))
                continue
            note(f"bounds of {block.name}", np.maximum(block.lower - values, values - block.upper))
            if np.any(block.integer == 1):
                off = np.where(block.integer == 1, np.abs(values - np.round(values)), 0.0)
                note(f"integrality of {block.name}", off)
        for constraint in self.constraints:
            note(constraint.name, constraint.relative_violation(point))
        for relation in self.relations:
            if isinstance(relation, Implication):
                on = relation.condition.evaluate(point) > 0.5
                note(relation.name, np.where(on, relation.constraint.relative_violation(point), 0.0))
            elif isinstance(relation, Connected):
                note(relation.name, np.float64(relation.pieces(point) - 1))
        for family in self.lazies:
            for constraint in family.separate(lambda e: self.lift(e).evaluate(point)):
                note(family.name, constraint.relative_violation(point))
        return found

    # -- solving and exchange (calls upwards, imported when called) -----------------------------------------

    def solve(self, backend: str = "highs", **options: Any) -> ModelSolution:
        """Solve on a backend; see `forcopt.loops.solve.solve_model` for the options.

        Args:
            backend: a name that ``forcopt backends`` lists.
            options: ``time_limit``, ``gap``, ``seed``, ``threads``, ``log``, ``start``, ``on_improvement``, ...
        """
        from forcopt.loops.solve import solve_model

        return solve_model(self, backend, **options)

    def write(self, path: str | Path) -> None:
        """Write an ``.mps`` or ``.lp`` file."""
        from forcopt.loops.exchange import write

        write(self, path)

    def to_highs(self) -> Any:
        """Give a `highspy.Highs` that holds the model, not run."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "highs")

    def to_cvxpy(self) -> Any:
        """Give a `cvxpy.Problem`."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "cvxpy")

    def to_pyomo(self) -> Any:
        """Give a `pyomo.environ.ConcreteModel`."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "pyomo")

    def to_mathopt(self) -> Any:
        """Give an `ortools.math_opt.python.mathopt.Model`."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "mathopt")

    # -- reading -------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Say in a few lines what the model holds: rows, columns, nonzeros, relations, coefficient range."""
        from forcopt.language.display import model_summary

        return model_summary(self)

    def __repr__(self) -> str:
        kind = self.objective.kind if self.objective else "no objective"
        return f"<model {self.name}: {self.column_count} columns, {self.row_count} rows, {kind}>"

    def _repr_html_(self) -> str:
        from forcopt.language.display import model_html

        return model_html(self)
