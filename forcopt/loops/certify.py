"""Check what a solver said in exact rational arithmetic.

Every number of the model and of the point is a float, and is taken for exactly the rational number that it
is: 0.1 is 3602879701896397/36028797018963968 here, and an optimum that is 31/100 on paper comes out as 31/100
if the data are integers. The rows are those of the compiled program, in which like terms are already merged.

What is proved:

- a point: that it satisfies all bounds, rows, integrality, products, implications and atoms that are rational
(`abs`,
  `maximum`, `sum_largest`, `sum_squares`, the norms 1 and inf). Other atoms are evaluated in floating point.
- the levels of a leximin objective, each by the multipliers of a linear program (see `_saturated`).
- the optimum of a linear program, by an optimal vertex and multipliers, both rational (see `exact_lp`). A
point of the
  solver that is off by rounding is replaced by the exact optimum next to it.
- the optimum of a small integer program, by branch and bound with such bounds at every leaf.
- a bound on a convex quadratic program, by the tangent of its objective.
- infeasibility by a Farkas certificate, unboundedness by a ray.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from flint import fmpq

from forcopt.arrays import Array
from forcopt.backends.base import SolveOptions
from forcopt.backends.registry import get_backend
from forcopt.compile.assemble import assemble, cost_vector
from forcopt.compile.capabilities import Capabilities
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import LeximinLayout, Program, StageCost
from forcopt.compile.separation import violated_constraints
from forcopt.errors import DeclarationError, UnsupportedError
from forcopt.language.constraint import Condition, Connected, Constraint, Implication
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.objective import Stage
from forcopt.language.relations import AtomRelation, Product
from forcopt.loops.cutting_planes import cutting_planes
from forcopt.loops.exact_lp import (
    Exact,
    LinearProgram,
    Rational,
    exact_optimum,
    farkas,
    fraction,
    nearest_point,
    rational,
    recession,
)
from forcopt.loops.exact_milp import Tree, branch_and_bound
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status

__all__ = ["Certificate", "certify_model", "is_provable"]

_QUADRATIC = Capabilities(frozenset({"rows", "integer", "quadratic"}))

_ROUGH = 1e-6
"""How far a row that reads a value computed in floating point may be off, relative to its bound."""

_NODES, _SECONDS = 300, 60.0
"""How many subproblems branch and bound may solve, and for how long."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is proved of a solution; ``c[x]`` gives the exact values of an expression.

    Attributes
    ----------
    feasible : bool
        Whether `point` satisfies everything, exactly but for the parts that `how` names; None if nothing is
        known of that.
    violation : Fraction
        The largest violation by the point given (the solver's, or a decision's), in the units of the row or
        bound (1 for a point outside the domain of an atom); None if there is none.
    objective : Fraction
        At `point`, of the first stage, in the model's own sense.
    bound : Fraction
        Proved on the optimum of the first stage; None if none is.
    optimal : bool
        Whether `point` is optimal, in all stages; None if that is not known.
    how : str
        How far things are proved, in words.
    point : tuple[Fraction, ...], optional
        The values of all columns: those given, or an exact point that they are a rounding of.
    moved : Fraction, default Fraction(0)
        The largest difference between them, over the variables.
    stages : tuple[Fraction, ...], optional
        The objectives of all stages at `point`.
    dual : tuple[Fraction, ...], optional
        Multipliers of the program's rows that prove the bound of a linear program, or its infeasibility.
    """

    feasible: bool | None
    violation: Fraction | None
    objective: Fraction | None
    bound: Fraction | None
    optimal: bool | None
    how: str
    point: tuple[Fraction, ...] | None = field(default=None, repr=False)
    moved: Fraction = Fraction(0)
    stages: tuple[Fraction, ...] = ()
    dual: tuple[Fraction, ...] | None = field(default=None, repr=False)
    model: Model | None = field(default=None, repr=False)

    def __getitem__(self, expression: Expression) -> Array:
        if self.point is None or self.model is None:
            raise DeclarationError("the certificate holds no point")
        point = [fmpq(v.numerator, v.denominator) for v in self.point]
        values = _values_at(self.model.lift(expression), point)
        out = np.empty(len(values), dtype=object)
        out[:] = [fraction(v) for v in values]
        return out.reshape(expression.shape)

    def in_units(self, unit: Fraction) -> Certificate:
        """The same with objective, bound and stages times `unit`."""
        if unit == 1:
            return self
        return replace(
            self,
            objective=None if self.objective is None else self.objective * unit,
            bound=None if self.bound is None else self.bound * unit,
            stages=tuple(value * unit for value in self.stages),
        )

    def assuming(self, premise: str) -> Certificate:
        """The same with a premise added to what it says."""
        return replace(self, how=f"{self.how}; taking for granted that {premise}") if premise else self

    def __str__(self) -> str:
        lines = [f"feasible   {_answer(self.feasible)}"]
        if self.moved:
            lines[0] += f", {float(self.moved):.2g} from the point given"
        if self.violation:
            lines[0] += f"; that is off by {float(self.violation):.2g}"
        if self.objective is not None:
            lines.append(f"objective  {_text(self.objective)}")
        if self.bound is not None:
            lines.append(f"bound      {_text(self.bound)}")
        if self.point is not None:
            gap = "" if self.optimal or self.bound is None else self._gap()
            lines.append(f"optimal    {_answer(self.optimal)}{gap}")
        lines.append(f"how        {self.how}")
        return "\n".join(lines)

    def _gap(self) -> str:
        """How far objective and bound are apart."""
        assert self.objective is not None and self.bound is not None
        apart = float(abs(self.objective - self.bound))
        return f"; the bound is {apart:.2g} away" if apart else "; of the later stages"


def _answer(known: bool | None) -> str:
    return "not known" if known is None else "yes" if known else "no"


def _text(value: Fraction) -> str:
    """A fraction as it is if it is short; else as a decimal."""
    short = str(value)
    return short if len(short) <= 24 else f"{float(value):.17g} (a fraction of {len(short) - 1} digits)"


def certify_model(solution: ModelSolution, rounding: float | None = None) -> Certificate:
    """Check a solution in exact rational arithmetic; see `forcopt.loops.certify` for what that proves.

    The solver's answer is only a hint: the proof rests on the model, the point and rational arithmetic.

    Parameters
    ----------
    solution : ModelSolution
        Of a model.
    rounding : float, optional
        How far an exact point may be from the one given, relative to values above 1; by default a hundred
        times the accuracy of the backend.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=2, lower=0)
    >>> _ = m.subject_to(3 * x[0] + x[1] >= 1, x[0] + 3 * x[1] >= 2)
    >>> m.minimize(x[0] + x[1])
    >>> print(m.solve().certify())
    feasible   yes...
    objective  3/4
    bound      3/4
    optimal    yes
    how        multipliers of the rows prove the bound...
    """
    model, program = solution.model, _program(solution.model)
    if solution.point is None:
        return _without_point(solution, program)
    own = _Point(model, solution.point)
    if program is None or (program.stages[-1].quadratic is not None and len(program.stages) > 1):
        return _certificate(own, own, None, None, "nothing is proved of the optimum: the model is not linear")
    if model.lazies:
        program = _with_cuts(model, program)
    if rounding is None:
        rounding = 100 * get_backend(solution.backend).accuracy
    tolerance = rational(rounding)
    certify = _certify_linear if program.stages[-1].quadratic is None else _certify_quadratic
    return certify(program, own, tolerance)


def is_provable(model: Model) -> bool:
    """Whether more can be proved of a model than that a point satisfies it."""
    program = _program(model)
    return program is not None and (program.stages[-1].quadratic is None or len(program.stages) == 1)


def _program(model: Model) -> Program | None:
    """The rows of a linear or quadratic model; None for another."""
    method = "compact" if (model.columns().integer == 1).any() else "saturation"
    try:
        return compile_model(model, _QUADRATIC, sorted_by=method).with_all_rows()
    except UnsupportedError:
        return None


def _certify_quadratic(program: Program, own: _Point, tolerance: Rational) -> Certificate:
    """Bound a convex quadratic objective by its tangent at the point, minimised exactly."""
    count = own.model.column_count
    lp, point = LinearProgram.of(program), own
    if not own.holds:
        integer = np.flatnonzero(program.integer[:count] == 1).tolist()
        point = _repaired(_fixed(lp, integer, own.x), own, tolerance)
    slope, (value,) = point.slope(), point.values
    rise = sum((a * x for a, x in zip(slope, point.x, strict=True)), fmpq(0))
    tangent = replace(lp, cost=slope + [fmpq(0)] * (len(lp.cost) - count), offset=value - rise)
    bound = exact_optimum(tangent).bound
    how = (
        "the tangent of the objective there proves the bound"
        if bound is not None
        else "no bound could be proved"
    )
    return _certificate(point, own, bound, True if point.holds and bound == value else None, how)


def _certify_linear(program: Program, own: _Point, tolerance: Rational) -> Certificate:
    """Repair the point if it needs to be, then prove the optimum stage by stage."""
    model, count, stages = own.model, own.model.column_count, program.stages
    lp, integer = LinearProgram.of(program), np.flatnonzero(program.integer == 1).tolist()
    near = _fixed(lp, [j for j in integer if j < count], own.x)
    face, found = _stagewise(near, stages)
    settled = len(found) == len(own.values) and found[-1].proved
    values, dual, better, point = [e.value for e in found], None, None, own
    vertex = found[-1].point
    if settled and vertex is not None and not (own.holds and own.values == values):
        better = _Point(model, vertex[:count])
        point = better
        if _apart(point, own) > tolerance:
            nearest = nearest_point(face, own.x)
            point = better if nearest is None else _Point(model, nearest[:count])
        if not (point.holds and point.values == values and _apart(point, own) <= tolerance):
            point = own
    if not point.holds:
        point = _repaired(near, own, tolerance)
    if not integer:
        bounds, dual, how = [e.bound for e in found], found[0].dual, "multipliers of the rows prove the bound"
        if found[0].status == "infeasible" and (certificate := farkas(lp)) is not None:
            bounds, dual, how = [None], certificate, "no point is feasible, by a Farkas certificate"
    elif point.holds and (better is None or point.values == better.values):
        bounds, tree = _searched(lp, stages, integer, point.values)
        better = None if tree.better is None else _Point(model, tree.better[:count])
        how = f"branch and bound over {tree.subproblems} subproblems, each bounded in rational arithmetic"
    else:
        bounds, how = [exact_optimum(lp.aiming(stages[0])).bound], "the relaxation is solved exactly"
    if point.holds and bounds == point.values:
        return _certificate(point, own, bounds[0], True, how, dual)
    if better is not None and better.holds and (not point.holds or better.values < point.values):
        how += f"; a point that is better, or feasible, and not near is worth {_first_gain(better, point)}"
        return _certificate(point, own, bounds[0], False, how, dual)
    if bounds[0] is None and dual is None:
        how = "no bound could be proved"
    return _certificate(point, own, bounds[0], None if point.holds else False, how, dual)


def _first_gain(better: _Point, point: _Point) -> str:
    """What a better point is worth in the first stage in which it differs."""
    differ = (i for i, pair in enumerate(zip(better.values, point.values, strict=True)) if pair[0] != pair[1])
    stage = next(differ, 0)
    worth = _text(fraction(better.signs[stage] * better.values[stage]))
    return f"{worth} in the model's units" + (f", stage {stage + 1}" if len(better.values) > 1 else "")


def _repaired(near: LinearProgram, own: _Point, tolerance: Rational) -> _Point:
    """The point next to `own` that satisfies everything, or `own` if there is none within the tolerance."""
    nearest = nearest_point(near, own.x)
    if nearest is None:
        return own
    candidate = _Point(own.model, nearest[: len(own.x)])
    return candidate if candidate.holds and _apart(candidate, own) <= tolerance else own


def _fixed(lp: LinearProgram, columns: Sequence[int], x: Sequence[Rational]) -> LinearProgram:
    lower, upper = list(lp.lower), list(lp.upper)
    for j in columns:
        lower[j] = upper[j] = x[j]
    return replace(lp, lower=lower, upper=upper)


def _stagewise(lp: LinearProgram, stages: Sequence[StageCost]) -> tuple[LinearProgram, list[Exact]]:
    """Solve the stages in order, each among the optima of those before; also give the last optimal face."""
    found = []
    for stage in stages:
        lp = lp.aiming(stage)
        if stage.levels is not None and stage.levels.method == "saturation":
            lp, levels = _saturated(lp, stage.levels)
            found += levels
        else:
            found.append(exact_optimum(lp))
            lp = lp.holding(found[-1].value) if found[-1].proved else lp
        if not found[-1].proved:
            break
    return lp, found


def _saturated(lp: LinearProgram, levels: LeximinLayout) -> tuple[LinearProgram, list[Exact]]:
    """Raise a common floor, fix what has a positive multiplier, go on; in terms of the sums of the worst.

    By complementary slackness what has one stands at the floor in every optimum.
    """
    assert levels.spares is not None
    sums: list[Exact] = []
    total, free = fmpq(0), list(range(len(levels.values)))
    while free:
        found = exact_optimum(lp)
        if not found.proved or found.dual is None or found.value is None:
            return lp, [*sums, replace(found, bound=None)]
        tight = [j for j in free if found.dual[levels.rows + j] > 0]
        lower, upper = list(lp.lower), list(lp.upper)
        for j in tight:
            lower[levels.values[j]], upper[levels.spares[j]] = -found.value, None
            total += found.value
            sums.append(replace(found, value=total, bound=total))
        lp = replace(lp, lower=lower, upper=upper)
        free = [j for j in free if j not in tight]
    return lp, sums


def _searched(
    lp: LinearProgram, stages: Sequence[StageCost], integer: Sequence[int], values: Sequence[Rational]
) -> tuple[list[Rational | None], Tree]:
    """Prove the values of all stages by branch and bound, as far as that goes."""
    bounds: list[Rational | None] = []
    subproblems, began = 0, time.perf_counter()
    for stage, value in zip(stages, values, strict=True):
        lp, left = lp.aiming(stage), _SECONDS - (time.perf_counter() - began)
        tree = branch_and_bound(lp, integer, value, _NODES - subproblems, left)
        subproblems += tree.subproblems
        bounds.append(tree.bound)
        if tree.better is not None or tree.bound != value:
            break
        lp = lp.holding(value)
    return bounds, replace(tree, subproblems=subproblems)


def _with_cuts(model: Model, program: Program) -> Program:
    """The program with those constraints of its lazy families that floating-point cutting planes need."""
    highs = get_backend("highs")
    session = highs.session(program)
    cutting_planes(session, model, SolveOptions(), lambda: 0.0, highs.accuracy)
    return replace(program, rows=session.program.rows, lazies=())


def _without_point(solution: ModelSolution, program: Program | None) -> Certificate:
    """Prove that there is no point, or no optimum."""
    model, status = solution.model, solution.status
    nothing = Certificate(None, None, None, None, None, f"there is no point to check: the status is {status}")
    if program is None or status not in (Status.INFEASIBLE, Status.UNBOUNDED):
        return nothing
    if model.lazies:
        program = _with_cuts(model, program)
    lp, integer = LinearProgram.of(program), np.flatnonzero(program.integer == 1).tolist()
    tree = branch_and_bound(replace(lp, cost=[fmpq(0)] * len(lp.cost)), integer, None, _NODES, _SECONDS)
    if status is Status.INFEASIBLE and tree.exhausted:
        none = replace(nothing, feasible=False)
        if tree.subproblems > 1:
            return replace(
                none, how=f"infeasibility proved by branch and bound, {tree.subproblems} subproblems"
            )
        dual = tuple(fraction(v) for v in farkas(lp) or ())
        return replace(none, how="infeasibility proved by a Farkas certificate", dual=dual)
    point = _Point(model, tree.better[: model.column_count]) if tree.better else None
    if point is None or not point.holds:
        return nothing
    if status is Status.INFEASIBLE:
        return _certificate(point, point, None, None, "the status is wrong: this point satisfies everything")
    if program.stages[0].quadratic is not None:
        return nothing
    ray = exact_optimum(recession(lp))
    if ray.value is not None and ray.value < 0:
        return _certificate(point, point, None, None, "unboundedness proved by a point and a ray from it")
    return nothing


class _Point:
    """The values of a model's columns as rationals, and what they violate.

    Attributes
    ----------
    given
        The columns that are not computed.
    x
        Of all columns; those of atoms and products are computed from the others.
    violations
        For each violated thing by how much.
    values : Sequence[Any] | Array
        The (minimised) objectives of all stages.
    rough
        Names of atoms and families that were evaluated in floating point.
    """

    def __init__(self, model: Model, values: Sequence[Any] | Array) -> None:
        self.model = model
        self.x: list[Rational] = [fmpq(0)] * model.column_count
        self.violations: dict[str, Rational] = {}
        self.rough: dict[str, None] = {}
        self._rough_columns: set[int] = set()
        self.given = model.free_columns().tolist()
        for j in self.given:
            if not isinstance(values[j], fmpq) and not np.isfinite(values[j]):
                raise DeclarationError(
                    f"the value of {model.column_name(j)} is {values[j]}; it must be finite"
                )
            self.x[j] = values[j] if isinstance(values[j], fmpq) else rational(values[j])
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
        values = _values_at(stage.expression, self.x)
        minimised = sorted((-v if stage.maximize else v for v in values), reverse=True)
        return list(accumulate(minimised))  # of a leximin objective the sums of the worst

    def slope(self) -> list[Rational]:
        """The gradient of the (minimised) first objective, with its sums of squares, in all columns."""
        assert self.model.objective is not None
        stage = self.model.objective.stages[0]
        sign = fmpq(-1 if stage.maximize else 1)
        out = [sign * rational(c) for c in cost_vector(stage.expression, len(self.x))]
        for relation in self.model.relations:
            if not isinstance(relation, AtomRelation) or relation.kind != "sum_squares":
                continue
            (inside,) = relation.arguments
            columns, rows = relation.result_columns.tolist(), inside.linear_rows()
            values, width = _values_at(inside, self.x), inside.shape[1]
            weights = [out[j] for j in columns]
            for j in columns:
                out[j] = fmpq(0)
            for i, value in enumerate(values):
                for k in range(rows.indptr[i], rows.indptr[i + 1]):
                    out[rows.indices[k]] += 2 * weights[i // width] * value * rational(rows.data[k])
        return out

    def _complete(self) -> None:
        """Compute the results of atoms and products in order."""
        needed = {id(r) for r in self.model.needed_relations()}
        for relation in self.model.relations:
            if isinstance(relation, Product):
                pairs = zip(
                    _values_at(relation.binary, self.x), _values_at(relation.factor, self.x), strict=True
                )
                results = [a * b for a, b in pairs]
            elif isinstance(relation, AtomRelation) and id(relation) in needed:
                results = self._atom(relation)
            else:
                continue
            for j, value in zip(relation.result_columns.tolist(), results, strict=True):
                self.x[j] = value

    def _atom(self, relation: AtomRelation) -> list[Rational]:
        columns = relation.result_columns.tolist()
        name = self.model.column_name(columns[0]).partition("[")[0]
        arguments = [_values_at(a, self.x) for a in relation.arguments]
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
            fractional = [abs(x - (x + fmpq(1, 2)).floor()) for x in values]
            whole = np.where(columns.integer[at] == 1, 0.0, np.inf)
            self._note(f"integrality of {block.name}", fractional, -whole, whole)
        for constraint in model.constraints:
            self._rows(constraint.name, constraint)
        floats = np.array([float(v) for v in self.x])
        for relation in model.relations:
            if isinstance(relation, Implication):
                on = np.array([v > fmpq(1, 2) for v in _values_at(relation.condition, self.x)], dtype=bool)
                self._rows(relation.name, relation.constraint, on)
            elif isinstance(relation, Condition):
                if not isinstance(relation, Connected):  # which integers decide
                    self.rough[relation.name] = None
                worst = float(np.max(relation.violation(floats), initial=0.0))
                if worst > _ROUGH:
                    self.violations[relation.name] = rational(worst)
        if model.lazies:
            self.rough.update({family.name: None for family in model.lazies})
            for constraint in violated_constraints(model, floats, 0.0):
                self._rows("lazy constraints", constraint)

    def _rows(self, name: str, constraint: Constraint, on: Array | None = None) -> None:
        """Check the rows of a constraint, or those that are `on`."""
        low, high = constraint.row_bounds()
        if on is not None:
            low, high = np.where(on, low, -np.inf), np.where(on, high, np.inf)
        rows = assemble([(constraint.expression, low, high)])
        values = _values_at(constraint.expression, self.x, constant=False)
        if self._rough_columns.intersection(rows.indices.tolist()):
            low = low - _ROUGH * np.maximum(1.0, np.abs(low))
            high = high + _ROUGH * np.maximum(1.0, np.abs(high))
        self._note(name, values, low, high)

    def _note(self, name: str, values: Sequence[Rational], lower: Array, upper: Array) -> None:
        worst = fmpq(0)
        ends = (np.broadcast_to(end, len(values)).tolist() for end in (lower, upper))
        for value, low, high in zip(values, *ends, strict=True):
            if low > -np.inf:
                worst = max(worst, rational(low) - value)
            if high < np.inf:
                worst = max(worst, value - rational(high))
        if worst > 0:
            self.violations[name] = max(worst, self.violations.get(name, worst))


def _values_at(expression: Expression, x: Sequence[Rational], constant: bool = True) -> list[Rational]:
    """The elements of an expression at a point, in C order."""
    rows = expression.linear_rows()
    data = [rational(a) for a in rows.data.tolist()]
    starts = [rational(b) if constant else fmpq(0) for b in expression.constant.reshape(-1).tolist()]
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


def _apart(left: _Point, right: _Point) -> Rational:
    """The largest difference of given columns, relative to their size where that is above 1."""
    gaps = (abs(left.x[j] - right.x[j]) / max(abs(right.x[j]), fmpq(1)) for j in left.given)
    return max(gaps, default=fmpq(0))


def _certificate(
    point: _Point,
    own: _Point,
    bound: Rational | None,
    optimal: bool | None,
    how: str,
    dual: list[Rational] | None = None,
) -> Certificate:
    model, signs = point.model, point.signs
    if point.rough:
        how += f"; evaluated in floating point, to within {_ROUGH:g}: {', '.join(point.rough)}"
    if own.violations:
        how += f"; the point given violates {', '.join(own.violations)}"
    moved = max((abs(a - b) for a, b in zip(point.x, own.x, strict=True)), default=fmpq(0))
    stages = tuple(fraction(sign * v) for sign, v in zip(signs, point.values, strict=True))
    return Certificate(
        feasible=point.holds,
        violation=max((fraction(v) for v in own.violations.values()), default=Fraction(0)),
        objective=stages[0],
        bound=None if bound is None else fraction(signs[0] * bound),
        optimal=optimal,
        how=how,
        point=tuple(fraction(v) for v in point.x),
        moved=fraction(moved),
        stages=stages,
        dual=None if dual is None else tuple(fraction(v) for v in dual),
        model=model,
    )
