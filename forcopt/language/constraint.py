"""Constraints: rows of affine expressions within bounds, and conditions, which bridges rewrite."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from forcopt.arrays import Array, as_bounds, as_numbers, broadcast_shapes, check_order, describe_entry
from forcopt.clock import Deadline
from forcopt.errors import CurvatureError, DeclarationError, Guarded, counterpart
from forcopt.language.alignment import Arrangement, aligned
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes, Axis
from forcopt.language.scalar import is_single_row, single_rows

if TYPE_CHECKING:
    import networkx as nx

    from forcopt.language.model import Model


Separator = Callable[[Callable[[Expression], Array]], Iterable["Constraint"]]
"""Takes a function that evaluates expressions at a point; yields the constraints that the point violates."""


_COUNTERPARTS = {
    **dict.fromkeys(("lb", "lhs", "minimum"), "c.lower"),
    **dict.fromkeys(("ub", "maximum"), "c.upper"),
    **dict.fromkeys(("pi", "dual", "dualvalue"), "s.dual(c) of s = m.solve()"),
    "slack": "s.slack(c) of s = m.solve()",
    "sense": "m.remove(c) and m.subject_to(...)",
    "expression": "m.remove(c) and m.subject_to(...)",
}
"""Names of other modelling languages, in small letters without underscores."""


def coefficients(expression: Expression, part: Any, subject: str) -> Array:
    """The coefficient of a variable in each element of an expression, see `Constraint.__getitem__`."""
    if not isinstance(part, Expression):
        raise DeclarationError(f"{subject}: the coefficient of a variable is asked for, not of {part!r}")
    (wide, _), _ = aligned([part, expression], subject)
    columns = expression.model.columns_of(wide.broadcast_to(expression.shape), subject)
    matrix = expression.linear_rows().matrix(expression.model.column_count)
    return np.asarray(matrix[np.arange(expression.size), columns]).reshape(expression.shape)


def with_coefficients(expression: Expression, part: Any, values: Any, subject: str) -> Expression:
    """The expression with other coefficients of a variable."""
    change = expression.aligned(values, subject) - coefficients(expression, part, subject)
    if change.shape != expression.shape:
        raise DeclarationError(f"{subject}: coefficients of shape {change.shape} for {expression.shape}")
    (wide, _), _ = aligned([part, expression], subject)
    out: Expression = expression + wide * as_numbers(change, subject)
    return out


class Constraint(Guarded):
    """Rows ``lower <= expression <= upper``; made by comparing expressions.

    A comparison moves all numbers to the right: the expression of ``x + 1 <= y + 3`` is ``x - y``, and its
    upper bound is 2, as the constraint shows itself. ``c[x]`` gives the coefficient of a variable in each
    row, and ``c[x] = 3`` changes it.

    Attributes
    ----------
    expression : Expression
        Affine, of any shape; one row for each element.
    lower, upper : Array
        Bounds that broadcast to the shape. Assigning changes the rows, also in a model that was solved.
    rhs : Array
        The only bound, or both where they are equal; may be assigned, too.
    name : str, default ""
        Given when it joins a model.
    start : int, default -1
        Its first row in the model, or -1 before it joins one.
    labels : Sequence[str], optional
        A name for each row, if they have their own.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2)
    >>> m.subject_to(x <= [1, 2], name="cap")
    <constraint cap of shape (2,): x[0] <= 1, ...>
    >>> (x.sum() >= 3).violation(m.point({x: 1})).item()
    1.0
    >>> m.maximize(x.sum())
    >>> m["cap"].rhs = [5, 2]
    >>> m.solve().objective
    7.0
    """

    __slots__ = ("_lower", "_magnitudes", "_upper", "expression", "labels", "name", "start")

    expression: Expression
    name: str
    start: int
    labels: Sequence[str] | None
    _lower: Array
    _upper: Array
    _magnitudes: tuple[Array, Array] | None
    _settable = frozenset(("lower", "upper", "rhs", "name", "labels", "start"))
    _hints = _COUNTERPARTS

    def __init__(
        self,
        expression: Expression,
        lower: Array,
        upper: Array,
        name: str = "",
        start: int = -1,
        labels: Sequence[str] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "expression", expression)
        put(self, "name", name)
        put(self, "start", start)
        put(self, "labels", labels)
        put(self, "_lower", lower)
        put(self, "_upper", upper)
        put(self, "_magnitudes", None)

    if not TYPE_CHECKING:  # type checkers still report a wrong name

        def __getattr__(self, name: str) -> Any:
            raise counterpart(self, name, _COUNTERPARTS)

    @property
    def lower(self) -> Array:
        """The lower bounds; assigned numbers (or a series or frame) broadcast to the shape."""
        return self._lower

    @lower.setter
    def lower(self, values: Any) -> None:
        self._rebound(values, self._upper)

    @property
    def upper(self) -> Array:
        """The upper bounds; assigned like `lower`."""
        return self._upper

    @upper.setter
    def upper(self, values: Any) -> None:
        self._rebound(self._lower, values)

    @property
    def rhs(self) -> Array:
        """The right-hand side of an equation or of rows with one bound.

        Raises
        ------
        DeclarationError
            If the rows have a lower and an upper bound that differ, or none.
        """
        return self._lower if self._one_sided() == ">=" else self._upper

    @rhs.setter
    def rhs(self, values: Any) -> None:
        sense = self._one_sided()
        self._rebound(values if sense != "<=" else self._lower, values if sense != ">=" else self._upper)

    def _one_sided(self) -> str:
        if self.sense in ("between", "free"):
            raise DeclarationError(
                f"constraint {self.name}: no equation, and not rows of one bound; write c.lower and c.upper"
            )
        return self.sense

    def rewrite(self, expression: Expression) -> None:
        """Give the rows another expression of the same shape, such as one with a new column.

        Parameters
        ----------
        expression : Expression
            Of the same model.

        Raises
        ------
        DeclarationError
            For another shape or model.
        CurvatureError
            If it does not fit the bounds; the rows stay as they were.
        """
        place, before = f"constraint {self.name}", self.expression
        self._check_whole()
        self.model.lift(expression, place)
        if expression.shape != self.shape:
            raise DeclarationError(f"{place}: an expression of shape {expression.shape} is no {self.shape}")
        put = object.__setattr__
        put(self, "expression", expression)
        try:
            self.check(place)
        except CurvatureError:
            put(self, "expression", before)
            raise
        self._magnitudes = None
        self.model.note_edit()

    def __getitem__(self, part: Expression) -> Array:
        """The coefficient of a variable in each row.

        Parameters
        ----------
        part : Expression
            A variable or a part of one, such as ``x[0]``, that broadcasts to the rows: each row has the
            coefficient of its own element. Assigning numbers changes them; the next solve compiles anew.

        Raises
        ------
        DeclarationError
            For any other expression, and for one that does not broadcast.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", 2, lower=0)
        >>> cap = m.subject_to(2 * x[0] + x[1] <= 8, name="cap")
        >>> cap[x[0]] = 4
        >>> cap, cap[x[1]].item()
        (<constraint cap of shape (): 4 x[0] + x[1] <= 8>, 1.0)
        """
        return coefficients(self.expression, part, f"constraint {self.name}")

    def __setitem__(self, part: Expression, values: Any) -> None:
        self.rewrite(with_coefficients(self.expression, part, values, f"constraint {self.name}"))

    def _check_whole(self) -> None:
        if self.start >= 0 and self.model._names.get(self.name) is not self:
            raise DeclarationError(f"{self.name} is a row of a constraint: change the constraint instead")

    def _rebound(self, lower: Any, upper: Any) -> None:
        """Give the rows other bounds."""
        self._check_whole()
        subject, before = f"constraint {self.name}: ", (self._lower, self._upper)
        aligned = self.expression.aligned
        low, high = as_bounds(aligned(lower, subject + "lower"), aligned(upper, subject + "upper"), subject)
        shape = broadcast_shapes([self.shape, low.shape, high.shape], subject.rstrip(": "))
        if shape != self.shape:
            raise DeclarationError(f"{subject}bounds of shape {shape} do not broadcast to {self.shape}")
        check_order(low, high, shape, subject.rstrip(": "))
        self._lower, self._upper, self._magnitudes = low, high, None
        try:
            self.check(subject.rstrip(": "))
        except CurvatureError:
            self._lower, self._upper = before
            raise
        self.model.note_edit()

    def row(self, place: int) -> Constraint:
        """One row as a constraint of its own, which shares its place in the model."""
        name = self.model.row_name(self.start + place) if self.start >= 0 else ""
        low, high = (np.broadcast_to(end, self.shape).reshape(-1)[place] for end in (self.lower, self.upper))
        start = self.start + place if self.start >= 0 else -1
        return Constraint(self.expression.ravel()[place], low, high, name, start)

    @property
    def model(self) -> Model:
        """The model of its variables."""
        return self.expression.model

    @property
    def shape(self) -> tuple[int, ...]:
        """One row for each element of this shape."""
        return self.expression.shape

    @property
    def sense(self) -> str:
        """One of ``==``, ``<=``, ``>=``, ``between`` (also if rows differ) and ``free``."""
        low, high = np.isfinite(self.lower).any(), np.isfinite(self.upper).any()
        if low and high:
            return "==" if np.array_equal(self.lower, self.upper) else "between"
        return ">=" if low else "<=" if high else "free"

    def row_bounds(self) -> tuple[Array, Array]:
        """The bounds of the linear part of each row, flat: the constant is moved to the right-hand side."""
        constant = self.expression.constant
        return (
            np.broadcast_to(self.lower - constant, self.shape).reshape(-1),
            np.broadcast_to(self.upper - constant, self.shape).reshape(-1),
        )

    def check(self, place: str) -> None:
        """Check that it bounds convex expressions from above and concave ones from below only.

        Parameters
        ----------
        place : str
            Where it stands, for the message.

        Raises
        ------
        CurvatureError
            Naming the atom and the place.
        """
        if self.model.is_linear:
            return
        has_lower, has_upper = bool(np.isfinite(self.lower).any()), bool(np.isfinite(self.upper).any())
        if has_lower or has_upper:
            self.model.check_curvature(self.expression, has_upper - has_lower, place)

    def violation(self, point: Array) -> Array:
        """By how much each row is violated at `point` (all columns' values); zero where it holds."""
        return np.asarray(np.maximum(*self._beyond(point)))

    def relative_violation(self, point: Array) -> Array:
        """The violation, divided by the size of that bound and the constant together where it is above 1."""
        below, above = self._beyond(point)
        if not (below.any() or above.any()):
            return np.asarray(below)
        if self._magnitudes is None:
            size = np.abs(self.expression.constant)
            low, high = (np.where(np.isfinite(b), np.abs(b) + size, 0.0) for b in (self.lower, self.upper))
            self._magnitudes = np.maximum(1.0, low), np.maximum(1.0, high)
        low, high = self._magnitudes
        return np.asarray(np.maximum(below / low, above / high))

    def _beyond(self, point: Array) -> tuple[Array, Array]:
        """By how much each row is below its lower bound, and above its upper bound."""
        value = self.expression.evaluate(point)
        with np.errstate(invalid="ignore"):  # outside an atom's domain the value may be infinite
            return np.maximum(self.lower - value, 0.0), np.maximum(value - self.upper, 0.0)

    @property
    def axes(self) -> Axes | None:
        """The names and labels of its axes."""
        return self.expression.axes

    def arranged(self, arrangement: Arrangement) -> Constraint:
        """The same rows in the places that an alignment chose for them."""
        move = arrangement.move(len(self.shape))
        bounds = (np.broadcast_to(bound, self.shape) for bound in (self.lower, self.upper))
        low, high = (move(bound[..., None])[..., 0] for bound in bounds)
        return Constraint(self.expression.arranged(arrangement), low, high)

    def broadcast_to(self, shape: tuple[int, ...]) -> Constraint:
        """The same rows, repeated along new or unit axes."""
        low, high = (np.broadcast_to(b, shape) for b in (self.lower, self.upper))
        return Constraint(self.expression.broadcast_to(shape), low, high)

    def __or__(self, other: Any) -> Any:
        from forcopt.language.logic import Disjunction, either

        groups = other.alternatives if isinstance(other, Disjunction) else [other]
        for constraint in [self, *(c for g in groups for c in (g if isinstance(g, list) else [g]))]:
            if getattr(constraint, "shape", None) != ():
                raise DeclarationError(
                    "| is for single rows; fo.either(a, b) asks for all rows of a or all of b, "
                    "fo.either(a, b, elementwise=True) for one of the two in each element"
                )
        return either(self, *groups)

    def __ror__(self, other: Any) -> Any:
        from forcopt.language.logic import either

        return either(other, self)

    def __and__(self, other: Any) -> list[Any]:
        return [self, *other] if isinstance(other, list) else [self, other]

    def __rand__(self, other: list[Any]) -> list[Any]:
        return [*other, self]

    def __bool__(self) -> bool:
        raise TypeError(
            "the truth of a constraint is known only after solving; "
            "a chained comparison such as 0 <= x <= 1 is x.between(0, 1)"
        )

    def __repr__(self) -> str:
        from forcopt.language.display import constraint_text

        label = f" {self.name}" if self.name else ""
        return f"<constraint{label} of shape {self.shape}: {constraint_text(self)}>"

    def _repr_latex_(self) -> str:
        from forcopt.language.display import constraint_latex

        return f"${constraint_latex(self)}$"


class GatheredRows(Constraint):
    """Constraints held as one: a run of single rows, or one constraint of any shape; see `gathered`."""

    __slots__ = ("members",)

    members: Sequence[Constraint]

    def __init__(self, members: Sequence[Constraint], *rows: Any) -> None:
        super().__init__(*rows)
        object.__setattr__(self, "members", members)


def gathered(constraints: Sequence[Constraint]) -> Iterator[GatheredRows]:
    """Join every run of single rows into one constraint, so that many rows cost as little as an array.

    Parameters
    ----------
    constraints : Sequence[Constraint]
        In order; the rows keep theirs.
    """
    for single, run in groupby(constraints, key=lambda c: is_single_row(c.expression)):
        members = list(run)
        if not single or len(members) < _MANY:
            for c in members:
                yield GatheredRows([c], c.expression, c.lower, c.upper, c.name, c.start, c.labels)
            continue
        expressions = [c.expression for c in members]
        constant = np.array([float(e.constant) for e in expressions])
        expression = Expression(members[0].model, (len(members),), (single_rows(expressions),), constant)
        lower = np.array([float(c.lower) for c in members])
        upper = np.array([float(c.upper) for c in members])
        yield GatheredRows(members, expression, lower, upper, "", members[0].start)


_MANY = 8
"""Fewer single rows than this are not joined."""


class Condition(ABC):
    """A demand on expressions that is not rows; a bridge rewrites it, or a backend takes it as it is.

    Subclass it to add one of your own: state its kind, the expressions that it reads, and by how much a point
    violates it.

    Attributes
    ----------
    kind : str
        The name that backends and bridges list.
    name : str, default ""
        Given when it joins a model.
    """

    kind: ClassVar[str]
    name: str = ""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions that it reads, at least one; by default those among its attributes."""
        return tuple(value for value in vars(self).values() if isinstance(value, Expression))

    @abstractmethod
    def violation(self, point: Array) -> Array | float:
        """By how much it is violated at `point` (all columns' values), relative to its size; else 0."""

    @property
    def model(self) -> Model:
        """The model of its variables."""
        return self.operands[0].model

    def check(self, place: str) -> None:
        """Check the expressions that it reads: affine ones only, unless a subclass allows others.

        Parameters
        ----------
        place : str
            Where it stands, for the message.

        Raises
        ------
        CurvatureError
            Naming the atom and the place.
        """
        for operand in self.operands:
            self.model.check_curvature(operand, 0, place)


@dataclass(eq=False)
class Implication(Condition):
    """If `condition` is 1, the constraint holds; made by `implies`.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> opened, made = m.variable("opened", binary=True), m.variable("made", lower=0, upper=9)
    >>> _ = m.subject_to(fo.implies(~opened, made <= 0))
    >>> m.maximize(made - 5 * opened)
    >>> s = m.solve()
    >>> s[made].item(), s[opened].item()
    (9.0, 1.0)
    """

    condition: Expression
    constraint: Constraint

    kind = "implication"

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The condition and the constraint's expression."""
        return (self.condition, self.constraint.expression)

    def violation(self, point: Array) -> Array:
        """The constraint's relative violation where the condition is 1."""
        return np.where(self.condition.evaluate(point) > 0.5, self.constraint.relative_violation(point), 0.0)

    def check(self, place: str) -> None:
        """Check the constraint as if it stood alone, and that a greater condition only demands more."""
        self.model.check_curvature(self.condition, 1, place)
        self.constraint.check(place)


@dataclass(eq=False)
class Connected(Condition):
    """The chosen nodes induce a connected subgraph; made by `connected`.

    Attributes
    ----------
    edges : Array
        Int array (number of edges, 2), positions of the end nodes in `member`.
    member : Expression
        Binary expression, shape (number of nodes,).

    Examples
    --------
    >>> import forcopt as fo
    >>> import networkx as nx
    >>> m = fo.Model()
    >>> chosen = m.variable("chosen", 4, binary=True)
    >>> _ = m.subject_to(fo.connected(nx.path_graph(4), chosen), chosen[0] + chosen[3] == 2)
    >>> m.minimize(chosen.sum())
    >>> m.solve()[chosen].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    edges: Array = field(repr=False)
    member: Expression

    kind = "connected"

    def pieces(self, point: Array) -> int:
        """Into how many connected pieces the chosen nodes fall at a point; 1 if none is chosen."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components

        chosen = self.member.evaluate(point) > 0.5
        inside = self.edges[chosen[self.edges].all(axis=1)]
        graph = sp.csr_array((np.ones(len(inside)), (inside[:, 0], inside[:, 1])), shape=(len(chosen),) * 2)
        _, label = connected_components(graph, directed=False)
        return max(len(set(label[chosen].tolist())), 1)

    def violation(self, point: Array) -> float:
        """How many pieces there are too many."""
        return float(self.pieces(point) - 1)


@dataclass(eq=False)
class Lazy:
    """A family of constraints too large to list, given by a separation oracle.

    Attributes
    ----------
    model, separate, name, exact
        See `Model.lazy`.
    deadline : Deadline
        Of the call of `separate`, which may raise `TimeoutError` once it has passed.
    withdrawn : bool
        `separate` sets it if a constraint that it gave before was wrong: then the solve begins anew.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0, upper=1)
    >>> _ = m.lazy(lambda values: [x.sum() <= 1] if values(x).sum() > 1 + 1e-6 else [])
    >>> m.maximize(2 * x[0] + x[1])
    >>> m.solve()[x].tolist()
    [1.0, 0.0]
    """

    model: Model
    separate: Separator
    name: str = ""
    exact: bool = True
    deadline: Deadline = field(default_factory=Deadline)
    withdrawn: bool = False

    kind = "lazy"


def implies(condition: Expression, constraint: Constraint) -> Implication:
    """Require `constraint` wherever the binary `condition` is 1.

    Parameters
    ----------
    condition : Expression
        Takes only the values 0 and 1 (a binary variable ``b``, or ``1 - b``); broadcasts to the shape of the
        constraint.
    constraint : Constraint
        Rows that then hold.

    Returns
    -------
    Implication
        A condition for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If `condition` is not binary or does not broadcast, or `constraint` is no constraint.

    Notes
    -----
    Backends without indicator rows need bounds on every variable of the constraint, see the bridge
    ``big_m``.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, b = m.variable("x", lower=0, upper=10), m.variable("b", binary=True)
    >>> _ = m.subject_to(fo.implies(b, x <= 3))
    >>> m.maximize(x + 5 * b)
    >>> m.solve().objective
    10.0
    """
    require_binary(condition, "the condition of implies")
    if not isinstance(constraint, Constraint):
        raise DeclarationError(f"implies(b, constraint) needs a constraint, not {constraint!r}")
    condition._same_model(constraint.expression)
    words = ["the constraint of implies", "the condition of implies"]
    (row, met), _ = aligned([constraint, condition], words)
    try:
        wide = met.broadcast_to(row.shape)
    except DeclarationError:
        raise DeclarationError(
            f"implies: the condition's shape {condition.shape} does not broadcast to {constraint.shape}"
        ) from None
    return Implication(wide, row)


def connected(graph: nx.Graph[Any], member: Expression) -> Connected:
    """Require the chosen nodes of a graph to induce a connected subgraph (none chosen is allowed).

    Parameters
    ----------
    graph : nx.Graph[Any]
        Undirected; its nodes in iteration order belong to the entries of `member`.
    member : Expression
        Binary expression of shape ``(number of nodes,)``; 1 for a chosen node.

    Returns
    -------
    Connected
        A condition for `Model.subject_to`.

    Raises
    ------
    DeclarationError
        If `member` is not binary or has another shape, or the graph is directed.

    Notes
    -----
    The bridge ``connected_flow`` rewrites it as a single-commodity flow from a root among the chosen nodes.

    Examples
    --------
    >>> import forcopt as fo, networkx as nx
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=5, binary=True)
    >>> _ = m.subject_to(fo.connected(nx.path_graph(5), x), x[0] == 1, x[4] == 1)
    >>> m.minimize(x.sum())
    >>> m.solve().objective
    5.0
    """
    require_binary(member, "the member expression of connected")
    if not hasattr(graph, "is_directed"):
        raise DeclarationError(f"connected: graph is a {type(graph).__name__}; it must be a networkx graph")
    if graph.is_directed():
        raise DeclarationError("connected: the graph is directed; it must be undirected: to_undirected()")
    place = {node: i for i, node in enumerate(graph.nodes)}
    if member.shape != (len(place),):
        raise DeclarationError(f"connected: member has shape {member.shape}, the graph {len(place)} nodes")
    if member.axes is not None and member.axes[0] is not None:
        order = Axis(list(place)).order_of(member.axes[0], "connected: member")
        member = member if order is None else member[order]
    pairs = [(place[a], place[b]) for a, b in graph.edges() if a != b]
    return Connected(np.array(pairs, dtype=np.intp).reshape(-1, 2), member)


def require_binary(expression: Any, subject: str) -> None:
    """Check that an expression can only be 0 or 1.

    Raises
    ------
    DeclarationError
        Naming the entry that could be something else.
    """
    if not isinstance(expression, Expression):
        raise DeclarationError(f"{subject} must be an expression of a binary variable, not {expression!r}")
    bad = ~is_binary(expression)
    if bad.any():
        at = int(np.argmax(bad))
        lower, upper = expression.model.span_of(expression)
        whole = expression.model.is_integral(expression)
        element = expression[np.unravel_index(at, expression.shape)]
        raise DeclarationError(
            f"{subject}{describe_entry(expression.shape, at)} must be binary: {element._short()} ranges over "
            f"[{lower.flat[at]:g}, {upper.flat[at]:g}]" + ("" if whole.flat[at] else " and is not integer")
        )


def is_binary(expression: Expression) -> Array:
    """Which elements can only be 0 or 1, by the types and bounds of their columns."""
    lower, upper = expression.model.span_of(expression)
    return np.asarray((lower >= 0) & (upper <= 1) & expression.model.is_integral(expression))
