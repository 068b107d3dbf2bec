"""Random models with conditions, free columns and equations, whose claimed optima an exact tree judges."""

from __future__ import annotations

import random
import warnings
from collections import Counter

import numpy as np

import forcopt as fo

TOLERANCE = 1e-6
"""Of each column, relative where it is above 1: what a solver in floating point may be off by."""


def drawn(seed: int) -> tuple[fo.Model, int]:
    """A model of all sizes of data from 1e-6 to 1e6; 1 if it minimises, -1 if it maximises."""
    rng = random.Random(seed)
    n, size = rng.randint(2, 4), 10.0 ** rng.choice((-6, -3, -1, 0, 0, 1, 3, 6))

    def number() -> float:
        return round(rng.uniform(-9, 9), 1) * size

    def vector() -> np.ndarray:
        return np.array([number() if rng.random() < 0.7 else 0.0 for _ in range(n)])

    m = fo.Model()
    b = m.variable("b", n, binary=True)
    low, high = [rng.choice((0.0, -5.0)) for _ in range(n)], [round(rng.uniform(0.3, 9), 1) for _ in range(n)]
    x, z, f = (
        m.variable("x", n, lower=low, upper=high),
        m.variable("z", integer=True, lower=-4, upper=6),
        m.variable("f"),
    )
    m.subject_to(vector() @ x + vector() @ b + number() * z <= abs(number()) + size)
    m.subject_to(vector() @ x + vector() @ b >= -abs(number()) - size)
    m.subject_to(f >= x[0] - z, f >= -2 * x[0] + b[0])
    if rng.random() < 0.4:
        m.subject_to(f - rng.choice((0.5, 1.0, 3.0)) * x[1] == rng.choice((0, 1, 2)))
    if rng.random() < 0.7:
        m.subject_to(fo.implies(b[0], x[0] + x[1] <= round(rng.uniform(-2, 3), 1)))
    if rng.random() < 0.4:
        m.subject_to(fo.implies(b[1], x[1] - 0.3 * z >= round(rng.uniform(-2, 1), 1)))
    if rng.random() < 0.3:
        m.subject_to(x[1] <= 3.3 * b[1])
    objective = vector() @ x + vector() @ b + number() * z
    if rng.random() < 0.5:
        m.minimize(objective + size * f)
        return m, 1
    m.maximize(objective - size * f)
    return m, -1


def judged(start: int, count: int) -> Counter[tuple[str, str]]:
    """How the claims about some models end."""
    warnings.simplefilter("ignore")
    return Counter((judge(*drawn(seed)), "") for seed in range(start, start + count))


def judge(m: fo.Model, sign: int) -> str:
    """What the exact tree says of a solver's claim."""
    s = m.solve(gap=0)
    c = s.certify(time_limit=60)
    if s.status == "infeasible":
        return "infeasible, proved" if c.feasible is False else "infeasible, open"
    if s.status != "optimal" or c.bound is None:
        return f"{s.status}, no bound"
    best, terms = float(c.objective if c.optimal else c.bound), m.objective.stages[0].expression.linear_rows()
    scale = TOLERANCE * float(np.abs(terms.data) @ np.maximum(1.0, np.abs(s.point[terms.indices])))
    if c.optimal and sign * (s.bound - best) > scale:
        return "wrong bound"
    if sign * (s.objective - best) < -scale or (c.optimal and abs(s.objective - best) > scale):
        return "wrong optimum"
    if c.feasible and c.optimal is False:
        return "a better point within 1e-6"
    return "optimal, proved" if c.optimal else "optimal, open"
