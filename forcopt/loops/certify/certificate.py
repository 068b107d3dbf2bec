"""A certificate: the facts that are proved of a solution, in exact rational arithmetic; and its files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.compile.program import Program
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.loops.certify.evaluation import ROUGH, ExactPoint, exact_values
from forcopt.loops.exact_lp import LinearProgram, Rational, exact_optimum, farkas, fraction
from forcopt.notebook import facts_html
from forcopt.rationals import fmpq, fmpz


@dataclass(frozen=True, eq=False)
class Certificate:
    """The facts that are proved of a solution; ``c[x]`` gives the exact values of an expression.

    Attributes
    ----------
    feasible : bool
        Whether `point` satisfies all constraints, exactly but for the parts that `how` names; None if that is
        not known.
    violation : Fraction
        The largest violation by the point given (the solver's, or a decision's), in the units of the row or
        bound (1 for a point outside the domain of an atom); None without a point.
    objective : Fraction
        At `point`, of the first stage, in the model's own sense.
    bound : Fraction
        Proved on the optimum of the first stage; None if no bound is proved.
    optimal : bool
        Whether `point` is optimal, in all stages; None if that is not known.
    how : str
        How far things are proved, in words.
    point : tuple[Fraction, ...], optional
        The values of all columns: the given ones, or an exact point whose rounding they are (see
        `certify_model`).
    moved : Fraction, default Fraction(0)
        The largest difference between them, over the variables.
    stages : tuple[Fraction, ...], optional
        The objectives of all stages at `point`.
    dual : tuple[Fraction, ...], optional
        Multipliers of the program's rows that prove the bound of a linear program, or its infeasibility.
    model : Model, optional
        The certified model.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0)
    >>> _ = m.subject_to(3 * x[0] + x[1] >= 1, x[0] + 3 * x[1] >= 1)
    >>> m.minimize(x.sum())
    >>> c = m.solve().certify()
    >>> c.optimal, str(c.objective), str(c.bound), [str(v) for v in c[x]]
    (True, '1/2', '1/2', ['1/4', '1/4'])
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

    def _repr_html_(self) -> str:
        names = ("feasible", "optimal", "objective", "bound", "violation", "moved")
        facts = {n: v for n in names if (v := getattr(self, n)) is not None}
        return facts_html("certificate", facts | {"how": self.how})

    def __getitem__(self, expression: Expression) -> Array:
        if self.point is None or self.model is None:
            raise DeclarationError("the certificate holds no point")
        point = [fmpq(v.numerator, v.denominator) for v in self.point]
        values = exact_values(self.model.lift(expression), point)
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
        """Return the certificate with a further premise."""
        return replace(self, how=f"{self.how}; taking for granted that {premise}") if premise else self

    def __str__(self) -> str:
        lines = [f"feasible   {_answer(self.feasible)}"]
        given = [f"is {float(self.moved):.2g} away"] if self.moved else []
        given += [f"violates the model by {float(self.violation):.2g}"] if self.violation else []
        if given:
            lines[0] += f"; the point given {' and '.join(given)}"
        if self.objective is not None:
            lines.append(f"objective  {as_text(self.objective)}")
        if self.bound is not None:
            lines.append(f"bound      {as_text(self.bound)}")
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


def as_text(value: Fraction) -> str:
    """A fraction as it is if it is short; else as a decimal."""
    digits = sum(len(str(abs(fmpz(part)))) for part in value.as_integer_ratio())
    if digits <= 24:
        return str(value)
    return f"{value.numerator / value.denominator:.17g} (a fraction of {digits} digits)"


def _first(names: list[str]) -> str:
    """The first names of many."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} others"


def certificate_of(
    point: ExactPoint,
    own: ExactPoint,
    bound: Rational | None,
    optimal: bool | None,
    how: str,
    dual: list[Rational] | None = None,
) -> Certificate:
    """Build a certificate.

    Parameters
    ----------
    point : ExactPoint
        The point that is certified.
    own : ExactPoint
        The point given, which `point` may repair.
    bound : Rational, optional
        On the (minimized) first objective.
    optimal : bool, optional
        Whether `point` is optimal; None if that is not known.
    how : str
        The proof, in words.
    dual : list of Rational, optional
        Multipliers of the rows.
    """
    model, signs = point.model, point.signs
    if point.rough:
        how += f"; evaluated in floating point, to within {ROUGH:g}: {', '.join(point.rough)}"
    if own.violations and not point.holds:
        how += f"; the point given violates {_first(list(own.violations))}"
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


def write_multipliers(
    path: Path,
    program: Program,
    lp: LinearProgram,
    multipliers: Sequence[Rational],
    bound: Rational | None,
    optimum: tuple[ExactPoint, Mapping[tuple[int, int], Rational]] | None = None,
) -> None:
    """Write what multipliers of rows and cones prove: a bound, or without one that there is no point.

    With an optimum of a quadratic program and its Hessian, `lp` has the tangent there.
    """
    path.write_text(json.dumps(_data(program, lp, multipliers, bound, optimum)), encoding="utf-8")


def write_irreducible(path: Path, program: Program, names: Sequence[str]) -> None:
    """Write that rows cannot hold together, and that without any one of them the others can.

    Raises
    ------
    DeclarationError
        If the program is not one of rows of these names, or exact arithmetic says otherwise.
    """
    if program.is_integer or program.is_conditional or program.cones or len(names) != program.rows.count:
        raise DeclarationError("the subset has integers, conditions or cones; a file states linear rows")
    lp = LinearProgram.of(program)
    lp = replace(lp, cost=[fmpq(0)] * len(lp.cost), offset=fmpq(0))
    points: dict[str, dict[str, str]] = {}
    for i, name in enumerate(names):
        low, high = ([*ends[:i], None, *ends[i + 1 :]] for ends in (lp.row_lower, lp.row_upper))
        point = exact_optimum(replace(lp, row_lower=low, row_upper=high)).point
        if point is None:
            raise DeclarationError(f"without {name!r} the others have no point in exact arithmetic")
        points[name] = {program.column_name(j): str(v) for j, v in enumerate(point) if v}
    multipliers = farkas(lp)
    if multipliers is None:
        raise DeclarationError(f"in exact arithmetic {', '.join(names)} can hold together")
    data = _data(program, lp, multipliers, None, labels=names)
    data |= {"kind": "irreducible", "members": list(names), "points": points}
    path.write_text(json.dumps(data), encoding="utf-8")


def _data(
    program: Program,
    lp: LinearProgram,
    multipliers: Sequence[Rational],
    bound: Rational | None,
    optimum: tuple[ExactPoint, Mapping[tuple[int, int], Rational]] | None = None,
    labels: Sequence[str] = (),
) -> dict[str, Any]:
    """Program and multipliers as the certificate ``bound``, or ``infeasible`` without a bound."""
    names, count = [program.column_name(j) for j in range(program.columns)], program.rows.count
    labels = labels or [f"r{i}" for i in range(count)]

    def form(entries: Mapping[int, Rational]) -> dict[str, str]:
        return {names[j]: str(a) for j, a in entries.items() if a}

    def ends(*values: Rational | None) -> list[str | None]:
        return [None if v is None else str(v) for v in values]

    own = zip(lp.rows[:count], lp.row_lower[:count], lp.row_upper[:count], strict=True)
    cones, duals, at = [], [], count
    for cone in program.cones:
        for start in range(at, at + cone.matrix.shape[0], cone.size):
            span = range(start, start + cone.size)
            cones.append([cone.kind, [[str(-(lp.row_lower[i] or 0)), form(lp.rows[i])] for i in span]])
            duals.append([str(multipliers[i]) for i in span])
        at += cone.matrix.shape[0]
    square: list[list[str]] = []
    point: dict[str, dict[str, str]] = {}
    if optimum is not None:
        (at_point, hessian), cost, offset = optimum, list(lp.cost), lp.offset
        x = at_point.x
        for (j, k), a in hessian.items():
            cost[j] -= a * x[k]
            offset += a * x[j] * x[k] / 2
        lp = replace(lp, cost=cost, offset=offset)
        square = [[names[j], names[k], str(a)] for (j, k), a in hessian.items() if j >= k]
        point = {"point": {names[j]: str(x[j]) for j in at_point.given}}
    return {
        "kind": "infeasible" if bound is None else "bound",
        "program": {
            "columns": [[x, *ends(*pair)] for x, *pair in zip(names, lp.lower, lp.upper, strict=True)],
            "rows": [[name, form(row), *ends(*pair)] for name, (row, *pair) in zip(labels, own, strict=True)],
            "cones": cones,
            "square": square,
            "cost": form(dict(enumerate(lp.cost))),
            "offset": str(lp.offset),
            "maximize": False,
        },
        "rows": {name: str(y) for name, y in zip(labels, multipliers, strict=False) if y},
        "cones": duals,
        **({} if bound is None else {"bound": str(bound)}),
        **point,
    }
