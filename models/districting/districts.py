"""Measures of districts, rules on them, and these rules in exact integers for the methods."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, lcm
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_fraction
from forcopt.errors import DeclarationError, check_known
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.models.districting.tolerances import LESS, RULE
from forcopt.problem.parts import Function, Measure, Meets, Parts, Quotient, Rule

if TYPE_CHECKING:
    from forcopt.models.districting.problem import Districting

SCORES = ("polsby_popper", "inverse_polsby_popper", "schwartzberg")
"""Measures of compactness: ratios of areas and perimeters."""

_COMPACT = tuple(name.replace("_", "-") for name in SCORES)
OBJECTIVES = ("cut", "inertia", "deviation", "splits", "least-change", *_COMPACT)
CUT, INERTIA, DEVIATION, SPLITS, LEAST_CHANGE, POLSBY_POPPER, INVERSE, SCHWARTZBERG = range(8)
"""Their numbers, for compiled code."""

SUMS = ("total", "nodes")
"""Measures that are sums over the nodes of a district."""

MEASURES = (*SUMS, "cut", "cut_edges", "perimeter", "units", "area", *SCORES)

_FAR = 2**62
"""Stands for a bound that is infinite."""

_BITS = 2**52
"""Weights that are no short decimals are rounded to integers with sums up to this."""


class District:
    """The measures of one district, or of all districts as arrays.

    Parameters
    ----------
    parts : Districts
        The model of the measures.
    number : int, optional
        Which district; all by default.
    """

    def __init__(self, parts: Districts, number: int | None = None) -> None:
        self.parts, self.number = parts, number

    def _of(self, name: str, of: str = "") -> Expression:
        measure = self.parts.measure(name, of)
        return measure if self.number is None else measure[self.number]

    def total(self, attribute: str) -> Expression:
        """The sum of a node attribute: decimal numbers."""
        return self._of("total", attribute)

    def share(self, attribute: str, total: str) -> Quotient:
        """The sum of one node attribute over that of another, to compare with numbers."""
        return Quotient(self.total(attribute), self.total(total))

    @property
    def population(self) -> Expression:
        """The number of people."""
        return self.total(self.parts._problem.population)

    @property
    def nodes(self) -> Expression:
        """The number of nodes."""
        return self._of("nodes")

    @property
    def cut(self) -> Expression:
        """The cost of the edges that leave the district; a cut edge leaves two districts."""
        return self._of("cut")

    @property
    def cut_edges(self) -> Expression:
        """The number of adjacent pairs of nodes of which one lies in the district."""
        return self._of("cut_edges")

    @property
    def perimeter(self) -> Expression:
        """The length of the border, by ``boundary_perim`` of nodes and ``shared_perim`` of edges."""
        return self._of("perimeter")

    @property
    def area(self) -> Expression:
        """The sum of ``area`` of the nodes."""
        return self._of("area")

    @property
    def polsby_popper(self) -> Expression:
        """4 pi times the area over the square of the perimeter: 1 for a disc, less for others."""
        return self._of("polsby_popper")

    @property
    def inverse_polsby_popper(self) -> Expression:
        """1 over the Polsby-Popper score."""
        return self._of("inverse_polsby_popper")

    @property
    def schwartzberg(self) -> Expression:
        """The perimeter over that of a disc of the same area."""
        return self._of("schwartzberg")

    def units(self, attribute: str = "county") -> Expression:
        """The number of counties (or other units) that it meets."""
        return self._of("units", attribute)


class Districts(Parts):
    """The districts of a plan, to write rules in; see `Districting.parts`.

    Examples
    --------
    >>> import forcopt as fo
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> g = grid(2, 4)
    >>> for v in g:
    ...     g.nodes[v].update(old=v % 4, young=3 - v % 4)
    >>> p = Districting(g, districts=2, tolerance=0)
    >>> plan = p.parts()
    >>> near = plan.districts.total("old") - plan.districts.total("young")
    >>> even = p.subject_to(fo.abs(near) <= 2)
    >>> p.solve().objective, even.solve().objective, even.rules[0].scope
    (2.0, 4.0, 'each')
    """

    _problem: Districting

    @property
    def districts(self) -> District:
        """All districts: each measure has one element for each."""
        return District(self)

    def district(self, number: int) -> District:
        """One district.

        Parameters
        ----------
        number : int
            From 0 on.

        Raises
        ------
        DeclarationError
            For a number that is too large.
        """
        if not 0 <= number < self._problem.districts:
            raise DeclarationError(f"district {number}: it must be below {self._problem.districts}")
        return District(self, number)


class Row(NamedTuple):
    """A district S satisfies a row if ``low <= sum of weights over S <= high``, in integers."""

    weights: Array
    low: int
    high: int

    def with_vertex(self, v: int) -> Row:
        """The row that a district satisfies if it satisfies this one and holds a vertex."""
        most, weights = int(np.abs(self.weights).sum()), self.weights.copy()
        far = 2 * most + 1  # no district without the vertex reaches it
        weights[v] += far
        low, high = max(self.low, -most), min(self.high, most)
        return Row(weights, min(low, most + 1) + far, max(high, -most - 1) + far)

    def holds(self, sets: Array) -> Array:
        """For each district, given as bits."""
        sums = sets @ self.weights
        return np.asarray((sums >= self.low) & (sums <= self.high))


class Counted(NamedTuple):
    """Rows, and how many districts must satisfy each."""

    weights: Array
    """Shape (r, n); so the others: (r,)."""
    low: Array
    high: Array
    least: Array
    most: Array

    def reordered(self, order: Any) -> Counted:
        """The same rows over the nodes in another order."""
        return self._replace(weights=np.ascontiguousarray(self.weights[:, order]))


def no_rows(n: int) -> Counted:
    """None, over n nodes."""
    none = np.zeros(0, np.int64)
    return Counted(np.zeros((0, n), np.int64), none, none, none, none)


def row_of(problem: Districting, function: Function, lower: float, upper: float) -> Row:
    """Write bounds on a sum over the nodes of a district in integers.

    Parameters
    ----------
    problem : Districting
        With the attributes.
    function : Function
        Of measures in `SUMS`.
    lower, upper : float
        Inclusive bounds; read, like the coefficients, from their decimal digits.

    Returns
    -------
    Row
        Exact if all numbers are short decimals. Otherwise weights are rounded to 52 bits of their sum, and
        the bounds loosened by half a unit for each node.
    """
    weights = [Fraction(0)] * len(problem.nodes)
    for factor, node in function.terms:
        assert isinstance(node, Measure)
        by = as_fraction(factor, "decimal")
        column = problem.column(node.of) if node.name == "total" else [Fraction(1)] * len(weights)
        weights = [w + by * x for w, x in zip(weights, column, strict=True)]
    constant = as_fraction(function.constant, "decimal")
    ends = [
        Fraction(np.clip(b, -_FAR, _FAR)) if np.isinf(b) else as_fraction(b, "decimal") - constant
        for b in (lower, upper)
    ]
    size = sum((abs(w) for w in weights), Fraction(0))
    scale, loose = Fraction(lcm(*(x.denominator for x in [*weights, *ends]))), Fraction(0)
    if size * scale >= _BITS:
        scale, loose = _BITS / size, Fraction(len(weights), 2)
    low, high = (min(max(e * scale, Fraction(-_FAR)), Fraction(_FAR)) for e in ends)
    whole = np.array([round(w * scale) for w in weights], np.int64)
    return Row(whole, ceil(low - loose), floor(high + loose))


def rows_of(problem: Districting, rule: Rule | Meets) -> list[Row] | None:
    """The rows that a rule on a district is; None if it is not linear in sums over its nodes."""
    if isinstance(rule, Meets):
        rule = Rule(scope="each", function=rule.function, lower=rule.least)
    pieces = list(rule.pieces())
    if not all(piece.function.only(*SUMS) for piece in pieces):
        return None
    return [row_of(problem, piece.function, piece.lower, piece.upper) for piece in pieces]


def reader(problem: Districting, sets: Array) -> Callable[[Any], Array]:
    """Give the measures of districts, given as bits, shape (count, n)."""

    def boundary() -> Array:
        u, v = problem.arrays.edges.T
        return np.asarray(sets[:, u] != sets[:, v])

    def read(node: Measure | Meets) -> Array:
        if isinstance(node, Meets):
            rows = problem.integer_rows(node)
            if rows is not None:
                return np.asarray(np.logical_and.reduce([row.holds(sets) for row in rows]), dtype=float)
            return np.asarray(node.function.value(read) >= node.least - RULE, dtype=float)
        if node.name == "total":
            return np.asarray(sets @ problem.numbers(node.of))
        if node.name == "nodes":
            return np.asarray(sets.sum(axis=1), dtype=float)
        if node.name == "cut":
            return np.asarray(boundary() @ problem.arrays.costs / problem.cost_scale)
        if node.name == "cut_edges":
            return np.asarray(boundary().sum(axis=1), dtype=float)
        if node.name == "units":
            units = problem.units(node.of)
            met = np.zeros((len(sets), int(units.max()) + 1), np.bool_)
            for v, unit in enumerate(units.tolist()):
                met[:, unit] |= sets[:, v]
            return np.asarray(met.sum(axis=1), dtype=float)
        area, outer, ends, length = problem.border
        if node.name == "area":
            return np.asarray(sets @ area)
        around = np.asarray(sets @ outer + (sets[:, ends[:, 0]] != sets[:, ends[:, 1]]) @ length)
        return around if node.name == "perimeter" else score(node.name, sets @ area, around)

    return read


def score(name: str, area: Array, perimeter: Array) -> Array:
    """Give a measure of compactness of districts; NaN for an empty one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = perimeter**2 / (4 * np.pi * area)
        return np.asarray({"polsby_popper": 1 / inverse, "schwartzberg": np.sqrt(inverse)}.get(name, inverse))


def holds(problem: Districting, rule: Rule, sets: Array) -> Array:
    """Whether each district, given as bits, satisfies a rule of the scope ``each`` or ``one``."""
    rows = problem.integer_rows(rule)
    if rows is not None:
        return np.asarray(np.logical_and.reduce([row.holds(sets) for row in rows]))
    over = rule.excess(rule.function.value(reader(problem, sets)))
    return np.asarray(over <= RULE * (1 + _size(rule)))


def _size(rule: Rule) -> float:
    return max((abs(b) for b in (rule.lower, rule.upper) if np.isfinite(b)), default=0.0)


def violation(problem: Districting, rule: Rule, labels: Array) -> float:
    """By how much a plan (the district of each node, by position) violates a rule; 0 if it holds."""
    sets = labels[None, :] == np.arange(problem.districts)[:, None]
    if rule.scope == "plan":
        every = reader(problem, sets)
        value = rule.function.value(lambda leaf: every(leaf.moved(lambda _: None))[leaf.part])
    else:
        sets = sets[sets.any(axis=1)] if rule.part is None else sets[[rule.part]]  # an empty one is reported
        value = rule.function.value(reader(problem, sets))
    if rule.scope in ("each", "one"):
        broken = ~holds(problem, rule, sets)
        return float(np.maximum(rule.excess(value), LESS)[broken].sum()) if broken.any() else 0.0
    over = float(rule.excess(value.sum() if rule.scope == "sum" else value))
    return over if over > RULE * (1 + _size(rule)) else 0.0


def check_measure(problem: Districting, name: str, of: str) -> tuple[float, float]:
    """Check that districts have a measure; give bounds on it."""
    check_known("measure of a district", name, MEASURES)
    if name == "total":
        numbers = problem.numbers(of)
        return float(numbers.clip(max=0).sum()), float(numbers.clip(min=0).sum())
    if name == "units":
        return 0.0, float(problem.units(of).max() + 1)
    if name in ("perimeter", "area", *SCORES):
        area, outer, _, length = problem.border
        if name in SCORES and not area.all():
            node = problem.nodes[int(np.argmin(area))]
            raise DeclarationError(f"node {node!r}: area is 0; for {name} it must be above 0")
        size = {"perimeter": outer.sum() + length.sum(), "area": area.sum()}
        return 0.0, float(size.get(name, np.inf))
    arrays = problem.arrays
    costs = arrays.costs / problem.cost_scale
    return 0.0, float({"nodes": arrays.size, "cut": costs.sum(), "cut_edges": len(costs)}[name])


def bounded(expression: Any, rule: Rule) -> list[Constraint]:
    """The rows of a rule on an expression."""
    rows = [expression >= rule.lower] if np.isfinite(rule.lower) else []
    return [*rows, expression <= rule.upper] if np.isfinite(rule.upper) else rows
