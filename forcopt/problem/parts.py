"""Rules on the parts of a decision, such as districts or panels, written in the language's own operators.

A problem whose decisions consist of parts offers a model of them, `Parts`: its columns are measures of each
part, such as the population of a district. A constraint on these columns is read as `Rule`s of four classes:

- ``each``: every part by itself satisfies it. A method that lists parts leaves the others out.
- ``one``: a part with a name of its own satisfies it.
- ``sum``: a sum over all parts of a function of a part has bounds: a row of a program that chooses parts.
- ``plan``: any other; only methods that hold whole decisions take it.

A function of a part is a sum of measures and of atoms of such sums. The same `Function` takes numbers, for
many parts at once, and the expressions of a formulation.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, ValidationInfo, field_serializer, field_validator

from forcopt.arrays import Array
from forcopt.compile.elimination import eliminate
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.language.atom import Atom, apply_atom, atom_named
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.joins import stack
from forcopt.language.model import Model
from forcopt.language.relations import AtomRelation
from forcopt.language.variable import Variable
from forcopt.problem.problem import Problem

Scope = Literal["each", "one", "sum", "plan"]
Read = Callable[[Any], Any]
"""Gives the values of a measure, one for each part, as numbers or as an expression."""


RULES = {
    "each": "a rule on each part",
    "one": "a rule on one part that has a name of its own",
    "sum": "a rule on a sum over all parts",
    "plan": "a rule that ties parts together and is no sum over all of them",
}
"""The classes in words."""


class Node(Declared):
    """A part of a function: a measure, a rule that counts, or an atom."""

    @abstractmethod
    def value(self, read: Read) -> Any:
        """Its value for each part."""

    @abstractmethod
    def moved(self, to: Callable[[int | None], int | None]) -> Node:
        """The same of other parts."""

    @property
    @abstractmethod
    def leaves(self) -> tuple[Measure | Meets, ...]:
        """The measures in it."""


class Measure(Node):
    """A number that each part has.

    Attributes
    ----------
    name : str
        As the problem names it, such as ``total``.
    of : str, default ""
        What it measures, such as an attribute.
    part : int, optional
        Which part's; every part's by default.
    """

    name: str
    of: str = ""
    part: int | None = None

    def value(self, read: Read) -> Any:
        """As `read` gives it."""
        return read(self)

    def moved(self, to: Callable[[int | None], int | None]) -> Measure:
        """The same measure of another part."""
        return Measure(name=self.name, of=self.of, part=to(self.part))

    @property
    def leaves(self) -> tuple[Measure | Meets, ...]:
        """Itself."""
        return (self,)

    def __str__(self) -> str:
        return (f"{self.name}({self.of})" if self.of else self.name) + _at(self.part)


class Meets(Node):
    """1 for a part with a function of at least a bound, else 0.

    Attributes
    ----------
    function : Function
        Of a part.
    least : float
        The bound, inclusive.
    part : int, optional
        Which part; every part by default.
    """

    function: Function
    least: float
    part: int | None = None

    def value(self, read: Read) -> Any:
        """As `read` gives it."""
        return read(self)

    def moved(self, to: Callable[[int | None], int | None]) -> Meets:
        """The same of another part."""
        return Meets(function=self.function, least=self.least, part=to(self.part))

    @property
    def leaves(self) -> tuple[Measure | Meets, ...]:
        """Itself."""
        return (self,)

    def __str__(self) -> str:
        return f"[{self.function} >= {self.least:g}]{_at(self.part)}"


class Applied(Node):
    """An atom of functions.

    Attributes
    ----------
    atom : str
        Its name.
    arguments : tuple of tuple of Function
        The functions of each argument; several for an argument that the atom reduces.
    parameter : float, optional
        The atom's own.
    """

    atom: str
    arguments: tuple[tuple[Function, ...], ...]
    parameter: float | int | None = None

    def value(self, read: Read) -> Any:
        """The atom at the values of its arguments."""
        atom = atom_named(self.atom)
        given = [[f.value(read) for f in functions] for functions in self.arguments]
        reduced = [atom.reduces and i == 0 for i in range(len(given))]
        operands = (_last_axis(v) if many else v[0] for v, many in zip(given, reduced, strict=True))
        return apply_atom(atom, *operands, parameter=self.parameter)

    def moved(self, to: Callable[[int | None], int | None]) -> Applied:
        """The same of other parts; the order of the functions stays a normal one."""
        arguments = tuple(tuple(f.moved(to) for f in functions) for functions in self.arguments)
        if atom_named(self.atom).reduces:
            arguments = (tuple(sorted(arguments[0], key=str)), *arguments[1:])
        return Applied(atom=self.atom, arguments=arguments, parameter=self.parameter)

    @property
    def leaves(self) -> tuple[Measure | Meets, ...]:
        """The measures in its arguments."""
        return tuple(leaf for functions in self.arguments for f in functions for leaf in f.leaves)

    def __str__(self) -> str:
        return f"{self.atom}({', '.join(str(f) for functions in self.arguments for f in functions)})"


class Function(Declared):
    """A constant and a sum of nodes with coefficients, in a normal order.

    Attributes
    ----------
    terms : tuple of (float, Node)
        Coefficients and what they multiply.
    constant : float, default 0.0
        A number.
    """

    terms: tuple[tuple[float, Node], ...]
    constant: float = 0.0

    @classmethod
    def of(cls, terms: Iterable[tuple[float, Node]], constant: float = 0.0) -> Function:
        """Make one of terms in any order."""
        return cls(terms=tuple(sorted(terms, key=lambda t: (str(t[1]), t[0]))), constant=constant)

    def value(self, read: Read) -> Any:
        """Its value for each part, as numbers or as an expression."""
        total: Any = self.constant
        for factor, node in self.terms:
            total = total + factor * node.value(read)
        return total

    def moved(self, to: Callable[[int | None], int | None]) -> Function:
        """The same of other parts."""
        return Function.of(((c, node.moved(to)) for c, node in self.terms), self.constant)

    @property
    def leaves(self) -> tuple[Measure | Meets, ...]:
        """The measures in it."""
        return tuple(leaf for _, node in self.terms for leaf in node.leaves)

    @property
    def parts(self) -> set[int | None]:
        """The parts that it measures."""
        return {leaf.part for leaf in self.leaves}

    def only(self, *names: str) -> bool:
        """Whether it is a sum of measures of these names."""
        return all(isinstance(node, Measure) and node.name in names for _, node in self.terms)

    def __str__(self) -> str:
        texts = [f"{'' if c == 1 else f'{c:.6g} '}{node}" for c, node in self.terms]
        texts += [f"{self.constant:g}"] if self.constant or not texts else []
        return " + ".join(texts).replace("+ -", "- ")


class Rule(Declared):
    """Bounds on a function of each part, of one part, on its sum over all parts, or on a function of all.

    Attributes
    ----------
    scope : {"each", "one", "sum", "plan"}
        Its class, see the module.
    function : Function
        Of a part; for the scope ``plan`` its measures name their parts.
    lower, upper : float, optional
        Bounds, inclusive.
    part : int, optional
        The part, for the scope ``one``.
    """

    tag = "rule"

    scope: Scope
    function: Function
    lower: float = -np.inf
    upper: float = np.inf
    part: int | None = None

    @field_validator("lower", "upper", mode="before")
    @classmethod
    def _of_file(cls, value: Any, info: ValidationInfo) -> Any:
        return (-np.inf if info.field_name == "lower" else np.inf) if value is None else value

    @field_serializer("lower", "upper")
    def _to_file(self, value: float) -> float | None:
        return value if np.isfinite(value) else None

    def pieces(self) -> Iterator[Rule]:
        """The same rule of each part without the atoms ``abs`` and ``maximum``, where rows can replace it.

        A convex function has an upper bound only, and a concave one a lower bound: the language checks that.
        """
        for at, (factor, node) in enumerate(self.function.terms):
            if isinstance(node, Applied) and node.atom in ("abs", "maximum"):
                others = self.function.terms[:at] + self.function.terms[at + 1 :]
                for sign in (1.0, -1.0) if node.atom == "abs" else (1.0,):
                    for inner in node.arguments[0]:
                        more = [(sign * factor * c, n) for c, n in inner.terms]
                        constant = self.function.constant + sign * factor * inner.constant
                        yield from self.replace(function=Function.of([*others, *more], constant)).pieces()
                return
        yield self

    def excess(self, value: Any) -> Any:
        """By how much values are outside the bounds, 0 inside."""
        return np.maximum(np.maximum(self.lower - value, value - self.upper), 0.0)

    def __str__(self) -> str:
        where = {"each": "each part", "one": f"part {self.part}", "sum": "sum over parts", "plan": "plan"}
        low = "" if self.lower == -np.inf else f"{self.lower:.6g} <= "
        high = "" if self.upper == np.inf else f" <= {self.upper:.6g}"
        return f"{where[self.scope]}: {low}{self.function}{high}"

    def __repr__(self) -> str:
        return f"<rule, {self}>"


class Goal(Declared):
    """A sum over all parts of a function of a part, to minimize or to maximize.

    Attributes
    ----------
    function : Function
        Of a part.
    sense : {"min", "max"}, default "min"
        Whether less or more of the sum is better.
    """

    tag = "goal"

    function: Function
    sense: Literal["min", "max"] = "min"

    @property
    def turned(self) -> Goal:
        """The same goal in the other sense: the sum has the other sign."""
        function = Function.of(((-c, n) for c, n in self.function.terms), -self.function.constant)
        return Goal(function=function, sense="max" if self.sense == "min" else "min")

    def __str__(self) -> str:
        return f"{self.sense} sum over parts: {self.function}"


for _node in (Meets, Applied, Function, Rule, Goal):
    _node.model_rebuild()


class Parts(Model):
    """The measures of the parts of a decision as columns of a model, to write rules in.

    Parameters
    ----------
    problem : OfParts
        Whose parts they are.

    Notes
    -----
    Continuous variables of the model that are no measures, such as the level of a fairness notion, may take
    any value; they are eliminated from the rules.
    """

    def __init__(self, problem: OfParts) -> None:
        super().__init__(f"parts of {type(problem).__name__}")
        self._problem = problem
        self._nodes: dict[int, Node] = {}
        self._made: dict[Node, Variable] = {}

    def measure(self, name: str, of: str = "") -> Variable:
        """The values of a measure, one for each part.

        Parameters
        ----------
        name : str
            A measure of the problem.
        of : str, default ""
            What it measures.
        """
        return self._column(Measure(name=name, of=of), *self._problem.check_measure(name, of))

    def meets(self, constraint: Constraint) -> Expression:
        """1 for each part that satisfies a constraint, else 0.

        Parameters
        ----------
        constraint : Constraint
            With a row for each part, on this part alone, and the same for all; with one bound or two.

        Returns
        -------
        Expression
            One element for each part; their sum is the number of parts that satisfy it.

        Raises
        ------
        DeclarationError
            For any other constraint.
        """
        found = self.rules(constraint)
        if len(found) != 1 or found[0].scope != "each":
            raise DeclarationError("meets takes a constraint with the same row for each part, on it alone")
        rule, total = found[0], self.lift(np.zeros(self._problem.part_count))
        for sign, bound in ((1.0, rule.lower), (-1.0, -rule.upper)):
            if np.isfinite(bound):
                turned = [(sign * c, n) for c, n in rule.function.terms]
                function = Function.of(turned, sign * rule.function.constant)
                total = total + self._column(Meets(function=function, least=bound), 0.0, 1.0) - 1.0
        return total + 1.0

    def goal(self, expression: Expression, sense: Literal["min", "max"] = "min") -> Goal:
        """Read an expression as a sum over all parts of a function of a part.

        Parameters
        ----------
        expression : Expression
            A scalar of this model; convex to be minimized, concave to be maximized.
        sense : {"min", "max"}, optional
            Whether less or more is better.

        Returns
        -------
        Goal

        Raises
        ------
        DeclarationError
            If it is no sum over all parts of the same function of each.
        """
        count = self._problem.part_count
        found = self.rules(expression <= 0 if sense == "min" else expression >= 0)
        if [rule.scope for rule in found] != (["sum"] if count > 1 else ["each"]):
            raise DeclarationError("an objective is a sum over all parts of the same function of each")
        (rule,) = found
        constant = -(rule.upper if sense == "min" else rule.lower) / count
        return Goal(function=Function.of(rule.function.terms, rule.function.constant + constant), sense=sense)

    def _column(self, node: Node, lower: float, upper: float) -> Variable:
        if node not in self._made:
            name = self.unused_name(str(node))
            made = self.variable(name, self._problem.part_count, lower=lower, upper=upper)
            self._made[node] = made
            for part in range(self._problem.part_count):
                self._nodes[made.start + part] = node.moved(lambda _, part=part: part)  # type: ignore[misc]
        return self._made[node]

    def rules(self, *constraints: Any) -> tuple[Rule, ...]:
        """Read constraints on the columns as rules, and class them.

        Parameters
        ----------
        *constraints : Constraint or list of Constraint
            Of this model.

        Returns
        -------
        tuple of Rule

        Raises
        ------
        DeclarationError
            For another model's constraint, a condition that is no row, or an integer variable of one's own.
        """
        flat = [c for item in constraints for c in (item if isinstance(item, list | tuple) else [item])]
        for item in flat:
            if not isinstance(item, Constraint):
                raise DeclarationError(f"a rule is made of comparisons, and {item!r} is none")
            if item.model is not self:
                raise DeclarationError(f"{item!r} belongs to another model than these parts")
            item.check("a rule")
        read = [
            (*item.row_bounds(), item.expression.linear_rows().matrix(self.column_count)) for item in flat
        ]
        lows, highs, matrices = zip(*read, strict=True)
        matrix = sp.csr_array(sp.vstack(matrices, format="csr"))
        rows = (matrix, np.concatenate(lows), np.concatenate(highs))
        for column in np.unique(matrix.indices).tolist():
            if column not in self._nodes and self.block_of(column).curvature == 0:
                rows = self._without(rows, column)
        return tuple(self._classed([self._row(rows, i) for i in range(rows[0].shape[0])]))

    def _without(self, rows: Any, column: int) -> Any:
        columns = self.columns()
        if columns.integer[column]:
            name = self.column_name(column)
            raise DeclarationError(f"a rule may have no integer variable of its own, such as {name}")
        return eliminate(rows, column, float(columns.lower[column]), float(columns.upper[column]))[0]

    def _row(self, rows: Any, row: int) -> tuple[Function, float, float]:
        matrix, low, high = rows
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        return self._sum(matrix.indices[part], matrix.data[part], 0.0), float(low[row]), float(high[row])

    def _sum(self, columns: Array, factors: Array, constant: float) -> Function:
        terms = [(float(c), self._node(int(j))) for j, c in zip(columns, factors, strict=True) if c]
        return Function.of(terms, constant)

    def _node(self, column: int) -> Node:
        """The node whose value a column holds: a measure, or an atom of functions."""
        if column not in self._nodes:
            block = self.block_of(column)
            relation: AtomRelation | None = self._atoms.get(block.start)
            if relation is None:
                raise DeclarationError(f"{self.column_name(column)} inside an atom is no measure of a part")
            at = column - block.start
            arguments = tuple(self._functions(a, at, relation.atom) for a in relation.arguments)
            if relation.parameter is not None and not isinstance(relation.parameter, int | float):
                raise DeclarationError(f"a rule does not take {relation.atom.name} with this parameter")
            made = Applied(atom=relation.atom.name, arguments=arguments, parameter=relation.parameter)
            self._nodes[column] = made.moved(lambda p: p)
        return self._nodes[column]

    def _functions(self, argument: Expression, at: int, atom: Atom) -> tuple[Function, ...]:
        entries = argument[at].ravel() if argument.ndim > 1 else argument[at : at + 1]
        rows, constants = entries.linear_rows(), np.broadcast_to(entries.constant, entries.shape)
        found = []
        for i in range(entries.size):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            found.append(self._sum(rows.indices[part], rows.data[part], float(constants[i])))
        return tuple(found)

    def _classed(self, rows: Sequence[tuple[Function, float, float]]) -> Iterator[Rule]:
        """The classes of rows; rows that are the same of every part are one rule."""
        every = set(range(self._problem.part_count))
        alone: dict[tuple[Function, float, float], set[int]] = {}
        for function, low, high in rows:
            of = {d for d in function.parts if d is not None}
            if len(of) == 1:
                alone.setdefault((function.moved(lambda _: None), low, high), set()).update(of)
            elif (summed := _summed(function, every)) is not None:
                yield Rule(scope="sum", function=summed, lower=low, upper=high)
            else:
                yield Rule(scope="plan", function=function, lower=low, upper=high)
        for (function, low, high), of in alone.items():
            if of == every:
                yield Rule(scope="each", function=function, lower=low, upper=high)
            else:
                for part in sorted(of):
                    yield Rule(scope="one", function=function, lower=low, upper=high, part=part)


class OfParts(Problem):
    """A problem whose decisions consist of parts, on which a user may state rules.

    A subclass gives `part_count`, `parts` and `check_measure`, and its methods name the classes of rules that
    they take: ``@MyProblem.algorithm("greedy", rules=("each", "sum"))``.

    Attributes
    ----------
    rules : tuple of Rule
        See `subject_to`.
    """

    _parts: ClassVar[type[Parts]] = Parts

    rules: tuple[Rule, ...] = Field(default=(), kw_only=True)

    @property
    @abstractmethod
    def part_count(self) -> int:
        """The number of parts."""

    @abstractmethod
    def check_measure(self, name: str, of: str) -> tuple[float, float]:
        """Check that parts have a measure, and give bounds on it."""

    def parts(self) -> Any:
        """A model of the parts of a decision, to write rules in; see `subject_to`."""
        return self._parts(self)

    def subject_to(self, *constraints: Any) -> Self:
        """Give the same problem with further rules on the parts of a decision.

        Parameters
        ----------
        *constraints : Constraint or list of Constraint
            On the columns of one model that `parts` gave.

        Returns
        -------
        Self
            Its `rules` hold the classes of the constraints.

        Raises
        ------
        DeclarationError
            For a constraint that is no rule on parts.
        """
        first = next(iter(constraints[0] if isinstance(constraints[0], list) else constraints))
        model = getattr(first, "model", None)
        if not isinstance(model, Parts):
            raise DeclarationError("subject_to takes constraints on the columns of parts(), not others")
        return self.replace(rules=(*self.rules, *model.rules(*constraints)))

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """The rules of all kinds of constraints that it has."""
        return self.rules


def _summed(function: Function, every: set[int]) -> Function | None:
    """The function of a part whose sum over all parts this is; None if there is none."""
    by_part: dict[int | None, list[tuple[float, Node]]] = {}
    for factor, node in function.terms:
        parts = {leaf.part for leaf in node.leaves}
        if len(parts) != 1:
            return None
        by_part.setdefault(parts.pop(), []).append((factor, node.moved(lambda _: None)))
    functions = {Function.of(terms) for terms in by_part.values()}
    return functions.pop() if set(by_part) == every and len(functions) == 1 else None


def _at(part: int | None) -> str:
    return "" if part is None else f"[{part}]"


def _last_axis(values: Sequence[Any]) -> Any:
    if any(isinstance(v, Expression) for v in values):
        shape = np.broadcast_shapes(*(np.shape(v) for v in values))
        return stack([v if np.shape(v) == shape else v + np.zeros(shape) for v in values], axis=-1)
    return np.stack(np.broadcast_arrays(*values), axis=-1)


class Quotient:
    """A quotient of two measures, the second not negative, to compare with numbers.

    Parameters
    ----------
    over, under : Expression
        Of a model of parts.
    """

    def __init__(self, over: Expression, under: Expression) -> None:
        self.over, self.under = over, under

    def __ge__(self, bound: float) -> Constraint:
        return self.over - bound * self.under >= 0

    def __le__(self, bound: float) -> Constraint:
        return self.over - bound * self.under <= 0

    def between(self, lower: float, upper: float) -> list[Constraint]:
        """Both bounds, inclusive."""
        return [self >= lower, self <= upper]
