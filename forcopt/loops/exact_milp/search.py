"""Branch and bound whose every leaf is closed by exact multipliers.

Floating-point simplex solves the subproblems, and chooses multipliers, cuts and branches. A leaf is closed
only where these multipliers, rounded to integers, prove in integer arithmetic that it holds no point better
than the cutoff (`System.claim`). Where rounding spoils the proof, because a column has no bound or the margin
is too small, the leaf is solved over the rationals (after Cook, Koch, Steffy and Wolter, 2013).

A leaf whose proof does not use the last case proves the other case, too, which is then left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import gcd

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.loops.exact_lp import LinearProgram, Rational, exact_optimum, farkas, rational
from forcopt.loops.exact_milp.mir import Separator, Weights
from forcopt.loops.exact_milp.proof import Derived, Number, Parts, Proof, Ref
from forcopt.loops.exact_milp.relaxation import Relaxation, Solved
from forcopt.loops.exact_milp.system import Claim, Row, System, as_float, integers
from forcopt.rationals import floor, fmpq

_SIZES = (2.0**10, 2.0**20, 2.0**32, 2.0**44)
"""Multipliers are rounded to integers of these sizes, one after the other."""

_FINE = _SIZES[-1]
"""The size where the bound itself is wanted."""

_SHALLOW = 12
"""Nodes up to this depth have bounds of their own, for a search that does not end."""

_ROUNDS = 40
"""The most rounds of cuts."""

_WORTH, _PATIENCE = 0.01, 4
"""Cutting ends after some rounds in a row that close less than this share of the gap."""

_PROBED = 20
"""The most columns that are rounded at the root to see whether a side holds nothing."""

_TRIALS = 8
"""A column is tried on both sides until this many branches on it are known (reliability branching)."""

_CANDIDATES = 12
"""The most columns that are tried at a node."""


class Stopped(Exception):
    """The search has ended without a proof: at the time limit, or with a better point."""

    def __init__(self, better: list[Rational] | None = None) -> None:
        super().__init__()
        self.better = better


@dataclass(eq=False, slots=True)
class _Frame:
    """A node with two cases; `first` is the line that proves the first one and its assumption."""

    column: int
    at: int
    side: int
    case: Derived
    old: tuple[int | None, Ref]
    bound: Rational | None
    first: tuple[int, int] | None = None


class Search:
    """One attempt to prove a cutoff.

    Parameters
    ----------
    lp : LinearProgram
        The relaxation.
    system : System
        The same in integers, with the cutoff, if any.
    proof : Proof
        Takes the lines.
    deadline : Deadline
        Of the search.
    progress : Callable[[int, int], None], optional
        Called now and then with the nodes done and the depth.

    Attributes
    ----------
    nodes : int
        The subproblems solved.
    """

    def __init__(
        self,
        lp: LinearProgram,
        system: System,
        proof: Proof,
        deadline: Deadline,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.lp, self.system, self.proof = lp, system, proof
        self.deadline, self.progress = deadline, progress
        self.integer = np.flatnonzero(system.whole)
        self.scale = system.cost.scale
        self.nodes = 0
        self.probing = False
        self.stack: list[_Frame] = []
        self.root_bound: Rational | None = None
        n = system.columns
        self.gains, self.counts = np.zeros((2, n)), np.zeros((2, n))

    @property
    def bound(self) -> Rational | None:
        """A lower bound on `System.cost` that holds whatever the open nodes are; None for minus infinity."""
        known = [frame.bound for frame in self.stack]
        if not known:
            return self.root_bound
        return None if any(b is None for b in known) else min(b for b in known if b is not None)

    def run(self) -> int:
        """Give the line that proves the cutoff, or that no point exists.

        Raises
        ------
        Stopped
            If the time is over or a better point was found.
        """
        system = self.system
        closed = self._presolve()
        if closed is not None:
            return closed
        self.relaxation = Relaxation(system)
        closed = self._root()
        if closed is not None:
            return closed
        found = self._node()
        while True:
            if isinstance(found, tuple):
                self._open(*found)
                found = self._node()
                continue
            while self.stack:
                frame = self.stack[-1]
                self._restore(frame)
                if frame.case.line not in self.proof.assumed(found):
                    self.stack.pop()  # the case was not needed
                    continue
                if frame.first is None:
                    frame.first = (found, frame.case.line)
                    frame.side = 1 - frame.side
                    self._enter(frame)
                    found = self._node()
                    break
                self.stack.pop()
                found = self.proof.unite(*self._statement(), (frame.first, (found, frame.case.line)))
            else:
                return found

    def _is_strict(self) -> bool:
        """Whether a closed case holds no point at all, rather than none below the cutoff."""
        return self.probing or self.system.cutoff is None or self.system.cost.whole

    def _statement(self) -> tuple[dict[int, Number] | None, str, Number]:
        """What every leaf proves: that there is no point, or none below the cutoff."""
        if self._is_strict():
            return {}, "G", 1
        assert self.system.cutoff is not None
        return None, "G", self.system.cutoff / self.system.cost.scale

    def _presolve(self) -> int | None:
        """Derive bounds from rows, and the line that no point exists if they cross."""
        system = self.system
        j = system.crossed(range(system.columns))
        if j is not None:
            return self._falsehood([(system.ref(j, 0), 1), (system.ref(j, 1), -1)])
        for i, row in enumerate(system.rows):
            divided = _divided(row)
            if divided is None:
                continue
            if divided.low is not None and divided.high is not None and divided.low > divided.high:
                return self._falsehood([(divided.lines[0], 1), (divided.lines[1], -1)])
            system.rows[i] = divided
        closed = self._propagate()
        if closed is not None:
            return closed
        system.refresh()
        for row in system.rows:  # rows without columns
            if not row.coefficients:
                for side, end in enumerate((row.low, row.high)):
                    if end is not None and (end > 0, end < 0)[side]:
                        return self._falsehood([(row.lines[side], 1 - 2 * side)])
        return None

    def _propagate(self) -> int | None:
        """Derive bounds from rows, round after round; the line that no point exists if they cross."""
        system = self.system
        columns: list[list[Row]] = [[] for _ in range(system.columns)]
        rows = [*system.rows, system.cost]
        for row in rows:
            for j in row.coefficients:
                columns[j].append(row)
        for _ in range(10):
            touched: dict[int, None] = {}
            for row in rows:
                for sign in (1, -1):
                    touched.update(dict.fromkeys(system.tighten(row, sign)))
                    crossed = system.crossed(touched)
                    if crossed is not None:
                        return self._falsehood([(system.ref(crossed, 0), 1), (system.ref(crossed, 1), -1)])
            if not touched:
                break
            rows = list({id(row): row for j in touched for row in columns[j]}.values())
        return None

    def _falsehood(self, parts: Parts) -> int:
        return self.proof.combine(*self._statement(), parts)

    def _root(self) -> int | None:
        """Add rounds of cuts, and fix columns by reduced costs; a line if that is enough."""
        system, last, first, stalled = self.system, -np.inf, np.inf, 0
        goal = None if system.cutoff is None else as_float(system.cutoff) / system.cost.unit
        for _ in range(_ROUNDS):
            solved = self.relaxation.solve()
            closed = self._close(solved)
            if closed is not None:
                return closed
            if solved.status != "optimal" or self.deadline.passed:
                return None
            assert solved.dual is not None
            self._fix(solved.dual)
            if not self._fractional(solved.x):
                return None
            limit = last + 1e-4 * max(1.0, abs(last)) if goal is None else last + _WORTH * (goal - first)
            stalled = stalled + 1 if solved.value <= limit else 0
            last, first = max(last, solved.value), min(first, solved.value)
            found = Separator(system, solved.x, self.relaxation.kept).cuts(self._tableau(solved.x))
            chosen = _chosen(found, system.columns)
            if not chosen or stalled >= _PATIENCE:
                closed = self._probe(solved.x)
                if closed is not None:
                    return closed
                if not self.probed:
                    break
                stalled, last = 0, -np.inf
                continue
            self.relaxation.drop_slack()
            self.relaxation.add(chosen)
        self.relaxation.solve()
        self.relaxation.drop_slack()
        return None

    def _probe(self, x: Array) -> int | None:
        """Round columns at the root; where a side holds no point, or none in question, it is cut off.

        `probed` then counts the new bounds. A line is returned if no side is left.
        """
        system, proof = self.system, self.proof
        self.probing, self.probed = True, 0
        order = sorted(self._fractional(x), key=lambda j: abs(x[j] - np.floor(x[j]) - 0.5))
        closed: int | None = None
        for j, side in ((j, side) for j in order[:_PROBED] for side in (0, 1)):
            frame = _Frame(j, int(np.floor(x[j])), side, Derived({}, "G", 0, []), (None, -1), None)
            self._enter(frame)
            line = self._close(self.relaxation.solve())
            self._restore(frame)
            if line is None:
                continue
            if frame.case.line not in proof.assumed(line):
                closed = line
                break
            what = {j: 1}, "LG"[side], frame.at + side
            other = proof.assume(*what)
            frame.side = 1 - side
            self._set(
                frame, what[2] * system.grid, proof.unite(*what, ((line, frame.case.line), (other, other)))
            )
            self.probed += 1
        self.probing = False
        if closed is None and self.probed:
            closed = self._propagate()
            system.bounds_changed()
            self.relaxation.set_bounds()
        return closed

    def _fix(self, dual: Array) -> None:
        """Tighten bounds of integer columns by reduced costs."""
        system = self.system
        claim = system.claim(dual, True, _FINE)
        if claim is None:
            return
        value = fmpq(claim.value, claim.objective * system.grid)
        self.root_bound = value if self.root_bound is None else max(value, self.root_bound)
        if system.cutoff is not None and system.reduce(claim):
            system.bounds_changed()
            self.relaxation.set_bounds()

    def _tableau(self, x: Array) -> Sequence[Weights]:
        """Rows of the simplex tableau of fractional integer columns, as multipliers."""
        order = [j for j in self._fractional(x) if abs(x[j] - round(x[j])) > 1e-3]
        order.sort(key=lambda j: abs(x[j] - np.floor(x[j]) - 0.5))
        return self.relaxation.tableau(order[:60])

    def _fractional(self, x: Array) -> list[int]:
        values = x[self.integer]
        return [int(j) for j in self.integer[np.abs(values - np.rint(values)) > 1e-6]]

    def _node(self) -> int | tuple[int, int, Rational | None]:
        """Close the present node, or give the column and the value to branch on."""
        if self.deadline.passed:
            raise Stopped
        self.nodes += 1
        if self.progress is not None and self.nodes % 256 == 0:
            self.progress(self.nodes, len(self.stack))
        solved = self.relaxation.solve()
        closed = self._close(solved)
        if closed is not None:
            return closed
        candidates = self._fractional(solved.x) if solved.status == "optimal" else []
        if not candidates:
            return self._exactly(solved.x if solved.status == "optimal" else None)
        column = self._branch(candidates, solved.x, solved.value)
        bound = self.stack[-1].bound if self.stack else self.root_bound
        shallow = solved.dual is not None and len(self.stack) < _SHALLOW
        claim = self.system.claim(solved.dual, True, _FINE) if shallow else None  # type: ignore[arg-type]
        if claim is not None:
            own = fmpq(claim.value, claim.objective * self.system.grid)
            bound = own if bound is None else max(bound, own)
        return column, int(np.floor(solved.x[column])), bound

    def _close(self, solved: Solved) -> int | None:
        """The line that closes the node by its rounded multipliers; None if these do not prove enough."""
        infeasible = solved.status == "infeasible"
        dual = solved.dual
        if dual is None or not (infeasible or (solved.status == "optimal" and self._is_beyond(solved.value))):
            return None
        claims = (self.system.claim(dual, not infeasible, size) for size in _SIZES)
        for claim in chain(claims, (self.system.simple_claim(dual, not infeasible) for _ in (0,))):
            line = None if claim is None else self._line(claim)
            if line is not None:
                return line
        return None

    def _is_beyond(self, value: float) -> bool:
        """Whether a value seems to reach the cutoff."""
        if self.system.cutoff is None:
            return False
        limit = as_float(self.system.cutoff) / self.system.cost.unit
        slack = 1e-9 * max(1.0, abs(limit))
        return value > limit + slack if self.system.cost.whole else value > limit - slack

    def _line(self, claim: Claim) -> int | None:
        """Write a claim if it closes the node."""
        system, parts = self.system, self.system.parts
        if claim.objective == 0:
            return self._falsehood(parts(claim)) if claim.value > 0 else None
        assert system.cutoff is not None
        limit = claim.objective * system.cutoff * system.grid
        if claim.value > limit:
            cutoff = (system.cost.lines[1], -claim.objective * system.cost.scale)
            return self._falsehood([*parts(claim), cutoff])
        if claim.value < limit or self._is_strict():
            return None
        share = 1 / (claim.objective * fmpq(system.cost.scale))
        return self.proof.combine(*self._statement(), [(ref, weight * share) for ref, weight in parts(claim)])

    def _exactly(self, x: Array | None) -> int | tuple[int, int, Rational | None]:
        """Solve the present node over the rationals: close it, find a better point, or branch."""
        lp = self._present()
        found = exact_optimum(lp)
        y = farkas(lp) if found.status == "infeasible" else found.dual
        if y is not None:
            line = self._exact_line(y, found.status != "infeasible")
            if line is not None:
                return line
        point = found.point
        if point is None:
            raise Stopped
        inside = [int(j) for j in self.integer if point[j].denominator != 1]
        if not inside:
            raise Stopped(point)
        half = fmpq(1, 2)
        j = min(inside, key=lambda j: abs(point[j] - floor(point[j]) - half))
        return j, floor(point[j]), self.stack[-1].bound if self.stack else self.root_bound

    def _exact_line(self, y: Sequence[Rational], objective: bool) -> int | None:
        """Close the node by rational multipliers of the rows in integers."""
        system = self.system
        cost = rational(system.cost.unit)
        whole, weight = integers(
            [v * cost / rational(row.unit) for v, row in zip(y, system.rows, strict=True)]
        )
        claim = system.exact_claim(np.array(whole, dtype=object), weight if objective else 0)
        return None if claim is None or (objective and system.cutoff is None) else self._line(claim)

    def _present(self) -> LinearProgram:
        """The node's relaxation over the rationals, each row in the unit that solvers see."""
        system = self.system

        def ends(values: Sequence[int | None]) -> list[Rational | None]:
            return [None if v is None else fmpq(v, system.grid) for v in values]

        rows = [(row, rational(row.unit)) for row in system.rows]
        cost = [fmpq(0)] * system.columns
        for j, a in system.cost.coefficients.items():
            cost[j] = a / rational(system.cost.unit)
        return replace(
            self.lp,
            cost=cost,
            offset=fmpq(0),
            lower=ends(system.lower),
            upper=ends(system.upper),
            rows=[{j: a / unit for j, a in row.coefficients.items()} for row, unit in rows],
            row_lower=[None if row.low is None else row.low / unit for row, unit in rows],
            row_upper=[None if row.high is None else row.high / unit for row, unit in rows],
        )

    def _open(self, column: int, at: int, bound: Rational | None) -> None:
        """Begin the first case of a node: the side that gains more."""
        side = 0 if self._score(column, 0) > self._score(column, 1) else 1
        frame = _Frame(column, at, side, Derived({}, "G", 0, []), (None, -1), bound)
        self.stack.append(frame)
        self._enter(frame)

    def _enter(self, frame: _Frame) -> None:
        """Begin a case: side 0 raises the lower bound, side 1 lowers the upper one."""
        system, j = self.system, frame.column
        limit = frame.at + 1 if frame.side == 0 else frame.at
        frame.case = Derived({j: 1}, "GL"[frame.side], limit, [], case=True)
        ends, lines = self._ends(frame.side)
        frame.old = ends[j], lines[j]
        self._set(frame, limit * system.grid, frame.case)

    def _restore(self, frame: _Frame) -> None:
        self._set(frame, *frame.old)

    def _set(self, frame: _Frame, value: int | None, line: Ref) -> None:
        system, j = self.system, frame.column
        ends, lines = self._ends(frame.side)
        ends[j], lines[j] = value, line
        system.bound_changed(j, frame.side)
        self.relaxation.set_bound(j)

    def _ends(self, side: int) -> tuple[list[int | None], list[Ref]]:
        system = self.system
        return (system.lower, system.lower_lines) if side == 0 else (system.upper, system.upper_lines)

    def _score(self, j: int, side: int) -> float:
        """The average gain of a bound per unit on one side (pseudo-cost)."""
        return float(self.gains[side, j] / self.counts[side, j]) if self.counts[side, j] else 0.0

    def _branch(self, candidates: list[int], x: Array, value: float) -> int:
        """The column of the greatest product of gains; those seldom branched on are tried first."""
        mean = [self.gains[s].sum() / max(self.counts[s].sum(), 1.0) or 1.0 for s in (0, 1)]

        def estimate(j: int) -> float:
            f = x[j] - np.floor(x[j])
            per = [self._score(j, s) if self.counts[s, j] else mean[s] for s in (0, 1)]
            return float(max(per[0] * (1 - f), 1e-6) * max(per[1] * f, 1e-6))

        order = sorted(candidates, key=estimate, reverse=True)
        best, chosen, waited = -1.0, order[0], 0
        tried = 0
        for j in order:
            if min(self.counts[0, j], self.counts[1, j]) >= _TRIALS:
                score = estimate(j)
            elif tried < _CANDIDATES:
                tried += 1
                score = self._try(j, x[j], value)
            else:
                continue
            if score > best:
                best, chosen, waited = score, j, 0
            else:
                waited += 1
                if waited >= 6:
                    break
        return chosen

    def _try(self, j: int, x: float, value: float) -> float:
        """Solve both sides for a few steps; note the gains and give their product."""
        product = 1.0
        for side in (0, 1):
            gain, distance = self.relaxation.trial(j, side, x, value)
            self.gains[side, j] += gain / distance
            self.counts[side, j] += 1
            product *= max(gain, 1e-6)
        return product


def _divided(row: Row) -> Row | None:
    """An integer row by its greatest common divisor, its sides rounded; None where there is none."""
    divisor = gcd(*row.coefficients.values()) if row.whole else 1
    if divisor <= 1:
        return None
    form = {j: a // divisor for j, a in row.coefficients.items()}
    low = None if row.low is None else -(-row.low // divisor)
    high = None if row.high is None else row.high // divisor
    lines = tuple(
        line if end is None else Derived(form, sense, end, [(line, fmpq(row.scale) / divisor)], True)
        for sense, end, line in (("G", low, row.lines[0]), ("L", high, row.lines[1]))
    )
    return Row(form, low, high, 1, (lines[0], lines[1]), float(max(map(abs, form.values()))), True)


def _chosen(found: list[tuple[float, Row]], columns: int) -> list[Row]:
    """The deepest cuts, without those that are nearly parallel to a deeper one."""
    out: list[Row] = []
    kept: list[Array] = []
    for depth, row in found:
        if depth < 0.02 * found[0][0] or len(out) >= 100:
            break
        normal = np.zeros(columns)
        for j, a in row.coefficients.items():
            normal[j] = float(a)
        normal /= np.linalg.norm(normal)
        if all(float(normal @ other) < 0.95 for other in kept):
            out.append(row)
            kept.append(normal)
    return out
