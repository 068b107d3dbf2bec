"""Linear programs over the rationals: floating-point simplex proposes, exact arithmetic proves.

Every float is a rational number, and is taken for exactly that. HiGHS proposes a basis; the vertex and the
multipliers that belong to it are computed as fractions and checked. Where the basis is wrong by rounding, the
errors are scaled up and solved for again (iterative refinement: Gleixner, Steffy and Wolter, 2016), until it
is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.highs import new_highs
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.errors import UnboundedExpressionError
from forcopt.loops.exact_solve import block_triangles, solve_blocks
from forcopt.loops.tolerances import DEPENDENT, FAR_BOUND, HUGE, REFINED
from forcopt.rationals import floor, fmpq

Rational = Any
"""A ``flint.fmpq``: exact and quick; `fraction` makes it a `fractions.Fraction`."""

LARGEST_EXACT = 200_000
"""Claims about programs of more entries are not checked in rational arithmetic: too slow."""

_REFINEMENTS = 6
"""How often errors are scaled up and solved for again."""

_ZOOM = 2**40
"""The most by which the scale grows each time."""

_SECONDS = 60.0
"""How long floating-point simplex may take in all for one program."""

WIDE = 1000
"""Programs with so many columns a row are solved without presolve: that of HiGHS 1.16 compares all columns of
a row, which took 40 s for 88,712 columns in one row; without it 4 s."""

_RECOGNIZABLE = fmpq(1, 10**30)
"""Values with smaller errors may be recognized as fractions."""

_LARGEST_BLOCK = 5000
"""A basis is not solved exactly if a block of its block triangular form has more rows: too slow."""


def rational(value: float) -> Rational:
    """The rational number that a float is."""
    return fmpq(*float(value).as_integer_ratio())


def decimal(value: float) -> Rational:
    """The shortest decimal number that rounds to a float, as a rational: 1/10 for 0.1.

    Examples
    --------
    >>> decimal(0.1), rational(0.1) == decimal(0.1)
    (1/10, False)
    """
    return _fmpq(Fraction(repr(float(value))))


def fraction(value: Rational) -> Fraction:
    """The same number as a `fractions.Fraction`."""
    return Fraction(int(value.numerator), int(value.denominator))


def _fmpq(value: Fraction) -> Rational:
    return fmpq(value.numerator, value.denominator)


def _ends(values: Array, number: Callable[[float], Rational]) -> list[Rational | None]:
    """Each float as a rational, read once per value; None for an infinite one."""
    known = {v: number(v) if np.isfinite(v) else None for v in np.unique(values).tolist()}
    return [known[v] for v in values.tolist()]


def _entries(block: RowBlock, number: Callable[[float], Rational]) -> list[dict[int, Rational]]:
    """The coefficients of each row by column."""
    entries = list(zip(block.indices.tolist(), _ends(block.data, number), strict=True))
    return [dict(entries[a:b]) for a, b in zip(block.indptr[:-1], block.indptr[1:], strict=True)]


def _slack(
    row: dict[int, Rational],
    sign: int,
    end: Rational,
    lower: Sequence[Rational | None],
    upper: Sequence[Rational | None],
) -> Rational:
    """By how much a row can violate its lower (1) or upper (-1) side within the bounds of the columns."""
    out = sign * end
    for j, a in row.items():
        worst = lower[j] if sign * a > 0 else upper[j]
        if worst is None:
            raise UnboundedExpressionError(
                f"column {j} in an indicator row needs a finite {'lower' if sign * a > 0 else 'upper'} bound"
            )
        out -= sign * a * worst
    return out


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise ``cost @ x + offset`` with ``row_lower <= rows @ x <= row_upper``, ``lower <= x <= upper``.

    Attributes
    ----------
    cost, offset, lower, upper, row_lower, row_upper
        Rationals; None for an infinite bound.
    rows : list[dict[int, Rational]]
        The coefficients of each row by column.
    number : Callable[[float], Rational], default rational
        Reads the floats of a program; `rational` or `decimal`.
    """

    cost: list[Rational]
    offset: Rational
    lower: list[Rational | None]
    upper: list[Rational | None]
    rows: list[dict[int, Rational]]
    row_lower: list[Rational | None]
    row_upper: list[Rational | None]
    number: Callable[[float], Rational] = rational

    @classmethod
    def of(cls, program: Program, number: Callable[[float], Rational] = rational) -> LinearProgram:
        """Read the first stage, bounds and rows of a program, without its integrality.

        An indicator row becomes a row that an exact constant switches off: the disjunction of its binary.

        Raises
        ------
        UnboundedExpressionError
            If the bounds of the columns give no such constant.
        """
        block = program.rows
        lower, upper = _ends(program.lower, number), _ends(program.upper, number)
        rows, low, high = _entries(block, number), _ends(block.lower, number), _ends(block.upper, number)
        for held in program.indicators:
            ends = zip(_ends(held.rows.lower, number), _ends(held.rows.upper, number), strict=True)
            for j, row, (least, most) in zip(
                held.columns.tolist(), _entries(held.rows, number), ends, strict=True
            ):
                for sign, end in ((1, least), (-1, most)):
                    slack = None if end is None else _slack(row, sign, end, lower, upper)
                    if slack is None or slack <= 0:  # no demand, or the bounds of the columns meet it
                        continue
                    off = sign * slack  # by which the row misses its end at most
                    shifted = end - off if held.active == 1 else end
                    rows.append({**row, j: row.get(j, 0) + (-off if held.active == 1 else off)})
                    low.append(shifted if sign == 1 else None)
                    high.append(shifted if sign == -1 else None)
        cost, offset = _ends(program.stages[0].cost, number), number(program.stages[0].offset)
        return cls(cost, offset, lower, upper, rows, low, high, number)

    def aiming(self, stage: StageCost) -> LinearProgram:
        """The same with another objective."""
        return replace(self, cost=_ends(stage.cost, self.number), offset=self.number(stage.offset))

    def holding(self, value: Rational) -> LinearProgram:
        """The same with a row that keeps the objective at most at `value`."""
        rows = [*self.rows, {j: c for j, c in enumerate(self.cost) if c}]
        upper = [*self.row_upper, value - self.offset]
        return replace(self, rows=rows, row_lower=[*self.row_lower, None], row_upper=upper)

    def value(self, x: Sequence[Rational]) -> Rational:
        """The objective at a point."""
        return sum((c * v for c, v in zip(self.cost, x, strict=True) if c), self.offset)

    def activity(self, x: Sequence[Rational]) -> list[Rational]:
        """The left-hand sides of the rows at a point."""
        return [sum((a * x[j] for j, a in row.items()), fmpq(0)) for row in self.rows]

    def reduced_costs(self, y: Sequence[Rational]) -> list[Rational]:
        """The costs that multipliers of the rows leave: ``cost - y @ rows``."""
        out = list(self.cost)
        for row, multiplier in zip(self.rows, y, strict=True):
            if multiplier:
                for j, a in row.items():
                    out[j] -= multiplier * a
        return out

    def holds(self, x: Sequence[Rational]) -> bool:
        """Whether a point satisfies every bound and row, exactly."""
        return not any(_outside(*ends) for ends in self.ends(x))

    def ends(self, x: Sequence[Rational]) -> Iterator[tuple[Rational, Rational | None, Rational | None]]:
        """The values of the columns and then of the rows at a point, each with its bounds."""
        yield from zip(x, self.lower, self.upper, strict=True)
        yield from zip(self.activity(x), self.row_lower, self.row_upper, strict=True)

    def bound(self, y: Sequence[Rational]) -> Rational | None:
        """The lower bound on the optimum that any multipliers of the rows prove, or None if it is infinite.

        Rows enter with their multipliers, columns with their reduced costs, each at the worse of its
        bounds (Neumaier and Shcherbina, 2004).
        """
        total = self.offset
        parts = ((y, self.row_lower, self.row_upper), (self.reduced_costs(y), self.lower, self.upper))
        for weights, lower, upper in parts:
            for weight, low, high in zip(weights, lower, upper, strict=True):
                if weight:
                    worst = low if weight > 0 else high
                    if worst is None:
                        return None
                    total += weight * worst
        return total


@dataclass(eq=False)
class Exact:
    """The exact facts about a linear program.

    Attributes
    ----------
    status : str, default "unknown"
        The status of floating-point simplex: ``optimal``, ``infeasible``, ``unbounded`` or ``unknown``.
    point : list[Rational], optional
        One that satisfies everything exactly, or None.
    value : Rational, optional
        The objective there.
    dual : list[Rational], optional
        Multipliers of the rows, or None.
    bound : Rational, optional
        The lower bound on the optimum that they prove.
    """

    status: str = "unknown"
    point: list[Rational] | None = None
    value: Rational | None = None
    dual: list[Rational] | None = None
    bound: Rational | None = None

    @property
    def proved(self) -> bool:
        """Whether the point is optimal."""
        return self.point is not None and bool(self.value == self.bound)

    def offer(self, lp: LinearProgram, x: list[Rational], y: list[Rational]) -> None:
        """Keep a point and multipliers if they are better than the known ones."""
        value, bound = lp.value(x), lp.bound(y)
        if (self.value is None or value < self.value) and lp.holds(x):
            self.point, self.value = x, value
        if bound is not None and (self.bound is None or bound > self.bound):
            self.dual, self.bound = y, bound


_BASIC, _LOWER, _UPPER, _FREE = range(4)


@dataclass(frozen=True, eq=False)
class _Step:
    """The proposal of floating-point simplex: values, multipliers, and the place of each column and row."""

    x: list[Rational]
    y: list[Rational]
    column_place: list[int]
    row_place: list[int]


class _Simplex:
    """HiGHS's simplex method on a program whose bounds and costs are scaled and shifted."""

    def __init__(self, lp: LinearProgram) -> None:
        self.highs = new_highs()
        options: dict[str, Any] = {"solver": "simplex"}
        options |= dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), REFINED)
        options["time_limit"] = _SECONDS  # HiGHS counts all runs of an instance together
        for name, value in options.items():
            self.highs.setOptionValue(name, value)
        indptr = np.cumsum([0] + [len(row) for row in lp.rows]).astype(np.int32)
        indices = np.array([j for row in lp.rows for j in row], dtype=np.int32)
        data = np.array([float(a) for row in lp.rows for a in row.values()])
        n, m = len(lp.cost), len(lp.rows)
        if n > WIDE * m:
            self.highs.setOptionValue("presolve", "off")
        self.highs.addVars(n, np.zeros(n), np.zeros(n))
        self.highs.addRows(m, np.zeros(m), np.zeros(m), len(data), indptr[:-1], indices, data)

    def run(
        self,
        lp: LinearProgram,
        x: list[Rational],
        y: list[Rational],
        primal_scale: Rational,
        dual_scale: Rational,
    ) -> tuple[str, _Step | None]:
        """Solve for the correction of `x` and `y`, magnified by the scales.

        A row whose multiplier has the right sign and is large under the magnification is held at its bound.
        The multiplier of any other inequality is left in the costs: its sign counts.
        """
        import highspy

        highs, kind = self.highs, highspy.HighsModelStatus
        columns, rows = np.arange(len(x), dtype=np.int32), np.arange(len(y), dtype=np.int32)
        low, high = _shifted(lp.row_lower, lp.row_upper, lp.activity(x), primal_scale)
        size = np.array([float(v * dual_scale) for v in y])
        at_low, at_high = (size > HUGE) & (low == 0), (size < -HUGE) & (high == 0)
        kept = (low == high) | at_low | at_high
        high, low = np.where(at_low, 0.0, high), np.where(at_high, 0.0, low)
        shift = [v if keep else fmpq(0) for v, keep in zip(y, kept.tolist(), strict=True)]
        cost = [float(d * dual_scale) for d in lp.reduced_costs(shift)]
        highs.changeColsCost(len(x), columns, np.clip(cost, -HUGE, HUGE))
        highs.changeColsBounds(len(x), columns, *_shifted(lp.lower, lp.upper, x, primal_scale))
        highs.changeRowsBounds(len(y), rows, low, high)
        known = {kind.kOptimal: "optimal", kind.kInfeasible: "infeasible", kind.kUnbounded: "unbounded"}
        highs.run()
        if highs.getModelStatus() not in known:
            highs.clearSolver()  # it may have stumbled over the basis that it continued from
            highs.run()
        status = known.get(highs.getModelStatus(), "unknown")
        solution, basis = highs.getSolution(), highs.getBasis()
        if status != "optimal" or not basis.valid:
            return status, None
        names = highspy.HighsBasisStatus
        place = {names.kBasic: _BASIC, names.kLower: _LOWER, names.kUpper: _UPPER}
        row_place = np.array([place.get(s, _FREE) for s in basis.row_status])
        row_place[at_low & (row_place != _BASIC)] = _LOWER
        row_place[at_high & (row_place != _BASIC)] = _UPPER
        return status, _Step(
            [v + rational(s) / primal_scale for v, s in zip(x, solution.col_value, strict=True)],
            [v + rational(s) / dual_scale for v, s in zip(shift, solution.row_dual, strict=True)],
            [place.get(s, _FREE) for s in basis.col_status],
            row_place.tolist(),
        )


def _shifted(
    lower: list[Rational | None], upper: list[Rational | None], by: list[Rational], scale: Rational
) -> tuple[Array, Array]:
    low = [-np.inf if b is None else float((b - v) * scale) for b, v in zip(lower, by, strict=True)]
    high = [np.inf if b is None else float((b - v) * scale) for b, v in zip(upper, by, strict=True)]
    lows, highs = np.array(low), np.array(high)
    return np.where(lows < -FAR_BOUND, -np.inf, lows), np.where(highs > FAR_BOUND, np.inf, highs)


def exact_optimum(lp: LinearProgram) -> Exact:
    """Solve a linear program exactly, or as nearly as it can be proved.

    Each proposed basis is computed exactly. If it is not optimal, its errors alone are magnified, so that
    the next run of the simplex method sees them. A basis whose equations are too many is not solved for:
    there the floating-point errors are scaled up until the values can be recognized as fractions.
    """
    x, y = [fmpq(0)] * len(lp.cost), [fmpq(0)] * len(lp.rows)
    primal_scale = dual_scale = fmpq(1)
    out = Exact()
    if not x:  # without columns there is no basis
        out.offer(lp, x, y)
        out.status = "infeasible" if out.point is None else "optimal"
        return out
    simplex = _Simplex(lp)
    for _ in range(_REFINEMENTS):
        status, step = simplex.run(lp, x, y, primal_scale, dual_scale)
        if out.point is None or status == "optimal":
            out.status = status  # infeasibility may only show under the magnifying glass
        if step is None and dual_scale > 1:  # perhaps for the rows that were held
            dual_scale = fmpq(1)
            continue
        if step is None:
            break
        vertex = _vertex(lp, step)
        if vertex is not None:
            x, y = vertex
            out.offer(lp, x, y)
            if out.proved:
                break
            primal_scale = _inverse(_primal_error(lp, x))
            dual_scale = _inverse(_dual_error(lp, y, step))
            continue
        x, y = step.x, step.y
        out.offer(lp, x, y)
        primal_error, dual_error = _primal_error(lp, x), _dual_error(lp, y, step)
        if not out.proved and max(primal_error, dual_error) < _RECOGNIZABLE:
            out.offer(lp, [_recognized(v, primal_error) for v in x], [_recognized(v, dual_error) for v in y])
        if out.proved:
            break
        primal_scale = _rescaled(primal_scale, primal_error)
        dual_scale = _rescaled(dual_scale, dual_error)
    return out


def _recognized(value: Rational, error: Rational) -> Rational:
    """The simplest fraction within an error of a value that is known to twice as many digits."""
    digits = max(floor(1 / error).bit_length(), 40) if error else 200
    return _fmpq(fraction(value).limit_denominator(2 ** (digits // 3)))


def _inverse(error: Rational) -> Rational:
    """The power of two that scales an error to about one; 1 for an error of 0."""
    return fmpq(2) ** max(floor(1 / error).bit_length() - 1, 0) if error else fmpq(1)


def _rescaled(scale: Rational, error: Rational) -> Rational:
    """The power of two that makes the largest error about one, not much above the scale before."""
    finest = scale * _ZOOM
    return min(max(_inverse(error), scale), finest) if error else finest


def _outside(value: Rational, low: Rational | None, high: Rational | None) -> Rational:
    if low is not None and value < low:
        return low - value
    return value - high if high is not None and value > high else fmpq(0)


def _primal_error(lp: LinearProgram, x: list[Rational]) -> Rational:
    return max((_outside(*ends) for ends in lp.ends(x)), default=fmpq(0))


def _dual_error(lp: LinearProgram, y: list[Rational], step: _Step) -> Rational:
    """By how much reduced costs and multipliers have the wrong sign for their place in the basis."""
    worst = fmpq(0)
    parts = (
        (lp.reduced_costs(y), step.column_place, lp.lower, lp.upper),
        (y, step.row_place, lp.row_lower, lp.row_upper),
    )
    for weights, places, lower, upper in parts:
        for weight, place, low, high in zip(weights, places, lower, upper, strict=True):
            if place == _BASIC or (low is None and high is None):
                error = abs(weight)
            elif low == high:
                continue
            else:
                error = weight if high is not None and (place == _UPPER or low is None) else -weight
            worst = max(worst, error)
    return worst


def _vertex(lp: LinearProgram, step: _Step) -> tuple[list[Rational], list[Rational]] | None:
    """The point and the multipliers that belong to a basis, or None if it is singular or too large."""
    x = [_placed(*ends) for ends in zip(step.column_place, lp.lower, lp.upper, strict=True)]
    basic = {j: k for k, j in enumerate(j for j, place in enumerate(step.column_place) if place == _BASIC)}
    tight = [i for i, place in enumerate(step.row_place) if place != _BASIC]
    if len(tight) != len(basic):
        return None
    matrix = [{basic[j]: a for j, a in lp.rows[i].items() if j in basic} for i in tight]
    target = [
        _placed(step.row_place[i], lp.row_lower[i], lp.row_upper[i])
        - sum((a * x[j] for j, a in lp.rows[i].items() if j not in basic), fmpq(0))
        for i in tight
    ]
    form = block_triangles(matrix)
    if form is None or form.largest > _LARGEST_BLOCK:
        return None
    primal = solve_blocks(matrix, target, form)
    if primal is None:
        return None
    transposed: list[dict[int, Rational]] = [{} for _ in basic]
    for i, row in enumerate(matrix):
        for k, a in row.items():
            transposed[k][i] = a
    dual = solve_blocks(transposed, [lp.cost[j] for j in basic], form.transposed())
    if dual is None:
        return None
    for j, k in basic.items():
        x[j] = primal[k]
    y = [fmpq(0)] * len(lp.rows)
    for i, multiplier in zip(tight, dual, strict=True):
        y[i] = multiplier
    return x, y


def _placed(place: int, low: Rational | None, high: Rational | None) -> Rational:
    """Where something that is not basic stands."""
    first, second = (high, low) if place == _UPPER else (low, high)
    return first if first is not None else second if second is not None else fmpq(0)


def _with_slacks(lp: LinearProgram, count: int) -> LinearProgram:
    """The program with further columns of at least 0, whose sum is to be least."""
    zero, zeros = fmpq(0), [fmpq(0)] * count
    cost, upper = [zero] * len(lp.cost) + [fmpq(1)] * count, [*lp.upper, *[None] * count]
    return replace(lp, cost=cost, offset=zero, lower=[*lp.lower, *zeros], upper=upper)


def farkas(lp: LinearProgram) -> list[Rational] | None:
    """Multipliers of the rows that prove that no point satisfies a program, or None if none were found.

    They prove a positive lower bound on the sum of the rows' violations, in the units of the rows or else
    relative to their largest entries.
    """
    n, m, one = len(lp.cost), len(lp.rows), fmpq(1)
    largest = [max((abs(a) for a in row.values()), default=one) for row in lp.rows]
    for units in ([one] * m, largest):
        slacks = ({n + i: unit, n + m + i: -unit} for i, unit in enumerate(units))
        rows = [{**row, **slack} for row, slack in zip(lp.rows, slacks, strict=True)]
        found = exact_optimum(replace(_with_slacks(lp, 2 * m), rows=rows))
        if found.proved and found.value == 0:
            return None
        if found.bound is not None and found.bound > 0:
            return found.dual
    return None


def nearest_point(lp: LinearProgram, x: Sequence[Rational]) -> list[Rational] | None:
    """The point of a program that is nearest to `x` in the sum of absolute differences, exactly.

    Parameters
    ----------
    lp : LinearProgram
        Its objective does not matter.
    x : Sequence[Rational]
        Values of the first columns; the others are free to follow.
    """
    n, k, one = len(lp.cost), len(x), fmpq(1)
    rows = [*lp.rows, *({j: one, n + j: one, n + k + j: -one} for j in range(k))]
    low, high = [*lp.row_lower, *x], [*lp.row_upper, *x]
    apart = replace(_with_slacks(lp, 2 * k), rows=rows, row_lower=low, row_upper=high)
    found = exact_optimum(apart).point
    return None if found is None else found[:n]


def recession(lp: LinearProgram) -> LinearProgram:
    """The directions in which one can go on forever, cut to the unit box."""
    zero, one = fmpq(0), fmpq(1)
    return replace(
        lp,
        offset=zero,
        lower=[-one if b is None else zero for b in lp.lower],
        upper=[one if b is None else zero for b in lp.upper],
        row_lower=[None if b is None else zero for b in lp.row_lower],
        row_upper=[None if b is None else zero for b in lp.row_upper],
    )


def solve_exactly(
    rows: Sequence[dict[int, Rational]],
    usable: Sequence[int],
    columns: Sequence[int],
    target: Sequence[Rational],
) -> dict[int, Rational] | None:
    """Multipliers of some rows that add up to the target in some columns, exactly.

    A floating-point QR factorization with pivoting chooses as many rows as equations.

    Parameters
    ----------
    rows : Sequence of dict
        The coefficients of each row by column.
    usable : Sequence of int
        The rows that may be used.
    columns : Sequence of int
        Where the sum is wanted.
    target : Sequence of Rational
        One for each column, of all.

    Returns
    -------
    dict[int, Rational] or None
        The multipliers by row; None if there are none, or if the equations are too many.
    """
    from scipy.linalg import qr

    place = {j: k for k, j in enumerate(columns)}
    dense = np.zeros((len(columns), len(usable)))
    for k, i in enumerate(usable):
        for j, a in rows[i].items():
            if j in place:
                dense[place[j], k] = float(a)
    # Equations without any row must hold as they are; dependent ones are checked at the end.
    _, r, order = qr(dense, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(r))
    rank = int((pivots > DEPENDENT * pivots.max(initial=0.0)).sum())
    chosen = [usable[k] for k in order[:rank]]
    if rank < len(columns):
        _, _, picked = qr(dense[:, order[:rank]].T, mode="economic", pivoting=True)
        independent = [columns[k] for k in sorted(picked[:rank].tolist())]
    else:
        independent = list(columns)
    position = {i: k for k, i in enumerate(chosen)}
    equation = {j: k for k, j in enumerate(independent)}
    matrix: list[dict[int, Rational]] = [{} for _ in independent]
    for i in chosen:
        for j, a in rows[i].items():
            if j in equation:
                matrix[equation[j]][position[i]] = a
    form = block_triangles(matrix)
    if form is None or form.largest > _LARGEST_BLOCK:
        return None
    found = solve_blocks(matrix, [target[j] for j in independent], form)
    if found is None:
        return None
    left = {j: target[j] for j in columns}
    for i, value in zip(chosen, found, strict=True):
        for j, a in rows[i].items():
            if j in left:
                left[j] -= a * value
    return None if any(left.values()) else dict(zip(chosen, found, strict=True))
