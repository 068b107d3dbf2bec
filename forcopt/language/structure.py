"""The columns, rows, relations and names of a model, and queries on them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import CurvatureError, DeclarationError, require, unknown
from forcopt.language import evaluator
from forcopt.language.columns import Block, Columns, ColumnStore, consecutive, integral, interval
from forcopt.language.constraint import Condition, Constraint, GatheredRows, Lazy, gathered
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes, describe_labels, flat_position
from forcopt.language.objective import Objective
from forcopt.language.relations import AtomRelation, Product
from forcopt.language.scalar import Scalar
from forcopt.language.terms import Gather, mark
from forcopt.language.variable import Parameter, Variable

if TYPE_CHECKING:
    from forcopt.language.atom import Atom
    from forcopt.language.model import Model


Relation = AtomRelation | Product | Condition
_START = attrgetter("start")


def _is_affine(relation: Relation) -> bool:
    """Whether a lazy family or a cut may use the result."""
    return isinstance(relation, Product) or (
        isinstance(relation, AtomRelation) and not relation.atom.curvature
    )


def same_marks(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Whether a model is the same at two times but for the values of parameters, see `Model.marks`."""
    return all(a is b for a, b in zip(left[:-1], right[:-1], strict=True)) and left[-1] == right[-1]


class Structure:
    """The state of a model, and queries on it.

    Parameters
    ----------
    name : str, default "model"
        Used in messages and files.
    """

    def __init__(self, name: str = "model") -> None:
        require(isinstance(name, str), "the name of a model", name, "be a string")
        self.name = name
        self.constraints: list[Constraint] = []
        self.relations: list[Relation] = []
        self.lazies: list[Lazy] = []
        self._objective: Objective | None = None
        self._edits = 0  # how often constraints were changed in place
        self.row_count = 0
        self._store = ColumnStore()
        self._names: dict[str, Variable | Parameter | Constraint | Condition | Lazy] = {}
        self._column_names: dict[str, int] | None = None  # of columns with names of their own
        self._counters: dict[str, int] = {}
        self._condition_count = 0
        self._atoms: dict[int, AtomRelation] = {}  # by the first column of the result
        self._removed = np.zeros(0, dtype=bool)  # which columns belong to removed variables
        self.parameters: list[Parameter] = []
        self._parametric = np.zeros(0, dtype=bool)  # which columns parameters determine
        self._gathered: tuple[list[Constraint], tuple[int, int], list[GatheredRows]] | None = None
        self.prepared: dict[str, Any] = {}  # compiled programs by backend, see `forcopt.loops.prepared`

    @property
    def _model(self) -> Model:
        """The structure as its expressions see it: the model that it is."""
        return cast("Model", self)

    @property
    def objective(self) -> Objective | None:
        """The stages of the objective; set by `Model.minimize` and the like."""
        return self._objective

    @property
    def blocks(self) -> list[Block]:
        """The columns in the blocks in which they were made."""
        return self._store.blocks

    @property
    def column_count(self) -> int:
        """The number of columns, with the columns of removed variables and unused atoms."""
        return self._store.count

    def parameter_values(self) -> tuple[Array, Array]:
        """Give the columns of all parameters, and their values.

        Raises
        ------
        DeclarationError
            Naming a parameter without a value.
        """
        columns = [np.arange(p.start, p.start + p.size) for p in self.parameters]
        return np.concatenate([np.zeros(0, dtype=np.intp), *columns]), self.parameter_numbers()

    def parameter_numbers(self) -> Array:
        """Give the values of all parameters, flat.

        Raises
        ------
        DeclarationError
            Naming a parameter without a value.
        """
        values = [p._value.reshape(-1) for p in self.parameters]
        for p, numbers in zip(self.parameters, values, strict=True):
            if numbers.size and np.isnan(numbers[0]):
                raise DeclarationError(f"parameter {p.name} has no value: set {p.name}.value")
        return np.concatenate([np.zeros(0), *values])

    def parametric_columns(self) -> Array | None:
        """Give which columns parameters determine; None if there are no parameters."""
        if not self.parameters:
            return None
        if len(self._parametric) < self.column_count:
            more = np.zeros(self.column_count - len(self._parametric), dtype=bool)
            self._parametric = np.concatenate([self._parametric, more])
        return self._parametric

    def note_parametric(self, result: Expression) -> None:
        """Note that parameters determine the columns of an expression; for products of parameters."""
        known = self.parametric_columns()
        assert known is not None
        mark(result.terms, known)

    def gathered_constraints(self) -> Iterable[GatheredRows]:
        """Give the constraints, joined; kept between the solves of a model with parameters."""
        if not self.parameters:
            return gathered(self.constraints)
        size = len(self.constraints), self.column_count
        kept = self._gathered
        if kept is None or kept[0] is not self.constraints or kept[1] != size:
            kept = self._gathered = self.constraints, size, list(gathered(self.constraints))
        return kept[2]

    def marks(self) -> tuple[Any, ...]:
        """Give the objects that hold the model, and their sizes; they change with it, see `same_marks`."""
        held = self.constraints, self.relations, self.lazies
        counts = len(self.constraints), len(self.relations), len(self.lazies)
        edits = self._store.revision, self._edits
        return self.objective, *held, (self.column_count, self.row_count, *counts, *edits)

    @property
    def is_edited(self) -> bool:
        """Whether numbers of variables, constraints or the objective were changed after their declaration."""
        return self._edits + self._store.revision > 0

    def note_edit(self) -> None:
        """Note that a constraint was changed in place, so that the next solve compiles anew."""
        self._edits += 1
        self._gathered = None

    def demands(self) -> tuple[Any, ...]:
        """The objective and the numbers of rows, conditions, families, changed columns and edits."""
        counts = self.row_count, self._condition_count, len(self.lazies), self._store.revision, self._edits
        return self.objective, *counts

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "prepared": {}}  # solvers cannot be copied

    def declare_block(
        self, name: str, lower: Array, upper: Array, integer: Array, labels: Sequence[str] | None = None
    ) -> Variable:
        """Add a variable whose arrays are known to be right, as `variable` without its checks; for readers.

        Parameters
        ----------
        name : str
            Not in use.
        lower, upper, integer : Array
            Of the variable's shape.
        labels : Sequence[str], optional
            A name for each column.
        """
        kinds = integer.astype(np.int8)
        return self._declare(Block(name, self.column_count, lower.shape, lower, upper, kinds, 0, labels))

    def _declare(self, block: Block) -> Variable:
        self._store.add(block)
        out = Variable(self._model, len(self.blocks) - 1)
        self._names[block.name] = out
        return out

    def add_columns(
        self,
        label: str,
        shape: tuple[int, ...],
        lower: Any = -np.inf,
        upper: Any = np.inf,
        curvature: int = 0,
        implied_integer: bool = False,
        axes: Axes | None = None,
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
        axes : Axes, optional
            Of the expression.
        """
        number = self._counters.get(label, 0) + 1
        low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        low, high = low.reshape(shape) if low.ndim else low, high.reshape(shape) if high.ndim else high
        start = self.column_count
        name = f"{label}#{number}"
        self._store.add(Block(name, start, shape, low, high, 2 * implied_integer, curvature, axes=axes))
        self._counters[label] = number
        return Expression(self._model, shape, (consecutive(start, shape),), np.zeros(()), axes)

    def add_atom(
        self,
        label: str,
        atom: Atom,
        shape: tuple[int, ...],
        arguments: tuple[Expression, ...],
        parameter: Any,
        axes: Axes | None = None,
    ) -> Expression:
        """Add the result columns of an atom and the relation that ties them to its arguments; for atoms.

        Parameters
        ----------
        label : str
            The function that the user called.
        atom : Atom
            Which function.
        shape : tuple[int, ...]
            Of the result.
        arguments : tuple[Expression, ...]
            See `AtomRelation`.
        parameter : Any
            The atom's own.
        axes : Axes, optional
            Of the result.
        """
        start = self.column_count
        whole = atom.integral and self._store.has_integer
        whole = whole and all(bool(self.is_integral(a).all()) for a in arguments)
        least = 0.0 if atom.nonnegative else -np.inf
        result = self.add_columns(label, shape, least, np.inf, atom.curvature, whole, axes)
        if result.size:
            self._atoms[start] = AtomRelation(atom, result.ravel(), arguments, parameter)
            self.relations.append(self._atoms[start])
        return result

    # -- columns and relations ---------------------------------------------------------------------------

    def columns(self) -> Columns:
        """Give the bounds, integrality and curvature of all columns."""
        return self._store.arrays()

    def ranges(self) -> tuple[Array, Array]:
        """Give bounds on all columns; bounds on atoms' results follow from their arguments.

        They hold for the values of the atoms, not for every number that a program may give a result column.
        """
        return self._store.ranges(self._atoms)

    def needed_relations(self) -> list[Relation]:
        """Give the relations that matter: an atom that no constraint, condition or objective uses does not.

        A product is kept if there are lazy families, whose constraints may use it.
        """
        return self._needed()[0]

    def _needed(self) -> tuple[list[Relation], Array]:
        """The relations that matter, and which columns are used by them, by constraints and objectives."""
        used = np.zeros(self.column_count, dtype=bool)
        read = self.relations or self._removed.any()
        for constraint in self.constraints if read else ():
            mark(constraint.expression.terms, used)
        for stage in self.objective.stages if self.objective and read else ():
            mark(stage.expression.terms, used)
        needed: list[Relation] = []
        for relation in reversed(self.relations):  # an argument's columns are older than the result's
            needless = (
                isinstance(relation, AtomRelation | Product) and not used[relation.result_columns].any()
            )
            if needless and not (self.lazies and _is_affine(relation)):
                continue
            needed.append(relation)
            for operand in relation.operands:
                mark(operand.terms, used)
        return needed[::-1], used

    def unused_columns(self) -> Array:
        """Give the columns of removed variables, and of atoms and products that nothing uses."""
        out = np.zeros(self.column_count, dtype=bool)
        out[: len(self._removed)] = self._removed
        if self.relations:
            needed = {id(r) for r in self.needed_relations()}
            for relation in self.relations:
                if isinstance(relation, AtomRelation | Product) and id(relation) not in needed:
                    out[relation.result_columns] = True
        return np.flatnonzero(out)

    def free_columns(self) -> Array:
        """Give the columns that no atom or product computes from others."""
        return np.flatnonzero(self._free())

    def _free(self) -> Array:
        free = np.ones(self.column_count, dtype=bool)
        for relation in self.relations:
            if isinstance(relation, AtomRelation | Product):
                free[relation.result_columns] = False
        return free

    def columns_of(self, part: Expression, subject: str) -> Array:
        """Give the columns of a variable or of a part of one, flat.

        Raises
        ------
        DeclarationError
            For any other expression.
        """
        self.lift(part, subject)
        term = part.terms[0] if len(part.terms) == 1 else None
        single = isinstance(term, Gather) and term.width == 1 and not part.constant.any()
        if isinstance(term, Gather) and single and (term.values == 1).all():
            columns: Array = np.broadcast_to(term.columns, (*part.shape, 1)).reshape(-1)
            free = self._free()
            for parameter in self.parameters:
                free[parameter.start : parameter.start + parameter.size] = False
            if free[columns].all():
                self._check_present(part)
                return columns
        elif part.size == 0 and isinstance(part, Variable):
            return np.zeros(0, dtype=np.int32)
        raise DeclarationError(f"{subject} must be a variable or a part of one such as x[0], not {part!r}")

    def _check_present(self, expression: Expression) -> None:
        if not self._removed.any():
            return
        used = np.zeros(self.column_count, dtype=bool)
        mark(expression.terms, used)
        gone = np.flatnonzero(used[: len(self._removed)] & self._removed)
        if gone.size:
            raise DeclarationError(f"{self.block_of(int(gone[0])).name!r} was removed from model {self.name}")

    # -- names -------------------------------------------------------------------------------------------

    def unused_name(self, name: str) -> str:
        """Give `name`, with ``#2``, ``#3``, ... if it is in use: for blocks that a model may hold twice.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> _ = m.variable("x")
        >>> m.unused_name("x"), m.unused_name("y")
        ('x#2', 'y')
        """
        number, free = 1, name
        while free in self._names or f"{free}[0]" in self._names:  # also of numbered constraints
            number += 1
            free = f"{name}#{number}"
        return free

    def _fresh_name(self, name: str) -> str:
        if name in self._names:
            raise DeclarationError(f"the name {name!r} is already in use in model {self.name!r}")
        return name

    @staticmethod
    def _check_name(name: Any, subject: str) -> None:
        require(isinstance(name, str), f"{subject}: the name", name, "be a string")

    @property
    def variables(self) -> list[Variable]:
        """The declared variables, in order."""
        return [v for v in self._names.values() if isinstance(v, Variable)]

    def column_name(self, column: int) -> str:
        """Name a column, such as ``x[1,2]`` or ``x[a]``."""
        return self._store.name(column)

    def block_of(self, column: int) -> Block:
        """Give the block that a column was made in."""
        return self.blocks[self._store.position(column)]

    def row_name(self, row: int) -> str:
        """Name a row, such as ``need[0]``."""
        constraint = self.constraints[bisect_right(self.constraints, row, key=_START) - 1]
        if constraint.labels is not None:
            return constraint.labels[row - constraint.start]
        axes = constraint.expression.axes
        return constraint.name + describe_labels(axes, constraint.shape, row - constraint.start)

    def __getitem__(self, name: str) -> Any:
        """Find by name a variable, a constraint, or one element or row of them.

        Parameters
        ----------
        name : str
            Such as ``"x"``, ``"need"``, ``"x[1,2]"`` or ``"need[coal]"``.

        Raises
        ------
        UnknownNameError
            If nothing has the name; it suggests the nearest.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", shape=3)
        >>> m["x"], m["x[1]"]
        (<variable x of shape (3,)>, <expression of shape (), 1 coefficients: x[1]>)
        """
        if not isinstance(name, str):
            raise DeclarationError(f"{name!r} is no name; a model is indexed by strings such as 'x'")
        if name in self._names:
            return self._names[name]
        column = self._named_column(name)
        return self._named_row(name) if column is None else Scalar(self._model, [column], [1.0], 1, 0.0)

    def __contains__(self, name: str) -> bool:
        return name in self._names or self._named_column(name) is not None

    def _named_row(self, name: str) -> Constraint:
        """The row of a name such as ``flow[n0,red]``, as a constraint in the model."""
        head, bracket, inside = name.partition("[")
        rows = self._names.get(head)
        if bracket and isinstance(rows, Constraint):
            place = flat_position(bracket + inside, rows.axes, rows.shape)
            if place is not None:
                return rows.row(place)
        raise unknown("name", name, list(self._names))

    def _named_column(self, name: str) -> int | None:
        """The column of a name such as ``x[1,2]``; None if there is none."""
        head, bracket, inside = name.partition("[")
        variable = self._names.get(head)
        if bracket and isinstance(variable, Variable) and variable.axes is None:
            place = flat_position(bracket + inside, None, variable.shape)
            if place is not None and self._store.name(variable.start + place) == name:
                return variable.start + place
        if self._column_names is None or len(self._column_names) != self.column_count:
            self._column_names = {self._store.name(j): j for j in range(self.column_count)}
        return self._column_names.get(name)

    # -- curvature ---------------------------------------------------------------------------------------

    def lift(self, value: Any, subject: str = "the array") -> Expression:
        """Give an expression of this model: `value` itself, or a constant."""
        if isinstance(value, Expression):
            if value.model is not self:
                mine, other = self.name, value.model.name
                rest = "this model of the same name" if mine == other else f"model {mine!r}"
                raise DeclarationError(f"{subject} belongs to model {other!r}, not to {rest}")
            return value
        numbers = as_numbers(value, subject)
        return Expression(self._model, numbers.shape, (), numbers)

    def span_of(self, expression: Expression) -> tuple[Array, Array]:
        """Bounds on each element of an expression that follow from the bounds of the columns."""
        return interval(expression, *self._store.declared_ranges(self._atoms))

    def is_integral(self, expression: Expression) -> Array:
        """Whether each element can only take integer values."""
        return integral(expression, self.columns().integer > 0)

    @property
    def is_linear(self) -> bool:
        """Whether no atom was used until now."""
        return not self._atoms

    def is_affine(self, expression: Expression) -> bool:
        """Whether an expression uses no atom."""
        return self._curved(expression) is None

    def _curved(self, expression: Expression) -> tuple[Array, Array, Array] | None:
        """The curved columns of an expression, their coefficients, and the coefficients' convexity signs."""
        if not self._atoms:  # products with parameters are only curved where an atom is
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

    def curvature(self, expression: Expression, place: str) -> int:
        """Give 1 for a convex expression, -1 for a concave one, 0 for an affine one.

        Raises
        ------
        CurvatureError
            If it is neither.
        """
        curved = self._curved(expression)
        if curved is None:
            return 0
        direction = 1 if curved[2].max(initial=0) > 0 else -1
        self.check_curvature(expression, direction, place)
        return direction

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
        times = "" if values[at] == 1 else f"{values[at]:g} * "
        needed = {1: "convex", -1: "concave", 0: "affine"}[direction]
        shape = "convex" if signs[at] > 0 else "concave"
        raise CurvatureError(
            f"{place}: the expression must be {needed}, but {times}{atom} is {shape}; "
            "the model would not be convex"
        )

    # -- points ------------------------------------------------------------------------------------------

    def point(self, values: Mapping[Any, Any]) -> Array:
        """Compute the values of all columns, atoms and products included, from the variables' values.

        Parameters
        ----------
        values : Mapping[Variable, Any]
            For each variable, or part of one such as ``x[0]``, an array that broadcasts to its shape;
            variables left out are 0.
        """
        return evaluator.point(self, values)

    def complete(self, point: Array) -> Array:
        """Recompute the result columns of atoms and products from the variables' values.

        Parameters
        ----------
        point : Array
            The values of all columns. Outside its domain an atom takes its value at the nearest point of the
            closed domain, which may be infinite.
        """
        return evaluator.complete(self, point)

    def violations(self, point: Array) -> dict[str, float]:
        """Compute by how much a point violates the model; satisfied constraints are not listed.

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
        return evaluator.violations(self, point)
