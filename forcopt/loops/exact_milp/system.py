"""Rows and bounds in integers, so that what multipliers of them prove is computed without rounding.

Each row is scaled by its own factor and the bounds by a common one until all numbers are integers. The
multipliers that floating-point simplex proposes are rounded to integers, too: any multipliers prove some
bound (Neumaier and Shcherbina, 2004), and this one is exact. 64-bit integers serve while no sum can pass
their range, Python's otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import gcd, lcm

import numpy as np

from forcopt.arrays import Array
from forcopt.loops.exact_lp import LinearProgram, Rational
from forcopt.loops.exact_milp.proof import Derived, Number, Parts, Ref
from forcopt.rationals import ceil, floor, fmpq

_RANGE = 2.0**62
"""64-bit integers hold sums below it."""

_WIDEST = 10**9
"""Bounds keep a common denominator up to this; finer ones are rounded outward where they are derived."""

_SIMPLE = 5000
"""Denominators of multipliers that are taken for simple fractions."""

_STEP = 1e-3
"""A derived bound of a continuous column must gain this much, relative to its width."""


@dataclass(eq=False, slots=True)
class Row:
    """A row ``low <= coefficients @ x <= high`` in integers.

    Attributes
    ----------
    coefficients : dict[int, int]
        By column.
    low, high : int, optional
        None for an infinite side.
    scale : Number
        The coefficients are those of the lines times this.
    lines : tuple[Ref, Ref]
        Which state that the row is at least `low`, and at most `high`.
    unit : float
        For solvers the coefficients are divided by it.
    whole : bool
        Whether all its columns are integer, and hence its value.
    """

    coefficients: Mapping[int, int]
    low: int | None
    high: int | None
    scale: Number
    lines: tuple[Ref, Ref]
    unit: float
    whole: bool


@dataclass(eq=False, slots=True)
class Claim:
    """What multipliers prove: ``objective * cost @ x >= value / grid`` for all points within the bounds.

    Attributes
    ----------
    objective : int
        The weight of the objective.
    weights : dict[int, int]
        Multipliers of the rows.
    reduced : list[tuple[int, int]]
        The columns with a multiplier of a bound, and it: positive for the lower one.
    value : int
        Times the common denominator of the bounds.
    """

    objective: int
    weights: dict[int, int]
    reduced: list[tuple[int, int]]
    value: int


def integers(values: Sequence[Rational]) -> tuple[list[int], int]:
    """Rationals times their least common denominator, and that."""
    common = lcm(*(int(v.denominator) for v in values))
    return [int(v.numerator) * (common // int(v.denominator)) for v in values], common


def as_float(value: Rational) -> float:
    """The float nearest to a rational."""
    return int(value.numerator) / int(value.denominator)


class System:
    """The rows, bounds and objective of an integer program in integers.

    Parameters
    ----------
    lp : LinearProgram
        The relaxation.
    integer : Sequence[int]
        The columns that must be integer.
    lines : Sequence[tuple[int, int]]
        For each column, then each row, the lines of its lower and upper side.

    Attributes
    ----------
    grid : int
        The common denominator of the bounds.
    lower, upper : list[int | None]
        Bounds, times `grid`.
    lower_lines, upper_lines : list[Ref]
        The lines that state them.
    rows : list[Row]
        With cuts behind the program's own rows.
    cost : Row
        The objective; its `high` is the cutoff, rounded up.
    cutoff : Rational, optional
        Points matter only up to this value of `cost`.
    """

    def __init__(self, lp: LinearProgram, integer: Sequence[int], lines: Sequence[tuple[int, int]]) -> None:
        n = len(lp.cost)
        self.columns = n
        self.whole = np.zeros(n, dtype=bool)
        self.whole[list(integer)] = True
        ends = [b for b in (*lp.lower, *lp.upper) if b is not None]
        self.grid = lcm(*(int(b.denominator) for b in ends)) if ends else 1
        if self.grid < _WIDEST and not self.whole.all():
            self.grid *= 1024  # so that derived bounds of continuous columns are fine enough
        self.lower = [None if b is None else int(b * self.grid) for b in lp.lower]
        self.upper = [None if b is None else int(b * self.grid) for b in lp.upper]
        self.lower_lines: list[Ref] = [line for line, _ in lines[:n]]
        self.upper_lines: list[Ref] = [line for _, line in lines[:n]]
        self.rows = [
            self._row(row, low, high, at)
            for row, low, high, at in zip(lp.rows, lp.row_lower, lp.row_upper, lines[n:], strict=True)
        ]
        costs = {j: c for j, c in enumerate(lp.cost) if c}
        numbers, common = integers(list(costs.values()))
        whole = all(self.whole[j] for j in costs)
        divisor = gcd(*numbers) if whole and numbers else 1
        form = {j: a // divisor for j, a in zip(costs, numbers, strict=True)}
        scale, whole = fmpq(common, divisor), whole and bool(numbers)
        self.cost = Row(form, None, None, scale, (-1, -1), common / divisor, whole)
        self.cutoff: Rational | None = None
        for j in range(n):
            for side in (0, 1):
                self._round_whole(j, side)
        self.refresh()

    def cut_off(self, limit: Rational, line: Ref, scale: Number) -> None:
        """Let a line state that points matter only up to a value of `cost`, which is `scale` times it."""
        self.cutoff, self.cost.high = limit, ceil(limit)
        self.cost.lines, self.cost.scale = (-1, line), scale

    def _round_whole(self, j: int, side: int) -> None:
        """Round the bound of an integer column inward."""
        at = (self.lower, self.upper)[side][j]
        if not self.whole[j] or at is None or at % self.grid == 0:
            return
        limit = -(-at // self.grid) if side == 0 else at // self.grid
        self.set_bound(j, side, limit * self.grid, [(self.ref(j, side), 1)], True)

    def ref(self, j: int, side: int) -> Ref:
        """The line of a column's bound."""
        return (self.lower_lines, self.upper_lines)[side][j]

    def set_bound(
        self, j: int, side: int, value: int, parts: Parts | Callable[[], Parts], rounded: bool
    ) -> None:
        """Tighten a bound by a constraint that follows from others."""
        line = Derived({j: 1}, "GL"[side], fmpq(value, self.grid), parts, rounded)
        if side == 0:
            self.lower[j], self.lower_lines[j] = value, line
        else:
            self.upper[j], self.upper_lines[j] = value, line

    def _row(
        self, row: Mapping[int, Rational], low: Rational | None, high: Rational | None, at: tuple[int, int]
    ) -> Row:
        entries = {j: a for j, a in row.items() if a}
        numbers, common = integers([*entries.values(), *(b for b in (low, high) if b is not None)])
        numbers = numbers[: len(entries)]
        low, high = (None if b is None else int(b * common) for b in (low, high))
        whole = all(self.whole[j] for j in entries)
        return Row(dict(zip(entries, numbers, strict=True)), low, high, common, at, float(common), whole)

    def refresh(self) -> None:
        """Lay the rows out by column, after they have changed; bounds as arrays."""
        entries = [(j, i, a) for i, row in enumerate(self.rows) for j, a in row.coefficients.items()]
        entries += [(j, len(self.rows), a) for j, a in self.cost.coefficients.items()]
        entries.sort()
        at = np.array([j for j, _, _ in entries], dtype=np.int64)
        self._used, self._starts = np.unique(at, return_index=True)
        self._row_of = np.array([i for _, i, _ in entries], dtype=np.int64)
        numbers = [a for _, _, a in entries]
        sizes = np.array([float(abs(a)) for a in numbers])
        self._largest = float(np.add.reduceat(sizes, self._starts).max()) if len(sizes) else 1.0
        self._data = np.array(numbers, dtype=np.int64 if self._largest < _RANGE else object)
        self._low = _array([row.low for row in self.rows])
        self._high = _array([row.high for row in self.rows])
        self.units = np.array([row.unit for row in self.rows])
        self.low_known = np.array([row.low is not None for row in self.rows], dtype=bool)
        self.high_known = np.array([row.high is not None for row in self.rows], dtype=bool)
        self.bounds_changed()

    def bounds_changed(self) -> None:
        """Read the bounds into arrays."""
        self.low_at, self.high_at = _array(self.lower), _array(self.upper)
        self.has_low = np.array([b is not None for b in self.lower], dtype=bool)
        self.has_high = np.array([b is not None for b in self.upper], dtype=bool)

    def bound_changed(self, j: int, side: int) -> None:
        """Read one bound into its array."""
        value = (self.lower, self.upper)[side][j]
        held = self.low_at if side == 0 else self.high_at
        if held.dtype != object and abs(value or 0) >= _RANGE:
            self.bounds_changed()
            return
        held[j] = value or 0
        (self.has_low if side == 0 else self.has_high)[j] = value is not None

    def claim(self, y: Array, objective: bool, size: float) -> Claim | None:
        """What multipliers prove once they are rounded to integers up to about `size`.

        Parameters
        ----------
        y : Array
            For each row as solvers see it.
        objective : bool
            Whether they are to bound the objective; else they are to show that no point exists.
        size : float
            The largest integer.

        Returns
        -------
        Claim or None
            None if a bound that they need is infinite.
        """
        scaled = y / self.units
        largest = max(float(np.abs(scaled).max(initial=0.0)), 1.0 / self.cost.unit if objective else 0.0)
        if not np.isfinite(largest) or largest == 0.0:
            return None
        factor = size / largest
        weight = max(round(factor / self.cost.unit), 1) if objective else 0
        if objective:
            factor = weight * self.cost.unit
        whole = np.rint(scaled * factor)
        whole[(whole > 0) & ~self.low_known | (whole < 0) & ~self.high_known] = 0.0
        return self.exact_claim(whole, weight)

    def simple_claim(self, y: Array, objective: bool) -> Claim | None:
        """The same with multipliers taken for simple fractions, if they are near to some."""
        unit = (
            self.cost.unit if objective else 1.0 / max(float(np.abs(y / self.units).max(initial=0.0)), 1e-30)
        )
        near = [Fraction(v).limit_denominator(_SIMPLE) for v in (y / self.units * unit).tolist()]
        common = lcm(*(v.denominator for v in near))
        if common > _SIMPLE**3:
            return None
        whole = [v.numerator * (common // v.denominator) for v in near]
        return self.exact_claim(np.array(whole, dtype=object), common if objective else 0)

    def exact_claim(self, whole: Array, weight: int) -> Claim | None:
        """What integer multipliers of the rows prove; see `claim`."""
        if whole.dtype == object:
            y = np.append(-whole, weight)
            narrow = False
        else:
            top = max(float(np.abs(whole).max(initial=0.0)), float(weight))
            narrow = self._data.dtype != object and top * self._largest < _RANGE
            y = np.append(-whole, weight).astype(np.int64 if top < _RANGE else object)
            if not narrow:
                y = np.array([int(v) for v in (*(-whole).tolist(), weight)], dtype=object)
        data = self._data if narrow else self._data.astype(object)
        sums = np.add.reduceat(data * y[self._row_of], self._starts) if len(self._data) else data
        at = self._used[sums != 0] if len(self._data) else self._used
        d = sums[sums != 0]
        positive = np.asarray(d > 0, dtype=bool)
        if (~np.where(positive, self.has_low[at], self.has_high[at])).any():
            return None
        y = -y[:-1]
        rows = np.flatnonzero(np.asarray(y != 0, dtype=bool))
        side = np.asarray(y[rows] > 0, dtype=bool)
        value = self.grid * _dot(y[rows], np.where(side, self._low[rows], self._high[rows]))
        value += _dot(d, np.where(positive, self.low_at[at], self.high_at[at]))
        return Claim(
            weight,
            dict(zip(rows.tolist(), map(int, y[rows].tolist()), strict=True)),
            list(zip(at.tolist(), map(int, d.tolist()), strict=True)),
            value,
        )

    def parts(self, claim: Claim) -> Parts:
        """The constraints of a claim with their multipliers: rows, then bounds of columns."""
        out: Parts = []
        for i, weight in claim.weights.items():
            row = self.rows[i]
            out.append((row.lines[0 if weight > 0 else 1], weight * row.scale))
        for j, weight in claim.reduced:
            out.append((self.ref(j, 0 if weight > 0 else 1), weight))
        return out

    def tighten(self, row: Row, sign: int) -> list[int]:
        """Derive bounds from one side of a row; give the columns of which a bound has changed.

        Parameters
        ----------
        row : Row
            The objective or another.
        sign : int
            1 for its lower side, -1 for its upper one.
        """
        limit = row.low if sign > 0 else row.high
        if limit is None:
            return []
        entries = [(j, sign * a) for j, a in row.coefficients.items()]
        most, open_at = -sign * limit * self.grid, -1  # the greatest value of the row less its limit
        for j, a in entries:
            end = self.upper[j] if a > 0 else self.lower[j]
            if end is not None:
                most += a * end
            elif open_at >= 0:
                return []
            else:
                open_at = j
        changed = []
        parts: list[tuple[int, tuple[Ref, Number]]] = []
        for j, a in entries:
            if open_at >= 0 and j != open_at:
                continue
            end = self.upper[j] if a > 0 else self.lower[j]
            room = most if end is None else most - a * end  # a x_j >= -room / grid
            whole = bool(self.whole[j])
            steps = room // (abs(a) * self.grid) * self.grid if whole else -(-room // abs(a))
            bound = -steps if a > 0 else steps
            side = 0 if a > 0 else 1
            old = (self.lower, self.upper)[side][j]
            if not self._gains(j, side, bound, old):
                continue
            if not parts:
                parts = [(-1, (row.lines[0 if sign > 0 else 1], sign * row.scale))]
                parts += [(k, (self.ref(k, 1 if b > 0 else 0), -b)) for k, b in entries if k != open_at]
            self.set_bound(j, side, bound, partial(_shared, parts, j, a), whole)
            changed.append(j)
        return changed

    def _gains(self, j: int, side: int, bound: int, old: int | None) -> bool:
        """Whether a bound is worth a line."""
        if old is None:
            return abs(bound) <= _WIDEST * self.grid
        gain = bound - old if side == 0 else old - bound
        if gain <= 0:
            return False
        other = (self.upper, self.lower)[side][j]
        return bool(self.whole[j]) or other is None or gain > _STEP * max(abs(other - old), self.grid)

    def reduce(self, claim: Claim) -> list[int]:
        """Derive bounds of integer columns from a claim and the cutoff (reduced cost fixing)."""
        assert self.cutoff is not None
        room = floor(claim.objective * self.cutoff * self.grid) - claim.value
        changed: list[int] = []
        if room < 0:
            return changed
        cutoff = (self.cost.lines[1], -claim.objective * self.cost.scale)
        own = [-1] * len(claim.weights) + [j for j, _ in claim.reduced]
        parts = [(-1, cutoff), *zip(own, self.parts(claim), strict=True)]
        for j, d in claim.reduced:
            if not self.whole[j]:
                continue
            side = 1 if d > 0 else 0
            near, far = (self.lower[j], self.upper[j]) if d > 0 else (self.upper[j], self.lower[j])
            assert near is not None
            steps = room // abs(d)
            bound = ((near + steps) // self.grid if d > 0 else -((steps - near) // self.grid)) * self.grid
            if far is not None and (far - bound) * (1 if d > 0 else -1) <= 0:
                continue
            self.set_bound(j, side, bound, partial(_shared, parts, j, -d), True)
            changed.append(j)
        return changed

    def crossed(self, columns: Iterable[int]) -> int | None:
        """The first of some columns whose bounds contradict each other; None without one."""
        for j in columns:
            low, high = self.lower[j], self.upper[j]
            if low is not None and high is not None and low > high:
                return j
        return None


def _shared(parts: list[tuple[int, tuple[Ref, Number]]], skip: int, divisor: int) -> Parts:
    """The constraints of a row without the bound of one column, divided by its coefficient."""
    return [(ref, fmpq(weight) / divisor) for k, (ref, weight) in parts if k != skip]


def _array(values: Sequence[int | None]) -> Array:
    numbers = [v or 0 for v in values]
    return np.array(numbers, dtype=np.int64 if all(abs(v) < 2**62 for v in numbers) else object)


def _dot(a: Array, b: Array) -> int:
    """The sum of products, in Python's integers where 64 bits might not do."""
    numbers = a.dtype != object and b.dtype != object
    if numbers and float(np.abs(a.astype(float)) @ np.abs(b.astype(float))) < _RANGE:
        return int(a @ b)
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))
