"""Mixed-integer rounding cuts, each with a proof by two cases.

An equation ``sum_t a_t t + sum_s g_s s = b`` in integers t >= 0 and reals s >= 0 gives, with f the fractional
parts and f_b that of b,

    sum_t min(f_t / f_b, (1 - f_t) / (1 - f_b)) t + sum_s max(g_s / f_b, -g_s / (1 - f_b)) s >= 1.

For D = sum_t floor(a_t) t over f_t <= f_b, ceil(a_t) t over the others, it holds if D <= floor(b), and it
holds if D >= floor(b) + 1: these are the cases. The equations come from combinations of rows, with a slack
for each inequality; the t and s are slacks and distances from bounds. Floating point chooses, and rational
arithmetic computes.

References
----------
H. Marchand and L. A. Wolsey, "Aggregation and mixed integer rounding to solve MIPs", Operations Research 49
(2001).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from forcopt.arrays import Array
from forcopt.loops.exact_lp import Rational
from forcopt.loops.exact_milp.proof import Derived, Parts, Split
from forcopt.loops.exact_milp.system import Row, System, as_float
from forcopt.rationals import ceil, floor, fmpq

_AGGREGATED = 6
"""The most rows in a combination that follows continuous columns from row to row."""

_FRACTION = 0.02
"""Right-hand sides nearer to an integer give cuts with large coefficients."""

_LARGEST = 10**7
"""Coefficients are rounded to integers up to about this, if they are no smaller ones."""

_DENOMINATOR = 10**5
"""Multipliers in floating point are taken for fractions with denominators up to it."""

_DEPTH = 1e-4
"""A cut must be violated by more, relative to its norm."""

_EXACT = 120
"""The most cuts of a round that are computed exactly."""

_LONGEST = 40
"""Cuts of more entries, and a fifth of the columns, slow the simplex method down."""

_TINY = 1e-9
"""Smaller entries of a combination are rounding."""

Weights = Mapping[int, Rational]


@dataclass(eq=False, slots=True)
class _Equation:
    """An equation in distances from bounds and slacks, in floating point.

    Each item is a column (``at < n``) at its lower (0) or upper (1) bound, or the slack of row ``at - n``.
    """

    at: Array
    side: Array
    factor: Array
    value: Array
    whole: Array
    right: float


@dataclass(frozen=True, slots=True)
class _Term:
    """A column or row at a side: its factor in the equation, in D, and (`share`) in the cut."""

    at: int
    side: int
    factor: Rational
    whole: int
    share: Rational


class _Combination:
    """A combination of rows: a start, and the rows that then removed columns from it."""

    def __init__(self, start: Weights) -> None:
        self.start = start
        self.steps: list[tuple[int, int]] = []
        self.weights: dict[int, float] = {i: as_float(w) for i, w in start.items()}
        self.sum = np.zeros(0)

    def removing(self, j: int, i: int, weight: float, total: Array) -> _Combination:
        """The same with a multiple of row i that removes the column j."""
        out = _Combination({})
        out.start, out.steps = self.start, [*self.steps, (j, i)]
        out.weights = {**self.weights, i: weight}
        out.sum = total
        out.sum[j] = 0.0
        return out

    def exact(self, rows: Sequence[Row]) -> tuple[dict[int, Rational], dict[int, Rational]]:
        """The multipliers of the rows, and their sum by column."""
        weights: dict[int, Rational] = {}
        out: dict[int, Rational] = {}
        for i, weight in (*self.start.items(), *((i, j) for j, i in self.steps)):
            if isinstance(weight, int):  # the column to remove
                weight = -out.get(weight, fmpq(0)) / rows[i].coefficients[weight]
            if weight:
                weights[i] = weight
                for j, a in rows[i].coefficients.items():
                    out[j] = out.get(j, 0) + weight * a
        return weights, {j: a for j, a in out.items() if a}


class Separator:
    """Finds cuts that a point violates.

    Parameters
    ----------
    system : System
        Rows and bounds; new cuts are not added to it.
    x : Array
        The point.
    own : int
        How many rows are the program's own; the others are cuts, and start no chain of rows.
    """

    def __init__(self, system: System, x: Array, own: int) -> None:
        self.system, self.x, self.own, n = system, x, own, system.columns
        grid = float(system.grid)
        self.low = np.array([-np.inf if b is None else b / grid for b in system.lower])
        self.high = np.array([np.inf if b is None else b / grid for b in system.upper])
        rows = system.rows
        self.indices = [np.fromiter(row.coefficients, dtype=np.int64) for row in rows]
        self.values = [np.array([float(a) for a in row.coefficients.values()]) for row in rows]
        self.activity = np.array([v @ x[at] for at, v in zip(self.indices, self.values, strict=True)])
        low = np.array([-np.inf if row.low is None else float(row.low) for row in rows])
        high = np.array([np.inf if row.high is None else float(row.high) for row in rows])
        self.side = (self.activity - low > high - self.activity).astype(int)  # the nearer one
        self.end = np.where(self.side == 0, low, high)
        self.slack = np.abs(self.activity - self.end)
        self.equal = low == high
        self.whole = np.array([row.whole for row in rows], dtype=bool)
        self.distance = np.minimum(x - self.low, self.high - x)
        self.rows_of: list[list[int]] = [[] for _ in range(n)]
        self.switch: list[list[int]] = [[] for _ in range(n)]
        for i, row in enumerate(rows):
            real = [j for j in row.coefficients if not system.whole[j]]
            chosen = self.switch if len(real) == 1 and len(row.coefficients) == 2 else self.rows_of
            for j in real:
                chosen[j].append(i)

    def cuts(self, tableau: Sequence[Weights]) -> list[tuple[float, Row]]:
        """Cuts that x violates, by their depth; from single rows, chains of rows, and given combinations."""
        found: list[tuple[float, _Combination, _Equation, float]] = []

        def keep(part: _Combination) -> bool:
            best = self._best(part)
            if best is not None:
                found.append((best[0], part, *best[1:]))
            return best is not None

        for i in range(self.own):
            part: _Combination | None = self._started({i: fmpq(1)})
            for _ in range(_AGGREGATED):
                if part is None or keep(self._switched(part)):
                    break
                part = self._followed(part)
        for start in tableau:
            keep(self._started(start))
        found.sort(key=lambda candidate: -candidate[0])
        out: dict[tuple[tuple[int, int], ...], tuple[float, Row]] = {}
        for _, combination, equation, divisor in found[:_EXACT]:
            row = self._exact(combination, equation, divisor)
            depth = 0.0 if row is None else self._depth(row)
            if row is not None and depth > _DEPTH:
                out.setdefault(tuple(row.coefficients.items()), (depth, row))
        return sorted(out.values(), key=lambda pair: -pair[0])

    def _started(self, start: Weights) -> _Combination:
        out = _Combination(start)
        out.sum = np.zeros(self.system.columns)
        for i, weight in out.weights.items():
            out.sum[self.indices[i]] += weight * self.values[i]
        return out

    def _depth(self, row: Row) -> float:
        """The distance of the point from a cut, if it is on the wrong side."""
        assert row.low is not None
        a = np.array([float(v) for v in row.coefficients.values()])
        return float((row.low - a @ self.x[np.fromiter(row.coefficients, dtype=np.int64)]) / np.sqrt(a @ a))

    def _without(self, part: _Combination, j: int, i: int) -> _Combination:
        weight = -part.sum[j] / self.system.rows[i].coefficients[j]
        total = part.sum.copy()
        total[self.indices[i]] += weight * self.values[i]
        return part.removing(j, i, weight, total)

    def _real(self, part: _Combination) -> Array:
        """The continuous columns of a combination."""
        return np.flatnonzero((np.abs(part.sum) > _TINY) & ~self.system.whole)

    def _switched(self, part: _Combination) -> _Combination:
        """Remove continuous columns by rows with one integer column that are tighter than bounds."""
        for j in self._real(part).tolist():
            best, chosen = self.distance[j] - (1e-9 if self.distance[j] <= 1e-9 else 0.0), -1
            for i in self.switch[j]:
                near = self.slack[i] / abs(self.system.rows[i].coefficients[j])
                if i not in part.weights and near <= best + 1e-12:
                    best, chosen = near, i
            if chosen >= 0:
                part = self._without(part, j, chosen)
        return part

    def _followed(self, part: _Combination) -> _Combination | None:
        """Add the row that removes the continuous column farthest from its bounds; None without one."""
        columns = self._real(part)
        for j in columns[np.argsort(-self.distance[columns])].tolist():
            if self.distance[j] <= 1e-6:
                return None
            rows = [i for i in self.rows_of[j] if i not in part.weights]
            if rows:
                chosen = min(rows, key=lambda i: (self.slack[i] > 1e-6, len(self.indices[i])))
                return self._without(part, j, chosen)
        return None

    def _equation(self, part: _Combination) -> _Equation | None:
        """The combination in distances from the nearer bounds; None if a column has none."""
        used = np.fromiter(part.weights, dtype=np.int64)
        weight = np.fromiter(part.weights.values(), dtype=float)
        right = float(weight @ self.end[used])
        open_at = ~self.equal[used]
        rows, weight = used[open_at], weight[open_at]
        columns = np.flatnonzero(np.abs(part.sum) > _TINY)
        a, x = part.sum[columns], self.x[columns]
        upper = x - self.low[columns] > self.high[columns] - x
        end = np.where(upper, self.high[columns], self.low[columns])
        if not np.isfinite(end).all():
            return None
        distance = np.where(upper, self.high[columns] - x, x - self.low[columns])
        return _Equation(
            np.concatenate([columns, self.system.columns + rows]),
            np.concatenate([upper.astype(int), self.side[rows]]),
            np.concatenate([np.where(upper, -a, a), np.where(self.side[rows] == 0, -weight, weight)]),
            np.maximum(np.concatenate([distance, self.slack[rows]]), 0.0),
            np.concatenate([self.system.whole[columns], self.whole[rows]]),
            right - float(a @ end),
        )

    def _best(self, part: _Combination) -> tuple[float, _Equation, float] | None:
        """The depth of the deepest cut, its equation, and the divisor; None without one."""
        e = self._equation(part)
        if e is None or not e.whole.any():
            return None
        own = e.at < self.system.columns
        width = np.full(len(e.at), np.inf)
        width[own] = (self.high - self.low)[e.at[own]]
        open_at = e.whole & (e.value > 1e-6) & (e.value < width - 1e-6)
        if not open_at.any():  # the point is integral as far as the equation can tell
            return None
        sizes = np.unique(np.round(np.abs(e.factor[open_at]), 9))
        best = max((_violation(e, d), d) for d in [1.0, *sizes[sizes > 1e-9][-12:].tolist()])
        if best[0] <= 0:
            return None
        best = max([best, *((_violation(e, best[1] * k), best[1] * k) for k in (2.0, 4.0, 8.0))])
        flips = np.flatnonzero(open_at & np.isfinite(width))
        for k in flips[np.argsort(np.abs(e.value[flips] - width[flips] / 2))][:10]:
            other = _flipped(e, int(k), float(width[k]))
            depth = _violation(other, best[1])
            if depth > best[0] + 1e-9:
                best, e = (depth, best[1]), other
        return (best[0], e, best[1]) if best[0] > _DEPTH else None

    def _exact(self, part: _Combination, e: _Equation, divisor: float) -> Row | None:
        """The cut in rational arithmetic with its proof; None if its numbers become too large."""
        guess = Fraction(divisor).limit_denominator(_DENOMINATOR)
        found = self._items(part, e, fmpq(guess.numerator, guess.denominator)) if guess else None
        if found is None:
            return None
        items, right = found
        top = floor(right)
        f = right - top
        if not 0.5 * _FRACTION < as_float(f) < 1 - 0.5 * _FRACTION:
            return None
        terms = [self._term(item, f) for item in items]
        common = lcm(*(int(term.share.denominator) for term in terms))
        size = max((term.share for term in terms), default=fmpq(0))
        if size == 0 or size * common > _LARGEST:
            common = max(int(_LARGEST / max(as_float(size), 1.0)) // 8, 1)
        return self._assembled(terms, common, int(top), f)

    def _items(
        self, part: _Combination, e: _Equation, over: Rational
    ) -> tuple[list[tuple[int, int, Rational]], Rational] | None:
        """An equation divided by a number: column or row, side and factor of each item; right-hand side."""
        system, n = self.system, self.system.columns
        weights, total = part.exact(system.rows)
        chosen = dict(zip(e.at.tolist(), e.side.tolist(), strict=True))
        right = fmpq(0)
        items: list[tuple[int, int, Rational]] = []
        for i, weight in weights.items():
            s = int(self.side[i])
            right += weight * (system.rows[i].low if s == 0 else system.rows[i].high)
            items.append((n + i, s, (-weight if s == 0 else weight) / over))
        for j, a in total.items():
            s = chosen.get(j, 0 if system.lower[j] is not None else 1)
            end = system.lower[j] if s == 0 else system.upper[j]
            if end is None:
                return None
            right -= a * fmpq(end, system.grid)
            items.append((j, s, (a if s == 0 else -a) / over))
        return items, right / over

    def _term(self, item: tuple[int, int, Rational], f: Rational) -> _Term:
        """What an item is in the two cases and in the cut, for the fraction of the right-hand side."""
        at, s, factor = item
        row = self.system.rows[at - self.system.columns] if at >= self.system.columns else None
        if row is not None and row.low == row.high:
            return _Term(at, s, factor, 0, fmpq(0))
        if not (row.whole if row is not None else self.system.whole[at]):
            return _Term(at, s, factor, 0, factor / f if factor > 0 else -factor / (1 - f))
        down = floor(factor)
        part = factor - down
        if part <= f:
            return _Term(at, s, factor, int(down), part / f)
        return _Term(at, s, factor, int(down) + 1, (1 - part) / (1 - f))

    def _assembled(self, terms: Sequence[_Term], common: int, top: int, f: Rational) -> Row | None:
        """The cut times `common` in the columns, with its two cases; None if it is long or large."""
        system, n = self.system, self.system.columns
        form: dict[int, int] = {}
        cut: dict[int, int] = {}
        low, most = fmpq(common), fmpq(top)  # of the cut, and of D, in the columns
        below: Parts = []
        above: Parts = []
        for term in terms:
            c = ceil(term.share * common)
            sign = 1 if term.side == 0 else -1  # the distance is sign * (item - end)
            if term.at < n:
                entries: Mapping[int, int] = {term.at: 1}
                end = fmpq((system.lower if term.side == 0 else system.upper)[term.at] or 0, system.grid)
                sides, unit = (system.lower_lines[term.at], system.upper_lines[term.at]), sign
            else:
                row = system.rows[term.at - n]
                entries = row.coefficients
                end = fmpq((row.low if term.side == 0 else row.high) or 0)
                sides, unit = row.lines, sign * row.scale
            for parts, share in ((below, -common / f), (above, common / (1 - f))):
                weight = unit * (c + share * (term.factor - term.whole))
                parts.append((sides[0 if weight > 0 else 1], weight))  # an equation has either sign
            for j, a in entries.items():
                if c:
                    cut[j] = cut.get(j, 0) + sign * c * a
                if term.whole:
                    form[j] = form.get(j, 0) + sign * term.whole * a
            low += sign * c * end
            most += sign * term.whole * end
        cut = {j: a for j, a in sorted(cut.items()) if a}
        form = {j: a for j, a in form.items() if a}
        if (
            not form
            or not cut
            or len(cut) > _LONGEST + n // 5
            or max(map(abs, cut.values())) > 100 * _LARGEST
        ):
            return None
        divide = gcd(*cut.values())
        split = Split(
            form,
            int(most.numerator),
            (-common / f / divide, [(ref, weight / divide) for ref, weight in below]),
            (common / (1 - f) / divide, [(ref, weight / divide) for ref, weight in above]),
        )
        return self._stated({j: a // divide for j, a in cut.items()}, low / divide, split)

    def _stated(self, cut: dict[int, int], limit: Rational, split: Split) -> Row:
        """The row of a cut; its side is rounded where all columns are integer, or where it is too fine."""
        whole = all(self.system.whole[j] for j in cut)
        widest, scale = max(map(abs, cut.values())), int(limit.denominator)
        if not whole and scale * widest > 100 * _LARGEST:
            limit, scale = fmpq(floor(limit)), 1
        line = Derived(cut, "G", limit, [], split=split)
        if whole and scale > 1:
            limit, scale = fmpq(ceil(limit)), 1
            line = Derived(cut, "G", limit, [(line, 1)], True)
        form = {j: a * scale for j, a in cut.items()}
        return Row(form, int(limit * scale), None, scale, (line, -1), float(widest * scale), whole)


def _violation(e: _Equation, divisor: float) -> float:
    """By how much the point misses the cut of an equation divided by a number, relative to its norm."""
    right = e.right / divisor
    f = right - np.floor(right)
    if not _FRACTION < f < 1 - _FRACTION:
        return -1.0
    a = e.factor / divisor
    part = a - np.floor(a)
    c = np.where(e.whole, np.minimum(part / f, (1 - part) / (1 - f)), np.maximum(a / f, -a / (1 - f)))
    norm = float(np.sqrt(c @ c))
    return (1.0 - float(c @ e.value)) / norm if norm else -1.0


def _flipped(e: _Equation, k: int, width: float) -> _Equation:
    """The same equation with the distance from the other bound of one column."""
    side, factor, value = e.side.copy(), e.factor.copy(), e.value.copy()
    right = e.right - factor[k] * width
    side[k], factor[k], value[k] = 1 - side[k], -factor[k], width - value[k]
    return _Equation(e.at, side, factor, value, e.whole, right)
