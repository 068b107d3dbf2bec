"""A model on its way to a program: bridges add columns, rows and relations to it; their registry."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from forcopt.arrays import Array, describe_entry
from forcopt.errors import UnboundedExpressionError
from forcopt.language.columns import Growing, consecutive, integral, interval
from forcopt.language.constraint import Condition, Constraint
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.relations import AtomRelation, Multiplication, ParameterProduct, Product, only_columns
from forcopt.language.terms import Gather, mark

Rewrite = Callable[[Any, "BridgeContext"], None]


@dataclass(frozen=True)
class Bridge:
    """Rewrites one kind of relation into others.

    Attributes
    ----------
    name : str
        The name that ``s.bridges`` shows.
    takes : str
        The kind it rewrites.
    gives : tuple[str, ...]
        The kinds it leaves behind; ``rows`` for linear rows.
    rewrite : Rewrite
        Called with the relation and the draft to write to.
    cost : float, default 1.0
        How reluctantly it is used; the compiler takes the cheapest chain.
    """

    name: str
    takes: str
    gives: tuple[str, ...]
    rewrite: Rewrite
    cost: float = 1.0


_BRIDGES: dict[str, Bridge] = {}


def bridge(takes: str, gives: tuple[str, ...] = ("rows",), cost: float = 1.0) -> Callable[[Rewrite], Rewrite]:
    """Register a function as the bridge of its name.

    Parameters
    ----------
    takes : str
        The kind it rewrites.
    gives : tuple[str, ...], default ("rows",)
        The kinds it leaves behind.
    cost : float, default 1.0
        See `Bridge`.

    Returns
    -------
    Callable[[Rewrite], Rewrite]
        A decorator that registers the function and returns it.

    Examples
    --------
    >>> @bridge("sketch", gives=("rows",), cost=2.0)
    ... def sketch_rows(relation, context): ...
    >>> _BRIDGES.pop("sketch_rows").takes
    'sketch'
    """

    def register(rewrite: Rewrite) -> Rewrite:
        name = rewrite.__name__
        _BRIDGES[name] = Bridge(name, takes, gives, rewrite, cost)
        return rewrite

    return register


def bridges() -> list[Bridge]:
    """All registered bridges.

    Returns
    -------
    list[Bridge]
        In the order of their registration.

    Examples
    --------
    >>> from forcopt.compile.bridges import bridges
    >>> any(b.takes == "abs" for b in bridges())
    True
    """
    return list(_BRIDGES.values())


def _relations_behind(model: Model, constraints: Sequence[Constraint], chosen: Collection[Any]) -> list[Any]:
    """The chosen conditions of a model, and the atoms and products that they or the constraints read."""
    used = np.zeros(model.column_count, dtype=bool)
    for constraint in constraints:
        mark(constraint.expression.terms, used)
    needed: list[Any] = []
    for relation in reversed(model.relations):  # an argument's columns are older than the result's
        if isinstance(relation, Condition):
            if not any(relation is item for item in chosen):
                continue
        elif not used[relation.result_columns].any():
            continue
        needed.append(relation)
        for operand in relation.operands:
            mark(operand.terms, used)
    return needed[::-1]


_EPS = float(np.finfo(float).eps)

_EXACT = 2.0**53
"""Sums of whole numbers up to this size are not rounded."""

_FINE = 2.0**20
"""Sums of multiples of its inverse are exact, too, up to an accordingly smaller size."""


def adds_exactly(*numbers: Array) -> bool:
    """Whether sums of a few of these numbers are not rounded."""
    return all(
        bool((_FINE * v == np.round(_FINE * v)).all())
        and float(np.abs(v).max(initial=0.0)) < _EXACT / _FINE / 8
        for v in map(np.asarray, numbers)
    )


def _rounding(expression: Expression, lower: Array, upper: Array) -> Array:
    """A bound on the rounding errors of the interval of each element; 0 where whole numbers are added."""
    rows = expression.linear_rows()
    reach = np.maximum(np.abs(lower), np.abs(upper))[rows.indices]
    terms = np.abs(rows.data) * np.where(np.isfinite(reach), reach, 0.0)
    owner = np.repeat(np.arange(expression.size), np.diff(rows.indptr))
    constant = np.abs(expression.constant).reshape(-1)
    size = constant + np.bincount(owner, terms, expression.size)
    ends = [np.where(np.isfinite(e[rows.indices]), e[rows.indices], 0.0) * rows.data for e in (lower, upper)]
    broken = np.bincount(owner, sum(e != np.round(e) for e in ends), expression.size)
    whole = (broken == 0) & (constant == np.round(constant)) & (size < _EXACT)
    return np.where(whole, 0.0, 2.0 * _EPS * (np.diff(rows.indptr) + 2) * size).reshape(expression.shape)


def _widened(constraint: Constraint) -> Constraint:
    """Return the rows with bounds moved apart by the possible rounding error of constants and sums."""
    expression = constraint.expression
    rows, constant = expression.linear_rows(), np.abs(expression.constant).reshape(-1)
    size = constant.copy()
    np.maximum.at(size, np.repeat(np.arange(len(constant)), np.diff(rows.indptr)), np.abs(rows.data))
    slack = (8.0 * _EPS * size).reshape(expression.shape)
    return Constraint(expression, constraint.lower - slack, constraint.upper + slack)


class BridgeContext:
    """The partial program that bridges write to.

    Attributes
    ----------
    model : Model
        Is not changed.
    constraints : list of Constraint
        The linear rows that are compiled.
    relations : list
        Still to be rewritten or taken by the backend.
    outward : bool
        Whether intervals are widened by their rounding errors.
    products : list of ParameterProduct
        Into which the values of parameters are put when all else is written.
    rows
        Rows that bridges added.
    applied
        Names of the bridges applied, each once.
    convex
        Whether no product needs a solver of nonconvex programs.
    relaxed
        Whether a relaxation stands for products.
    searched
        Whether columns must be integer; only then helper columns get bounds, see `reach`.
    """

    def __init__(
        self,
        model: Model,
        only_integer: bool = False,
        only: Collection[Constraint | Condition] | None = None,
        outward: bool = False,
        mccormick: int = 0,
    ) -> None:
        columns = model.columns()
        self.model = model
        self.outward = outward
        self.constraints = list(model.constraints)
        self.relations: list[Any] = []
        if only is None:
            self.relations += model.needed_relations()
        else:
            self.constraints = [c for c in only if isinstance(c, Constraint)]
            self.relations += _relations_behind(model, self.constraints, only)
        self.products = [r for r in self.relations if isinstance(r, ParameterProduct)]
        if self.products:
            self.relations = [r for r in self.relations if not isinstance(r, ParameterProduct)]
        self.convex = not any(isinstance(r, Multiplication) for r in self.relations)
        self.relaxed = mccormick > 0 and not self.convex
        if self.relaxed:
            self.relations = [
                replace(r, pieces=mccormick) if isinstance(r, Multiplication) else r for r in self.relations
            ]
        self.rows: list[Constraint] = []
        self.applied: dict[str, None] = {}
        self.searched = (
            only_integer
            or bool((columns.integer == 1).any())
            or any(not isinstance(r, AtomRelation) or r.atom.curvature == 0 for r in self.relations)
        )
        lower, upper = model.ranges() if self.searched else (columns.lower, columns.upper)
        integer = columns.integer
        unread = model.unused_columns()
        if unread.size:
            lower, upper, integer = lower.copy(), upper.copy(), integer.copy()
            lower[unread] = upper[unread] = 0.0
            integer[unread] = 2
        self._lower, self._upper, self._integer = Growing(lower), Growing(upper), Growing(integer)
        self._added: list[tuple[int, str, tuple[int, ...]]] = []

    @property
    def lower(self) -> Array:
        """Lower bounds of all columns, the model's own first."""
        return self._lower.view

    @property
    def upper(self) -> Array:
        """Upper bounds of all columns."""
        return self._upper.view

    @property
    def integer(self) -> Array:
        """Which columns are integer, see `forcopt.language.columns.Columns`."""
        return self._integer.view

    def column(
        self,
        label: str,
        shape: int | tuple[int, ...],
        lower: Any = -np.inf,
        upper: Any = np.inf,
        *,
        integer: bool = False,
        implied_integer: bool = False,
    ) -> Expression:
        """Add columns and give the expression that reads them.

        Parameters
        ----------
        label : str
            For names in files and messages.
        shape : int | tuple[int, ...]
            Of the expression.
        lower, upper
            Numbers that broadcast to the shape.
        integer : bool, default False
            Only integers.
        implied_integer : bool, default False
            Integer at some optimum, without the demand (an implied integer).
        """
        full = (shape,) if isinstance(shape, int) else shape
        start = len(self.lower)
        self._lower.extend(full, lower)
        self._upper.extend(full, upper)
        self._integer.extend(full, 1 if integer else 2 if implied_integer else 0)
        self._added.append((start, label, full))
        return Expression(self.model, full, (consecutive(start, full),), np.zeros(()))

    def columns_of(
        self, expression: Expression, label: str, lower: Array, upper: Array, *, integer: bool = False
    ) -> Array:
        """A column equal to each element of an expression: its own, or a new one within the bounds; flat.

        Columns that parameters determine are none of its own, since their values are put in later.
        """
        term = expression.terms[0] if len(expression.terms) == 1 else None
        if (
            isinstance(term, Gather)
            and term.width == 1
            and (term.values == 1).all()
            and not expression.constant.any()
            and not (integer and (self.integer[term.columns] != 1).any())
            and not any(np.isin(term.columns, given).any() for given in self._given())
        ):
            return np.broadcast_to(term.columns, (*expression.shape, 1)).reshape(-1)
        whole = not integer and self.is_integral(expression)
        made = self.column(label, expression.shape, lower, upper, integer=integer, implied_integer=whole)
        self.row(made == expression)
        return only_columns(made)

    def _given(self) -> Iterator[Array]:
        """The columns that parameters determine."""
        if self.model.parameters:
            yield self.model.parameter_values()[0]
            yield from (product.result_columns for product in self.products)

    def row(self, *constraints: Constraint, rounded: bool = False) -> None:
        """Add rows. If they are `rounded`, their constants may be off by rounding."""
        self.rows += map(_widened, constraints) if rounded and self.outward else constraints

    def relation(self, *relations: Any) -> None:
        """Add relations, for the backend or a further bridge."""
        self.relations += relations

    def interval(self, expression: Expression) -> tuple[Array, Array]:
        """Bounds on each element of an expression."""
        low, high = interval(expression, self.lower, self.upper)
        if not self.outward:
            return low, high
        slack = _rounding(expression, self.lower, self.upper)
        return low - slack, high + slack

    def reach(self, expression: Expression) -> tuple[Array, Array]:
        """Return bounds for helper columns: the expression's in a search, else infinite ones.

        A search needs them; in a continuous program they would only take over the variables' reduced costs.
        """
        if self.searched:
            return self.interval(expression)
        return np.full(expression.shape, -np.inf), np.full(expression.shape, np.inf)

    def greatest(self, expression: Expression, bridge: str) -> Array:
        """The upper ends of `interval`, where a bridge needs them finite.

        Raises
        ------
        UnboundedExpressionError
            Naming the first column that lacks a bound, and which.
        """
        upper = self.interval(expression)[1]
        if not np.isfinite(upper).all():
            element = expression[np.unravel_index(int(np.argmax(~np.isfinite(upper))), expression.shape)]
            column, side = self._unbounded(element)
            kind = "parameter" if column in self.model.parameter_values()[0] else "variable"
            raise UnboundedExpressionError(
                f"{bridge} needs bounds on {element._short()}: {kind} {self.name_of(column)} has no {side} "
                "bound; give it one, or use a backend that takes the constraint as it is"
            )
        return upper

    def _unbounded(self, element: Expression) -> tuple[int, str]:
        """The first column that lets a scalar grow without limit, and the bound that it lacks.

        For the result of an atom or a product it is an unbounded column of its operands, if there is one.
        """
        rows = element.linear_rows()
        bounds = np.where(rows.data > 0, self.upper[rows.indices], self.lower[rows.indices])
        first = int(np.argmax(~np.isfinite(bounds)))
        column, sign = int(rows.indices[first]), 1 if rows.data[first] > 0 else -1
        for source in self._sources(column, sign):
            if not np.isfinite(self.interval(source)[1]):
                return self._unbounded(source)
        return column, "upper" if sign > 0 else "lower"

    def _sources(self, column: int, sign: int) -> Iterator[Expression]:
        """The scalars whose growth makes a column of an atom or a product grow (or fall, if `sign` is -1)."""
        for relation in self.model.relations:
            if isinstance(relation, AtomRelation | Product) and column in relation.result_columns:
                at = int(np.flatnonzero(relation.result_columns == column)[0])
                monotone = relation.atom.monotone if isinstance(relation, AtomRelation) else (2, 2)
                for operand, direction in zip(relation.operands, monotone, strict=True):
                    element = (operand[at] if operand.ndim else operand).ravel()
                    for s in {1: (sign,), -1: (-sign,), 2: (1, -1), 0: ()}[direction]:
                        yield from s * element

    def finite_interval(self, expression: Expression, bridge: str) -> tuple[Array, Array]:
        """Both ends of `interval`, where a bridge needs them finite; errors as `greatest`."""
        return -self.greatest(-expression, bridge), self.greatest(expression, bridge)

    def is_integral(self, expression: Expression) -> bool:
        """Whether all elements can only take integer values."""
        return self.searched and bool(integral(expression, self.integer > 0).all())

    def name_of(self, column: int) -> str:
        """Name a column of the model or one that a bridge added."""
        if column < self.model.column_count:
            return self.model.column_name(column)
        start, label, shape = self._added[bisect_right(self._added, column, key=itemgetter(0)) - 1]
        return f"{label}@{start}" + describe_entry(shape, column - start).replace(" ", "")
