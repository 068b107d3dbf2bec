"""Models with exponential, power, second-order and semidefinite cones whose optima have closed forms."""

from __future__ import annotations

import numpy as np

import forcopt as fo
from benchmarks.fuzz.case import ModelCase

Random = np.random.Generator
NONLINEAR = ("clarabel", "scs", "scip")
SEMIDEFINITE = ("clarabel", "scs")


def optimal(m: fo.Model, takers: tuple[str, ...], value: float) -> ModelCase:
    """A case of one objective, whose certificate is checked, too."""
    return ModelCase(m, takers, "optimal", float(value), float(value))


def entropy(rng: Random) -> ModelCase:
    """``max c x + entropy(x)`` over ``sum(x) = s``: ``s lse(c) - s log(s)``; infeasible beyond the bounds."""
    n, s = int(rng.integers(1, 5)), float(rng.integers(1, 5))
    c = rng.integers(-3, 4, size=n)
    m = fo.Model("entropy")
    roomy = bool(rng.random() < 0.8)
    x = m.variable("x", n, lower=0, upper=s if roomy else 0.9 * s / n)
    m.subject_to(x.sum() == s)
    m.maximize(c @ x + fo.entropy(x).sum())
    if not roomy:
        return ModelCase(m, ("clarabel", "scs"), "infeasible")
    return optimal(m, ("clarabel", "scs"), s * np.log(np.exp(c).sum()) - s * np.log(s))


def water(rng: Random) -> ModelCase:
    """``max sum(log(a + x))`` with ``sum(x) = power``: all that lie below the water level rise to it."""
    n = int(rng.integers(1, 6))
    a, power = np.sort(rng.integers(1, 8, size=n)).astype(float), float(rng.integers(1, 12))
    levels = [(power + a[:k].sum()) / k for k in range(1, n + 1)]
    level = next(w for k, w in enumerate(levels, 1) if k == n or w <= a[k])
    m = fo.Model("water")
    x = m.variable("x", n, lower=0)
    m.subject_to(x.sum() == power)
    m.maximize(fo.log(x + a).sum())
    return optimal(m, ("clarabel", "scs"), np.log(np.maximum(a, level)).sum())


def spectrum(rng: Random) -> ModelCase:
    """``min <C, X>`` over semidefinite X of trace 1: the least eigenvalue; or ``max log det X - <S, X>``."""
    n = int(rng.integers(1, 5))
    half = rng.integers(-3, 4, size=(n, n))
    m = fo.Model("spectrum")
    X = fo.symmetric(m.variable("X", n * (n + 1) // 2))
    if rng.random() < 0.6:
        C = half + half.T
        m.subject_to(fo.semidefinite(X), fo.trace(X) == 1)
        m.minimize((C * X).sum())
        return optimal(m, SEMIDEFINITE, np.linalg.eigvalsh(C)[0])
    S = half @ half.T + np.eye(n)
    m.maximize(fo.log_det(X) - (S * X).sum())
    return optimal(m, SEMIDEFINITE, -np.linalg.slogdet(S)[1] - n)


def distance(rng: Random) -> ModelCase:
    """The distance of two balls, or of a point from a halfspace."""
    n = int(rng.integers(1, 5))
    p, q = rng.integers(-5, 6, size=(2, n))
    m = fo.Model("distance")
    x = m.variable("x", n)
    if rng.random() < 0.5:
        r = rng.integers(1, 4, size=2)
        y = m.variable("y", n)
        m.subject_to(fo.norm(x - p) <= r[0], fo.norm(y - q) <= r[1])
        m.minimize(fo.norm(x - y))
        return optimal(m, NONLINEAR, max(0.0, float(np.linalg.norm(p - q)) - r.sum()))
    a, b = rng.integers(-3, 4, size=n), int(rng.integers(-6, 7))
    a[0] = a[0] or 2
    m.subject_to(a @ x <= b)
    m.minimize(fo.norm(x - p))
    return optimal(m, NONLINEAR, max(0.0, float(a @ p - b)) / float(np.linalg.norm(a)))


def norms(rng: Random) -> ModelCase:
    """``min c x`` in a p-ball: ``-r |c|_q``; or the largest weighted geometric mean within a budget."""
    n = int(rng.integers(1, 4))
    m = fo.Model("norms")
    if rng.random() < 0.5:
        p, r = float(rng.choice([1, 1.5, 2, 3, np.inf])), int(rng.integers(1, 5))
        c = rng.integers(-4, 5, size=n)
        x = m.variable("x", n)
        m.subject_to(fo.norm(x, p) <= r)
        m.minimize(c @ x)
        dual = np.inf if p == 1 else 1.0 if p == np.inf else p / (p - 1)
        return optimal(m, ("clarabel", "scs"), -r * np.linalg.norm(c, dual))
    w, cost, budget = rng.integers(1, 4, size=n), rng.integers(1, 5, size=n), int(rng.integers(1, 9))
    x = m.variable("x", n, lower=0)
    m.subject_to(cost @ x <= budget)
    m.maximize(fo.geometric_mean(x, weights=w))
    share = w / w.sum()
    return optimal(m, ("clarabel", "scs"), np.prod((share * budget / cost) ** share))


def disc(rng: Random) -> ModelCase:
    """Leximin of the coordinates of a point of a disc: its top if that is the lower one, else the diagonal.

    Near its top a disc is so flat that a slack of 1e-8 in the lower coordinate moves the other by 1e-4.
    """
    a, b = sorted(rng.integers(-4, 5, size=2).tolist())
    r = int(rng.integers(1, 5))
    m = fo.Model("disc")
    x = m.variable("x", 2)
    m.subject_to(fo.norm(x - [a, b]) <= r)
    m.leximin(x)
    if a + r <= b:
        return ModelCase(m, ("clarabel", "scip"), "optimal", float(a + r + b), tolerance=1e-3)
    middle = (a + b) / 2 + np.sqrt(r**2 / 2 - (a - b) ** 2 / 4)
    return ModelCase(m, ("clarabel", "scip"), "optimal", 2 * middle)


def lazy_disc(rng: Random) -> ModelCase:
    """``min u x`` in a disc whose tangents an oracle yields, beyond a line: as for the disc itself."""
    u, r, least = rng.integers(-4, 5, size=2), int(rng.integers(1, 5)), int(rng.integers(-20, 21))
    u[0] = u[0] or 1
    size = r * float(np.linalg.norm(u))
    m = fo.Model("lazy disc")
    x = m.variable("x", 2, lower=-9, upper=9)
    m.subject_to(u @ x >= least)

    def separate(value: object) -> object:
        point = value(x)  # type: ignore[operator]
        length = float(np.linalg.norm(point))
        if length > r + 1e-6:
            yield (point / length) @ x <= r

    m.lazy(separate)
    m.minimize(u @ x)
    takers = ("highs", "glop", "clarabel", "scip")
    if abs(least - size) < 1e-2 * size or least == -size:
        return ModelCase(m, takers, "unknown")
    if least > size:
        return ModelCase(m, takers, "infeasible")
    return ModelCase(m, takers, "optimal", max(float(least), -size))


CAMPAIGNS = {
    "entropy": entropy,
    "water": water,
    "spectrum": spectrum,
    "distance": distance,
    "norms": norms,
    "disc": disc,
    "lazy disc": lazy_disc,
}
