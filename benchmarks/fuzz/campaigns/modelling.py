"""Conditions, logic, piecewise linear functions and parameters, solved again after changes of the model.

Integers x and b and two continuous y at most. The oracle tries all values of the integers and all
alternatives of the conditions; what remains of y is a polygon, whose vertices it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np

import forcopt as fo
from benchmarks.fuzz.case import ModelCase

Random = np.random.Generator
Half = tuple[np.ndarray, float]
"""``row @ y <= side``."""
Alternatives = list[list[Half]]
"""One of these lists of halfplanes must hold; none, if the integers are not allowed."""
Truth = Callable[[np.ndarray, np.ndarray], Alternatives]
UNIT = np.eye(2)


def corner(halves: Sequence[Half], costs: Sequence[tuple[np.ndarray, float]]) -> tuple[float, ...] | None:
    """The lexicographically least costs over a bounded polygon; they are taken at a vertex."""
    rows, sides = np.array([h[0] for h in halves], dtype=float), np.array([h[1] for h in halves], dtype=float)
    found = []
    for i, j in combinations(range(len(rows)), 2):
        determinant = rows[i, 0] * rows[j, 1] - rows[i, 1] * rows[j, 0]
        if abs(determinant) < 1e-12:
            continue
        point = np.array(
            [
                (sides[i] * rows[j, 1] - sides[j] * rows[i, 1]) / determinant,
                (rows[i, 0] * sides[j] - rows[j, 0] * sides[i]) / determinant,
            ]
        )
        if (rows @ point <= sides + 1e-8).all():
            found.append(tuple(round(float(row @ point) + constant, 8) for row, constant in costs))
    return min(found, default=None)


@dataclass
class Affine:
    """``on_x @ x + on_b @ b + on_y @ y + constant``, for the model and for the oracle."""

    on_x: np.ndarray
    on_b: np.ndarray
    on_y: np.ndarray
    constant: float

    def at(self, x: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
        """What remains of it as a function of y."""
        return self.on_y, float(self.on_x @ x + self.on_b @ b + self.constant)

    def holds(self, sense: str, x: np.ndarray, b: np.ndarray, right: float = 0.0) -> list[Half]:
        """The halfplanes of a comparison with a number."""
        row, constant = self.at(x, b)
        below, above = (row, right - constant), (-row, constant - right)
        return [below] if sense == "<=" else [above] if sense == ">=" else [below, above]


def compared(expression: Any, sense: str) -> Any:
    """The constraint that compares an expression with 0."""
    if sense == "<=":
        return expression <= 0
    return expression >= 0 if sense == ">=" else expression == 0


@dataclass
class Draft:
    """A model that is written beside what the oracle knows of it."""

    rng: Random
    model: fo.Model = field(default_factory=lambda: fo.Model("modelling"))
    truths: list[Truth | None] = field(default_factory=list)
    handles: list[Any] = field(default_factory=list)
    parameters: list[Any] = field(default_factory=list)
    stages: list[tuple[bool, Callable[..., list[tuple[list[Half], np.ndarray, float]]]]] = field(
        default_factory=list
    )
    held: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng, m = self.rng, self.model
        nx, nb, self.ny = (int(rng.integers(a, b)) for a, b in ((1, 4), (1, 4), (0, 3)))
        self.low = rng.integers(-2, 2, size=nx)
        self.high = self.low + rng.integers(0, 4, size=nx)
        self.x = m.variable("x", nx, lower=self.low, upper=self.high, integer=True)
        self.b = m.variable("b", nb, binary=True)
        self.y_low, self.y_high = rng.integers(-3, 1, size=2), rng.integers(0, 4, size=2)
        if rng.random() < 0.1:
            self.y_high *= 1000
        self.y_low[self.ny :] = self.y_high[self.ny :] = 0
        self.y = m.variable("y", self.ny, lower=self.y_low[: self.ny], upper=self.y_high[: self.ny])

    def number(self, low: int, high: int) -> int:
        """An integer between two, both included."""
        return int(self.rng.integers(low, high + 1))

    def sense(self) -> str:
        """Any comparison."""
        return str(self.rng.choice(["<=", ">=", "=="], p=[0.45, 0.45, 0.1]))

    def affine(self, continuous: bool = True) -> tuple[Any, Affine]:
        """A random expression."""
        rng = self.rng
        found = Affine(
            rng.integers(-3, 4, size=len(self.low)) * (rng.random(len(self.low)) < 0.6),
            rng.integers(-3, 4, size=self.b.size) * (rng.random(self.b.size) < 0.3),
            rng.integers(-2, 3, size=2) * (rng.random(2) < 0.6) * continuous,
            self.number(-3, 3),
        )
        found.on_y[self.ny :] = 0
        return self.written(found), found

    def written(self, a: Affine) -> Any:
        """An expression of the model."""
        return a.on_x @ self.x + a.on_b @ self.b + a.on_y[: self.ny] @ self.y + a.constant

    def add(self, constraint: Any, truth: Truth) -> None:
        """Add a constraint to the model and to the oracle."""
        self.handles.append(self.model.subject_to(constraint))
        self.truths.append(truth)

    # -- what a model may hold -----------------------------------------------------------------------------

    def row(self) -> None:
        """A linear row, half of them with a parameter."""
        (e, a), sense = self.affine(), self.sense()
        if self.rng.random() < 0.5:
            p = self.model.parameter(f"p{len(self.parameters)}", value=self.number(-2, 2))
            self.parameters.append(p)
            self.add(compared(e + p, sense), lambda x, b: [a.holds(sense, x, b, -float(p.value))])
        else:
            self.add(compared(e, sense), lambda x, b: [a.holds(sense, x, b)])

    def implication(self) -> None:
        """A row where a binary is 1, or 0."""
        (e, a), sense, i, at = self.affine(), self.sense(), self.number(0, self.b.size - 1), self.number(0, 1)
        switch = self.b[i] if at else ~self.b[i]
        self.add(
            fo.implies(switch, compared(e, sense)),
            lambda x, b: [a.holds(sense, x, b)] if b[i] == at else [[]],
        )

    def equivalence(self) -> None:
        """A binary that says whether a row over integers holds."""
        (e, a), sense, i = self.affine(continuous=False), self.sense(), self.number(0, self.b.size - 1)

        def truth(x: np.ndarray, b: np.ndarray) -> Alternatives:
            value = a.at(x, b)[1]
            met = value <= 0 if sense == "<=" else value >= 0 if sense == ">=" else value == 0
            return [[]] if met == bool(b[i]) else []

        self.add(fo.iff(self.b[i], compared(e, sense)), truth)

    def count(self) -> None:
        """How many binaries are 1."""
        k, which = self.number(0, self.b.size), self.number(0, 2)
        self.add(
            (fo.exactly, fo.at_most, fo.at_least)[which](k, self.b),
            lambda x, b: [[]] if (b.sum() == k, b.sum() <= k, b.sum() >= k)[which] else [],
        )

    def disjunction(self) -> None:
        """One of two or three groups of rows holds."""
        groups = [
            [(*self.affine(), self.sense()) for _ in range(self.number(1, 2))]
            for _ in range(self.number(2, 3))
        ]
        self.add(
            fo.either(*([compared(e, s) for e, _, s in g] for g in groups)),
            lambda x, b: [[half for _, a, s in g for half in a.holds(s, x, b)] for g in groups],
        )

    def different(self) -> None:
        """No two integers are equal."""
        self.add(fo.all_different(self.x), lambda x, b: [[]] if len(set(x.tolist())) == len(x) else [])

    def semicontinuous(self) -> None:
        """Each y is 0 or within bounds."""
        low = self.rng.integers(1, 3, size=self.ny)
        high = low + self.rng.integers(0, 4, size=self.ny)

        def truth(x: np.ndarray, b: np.ndarray) -> Alternatives:
            return [
                [
                    half
                    for j, on in enumerate(chosen)
                    for half in ((UNIT[j], float(on * high[j])), (-UNIT[j], -float(on * low[j])))
                ]
                for chosen in product((0, 1), repeat=self.ny)
            ]

        self.add(fo.semicontinuous(self.y, low, high), truth)

    def ordered(self) -> None:
        """At most one, or two neighbors, of x and y are not 0."""
        order = self.number(1, 2)
        count = len(self.low) + self.ny

        def truth(x: np.ndarray, b: np.ndarray) -> Alternatives:
            supports = [{i} for i in range(count)]
            if order == 2 and count > 1:
                supports = [{i, i + 1} for i in range(count - 1)]
            return [
                [
                    half
                    for j in range(self.ny)
                    if len(x) + j not in support
                    for half in ((UNIT[j], 0.0), (-UNIT[j], 0.0))
                ]
                for support in supports
                if set(np.flatnonzero(x).tolist()) <= support
            ]

        together = fo.concatenate([self.x, self.y])
        self.add((fo.sos1 if order == 1 else fo.sos2)(together), truth)

    def product(self) -> None:
        """A binary times an expression, in a row."""
        (e, a), (f, c), i = self.affine(), self.affine(), self.number(0, self.b.size - 1)

        def truth(x: np.ndarray, b: np.ndarray) -> Alternatives:
            row, constant = c.at(x, b)
            if b[i]:
                row, constant = row + a.on_y, constant + a.at(x, b)[1]
            return [[(row, -constant)]]

        self.add(fo.product(self.b[i], e) + f <= 0, truth)

    def logic(self) -> None:
        """A formula over binaries."""
        i, j, k, which = *(self.number(0, self.b.size - 1) for _ in range(3)), self.number(0, 4)
        b = self.b
        made = (
            lambda: b[i] <= (b[j] | ~b[k]),
            lambda: (b[i] & b[j]) >= b[k],
            lambda: fo.any_of(b) >= ~b[i],
            lambda: fo.all_of(b) + b[i] <= 1,
            lambda: fo.iff(b[i], b[j] | b[k]),
        )[which]()

        def truth(x: np.ndarray, b: np.ndarray) -> Alternatives:
            met = (
                b[i] <= max(b[j], 1 - b[k]),
                min(b[i], b[j]) >= b[k],
                b.max() >= 1 - b[i],
                b.min() + b[i] <= 1,
                b[i] == max(b[j], b[k]),
            )[which]
            return [[]] if met else []

        self.add(made, truth)

    def bend(self) -> tuple[Any, Callable[[np.ndarray], list[tuple[list[Half], np.ndarray, float]]]]:
        """A piecewise linear function of one variable, and its segments: where, slope on y, constant."""
        at = np.sort(self.rng.choice(np.arange(-5, 6), self.number(2, 4), replace=False)).astype(float)
        height = self.rng.integers(-4, 5, size=len(at)).astype(float)
        on_y = self.ny > 0 and self.rng.random() < 0.7
        j = self.number(0, (self.ny if on_y else len(self.low)) - 1)
        written = fo.piecewise_linear((self.y if on_y else self.x)[j], at, height, binaries=True)
        at[0], at[-1], ends = -np.inf, np.inf, at.copy()

        def segments(x: np.ndarray) -> list[tuple[list[Half], np.ndarray, float]]:
            found = []
            for k, slope in enumerate(np.diff(height) / np.diff(ends)):
                constant = height[k] - slope * ends[k]
                if on_y:
                    sides = [(-UNIT[j], -at[k]), (UNIT[j], at[k + 1])]
                    found.append(([h for h in sides if np.isfinite(h[1])], slope * UNIT[j], constant))
                elif at[k] <= x[j] <= at[k + 1]:
                    found.append(([], np.zeros(2), constant + slope * x[j]))
            return found

        return written, segments

    def piecewise(self) -> None:
        """A piecewise linear function in a row."""
        (bent, segments), sense, right = self.bend(), self.sense(), self.number(-3, 3)

        def truth(x: np.ndarray, b: np.ndarray) -> Alternatives:
            return [
                [*where, *Affine(np.zeros(0), np.zeros(0), row, c).holds(sense, x[:0], b[:0], right)]
                for where, row, c in segments(x)
            ]

        self.add(compared(bent - right, sense), truth)

    def absolute(self) -> None:
        """An absolute value in a row."""
        (e, a), (f, c) = self.affine(), self.affine()

        def truth(x: np.ndarray, b: np.ndarray) -> Alternatives:
            (row, constant), (other, more) = a.at(x, b), c.at(x, b)
            return [[(sign * row - other, more - sign * constant) for sign in (1, -1)]]

        self.add(fo.abs(e) <= f, truth)

    def family(self) -> None:
        """A lazy family of one row."""
        e, a = self.affine()

        def separate(value: Callable[[Any], np.ndarray]) -> Any:
            if value(e) > 1e-6:
                yield e <= 0

        self.handles.append(self.model.lazy(separate))
        self.truths.append(lambda x, b: [a.holds("<=", x, b)])

    # -- objectives ----------------------------------------------------------------------------------------

    def objective(self) -> None:
        """One, or two in order."""
        stages = []
        for _ in range(1 + (self.rng.random() < 0.3)):
            (e, a), bent, (f, c), kind = self.affine(), self.bend(), self.affine(), self.number(0, 5)
            if kind == 0:
                e = e + bent[0]

                def parts(x: np.ndarray, b: np.ndarray, a: Affine = a, segments: Any = bent[1]) -> Any:
                    row, constant = a.at(x, b)
                    return [(where, row + slope, constant + k) for where, slope, k in segments(x)]
            elif kind == 1:
                e = e + fo.abs(f)

                def parts(x: np.ndarray, b: np.ndarray, a: Affine = a, c: Affine = c) -> Any:
                    (row, constant), (other, more) = a.at(x, b), c.at(x, b)
                    return [
                        ([(-sign * other, sign * more)], row + sign * other, constant + sign * more)
                        for sign in (1, -1)
                    ]
            else:

                def parts(x: np.ndarray, b: np.ndarray, a: Affine = a) -> Any:
                    return [([], *a.at(x, b))]

            most = kind != 1 and bool(self.rng.random() < 0.5)
            stages.append(fo.maximize(e) if most else fo.minimize(e))
            self.stages.append((most, parts))
        if len(stages) == 1:
            self.model.optimize(stages[0])
        else:
            self.model.lexicographic(stages)

    def optimum(self) -> list[float] | None:
        """The values of all objectives, by trying everything; None if nothing is feasible."""
        best: tuple[float, ...] | None = None
        walls = [
            (s * UNIT[j], s * float(e[j])) for j in range(2) for s, e in ((1, self.y_high), (-1, self.y_low))
        ]
        signs = [-1 if most else 1 for most, _ in self.stages]
        for integers in product(*(range(a, z + 1) for a, z in zip(self.low, self.high, strict=True))):
            x = np.array(integers)
            if any(x[i] != value for i, value in self.held.items()):
                continue
            for bits in product((0, 1), repeat=self.b.size):
                b = np.array(bits)
                alternatives = [truth(x, b) for truth in self.truths if truth is not None]
                if not all(alternatives):
                    continue
                parts = [stage(x, b) for _, stage in self.stages]
                for chosen in product(*alternatives):
                    for costs in product(*parts):
                        halves = [
                            *walls,
                            *(h for part in chosen for h in part),
                            *(h for c in costs for h in c[0]),
                        ]
                        signed = [(s * c[1], s * c[2]) for s, c in zip(signs, costs, strict=True)]
                        found = corner(halves, signed)
                        if found is not None and (best is None or found < best):
                            best = found
        return None if best is None else [s * v for s, v in zip(signs, best, strict=True)]

    # -- changes -------------------------------------------------------------------------------------------

    def case(self, changes: Sequence[Callable[[], None]]) -> ModelCase:
        """The case as it is now, and after the changes that are left."""
        takers = ("highs", "scip", "gscip", *(() if self.ny else ("cp-sat",)))

        def then() -> ModelCase | None:
            if not changes:
                return None
            changes[0]()
            return self.case(changes[1:])

        values = self.optimum()
        if values is None:
            return ModelCase(self.model, takers, "infeasible", then=then)
        return ModelCase(self.model, takers, "optimal", values[-1], values[0], then=then)

    def turn(self) -> None:
        """Give the parameters other values."""
        for p in self.parameters:
            p.value = self.number(-3, 3)

    def hold(self) -> None:
        """Fix an integer."""
        i = self.number(0, len(self.low) - 1)
        self.held[i] = self.number(self.low[i], self.high[i])
        self.model.fix(self.x[i], self.held[i])

    def drop(self) -> None:
        """Remove a constraint, and let the integers go again."""
        i = self.number(0, len(self.handles) - 1)
        self.model.remove(self.handles[i])
        self.truths[i] = None
        self.model.unfix(self.x)
        self.held.clear()


def modelling(rng: Random) -> ModelCase:
    """A model of one to four conditions, and what becomes of it when it is changed."""
    draft = Draft(rng)
    kinds = [
        draft.row, draft.implication, draft.equivalence, draft.count, draft.disjunction, draft.different,
        draft.semicontinuous, draft.ordered, draft.product, draft.logic, draft.piecewise, draft.absolute,
    ]  # fmt: skip
    for _ in range(draft.number(1, 4)):
        kinds[draft.number(0, len(kinds) - 1)]()
    if rng.random() < 0.15:
        draft.family()
    draft.objective()
    return draft.case([draft.turn, draft.hold, draft.turn, draft.drop])


CAMPAIGNS = {"modelling": modelling}
