"""Lexicographically fair learning, against enumeration, linear programs and the breakpoints of parabolas."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog, minimize_scalar

import forcopt as fo
from benchmarks.fuzz.case import ProblemCase
from forcopt.models.lexifair import Finite, LexifairClassification, LexifairRegression

GAMES = ("no-regret", "ftpl")

warnings.filterwarnings("ignore", ".*in no group.*")


def random_groups(rng: np.random.Generator, n: int) -> list[list[int]]:
    """One to four groups, which may overlap."""
    count = int(rng.integers(1, 5))
    return [
        sorted(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False).tolist()) for _ in range(count)
    ]


def first(vectors: np.ndarray) -> np.ndarray:
    """The lexicographically least of some sorted vectors, equal up to 1e-9."""
    for j in range(vectors.shape[1]):
        vectors = vectors[vectors[:, j] <= vectors[:, j].min() + 1e-9]
    return np.asarray(vectors[0])


def mixtures(errors: np.ndarray) -> np.ndarray:
    """The sorted group errors of the fairest mixture: the least sums of the j largest errors, in turn."""
    n, k = errors.shape
    rows, sides, totals = [], [], []
    for j in range(1, k + 1):  # columns: n probabilities, then for each level t and k excesses
        width = n + k * (k + 1)
        t = n + (j - 1) * (k + 1)
        for g in range(k):
            row = np.zeros(width)
            row[:n], row[t], row[t + 1 + g] = errors[:, g], -1.0, -1.0
            rows.append(row)
            sides.append(0.0)
        cost = np.zeros(width)
        cost[t], cost[t + 1 : t + 1 + k] = j, 1.0
        one = np.r_[np.ones(n), np.zeros(width - n)]
        free = [(0, None)] * n + ([(None, None)] + [(0, None)] * k) * k
        best = linprog(cost, np.array(rows), sides, one[None], [1.0], bounds=free).fun
        totals.append(best)
        rows.append(cost)
        sides.append(best + 1e-9)
    return np.diff(totals, prepend=0.0)


def agree(true: np.ndarray, tolerance: float) -> Callable[[fo.Solution], str]:
    """A check of all levels."""

    def check(s: fo.Solution) -> str:
        found = s.decision.sorted_losses[: len(true)]
        return "" if np.abs(found - true).max() <= tolerance else f"levels {found}, not {true}"

    return check


def classification(rng: np.random.Generator) -> ProblemCase:
    """Listed classifiers, mixed or not; all levels are checked."""
    n = int(rng.integers(1, 8))
    label = rng.integers(0, 2, size=n)
    groups = random_groups(rng, n)
    table = rng.integers(0, 2, size=(int(rng.integers(1, 7)), n))
    errors = np.array([[np.mean(row[g] != label[g]) for g in groups] for row in table])
    randomized = bool(rng.random() < 0.7)
    problem = LexifairClassification(
        labels=label, groups=groups, hypotheses=Finite(table), randomized=randomized
    )
    true = mixtures(errors) if randomized else first(-np.sort(-errors, axis=1))
    return ProblemCase(
        problem, "optimal", float(true[0]), skip=GAMES, check=agree(true, 1e-4), tolerance=1e-5
    )


def line(rng: np.random.Generator) -> ProblemCase:
    """One coefficient: the best is where a loss is least, two are equal, or the radius ends."""
    n = int(rng.integers(1, 8))
    size = float(rng.choice([1.0, 1.0, 1e-3, 1e3]))
    x, y = rng.integers(-3, 4, size=n).astype(float), rng.integers(-3, 4, size=n) * size
    groups = random_groups(rng, n)
    radius = float(rng.choice([0.5, 2.0])) * size if rng.random() < 0.4 else None
    problem = LexifairRegression(features=x[:, None], labels=y, groups=groups, radius=radius)
    a, b, c = (
        np.array([np.mean(v[g]) for g in groups]) for v in (x * x, -2 * x * y, y * y)
    )  # a t^2 + b t + c
    points = [0.0, *(-b[a > 0] / (2 * a[a > 0]))]
    for g in range(len(groups)):
        for h in range(g):
            points += [
                r.real for r in np.roots([a[g] - a[h], b[g] - b[h], c[g] - c[h]]) if abs(r.imag) < 1e-9 * size
            ]
    t = np.array(points)
    if radius is not None:
        t = np.r_[np.clip(t, -radius, radius), -radius, radius]
    losses = a * t[:, None] ** 2 + b * t[:, None] + c
    true = first(-np.sort(-losses, axis=1) / size**2) * size**2
    unit = max(true[0], 1e-3 * size**2)  # losses are counted in units of the labels' squares
    return ProblemCase(
        problem,
        "optimal",
        float(true[0]),
        skip=GAMES,
        check=agree(true, 2e-3 * unit),
        tolerance=1e-5 * min(1, unit),
    )


def two_groups(rng: np.random.Generator) -> ProblemCase:
    """Two groups and several coefficients: minimax by the dual, a weight between the groups."""
    d, n = int(rng.integers(1, 4)), int(rng.integers(4, 12))
    size = float(rng.choice([1.0, 1e-3, 1e3]))
    x, y = rng.normal(size=(n, d)), rng.normal(size=n) * size
    half = n // 2
    groups = [list(range(half)), list(range(half, n))]
    problem = LexifairRegression(features=x, labels=y, groups=groups, levels=1)

    def dual(weight: float) -> float:
        w = np.r_[np.full(half, weight / half), np.full(n - half, (1 - weight) / (n - half))]
        root = np.sqrt(w)[:, None]
        theta = np.linalg.lstsq(root * x, root[:, 0] * y, rcond=None)[0]
        return -float(w @ (x @ theta - y) ** 2)

    found = minimize_scalar(dual, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    value = max(-float(found.fun), -dual(0.0), -dual(1.0))
    return ProblemCase(problem, "optimal", value, skip=GAMES, tolerance=1e-5 * min(1.0, value))


CAMPAIGNS = {
    "lexifair-classification": classification,
    "lexifair-line": line,
    "lexifair-two-groups": two_groups,
}
