"""Linear, integer, quadratic and conic models, objectives in order and lazy families, by exact oracles.

Linear programs: rational simplex with Farkas proofs and rays. Integer programs, lexicographic and leximin
objectives, lazy families: all points of the box. Convex quadratic programs: all faces of the box, in
fractions. Balls and eigenvalues: closed forms.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
from flint import fmpq

import forcopt as fo
from benchmarks.fuzz.case import ModelCase
from forcopt.compile import compile_model
from forcopt.compile.compiler import Capabilities
from forcopt.loops.exact_lp import LinearProgram, exact_optimum, farkas, recession

INFINITY = float("inf")
Random = np.random.Generator


def linear(rng: Random) -> ModelCase:
    """A linear program, often degenerate, infeasible or unbounded."""
    n, rows = int(rng.integers(1, 6)), int(rng.integers(0, 6))
    m = fo.Model("linear")
    low, high = np.sort(rng.integers(-4, 5, size=(2, n)), axis=0).astype(float)
    low[rng.random(n) < 0.4], high[rng.random(n) < 0.4] = -INFINITY, INFINITY
    x = m.variable("x", n, lower=low, upper=high)
    scale = 2.0 ** rng.integers(-7, 8) if rng.random() < 0.2 else 1.0  # loses no bit
    matrix = scale * rng.integers(-4, 5, size=(rows, n)) * (rng.random((rows, n)) < 0.7)
    ends = np.sort(scale * rng.integers(-9, 10, size=(2, rows)), axis=0)
    ends[0, rng.random(rows) < 0.5] = -INFINITY
    ends[1, rng.random(rows) < 0.4] = INFINITY
    if rows:
        m.subject_to((matrix @ x).between(ends[0], ends[1]))
    m.minimize(rng.integers(-4, 5, size=n) @ x)
    lp = LinearProgram.of(compile_model(m, Capabilities(frozenset({"rows"}))))
    found = exact_optimum(lp)
    takers = ("highs", "glop", "clarabel", "scip")
    if found.proved:
        return ModelCase(m, takers, "optimal", float(found.value))
    if farkas(lp) is not None:
        return ModelCase(m, takers, "infeasible")
    feasible = exact_optimum(LinearProgram(**{**vars_of(lp), "cost": [fmpq(0)] * n}))
    ray = exact_optimum(recession(lp))
    if feasible.point is not None and ray.value is not None and ray.value < 0:
        return ModelCase(m, takers, "unbounded")
    return ModelCase(m, takers, "unknown")


def vars_of(lp: LinearProgram) -> dict[str, object]:
    """The fields of a program."""
    return {name: getattr(lp, name) for name in lp.__dataclass_fields__}


def box(rng: Random) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Integer points of a box, and rows ``matrix @ x <= side`` that some of them satisfy."""
    n, rows = int(rng.integers(1, 5)), int(rng.integers(0, 5))
    low = rng.integers(-3, 2, size=n)
    high = low + rng.integers(0, 4, size=n)
    points = np.array(list(product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))))
    matrix, side = rng.integers(-5, 6, size=(rows, n)), rng.integers(-6, 9, size=rows)
    return low, high, points[(points @ matrix.T <= side).all(axis=1)], matrix, side


def integer(rng: Random) -> ModelCase:
    """A pure integer program."""
    low, high, points, matrix, side = box(rng)
    m = fo.Model("integer")
    x = m.variable("x", len(low), lower=low, upper=high, integer=True)
    cost = rng.integers(-9, 10, size=len(low))
    if len(side):
        m.subject_to(matrix @ x <= side)
    m.minimize(cost @ x)
    takers = ("highs", "scip", "gscip", "cp-sat")
    if not len(points):
        return ModelCase(m, takers, "infeasible")
    return ModelCase(m, takers, "optimal", float((points @ cost).min()))


def lazy(rng: Random) -> ModelCase:
    """The same with rows that only an oracle knows."""
    low, high, points, matrix, side = box(rng)
    m = fo.Model("lazy")
    x = m.variable("x", len(low), lower=low, upper=high, integer=True)
    cost = rng.integers(-9, 10, size=len(low))

    def separate(value: Callable[..., np.ndarray]) -> object:
        activity = matrix @ value(x)
        for i in np.flatnonzero(activity > side + 1e-6):
            yield matrix[i] @ x <= side[i]

    m.lazy(separate)
    m.minimize(cost @ x)
    takers = ("highs", "scip", "gscip", "cp-sat")
    if not len(points):
        return ModelCase(m, takers, "infeasible")
    return ModelCase(m, takers, "optimal", float((points @ cost).min()))


def lexicographic(rng: Random) -> ModelCase:
    """Objectives in order of priority, or a leximin, over integers; the value is that of the last stage."""
    low, high, points, matrix, side = box(rng)
    m = fo.Model("lexicographic")
    x = m.variable("x", len(low), lower=low, upper=high, integer=True)
    if len(side):
        m.subject_to(matrix @ x <= side)
    weights = rng.integers(-4, 5, size=(int(rng.integers(2, 4)), len(low)))
    sorted_too = bool(rng.random() < 0.5)
    if sorted_too:
        m.leximin(weights @ x)
    else:
        m.lexicographic([fo.minimize(w @ x) for w in weights])
    takers = ("highs", "scip", "cp-sat")
    if not len(points):
        return ModelCase(m, takers, "infeasible")
    if sorted_too:
        best = max(tuple(np.cumsum(np.sort(weights @ p)).tolist()) for p in points)
    else:
        best = min(tuple((weights @ p).tolist()) for p in points)
    return ModelCase(m, takers, "optimal", float(best[-1]))


def quadratic(rng: Random) -> ModelCase:
    """A convex quadratic program in a box of two variables; its optimum is on a face, in fractions."""
    m = fo.Model("quadratic")
    low = rng.integers(-3, 1, size=2)
    high = low + rng.integers(0, 5, size=2)
    factor, shift = rng.integers(-3, 4, size=(2, 2)), rng.integers(-3, 4, size=2)
    cost = rng.integers(-4, 5, size=2)
    x = m.variable("x", 2, lower=low, upper=high)
    m.minimize(fo.sum_squares(factor @ x + shift) + cost @ x)
    q = [[2 * int(factor[:, i] @ factor[:, j]) for j in range(2)] for i in range(2)]
    c = [int(2 * factor[:, i] @ shift + cost[i]) for i in range(2)]

    def value(p: tuple[Fraction, Fraction]) -> Fraction:
        square = sum(Fraction(q[i][j], 2) * p[i] * p[j] for i in range(2) for j in range(2))
        return square + c[0] * p[0] + c[1] * p[1] + int(shift @ shift)

    found = [(Fraction(int(a)), Fraction(int(b))) for a in (low[0], high[0]) for b in (low[1], high[1])]
    for i in range(2):  # edges: the other variable is at an end
        for end in (low[1 - i], high[1 - i]):
            if q[i][i]:
                at = Fraction(-(c[i] + q[i][1 - i] * int(end)), q[i][i])
                found.append((at, Fraction(int(end))) if i == 0 else (Fraction(int(end)), at))
    determinant = q[0][0] * q[1][1] - q[0][1] ** 2
    if determinant:
        found.append(
            (
                Fraction(q[0][1] * c[1] - q[1][1] * c[0], determinant),
                Fraction(q[0][1] * c[0] - q[0][0] * c[1], determinant),
            )
        )
    inside = [p for p in found if all(low[i] <= p[i] <= high[i] for i in range(2))]
    return ModelCase(m, ("clarabel", "highs", "osqp", "scip"), "optimal", float(min(map(value, inside))))


def ball(rng: Random) -> ModelCase:
    """The least ``u @ x`` above d in a ball: d, the edge of the ball, or nothing."""
    n = int(rng.integers(1, 5))
    center, u = rng.integers(-5, 6, size=n), rng.integers(-4, 5, size=n)
    u[0] = u[0] or 1
    radius, least = int(rng.integers(1, 6)), int(rng.integers(-30, 31))
    m = fo.Model("ball")
    x = m.variable("x", n)
    m.subject_to(fo.norm(x - center) <= radius, u @ x >= least)
    m.minimize(u @ x)
    size = radius * float(np.sqrt(u @ u))
    takers = ("clarabel", "scs", "scip")
    if abs(least - (u @ center + size)) < 1e-3:  # a single point, or nearly none
        return ModelCase(m, takers, "unknown")
    if least > u @ center + size:
        return ModelCase(m, takers, "infeasible")
    return ModelCase(m, takers, "optimal", max(float(least), float(u @ center) - size))


def eigenvalue(rng: Random) -> ModelCase:
    """The least largest eigenvalue of ``A + t B`` for commuting A and B, or a nuclear norm's bound."""
    n = int(rng.integers(2, 5))
    turn, _ = np.linalg.qr(rng.normal(size=(n, n)))
    a, b = rng.integers(-5, 6, size=n).astype(float), rng.integers(-3, 4, size=n).astype(float)
    m = fo.Model("eigenvalue")
    t = m.variable("t", lower=-2, upper=2)
    first, second = turn @ np.diag(a) @ turn.T, turn @ np.diag(b) @ turn.T
    m.minimize(fo.lambda_max((first + first.T) / 2 + t * ((second + second.T) / 2)))
    crossings = [(a[i] - a[j]) / (b[j] - b[i]) for i in range(n) for j in range(i) if b[i] != b[j]]
    values = [float(np.max(a + s * b)) for s in (-2.0, 2.0, *(c for c in crossings if -2 <= c <= 2))]
    return ModelCase(m, ("clarabel", "scs"), "optimal", min(values))


CAMPAIGNS = {
    "linear": linear,
    "integer": integer,
    "quadratic": quadratic,
    "ball": ball,
    "eigenvalue": eigenvalue,
    "lexicographic": lexicographic,
    "lazy": lazy,
}
