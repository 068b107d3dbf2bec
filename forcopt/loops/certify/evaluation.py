"""Evaluate a model at a rational point exactly: bounds, rows, integrality, atoms and objectives.

And the premises of a proof: roundings before exact arithmetic began, and which forms are convex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import gcd
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.compile.assemble import assemble, cost_vector
from forcopt.compile.separation import violated_constraints
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Condition, Connected, Constraint, Implication
from forcopt.language.expression import Expression
from forcopt.language.matrices import Semidefinite
from forcopt.language.model import Model
from forcopt.language.objective import Stage
from forcopt.language.relations import AtomRelation, ParameterProduct, Product
from forcopt.loops.exact_lp import Rational, rational
from forcopt.rationals import floor, fmpq, fmpz

ROUGH = 1e-6
"""The tolerance of a row that reads a value computed in floating point, relative to its bound."""


class ExactPoint:
    """The values of a model's columns as rationals, and the violated constraints.

    Attributes
    ----------
    given
        The columns that are not computed.
    x
        Of all columns; values of atoms and products are computed from the others.
    violations
        For each violated thing by how much.
    number
        Reads the model's floats: `rational`, or `decimal` for a model of rows alone.
    values : Sequence[Any] | Array
        The (minimised) objectives of all stages.
    rough
        Names of atoms and families that were evaluated in floating point.
    """

    def __init__(
        self, model: Model, values: Sequence[Any] | Array, number: Callable[[float], Rational] = rational
    ) -> None:
        self.model, self.number = model, number
        self.x: list[Rational] = [fmpq(0)] * model.column_count
        self.violations: dict[str, Rational] = {}
        self.rough: dict[str, None] = {}
        self._rough_columns: set[int] = set()
        self.given = model.free_columns().tolist()
        for j in self.given:
            if not isinstance(values[j], fmpq) and not np.isfinite(values[j]):
                raise DeclarationError(f"the value of {model.column_name(j)} is {values[j]}, not finite")
            self.x[j] = values[j] if isinstance(values[j], fmpq) else number(values[j])
        self._complete()
        self._check()
        stages = model.objective.stages if model.objective else ()
        self.values = [v for s in stages for v in self._objective(s)] or [fmpq(0)]
        self.signs = [-1 if s.maximize else 1 for s in stages for _ in range(s.expression.size)] or [1]

    @property
    def holds(self) -> bool:
        """Whether it satisfies everything."""
        return not self.violations

    def _objective(self, stage: Stage) -> list[Rational]:
        values = exact_values(stage.expression, self.x, number=self.number)
        minimised = sorted((-v if stage.maximize else v for v in values), reverse=True)
        return list(accumulate(minimised))  # of a leximin objective the sums of the worst

    def slope(self, squares: bool = True) -> list[Rational]:
        """The gradient of the (minimised) first objective, through products with parameters and `squares`."""
        assert self.model.objective is not None
        stage = self.model.objective.stages[0]
        sign = fmpq(-1 if stage.maximize else 1)
        out = [sign * rational(c) for c in cost_vector(stage.expression, len(self.x))]
        for relation in reversed(self.model.relations):  # each reads results of earlier ones
            columns = relation.result_columns.tolist() if isinstance(relation, AtomRelation | Product) else []
            if isinstance(relation, ParameterProduct):
                rows, scales = relation.factor.linear_rows(), exact_values(relation.scale, self.x)
                for i, (j, scale) in enumerate(zip(columns, scales, strict=True)):
                    for k in range(rows.indptr[i], rows.indptr[i + 1]):
                        out[rows.indices[k]] += out[j] * scale * rational(rows.data[k])
                    out[j] = fmpq(0)
                continue
            if not (squares and isinstance(relation, AtomRelation) and relation.kind == "sum_squares"):
                continue
            (inside,) = relation.arguments
            rows = inside.linear_rows()
            values, width = exact_values(inside, self.x), inside.shape[1]
            weights = [out[j] for j in columns]
            for j in columns:
                out[j] = fmpq(0)
            for i, value in enumerate(values):
                for k in range(rows.indptr[i], rows.indptr[i + 1]):
                    out[rows.indices[k]] += 2 * weights[i // width] * value * rational(rows.data[k])
        return out

    def hessian(self) -> dict[tuple[int, int], Rational] | None:
        """The Hessian of the (minimised) first objective; None if squares read computed columns."""
        weights, given = self.slope(squares=False), set(self.given)
        out: dict[tuple[int, int], Rational] = {}
        for relation in self.model.needed_relations():
            if not isinstance(relation, AtomRelation) or relation.kind != "sum_squares":
                continue
            (inside,) = relation.arguments
            rows, width, columns = inside.linear_rows(), inside.shape[1], relation.result_columns.tolist()
            if not given.issuperset(rows.indices.tolist()):
                return None
            for i, (a, b) in enumerate(pairwise(rows.indptr.tolist())):
                weight = 2 * weights[columns[i // width]]
                entries = [(int(rows.indices[k]), rational(rows.data[k])) for k in range(a, b)]
                for j, left in entries:
                    for k, right in entries:
                        out[j, k] = out.get((j, k), fmpq(0)) + weight * left * right
        return out

    def _complete(self) -> None:
        """Compute the results of atoms and products in order."""
        needed = {id(r) for r in self.model.needed_relations()}
        for relation in self.model.relations:
            if isinstance(relation, Product):
                factors = (exact_values(part, self.x) for part in (relation.scale, relation.factor))
                results = [a * b for a, b in zip(*factors, strict=True)]
            elif isinstance(relation, AtomRelation) and id(relation) in needed:
                results = self._atom(relation)
            else:
                continue
            for j, value in zip(relation.result_columns.tolist(), results, strict=True):
                self.x[j] = value

    def _atom(self, relation: AtomRelation) -> list[Rational]:
        columns = relation.result_columns.tolist()
        name = self.model.column_name(columns[0]).partition("[")[0]
        arguments = [exact_values(a, self.x) for a in relation.arguments]
        for position in relation.atom.domain:
            self._note(f"domain of {name}", arguments[position], np.zeros(1), np.full(1, np.inf))
        exact = _RATIONAL.get(relation.kind)
        reads = {int(j) for a in relation.arguments for j in a.linear_rows().indices}
        if exact is None or reads & self._rough_columns:
            self.rough[name] = None
            self._rough_columns.update(columns)
        if exact is not None:
            (flat,) = arguments
            width = len(flat) // len(columns)
            rows = (flat[k * width : (k + 1) * width] for k in range(len(columns)))
            return [exact(row, relation.parameter) for row in rows]
        floats = [
            np.array([float(v) for v in flat]).reshape(a.shape)
            for flat, a in zip(arguments, relation.arguments, strict=True)
        ]
        values = relation.atom.evaluate(floats, relation.parameter)
        if not np.isfinite(values).all():
            self.violations[f"domain of {name}"] = fmpq(1)
        return [rational(v) if np.isfinite(v) else fmpq(0) for v in values]

    def _check(self) -> None:
        model, columns, given = self.model, self.model.columns(), set(self.given)
        for block in model.blocks:
            at = [j for j in range(block.start, block.start + block.size) if j in given]
            values = [self.x[j] for j in at]
            self._note(f"bounds of {block.name}", values, columns.lower[at], columns.upper[at])
            fractional = [abs(x - floor(x + fmpq(1, 2))) for x in values]
            whole = np.where(columns.integer[at] == 1, 0.0, np.inf)
            self._note(f"integrality of {block.name}", fractional, -whole, whole)
        for constraint in model.constraints:
            self._rows(constraint.name, constraint)
        floats = np.array([float(v) for v in self.x])
        for relation in model.relations:
            if isinstance(relation, Implication):
                on = np.array([v > fmpq(1, 2) for v in exact_values(relation.condition, self.x)], dtype=bool)
                self._rows(relation.name, relation.constraint, on)
            elif isinstance(relation, Semidefinite):
                self._matrices(relation)
            elif isinstance(relation, Condition):
                if not isinstance(relation, Connected):  # which integers decide
                    self.rough[relation.name] = None
                worst = float(np.max(relation.violation(floats), initial=0.0))
                if worst > ROUGH:
                    self.violations[relation.name] = rational(worst)
        if model.lazies:
            self.rough.update({family.name: None for family in model.lazies})
            for constraint in violated_constraints(model, floats, 0.0):
                self._rows("lazy constraints", constraint)

    def _matrices(self, relation: Semidefinite) -> None:
        """Check that matrices are symmetric and semidefinite, by an exact factorization."""
        count, order = relation.expression.shape[:2]
        values = exact_values(relation.expression, self.x)
        least = fmpq(0)
        for k in range(count):
            entries = values[k * order * order : (k + 1) * order * order]
            lower = [entries[i * order + j] for i in range(order) for j in range(i + 1)]
            pairs = [(i, j) for i in range(order) for j in range(i)]
            apart = (abs(entries[i * order + j] - entries[j * order + i]) for i, j in pairs)
            least = max(least, max(apart, default=least))
            if not is_semidefinite(lower, order):
                floats = np.array([float(v) for v in entries]).reshape(order, order)
                below = -float(np.linalg.eigvalsh(0.5 * (floats + floats.T))[0])
                least = max(least, rational(max(below, float(np.finfo(float).tiny))))
        if least > 0:
            self.violations[relation.name] = least

    def _rows(self, name: str, constraint: Constraint, on: Array | None = None) -> None:
        """Check the rows of a constraint; with `on`, only the marked ones."""
        low, high = constraint.row_bounds()
        if on is not None:
            low, high = np.where(on, low, -np.inf), np.where(on, high, np.inf)
        values = exact_values(constraint.expression, self.x, False, self.number)
        if self._rough_columns.intersection(assemble([(constraint.expression, low, high)]).indices.tolist()):
            low = low - ROUGH * np.maximum(1.0, np.abs(low))
            high = high + ROUGH * np.maximum(1.0, np.abs(high))
        self._note(name, values, low, high)

    def _note(self, name: str, values: Sequence[Rational], lower: Array, upper: Array) -> None:
        worst = fmpq(0)
        ends = (np.broadcast_to(end, len(values)).tolist() for end in (lower, upper))
        for value, low, high in zip(values, *ends, strict=True):
            if low > -np.inf:
                worst = max(worst, self.number(low) - value)
            if high < np.inf:
                worst = max(worst, value - self.number(high))
        if worst > 0:
            self.violations[name] = max(worst, self.violations.get(name, worst))


def exact_values(
    expression: Expression,
    x: Sequence[Rational],
    constant: bool = True,
    number: Callable[[float], Rational] = rational,
) -> list[Rational]:
    """The elements of an expression at a point, in C order."""
    rows = expression.linear_rows()
    data = [number(a) for a in rows.data.tolist()]
    starts = [number(b) if constant else fmpq(0) for b in expression.constant.reshape(-1).tolist()]
    at = rows.indices.tolist()
    return [
        sum((data[k] * x[at[k]] for k in range(a, b)), start)
        for start, a, b in zip(starts, rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
    ]


_RATIONAL: dict[str, Callable[[list[Rational], Any], Rational]] = {
    "abs": lambda x, _: abs(x[0]),
    "maximum": lambda x, _: max(x),
    "all_of": lambda x, _: min(x),
    "sum_largest": lambda x, k: sum(sorted(x)[len(x) - k :], fmpq(0)),
    "norm_1": lambda x, _: sum((abs(v) for v in x), fmpq(0)),
    "norm_inf": lambda x, _: max(abs(v) for v in x),
    "sum_squares": lambda x, _: sum((v * v for v in x), fmpq(0)),
    "even_power": lambda x, p: x[0] ** int(p),
}
"""Atoms that take rationals to rationals."""


def distance(left: ExactPoint, right: ExactPoint) -> Rational:
    """The largest difference of given columns, relative to their size where that is above 1."""
    gaps = (abs(left.x[j] - right.x[j]) / max(abs(right.x[j]), fmpq(1)) for j in left.given)
    return max(gaps, default=fmpq(0))


NOT_CONVEX = "which is not proved to be convex"
"""Stands in a premise that keeps an optimum from being proved."""

_LARGEST = 60
"""Forms of more variables are not proved to be convex: too slow."""


def premises(model: Model) -> Iterator[str]:
    """List the roundings: forms into sums of squares, slopes into numbers, parameters into products."""
    relations = model.needed_relations()
    for relation in relations:
        if not isinstance(relation, AtomRelation):
            continue
        name = model.block_of(int(relation.result_columns[0])).name
        if relation.kind == "sum_squares" and relation.parameter is not None:
            form, root = relation.parameter
            off = float(np.abs((root.T @ root - form).tocsr().data).max(initial=0.0))
            if off:
                words = "" if _is_convex(form) else f", {NOT_CONVEX}"
                yield f"{name} is the sum of squares of its form{words}, up to {off:.1g} in a coefficient"
        elif relation.kind == "piecewise_linear":
            yield f"{name} has the slopes that its points have in floating point"
    if any(isinstance(r, ParameterProduct) for r in relations):
        yield "products with parameters are computed in floating point"


def _is_convex(form: object) -> bool:
    """Whether a quadratic form has no negative eigenvalue, decided exactly."""
    dense = np.asarray(form.toarray())  # type: ignore[attr-defined]
    if len(dense) > _LARGEST:
        return False
    places = zip(*np.tril_indices(len(dense)), strict=True)
    lower = [(rational(dense[i, j]) + rational(dense[j, i])) / fmpq(2) for i, j in places]
    return is_semidefinite(lower, len(dense))


def is_semidefinite(triangle: Sequence[Rational], order: int) -> bool:
    """Whether a symmetric matrix has no negative eigenvalue: LDL' without division (Bareiss).

    O(n**3) products of whole numbers, which grow to n times the digits of an entry.

    Parameters
    ----------
    triangle : Sequence[Rational]
        The lower triangle, row by row.
    order : int
        Rows of the matrix.

    References
    ----------
    E. H. Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian elimination", Mathematics
    of Computation 22 (1968).

    Examples
    --------
    >>> from forcopt.rationals import fmpq
    >>> is_semidefinite([fmpq(1), fmpq(2), fmpq(4)], 2), is_semidefinite([fmpq(1), fmpq(2), fmpq(3)], 2)
    (True, False)
    """
    common = fmpz(1)
    for value in triangle:
        common *= value.denominator // gcd(common, value.denominator)
    rows, at = [], 0
    for i in range(order):
        rows.append([value.numerator * (common // value.denominator) for value in triangle[at : at + i + 1]])
        at += i + 1
    before = fmpz(1)
    for k in range(order):
        pivot = rows[k][k]
        if pivot < 0:
            return False
        if pivot == 0:  # then all that stands below must be zero
            if any(rows[i][k] for i in range(k + 1, order)):
                return False
            continue
        for i in range(k + 1, order):
            row, factor = rows[i], rows[i][k]
            for j in range(k + 1, i + 1):
                row[j] = (pivot * row[j] - factor * rows[j][k]) // before
        before = pivot
    return True
