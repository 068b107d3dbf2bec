"""The model: variables, constraints and an objective, declared in any order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from operator import attrgetter, index
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_bounds, as_numbers, check_order, describe_entry
from forcopt.errors import CurvatureError, DeclarationError
from forcopt.language import objective as objectives
from forcopt.language.columns import Block, Columns, Growing, consecutive
from forcopt.language.constraint import Condition, Constraint, Lazy, Separator
from forcopt.language.expression import Expression
from forcopt.language.intervals import integral, interval
from forcopt.language.objective import Objective, SortedMethod
from forcopt.language.relations import AtomRelation, Product
from forcopt.language.terms import Gather, mark

if TYPE_CHECKING:
    from pathlib import Path

    from forcopt.language.atoms import Atom
    from forcopt.loops.solution import ModelSolution

__all__ = ["Model", "Variable"]

Relation = AtomRelation | Product | Condition
_START = attrgetter("start")
_FIELDS: dict[str, type] = {"lower": float, "upper": float, "integer": np.int8, "curvature": np.int8}


class Variable(Expression):
    """A decision variable of a model; an expression like any other.

    Attributes
    ----------
    name : str
        Unique in its model.
    start : int
        Its first column; the others follow in C order.
    integer : bool
        Whether all its values are integers.
    """

    __slots__ = ("integer", "name", "start")

    def __init__(self, model: Model, name: str, shape: tuple[int, ...], start: int, integer: bool) -> None:
        super().__init__(model, shape, (consecutive(start, shape),), np.zeros(()))
        self.name = name
        self.start = start
        self.integer = integer

    def __repr__(self) -> str:
        kind = "integer " if self.integer else ""
        return f"<{kind}variable {self.name} of shape {self.shape}>"


def _is_several(condition: Any) -> bool:
    return isinstance(condition, Iterable) and not isinstance(condition, str | Expression)


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    try:
        full = tuple(index(n) for n in (shape if np.iterable(shape) else (shape,)))
    except TypeError:
        raise DeclarationError(f"variable {name!r}: shape {shape!r} must be an integer or several") from None
    if any(n < 0 for n in full):
        raise DeclarationError(f"variable {name!r}: shape {full} has a negative length")
    return full


class Model:
    """An optimization model.

    Parameters
    ----------
    name : str, default "model"
        Used in messages and files.

    Examples
    --------
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
        self.relations: list[Relation] = []
        self.lazies: list[Lazy] = []
        self.objective: Objective | None = None
        self.column_count = 0
        self.row_count = 0
        self._names: dict[str, Variable | Constraint | Condition | Lazy] = {}
        self._labels: dict[str, int] = {}
        self._condition_count = 0
        self._has_integer = False
        self._atoms: dict[int, AtomRelation] = {}  # by the first column of the result
        self._grown = {f: Growing(np.empty(0, t)) for f, t in _FIELDS.items()}
        self._ranges = Growing(np.empty(0)), Growing(np.empty(0))

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

        Parameters
        ----------
        name : str, default ""
            Unique in the model; ``x1``, ``x2``, ... if left out.
        shape : int | tuple[int, ...], optional
            Its numpy shape; ``()`` for a scalar.
        lower : Any, default -np.inf
            Numbers that broadcast to the shape; free by default.
        upper : Any, default np.inf
            Numbers that broadcast to the shape; free by default.
        integer : Any, default False
            Only integers; or booleans that broadcast to the shape, true where only integers.
        binary : bool, default False
            0 or 1; the bounds are then cut to [0, 1].
        labels : Sequence[str], optional
            A name for each column, in C order; ``name[i,j]`` by default.

        Raises
        ------
        DeclarationError
            For a name in use, and for bounds that are NaN, crossed or of another shape.
        """
        if not isinstance(name, str):
            raise DeclarationError(f"variable: the name is {name!r}; it must be a string")
        full = _shape(name, shape)
        name = self._fresh_name(name) if name else self.unused_name(f"x{len(self.blocks) + 1}")
        low, high = as_bounds(lower, upper, f"variable {name}: ")
        whole = np.asarray(integer, dtype=bool)
        for which, bound in (("lower", low), ("upper", high), ("integer", whole)):
            if bound.ndim > len(full) or any(
                m not in (1, n) for m, n in zip(bound.shape[::-1], full[::-1], strict=False)
            ):
                raise DeclarationError(
                    f"variable {name}: {which} has shape {bound.shape}, which does not broadcast to {full}"
                )
        if binary:
            low, high, whole = np.maximum(low, 0.0), np.minimum(high, 1.0), np.array(True)
        check_order(low, high, full, f"variable {name}")
        if labels is not None and len(labels) != prod(full):
            raise DeclarationError(f"variable {name}: {len(labels)} labels for shape {full}")
        start = self._add_block(name, full, low, high, whole.astype(np.int8), 0, labels)
        out = Variable(self, name, full, start, bool(whole.all()))
        self._names[name] = out
        return out

    def unused_name(self, name: str) -> str:
        """Give `name`, with ``#2``, ``#3``, ... if it is in use: for blocks that a model may hold twice.

        Examples
        --------
        >>> m = Model()
        >>> _ = m.variable("x")
        >>> m.unused_name("x"), m.unused_name("y")
        ('x#2', 'y')
        """
        number, free = 1, name
        while free in self._names:
            number += 1
            free = f"{name}#{number}"
        return free

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
        self._has_integer |= bool(np.any(block.integer))
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
        """Add columns that are not a variable, such as the results of a product; for atoms, not for users.

        Parameters
        ----------
        label : str
            For their name, which a number makes unique.
        shape : tuple[int, ...]
            Of the expression.
        lower, upper
            Numbers that broadcast to the shape, or flat.
        curvature, implied_integer
            See `Columns`.
        """
        self._labels[label] = self._labels.get(label, 0) + 1
        name = f"{label}#{self._labels[label]}"
        low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        low, high = low.reshape(shape) if low.ndim else low, high.reshape(shape) if high.ndim else high
        start = self._add_block(name, shape, low, high, 2 * implied_integer, curvature)
        return Expression(self, shape, (consecutive(start, shape),), np.zeros(()))

    def add_atom(
        self,
        label: str,
        atom: Atom,
        shape: tuple[int, ...],
        arguments: tuple[Expression, ...],
        parameter: Any,
    ) -> Expression:
        """Add the result columns of an atom and the relation that ties them to its arguments; for atoms.

        Parameters
        ----------
        label : str
            What the user called.
        atom : Atom
            Which function.
        shape : tuple[int, ...]
            Of the result.
        arguments : tuple[Expression, ...]
            See `AtomRelation`.
        parameter : Any
            The atom's own.
        """
        start = self.column_count
        result = self.add_columns(
            label,
            shape,
            lower=0.0 if atom.nonnegative else -np.inf,
            curvature=atom.curvature,
            implied_integer=atom.integral
            and self._has_integer
            and all(bool(self.is_integral(a).all()) for a in arguments),
        )
        if result.size:
            self._atoms[start] = AtomRelation(atom, result.ravel(), arguments, parameter)
            self.relations.append(self._atoms[start])
        return result

    def columns(self) -> Columns:
        """Give the bounds, integrality and curvature of all columns."""
        filled = len(self._grown["lower"].view)
        for block in self.blocks[bisect_left(self.blocks, filled, key=_START) :]:
            for field, grown in self._grown.items():
                grown.extend(block.shape, getattr(block, field))
        return Columns(**{field: grown.view for field, grown in self._grown.items()})

    def ranges(self) -> tuple[Array, Array]:
        """Give bounds on all columns, those on atoms' results derived from their arguments.

        They hold for the values of the atoms, not for every number that a program may give a result column.
        """
        if not self._atoms:
            columns = self.columns()
            return columns.lower, columns.upper
        least, greatest = self._ranges
        for block in self.blocks[bisect_left(self.blocks, len(least.view), key=_START) :]:
            relation = self._atoms.get(block.start) if block.curvature else None
            if relation is None:
                low, high, shape = block.lower, block.upper, block.shape
            else:
                ends = [interval(a, least.view, greatest.view) for a in relation.arguments]
                low, high = relation.atom.bounds(ends, relation.parameter)
                shape = relation.result.shape
            least.extend(shape, low)
            greatest.extend(shape, high)
        return least.view, greatest.view

    def needed_relations(self) -> list[Relation]:
        """Give the relations that matter: an atom that no constraint, condition or objective uses does not.

        A product is kept if there are lazy families, whose constraints may use it.
        """
        used = np.zeros(self.column_count, dtype=bool)
        for constraint in self.constraints if self.relations else ():
            mark(constraint.expression.terms, used)
        for stage in self.objective.stages if self.objective and self.relations else ():
            mark(stage.expression.terms, used)
        needed: list[Relation] = []
        for relation in reversed(self.relations):  # an argument's columns are older than the result's
            optional = AtomRelation if self.lazies else AtomRelation | Product
            if isinstance(relation, optional) and not used[relation.result_columns].any():
                continue
            needed.append(relation)
            for operand in relation.operands:
                mark(operand.terms, used)
        return needed[::-1]

    @property
    def variables(self) -> list[Variable]:
        """The declared variables, in order."""
        return [v for v in self._names.values() if isinstance(v, Variable)]

    def column_name(self, column: int) -> str:
        """Name a column, such as ``x[1,2]``."""
        block = self._block(column)
        if block.labels is not None:
            return block.labels[column - block.start]
        return block.name + describe_entry(block.shape, column - block.start).replace(" ", "")

    def _block(self, column: int) -> Block:
        return self.blocks[bisect_right(self.blocks, column, key=_START) - 1]

    def row_name(self, row: int) -> str:
        """Name a row, such as ``need[0]``."""
        constraint = self.constraints[bisect_right(self.constraints, row, key=_START) - 1]
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
        return interval(expression, *self.ranges())

    def free_columns(self) -> Array:
        """Give the columns that no atom or product computes from others."""
        free = np.ones(self.column_count, dtype=bool)
        for relation in self.relations:
            if isinstance(relation, AtomRelation | Product):
                free[relation.result_columns] = False
        return np.flatnonzero(free)

    def is_integral(self, expression: Expression) -> Array:
        """Whether each element can only take integer values."""
        return integral(expression, self.columns().integer > 0)

    def is_affine(self, expression: Expression) -> bool:
        """Whether an expression uses no atom."""
        return self._curved(expression) is None

    def _curved(self, expression: Expression) -> tuple[Array, Array, Array] | None:
        """The curved columns of an expression, their coefficients, and the coefficients' convexity signs."""
        if not self._atoms:
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

        Parameters
        ----------
        expression : Expression
            Any.
        direction : int
            1 if it must be convex, -1 if concave, 0 if affine.
        place : str
            Where it is used, for the message.

        Raises
        ------
        CurvatureError
            Naming the atom and the place.
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
        *conditions: Constraint | Condition | Iterable[Any],
        name: str = "",
    ) -> Any:
        """Add constraints.

        Parameters
        ----------
        conditions : Constraint | Condition | Iterable[Any]
            Comparisons, `implies`, `connected`, or iterables of them.
        name : str, default ""
            For messages, files and duals; numbered (``name[0]``, ...) unless one constraint is given by
            itself. Without it a condition keeps the name that it brings, or is numbered.

        Returns
        -------
        Any
            The constraint that was given, or a list of all of them.
        """
        flat: list[Any] = []
        for condition in conditions:
            several: Any = condition if _is_several(condition) else [condition]
            flat.extend(several)
        alone = len(conditions) == 1 and not _is_several(conditions[0])
        for position, condition in enumerate(flat):
            self._add_condition(condition, name if alone or not name else f"{name}[{position}]")
        return flat[0] if alone else flat

    def _add_condition(self, condition: Any, name: str) -> None:
        if not isinstance(condition, Constraint | Condition):
            hint = (
                "; a comparison of two numbers is no constraint"
                if isinstance(condition, bool | np.bool_)
                else ""
            )
            raise DeclarationError(f"subject_to needs constraints, not {condition!r}{hint}")
        for operand in [condition.expression] if isinstance(condition, Constraint) else condition.operands:
            self.lift(operand, f"the constraint {name!r}" if name else "the constraint")
        if condition.name and self._names.get(condition.name) is condition:
            raise DeclarationError(f"the constraint {condition.name!r} already is in the model")
        free = condition.name or f"c{self._condition_count + 1}"
        name = self._fresh_name(name) if name else self.unused_name(free)
        condition.check(f"constraint {name}")
        condition.name = name
        self._condition_count += 1
        self._names[name] = condition
        if isinstance(condition, Constraint):
            condition.start = self.row_count
            self.row_count += condition.expression.size
            self.constraints.append(condition)
        else:
            self.relations.append(condition)

    def lazy(self, separate: Separator, name: str = "") -> Lazy:
        """Add a family of constraints too large to list.

        Parameters
        ----------
        separate : Separator
            Called with a function ``value(expression)`` at a candidate point; yields the affine constraints
            that the point violates, or nothing. It must cut off every point that is not allowed; a point for
            which it yields nothing is accepted.
        name : str, default ""
            For messages.

        Examples
        --------
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
        if not callable(separate):
            raise DeclarationError(f"lazy needs a function of a point, not {separate!r}")
        name = self._fresh_name(name) if name else self.unused_name(f"lazy{len(self.lazies) + 1}")
        family = Lazy(self, separate, name)
        self.lazies.append(family)
        self._names[name] = family
        return family

    # -- objectives ----------------------------------------------------------------------------------------

    def optimize(self, objective: Objective) -> None:
        """Set the objective, replacing any other."""
        if not isinstance(objective, Objective):
            raise DeclarationError(f"optimize needs an objective such as fo.minimize(x), not {objective!r}")
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

    def leximin(
        self,
        utilities: Expression,
        method: SortedMethod | None = None,
        *,
        outcomes: Any = None,
        tolerance: float = 0.0,
    ) -> None:
        """Raise the smallest utility first, then the next; see `forcopt.leximin`."""
        self.optimize(objectives.leximin(utilities, method, outcomes=outcomes, tolerance=tolerance))

    def leximax(
        self,
        losses: Expression,
        method: SortedMethod | None = None,
        *,
        outcomes: Any = None,
        tolerance: float = 0.0,
    ) -> None:
        """Lower the largest loss first, then the next; see `forcopt.leximax`."""
        self.optimize(objectives.leximax(losses, method, outcomes=outcomes, tolerance=tolerance))

    # -- evaluation ----------------------------------------------------------------------------------------

    def point(self, values: Mapping[Variable, Any]) -> Array:
        """Give all columns' values from those of the variables; atoms and products are computed.

        Parameters
        ----------
        values : Mapping[Variable, Any]
            For each variable an array that broadcasts to its shape; variables left out are 0.
        """
        out = np.zeros(self.column_count)
        for variable, value in values.items():
            if not isinstance(variable, Variable):
                raise DeclarationError(f"a point gives values to variables, not to {variable!r}")
            self.lift(variable, f"variable {variable.name}")
            numbers = as_numbers(value, f"the value of {variable.name}")
            try:
                wide = np.broadcast_to(numbers, variable.shape)
            except ValueError:
                raise DeclarationError(
                    f"the value of {variable.name} has shape {numbers.shape}, "
                    f"which does not broadcast to {variable.shape}"
                ) from None
            out[variable.start : variable.start + variable.size] = wide.reshape(-1)
        return self.complete(out)

    def complete(self, point: Array) -> Array:
        """Recompute the result columns of atoms and products from the variables' values.

        Parameters
        ----------
        point : Array
            The values of all columns. Outside its domain an atom takes its value at the nearest point of the
            closed domain, which may be infinite.
        """
        out = np.array(point, dtype=float)
        with np.errstate(invalid="ignore"):  # an infinite value of an atom may be multiplied by 0
            for relation in self.relations:
                if isinstance(relation, AtomRelation):
                    arguments = [a.evaluate(out) for a in relation.arguments]
                    out[relation.result_columns] = relation.atom.evaluate(arguments, relation.parameter)
                elif isinstance(relation, Product):
                    binary, factor = relation.binary.evaluate(out), relation.factor.evaluate(out)
                    out[relation.result_columns] = binary * factor
        return out

    def violations(self, point: Array) -> dict[str, float]:
        """By how much a point violates what the model demands; nothing that holds is listed.

        Parameters
        ----------
        point : Array
            The values of all columns, completed (see `complete`).

        Returns
        -------
        dict[str, float]
            For each violated constraint, variable's bounds or integrality, and atom's domain its name and the
            largest violation. Rows are relative to the larger of 1 and their bound. Atoms that nothing uses
            demand nothing.
        """
        found: dict[str, float] = {}

        def note(name: str, amount: Array | float) -> None:
            worst = float(np.max(np.where(np.isnan(amount), np.inf, amount), initial=0.0))
            if worst > 0:
                found[name] = max(worst, found.get(name, 0.0))

        for block in self.blocks:
            if block.curvature:
                continue  # bounded by the atom itself
            values = point[block.start : block.start + block.size].reshape(block.shape)
            note(f"bounds of {block.name}", np.maximum(block.lower - values, values - block.upper))
            if np.any(block.integer == 1):
                off = np.where(block.integer == 1, np.abs(values - np.round(values)), 0.0)
                note(f"integrality of {block.name}", off)
        for constraint in self.constraints:
            note(constraint.name, constraint.relative_violation(point))
        for relation in self.needed_relations():
            if isinstance(relation, AtomRelation):
                block = self._block(relation.result_columns[0])
                outside = relation.atom.outside([a.evaluate(point) for a in relation.arguments])
                poles = ~np.isfinite(point[relation.result_columns])
                note(f"domain of {block.name}", np.where(poles, np.inf, outside))
            elif isinstance(relation, Condition):
                note(relation.name, relation.violation(point))
        for family in self.lazies:
            for constraint in family.separate(lambda e: self.lift(e).evaluate(point)):
                note(family.name, constraint.relative_violation(point))
        return found

    # -- solving and exchange (calls upwards, imported when called) -----------------------------------------

    def solve(self, backend: str | None = None, **options: Any) -> ModelSolution:
        """Solve on a backend; see `forcopt.loops.solve.solve_model` for the options.

        Parameters
        ----------
        backend : str, optional
            A name that ``forcopt backends`` lists; by default one that fits the kind of model.
        options : Any
            ``time_limit``, ``gap``, ``seed``, ``threads``, ``log``, ``start``, ...
        """
        from forcopt.loops.solve import solve_model

        return solve_model(self, backend, **options)

    def write(self, path: str | Path) -> None:
        """Write an ``.mps`` or ``.lp`` file."""
        from forcopt.loops.exchange import write

        write(self, path)

    def to_highs(self, *, first_stage: bool = False) -> Any:
        """Give a `highspy.Highs` that holds the model (see `forcopt.loops.exchange.to_native`), not run."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "highs", first_stage=first_stage)

    def to_cvxpy(self, *, first_stage: bool = False) -> Any:
        """Give a `cvxpy.Problem`."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "cvxpy", first_stage=first_stage)

    def to_pyomo(self, *, first_stage: bool = False) -> Any:
        """Give a `pyomo.environ.ConcreteModel`."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "pyomo", first_stage=first_stage)

    def to_mathopt(self, *, first_stage: bool = False) -> Any:
        """Give an `ortools.math_opt.python.mathopt.Model`."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "mathopt", first_stage=first_stage)

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
