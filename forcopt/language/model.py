"""The model: variables, constraints and an objective, declared in any order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from inspect import signature
from math import prod
from operator import attrgetter
from operator import index as as_index
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from forcopt.arrays import Array, as_bounds, as_numbers, check_order
from forcopt.errors import CurvatureError, DeclarationError, unknown
from forcopt.language import editing, evaluator
from forcopt.language import objective as objectives
from forcopt.language.callbacks import Cut, Heuristic, Proposer
from forcopt.language.columns import Block, Columns, ColumnStore, consecutive
from forcopt.language.constraint import Condition, Constraint, GatheredRows, Lazy, Separator, gathered
from forcopt.language.expression import Expression
from forcopt.language.intervals import integral, interval
from forcopt.language.labels import align, describe_labels, is_pandas, read_axes
from forcopt.language.objective import Objective, SortedMethod
from forcopt.language.parameter import Parameter
from forcopt.language.relations import AtomRelation, Product
from forcopt.language.terms import Gather, mark
from forcopt.language.variable import Variable

if TYPE_CHECKING:
    from pathlib import Path

    from forcopt.language.atoms import Atom
    from forcopt.loops.diagnose import IrreducibleSubset
    from forcopt.loops.feasibility_relaxation import FeasibilityRelaxation
    from forcopt.loops.ranging import Ranging
    from forcopt.loops.solution import ModelSolution

__all__ = ["Model", "Variable", "same_marks"]

Relation = AtomRelation | Product | Condition
_Callback = TypeVar("_Callback", Cut, Heuristic)
_START = attrgetter("start")


def _is_several(condition: Any) -> bool:
    return isinstance(condition, Iterable) and not isinstance(condition, str | Expression)


def _is_affine(relation: Relation) -> bool:
    """Whether a lazy family or a cut may use the result."""
    return isinstance(relation, Product) or (
        isinstance(relation, AtomRelation) and not relation.atom.curvature
    )


def _booleans(given: Any, subject: str) -> Array:
    """Read booleans, or the numbers 0 and 1 for them."""
    values = np.asarray(given)
    if values.dtype == bool:
        return values
    if values.dtype.kind not in "iu" or not np.isin(values, (0, 1)).all():
        raise DeclarationError(f"{subject} is {given!r}; it must be True, False, or an array of these")
    return values.astype(bool)


@cache
def _options(function: Callable[..., Any]) -> list[str]:
    """The names of the options after the model and the backend."""
    return list(signature(function).parameters)[2:]


def same_marks(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Whether a model is the same at two times but for the values of parameters, see `Model.marks`."""
    return all(a is b for a, b in zip(left[:-1], right[:-1], strict=True)) and left[-1] == right[-1]


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    lengths = list(shape) if np.iterable(shape) else [shape]
    try:
        if any(isinstance(n, bool) for n in lengths):
            raise TypeError
        full = tuple(as_index(n) for n in lengths)
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
        if not isinstance(name, str):
            raise DeclarationError(f"the name of a model is {name!r}; it must be a string")
        self.name = name
        self.constraints: list[Constraint] = []
        self.relations: list[Relation] = []
        self.lazies: list[Lazy] = []
        self.callbacks: list[Cut | Heuristic] = []
        self.objective: Objective | None = None
        self.row_count = 0
        self._store = ColumnStore()
        self._names: dict[str, Variable | Parameter | Constraint | Condition | Lazy | Cut | Heuristic] = {}
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
    def blocks(self) -> list[Block]:
        """The columns in the blocks in which they were made."""
        return self._store.blocks

    @property
    def column_count(self) -> int:
        """The number of columns, with the columns of removed variables and unused atoms."""
        return self._store.count

    # -- variables -----------------------------------------------------------------------------------------

    def variable(
        self,
        name: str = "",
        shape: int | tuple[int, ...] = (),
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        integer: Any = False,
        binary: Any = False,
        index: Any = None,
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
        binary : Any, default False
            Only 0 or 1; or booleans that broadcast to the shape, true where only 0 or 1.
        index : Any, optional
            Labels of the axes instead of a shape: a list or a `pandas.Index` for one axis, a tuple with one
            for each axis (an int for an axis without labels), or a mapping from the names of the axes to
            their labels. Then ``x["a"]`` and ``x.loc[...]`` pick by label, and series and frames meet the
            variable by label, in bounds as in arithmetic.
        labels : Sequence[str], optional
            A name for each column, in C order; ``name[i,j]`` by default.

        Raises
        ------
        DeclarationError
            For a name in use, for labels that repeat, and for bounds that are NaN, crossed, of another shape,
            or beyond 0 and 1 for a binary variable.

        Examples
        --------
        >>> import pandas as pd
        >>> m = Model()
        >>> cost = pd.Series({"iron": 3.0, "coal": 1.0})
        >>> x = m.variable("x", index=cost.index, lower=1)
        >>> m.minimize((cost[["coal", "iron"]] * x).sum())
        >>> m.objective.stages[0].expression
        <expression of shape (), 2 coefficients: 3 x[iron] + x[coal]>
        >>> x["coal"]
        <expression of shape (), 1 coefficients: x[coal]>
        """
        if not isinstance(name, str):
            raise DeclarationError(f"variable: the name is {name!r}; it must be a string")
        label = f"variable {name}: " if name else "variable: "
        axes = None if index is None else self._index_axes(index, label)
        full = _shape(name, shape)
        if axes is not None:
            sizes = tuple(a if isinstance(a, int) else len(a) for a in axes)
            if shape != () and full != sizes:
                raise DeclarationError(f"{label}shape {full} does not fit the index of shape {sizes}")
            full, named = sizes, tuple(None if isinstance(a, int) else a for a in axes)
        else:
            named = None
        lower, upper = (
            align(b, named, full, f"{label}{which}") if is_pandas(b) else b
            for which, b in (("lower", lower), ("upper", upper))
        )
        name = self._fresh_name(name) if name else self.unused_name(f"x{len(self.blocks) + 1}")
        low, high = as_bounds(lower, upper, f"variable {name}: ")
        whole = _booleans(integer, f"variable {name}: integer")
        zero_one = _booleans(binary, f"variable {name}: binary")
        for which, bound in (("lower", low), ("upper", high), ("integer", whole), ("binary", zero_one)):
            if bound.ndim > len(full) or any(
                m not in (1, n) for m, n in zip(bound.shape[::-1], full[::-1], strict=False)
            ):
                raise DeclarationError(
                    f"variable {name}: {which} has shape {bound.shape}, which does not broadcast to {full}"
                )
        if zero_one.any():
            for which, bound, beyond in (
                ("lower", low, np.isfinite(low) & (low < 0)),
                ("upper", high, np.isfinite(high) & (high > 1)),
            ):
                if (zero_one & beyond).any():
                    worst = float(bound[beyond].flat[0])
                    raise DeclarationError(
                        f"variable {name}: {which} is {worst:g}, but a binary variable is 0 or 1; "
                        "write integer=True for other integers"
                    )
            low = np.where(zero_one, np.maximum(low, 0.0), low)
            high = np.where(zero_one, np.minimum(high, 1.0), high)
            whole = whole | zero_one
        check_order(low, high, full, f"variable {name}")
        if labels is not None:
            labels = self._check_labels(labels, full, name)
        block = Block(name, self.column_count, full, low, high, whole.astype(np.int8), 0, labels, named)
        return self._declare(block, bool(whole.all()))

    def parameter(
        self,
        name: str = "",
        shape: int | tuple[int, ...] = (),
        value: Any = None,
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        index: Any = None,
    ) -> Parameter:
        """Add a parameter: numbers that may change between solves, without compiling the model again.

        It stands wherever numbers may: in right-hand sides, costs and coefficients, and inside atoms. A
        product with an affine expression is affine; a product with an atom needs ``lower=0``.

        Parameters
        ----------
        name : str, default ""
            Unique in the model.
        shape : int | tuple[int, ...], optional
            Its numpy shape; ``()`` for a scalar.
        value : Any, optional
            Numbers that broadcast to the shape; may be given later, as ``p.value = ...``.
        lower, upper : Any, optional
            The range of its values, which bridges that need bounds read.
        index : Any, optional
            Labels of the axes, see `variable`.

        Raises
        ------
        DeclarationError
            For a name in use, and for values outside the range.

        Notes
        -----
        The next `solve` on the same backend changes only the numbers: HiGHS continues from the last basis,
        OSQP and SCS from the last point, and searches start from the last solution. A solution keeps the
        values that it was found with: ``s[p]``.

        Examples
        --------
        >>> m = Model()
        >>> demand = m.parameter("demand", value=4)
        >>> price = m.parameter("price", 2, value=[3, 4])
        >>> x = m.variable("x", shape=2, lower=0)
        >>> _ = m.subject_to(x[0] + 2 * x[1] >= demand)
        >>> m.minimize(price @ x)
        >>> m.solve().objective
        8.0
        >>> demand.value = 6
        >>> m.solve().objective
        12.0
        >>> price.value = [1, 4]
        >>> m.solve().objective
        6.0
        """
        if not isinstance(name, str):
            raise DeclarationError(f"parameter: the name is {name!r}; it must be a string")
        label = f"parameter {name}: " if name else "parameter: "
        axes = None if index is None else self._index_axes(index, label)
        full = (
            _shape(name, shape) if axes is None else tuple(a if isinstance(a, int) else len(a) for a in axes)
        )
        named = None if axes is None else tuple(None if isinstance(a, int) else a for a in axes)
        name = self._fresh_name(name) if name else self.unused_name(f"p{len(self.parameters) + 1}")
        low, high = as_bounds(lower, upper, label)
        check_order(low, high, full, label.rstrip(": "))
        block = Block(name, self.column_count, full, low, high, 0, 0, None, named)
        self._store.add(block)
        out = Parameter(self, name, full, block.start, named)
        self._names[name] = out
        self.parameters.append(out)
        self.note_parametric(out)
        if value is not None:
            out.value = value
        return out

    def parameter_values(self) -> tuple[Array, Array]:
        """Give the columns of all parameters, and their values.

        Raises
        ------
        DeclarationError
            Naming a parameter without a value.
        """
        columns = [np.arange(p.start, p.start + p.size) for p in self.parameters]
        return np.concatenate([np.zeros(0, dtype=np.int64), *columns]), self.parameter_numbers()

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
        return (
            self.objective,
            self.constraints,
            self.relations,
            self.lazies,
            self.callbacks,
            (
                self.column_count,
                self.row_count,
                len(self.constraints),
                len(self.relations),
                len(self.lazies),
                len(self.callbacks),
                self._store.revision,
            ),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "prepared": {}}  # solvers cannot be copied

    def declare_block(
        self,
        name: str,
        lower: Array,
        upper: Array,
        integer: Array,
        labels: Sequence[str] | None = None,
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
        block = Block(name, self.column_count, lower.shape, lower, upper, kinds, 0, labels)
        return self._declare(block, bool(kinds.all()))

    def _declare(self, block: Block, integer: bool) -> Variable:
        self._store.add(block)
        out = Variable(self, block.name, block.shape, block.start, integer, block.axes)
        self._names[block.name] = out
        return out

    @staticmethod
    def _index_axes(index: Any, subject: str) -> tuple[Any, ...]:
        if isinstance(index, tuple):
            return tuple(
                a if isinstance(a, int) else read_axes([*a] if isinstance(a, tuple) else a, subject)[0]
                for a in index
            )
        return read_axes(index, subject)

    @staticmethod
    def _check_labels(given: Sequence[str], shape: tuple[int, ...], name: str) -> list[str]:
        if isinstance(given, str) or not np.iterable(given):
            raise DeclarationError(f"variable {name}: labels {given!r} must be a sequence of strings")
        count, labels = prod(shape), list(given)
        if len(labels) != count:
            raise DeclarationError(f"variable {name}: {len(labels)} labels for shape {shape}")
        for label in labels:
            if not isinstance(label, str):
                raise DeclarationError(f"variable {name}: the label {label!r} must be a string")
        if len(set(labels)) < count:
            twice = next(label for i, label in enumerate(labels) if labels.index(label) != i)
            raise DeclarationError(f"variable {name}: the label {twice!r} occurs twice")
        return labels

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
        while free in self._names or f"{free}[0]" in self._names:  # also of numbered constraints
            number += 1
            free = f"{name}#{number}"
        return free

    def _fresh_name(self, name: str) -> str:
        if name in self._names:
            raise DeclarationError(f"the name {name!r} is already in use in model {self.name!r}")
        return name

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
        number = self._counters.get(label, 0) + 1
        low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        low, high = low.reshape(shape) if low.ndim else low, high.reshape(shape) if high.ndim else high
        start = self.column_count
        self._store.add(Block(f"{label}#{number}", start, shape, low, high, 2 * implied_integer, curvature))
        self._counters[label] = number
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
            The function that the user called.
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
            and self._store.has_integer
            and all(bool(self.is_integral(a).all()) for a in arguments),
        )
        if result.size:
            self._atoms[start] = AtomRelation(atom, result.ravel(), arguments, parameter)
            self.relations.append(self._atoms[start])
        return result

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

        A product is kept if there are lazy families or cuts, whose constraints may use it.
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
            if needless and not ((self.lazies or self.callbacks) and _is_affine(relation)):
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
        """Find by name a variable, a constraint, or one element of a variable.

        Parameters
        ----------
        name : str
            Such as ``"x"``, ``"need"`` or ``"x[1,2]"``.

        Raises
        ------
        UnknownNameError
            If nothing has the name; it suggests the nearest.

        Examples
        --------
        >>> m = Model()
        >>> x = m.variable("x", shape=3)
        >>> m["x"], m["x[1]"]
        (<variable x of shape (3,)>, <expression of shape (), 1 coefficients: x[1]>)
        """
        if not isinstance(name, str):
            raise DeclarationError(f"{name!r} is no name; a model is indexed by strings such as 'x'")
        if name in self._names:
            return self._names[name]
        column = self._named_column(name)
        if column is None:
            raise unknown("name", name, list(self._names))
        gather = Gather(np.array([column], np.int32), np.ones(1), True)
        return Expression(self, (), (gather,), np.zeros(()))

    def __contains__(self, name: str) -> bool:
        return name in self._names or self._named_column(name) is not None

    def _named_column(self, name: str) -> int | None:
        """The column of a name such as ``x[1,2]``; None if there is none."""
        head, bracket, inside = name.partition("[")
        variable = self._names.get(head)
        if bracket and isinstance(variable, Variable) and variable.axes is None and inside.endswith("]"):
            try:
                at = tuple(int(i) for i in inside[:-1].split(","))
                place = int(np.ravel_multi_index(at, variable.shape))
            except ValueError:
                pass
            else:
                if self._store.name(variable.start + place) == name:
                    return variable.start + place
        if self._column_names is None or len(self._column_names) != self.column_count:
            self._column_names = {self._store.name(j): j for j in range(self.column_count)}
        return self._column_names.get(name)

    # -- queries of expressions ----------------------------------------------------------------------------

    def lift(self, value: Any, subject: str = "the array") -> Expression:
        """Give an expression of this model: `value` itself, or a constant."""
        if isinstance(value, Expression):
            if value.model is not self:
                raise DeclarationError(
                    f"{subject} belongs to model {value.model.name!r}, not to model {self.name!r}"
                )
            return value
        numbers = as_numbers(value, subject)
        return Expression(self, numbers.shape, (), numbers)

    def interval(self, expression: Expression) -> tuple[Array, Array]:
        """Bounds on each element of an expression that follow from the bounds of the columns."""
        return interval(expression, *self._store.declared_ranges(self._atoms))

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
        self._check_name(name, "subject_to")
        named = self._check_conditions(flat, name, alone)
        for condition, free in zip(flat, named, strict=True):
            condition.name = free
            self._names[free] = condition
            if isinstance(condition, Constraint):
                condition.start = self.row_count
                self.row_count += condition.expression.size
                self.constraints.append(condition)
            else:
                self.relations.append(condition)
        self._condition_count += len(flat)
        return flat[0] if alone else flat

    def _check_conditions(self, conditions: Sequence[Any], name: str, alone: bool) -> list[str]:
        """Check all conditions and choose their names; nothing is added before all are found right."""
        taken: dict[str, Any] = {}
        shrunk = bool(self._removed.any())
        for position, condition in enumerate(conditions):
            wanted = name if alone or not name else f"{name}[{position}]"
            if not isinstance(condition, Constraint | Condition):
                hint = (
                    "; a comparison of two numbers is no constraint"
                    if isinstance(condition, bool | np.bool_)
                    else ""
                )
                raise DeclarationError(f"subject_to needs constraints, not {condition!r}{hint}")
            operands = (condition.expression,) if isinstance(condition, Constraint) else condition.operands
            for operand in operands:
                if operand.model is not self:
                    self.lift(operand, f"the constraint {wanted!r}" if wanted else "the constraint")
                if shrunk:
                    self._check_present(operand)
            if condition.name and (
                self._names.get(condition.name) is condition or taken.get(condition.name) is condition
            ):
                raise DeclarationError(f"the constraint {condition.name!r} already is in the model")
            if wanted:
                self._fresh_name(wanted)
                if wanted in taken:
                    raise DeclarationError(f"the name {wanted!r} is already in use in model {self.name!r}")
            else:
                wanted = condition.name or f"c{self._condition_count + position + 1}"
                free, number = wanted, 1
                while free in self._names or free in taken:
                    number += 1
                    free = f"{wanted}#{number}"
                wanted = free
            condition.check(f"constraint {wanted}")
            taken[wanted] = condition
        if len({id(c) for c in conditions}) < len(conditions):
            raise DeclarationError("subject_to: the same constraint is given twice")
        return list(taken)

    @staticmethod
    def _check_name(name: Any, subject: str) -> None:
        if not isinstance(name, str):
            raise DeclarationError(f"{subject}: the name is {name!r}; it must be a string")

    # -- editing -------------------------------------------------------------------------------------------

    def columns_of(self, part: Expression, subject: str) -> Array:
        """Give the columns of a variable or of a part of one, flat.

        Raises
        ------
        DeclarationError
            For any other expression.
        """
        self.lift(part, subject)
        term = part.terms[0] if len(part.terms) == 1 else None
        if (
            isinstance(term, Gather)
            and term.width == 1
            and not part.constant.any()
            and (term.values == 1).all()
        ):
            columns: Array = np.broadcast_to(term.columns, (*part.shape, 1)).reshape(-1)
            free = np.ones(self.column_count, dtype=bool)
            for relation in self.relations:
                if not isinstance(relation, Condition):
                    free[relation.result_columns] = False
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
            raise DeclarationError(
                f"{self.block_of(int(gone[0])).name!r} was removed from model {self.name!r}"
            )

    def remove(self, *things: Any) -> None:
        """Take constraints, conditions, callbacks or variables out of the model; all or none of them.

        A variable can go once no constraint, condition or objective uses it. Its columns keep their numbers,
        fixed at 0; files and other libraries' objects do not show them.

        Parameters
        ----------
        things : Variable or Constraint or Condition or Lazy or Cut or Heuristic or str, or a list of these
            Results of `variable`, `subject_to`, `lazy`, `cut` and `heuristic`, or their names.

        Raises
        ------
        DeclarationError
            For an object that is not in the model, and for a variable in use, naming a user.

        Examples
        --------
        >>> m = Model()
        >>> x = m.variable("x", lower=0, upper=5)
        >>> cap = m.subject_to(x <= 3, name="cap")
        >>> m.maximize(x)
        >>> m.solve().objective
        3.0
        >>> m.remove(cap)
        >>> m.solve().objective
        5.0
        """
        editing.remove(self, things)

    def fix(self, part: Expression, values: Any) -> None:
        """Hold a variable, or a part of one, at given values; `unfix` restores its bounds.

        Parameters
        ----------
        part : Expression
            A variable ``x``, or a part such as ``x[0]``.
        values : Any
            Numbers that broadcast to its shape (or a series or frame with its labels); NaN where it stays
            free.

        Raises
        ------
        DeclarationError
            For values outside the declared bounds, or not integer where the variable is.

        Examples
        --------
        >>> m = Model()
        >>> x = m.variable("x", shape=2, lower=0, upper=5)
        >>> m.maximize(x.sum())
        >>> m.fix(x[0], 1)
        >>> m.solve().objective
        6.0
        >>> m.unfix(x)
        >>> m.solve().objective
        10.0
        """
        editing.fix(self, part, values)

    def unfix(self, part: Expression) -> None:
        """Give a variable, or a part of one, its declared bounds back; see `fix`."""
        editing.unfix(self, part)

    def relax(self) -> Callable[[], None]:
        """Let integer variables take any value within their bounds; give a function that undoes it.

        Returns
        -------
        Callable[[], None]
            Makes the same variables integer again.

        Raises
        ------
        UnsupportedError
            If a condition or a product means something for integers only, such as `implies`.

        Examples
        --------
        >>> m = Model()
        >>> x = m.variable("x", shape=2, binary=True)
        >>> _ = m.subject_to(2 * x.sum() <= 3)
        >>> m.maximize(x.sum())
        >>> undo = m.relax()
        >>> m.solve().objective
        1.5
        >>> undo()
        >>> m.solve().objective
        1.0
        """
        return editing.relax(self)

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
        self._check_name(name, "lazy")
        name = self._fresh_name(name) if name else self.unused_name(f"lazy{len(self.lazies) + 1}")
        family = Lazy(self, separate, name)
        self.lazies.append(family)
        self._names[name] = family
        return family

    def cut(self, separate: Separator, name: str = "") -> Cut:
        """Add a family of cuts: constraints that every feasible point satisfies.

        They strengthen the relaxations of a search and never decide which points are feasible. A backend
        without the capability ``cut`` solves the model without them, and ``s.message`` names them.

        Parameters
        ----------
        separate : Separator
            Called with a function ``value(expression)`` at a relaxation's point, which may be fractional;
            yields affine constraints. The constraints that the point violates are added.
        name : str, default ""
            For messages.

        Notes
        -----
        The optimum and the bound rest on a premise: no yielded constraint excludes a feasible point. `solve`
        tests the premise at feasible points of relaxations, at the start and at the points that the search
        finds, and raises `DeclarationError` if one of them refutes it. Such tests are no proof.
        `certify` uses no cut.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", shape=3, binary=True)  # the edges of a triangle
        >>> _ = m.subject_to(x[0] + x[1] <= 1, x[1] + x[2] <= 1, x[0] + x[2] <= 1)
        >>> def odd_set(value):
        ...     if value(x).sum() > 1 + 1e-6:
        ...         yield x.sum() <= 1
        >>> _ = m.cut(odd_set)
        >>> m.maximize(x.sum())
        >>> m.solve().objective
        1.0
        """
        if not callable(separate):
            raise DeclarationError(f"cut needs a function of a point, not {separate!r}")
        return self._add_callback(Cut(self, separate, name))

    def heuristic(self, propose: Proposer, name: str = "") -> Heuristic:
        """Add a heuristic: a function that proposes feasible points to a search.

        A backend without the capability ``heuristic`` solves the model without it, and ``s.message`` names
        it.

        Parameters
        ----------
        propose : Proposer
            Called with a function ``value(expression)`` at a relaxation's point, which may be fractional;
            returns values as `solve` takes them for a start, or None. The search determines the variables
            that it leaves out, with the others fixed.
        name : str, default ""
            For messages.

        Notes
        -----
        A proposal reaches the solver only if it satisfies all bounds, integers, constraints, conditions and
        lazy families; ``s.message`` counts the others and gives the reason of the last.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", shape=3, binary=True)
        >>> _ = m.subject_to([2, 3, 4] @ x <= 6)
        >>> m.maximize([3, 4, 6] @ x)
        >>> _ = m.heuristic(lambda value: {x: value(x) > 1 - 1e-6}, name="round down")
        >>> m.solve().objective
        9.0
        """
        if not callable(propose):
            raise DeclarationError(f"heuristic needs a function of a point, not {propose!r}")
        return self._add_callback(Heuristic(self, propose, name))

    def _add_callback(self, callback: _Callback) -> _Callback:
        self._check_name(callback.name, callback.kind)
        count = sum(c.kind == callback.kind for c in self.callbacks)
        default = f"{callback.kind}{count + 1}"
        callback.name = self._fresh_name(callback.name) if callback.name else self.unused_name(default)
        self.callbacks.append(callback)
        self._names[callback.name] = callback
        return callback

    # -- objectives ----------------------------------------------------------------------------------------

    def optimize(self, objective: Objective) -> None:
        """Set the objective, replacing any other."""
        if not isinstance(objective, Objective):
            raise DeclarationError(f"optimize needs an objective such as fo.minimize(x), not {objective!r}")
        for number, stage in enumerate(objective.stages, 1):
            self._check_present(self.lift(stage.expression, "the objective"))
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

    # -- solving and exchange (calls upwards, imported when called) -----------------------------------------

    def solve(self, backend: str | None = None, **options: Any) -> ModelSolution:
        """Solve on a backend; see `forcopt.loops.solve.solve_model` for the options.

        Parameters
        ----------
        backend : str, optional
            A name that ``forcopt backends`` lists; by default one that fits the kind of model.
        options : Any
            ``time_limit``, ``gap``, ``seed``, ``threads``, ``log``, ``start``, ...

        Raises
        ------
        UnknownNameError
            For an option that does not exist; it suggests the nearest.
        """
        from forcopt.loops.solve import solve_model

        known = _options(solve_model) if options else []
        for option in options:
            if option not in known:
                raise unknown("option", option, known)
        return solve_model(self, backend, **options)

    def irreducible_subset(self, backend: str = "highs") -> IrreducibleSubset | None:
        """Find constraints and bounds that contradict each other.

        See `forcopt.loops.diagnose.irreducible_subset`.
        """
        from forcopt.loops.diagnose import irreducible_subset

        return irreducible_subset(self, backend)

    def feasibility_relaxation(self, **options: Any) -> FeasibilityRelaxation:
        """Find the least changes of right-hand sides that make the model feasible.

        See `forcopt.loops.feasibility_relaxation.feasibility_relaxation` for the options.
        """
        from forcopt.loops.feasibility_relaxation import feasibility_relaxation

        return feasibility_relaxation(self, **options)

    def ranging(self) -> Ranging:
        """Compute sensitivity ranges of a linear model; see `forcopt.loops.ranging.ranging`."""
        from forcopt.loops.ranging import ranging

        return ranging(self)

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
        """Describe the model in a few lines: rows, columns, nonzeros, relations, coefficient range."""
        from forcopt.language.display import model_summary

        return model_summary(self)

    def __repr__(self) -> str:
        kind = self.objective.kind if self.objective else "no objective"
        columns = self.column_count - len(self.unused_columns())
        return f"<model {self.name}: {columns} columns, {self.row_count} rows, {kind}>"

    def _repr_html_(self) -> str:
        from forcopt.language.display import model_html

        return model_html(self)
