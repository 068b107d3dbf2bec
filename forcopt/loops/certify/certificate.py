"""A certificate: the facts that are proved of a solution, in exact rational arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from flint import fmpq

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.loops.certify.evaluation import ROUGH, ExactPoint, exact_values
from forcopt.loops.exact_lp import Rational, fraction
from forcopt.notebook import facts_html


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
    digits = sum(_digits(abs(part)) for part in value.as_integer_ratio())
    if digits <= 24:
        return str(value)
    return f"{value.numerator / value.denominator:.17g} (a fraction of {digits} digits)"


def _first(names: list[str]) -> str:
    """The first names of many."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} others"


def _digits(value: int) -> int:
    """The number of decimal digits; Python refuses to write integers of more than 4,300."""
    guess = int(value.bit_length() * 0.30102999566398120) + 1
    return guess - 1 if 10 ** (guess - 1) > value > 0 else guess


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
