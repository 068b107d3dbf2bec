"""Seats, partitions and deciders on noisy counts, against enumeration and a linear program of scipy."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from benchmarks.fuzz.case import ProblemCase
from forcopt.models import Apportionment, CoverageDecision
from forcopt.models.fair_decisions import Nested
from forcopt.privacy import AdditiveMechanism, Laplace

Array = np.ndarray
DIVISORS = ("hill", "webster", "jefferson", "adams", "dean")
SHIFTS = {"webster": Fraction(0), "jefferson": Fraction(1, 2), "adams": Fraction(-1, 2)}


def splits(least: list[int], most: list[int], seats: int) -> Iterator[tuple[int, ...]]:
    """All whole seats between bounds with this sum."""
    if len(least) == 1:
        if least[0] <= seats <= most[0]:
            yield (seats,)
        return
    for first in range(least[0], min(most[0], seats) + 1):
        for rest in splits(least[1:], most[1:], seats - first):
            yield (first, *rest)


def measure(criterion: str, seats: tuple[int, ...], quotas: list[Fraction]) -> Fraction:
    """The criterion's measure over states with people, or all deviations."""
    if criterion == "total":
        return sum((abs(s - q) for s, q in zip(seats, quotas, strict=True)), Fraction(0))
    if criterion in ("minimax", "leximax"):
        return max(abs(s - q) for s, q in zip(seats, quotas, strict=True))
    some = [(s, q) for s, q in zip(seats, quotas, strict=True) if q > 0]
    match criterion:
        case "range":
            return max(s / q for s, q in some) - min(s / q for s, q in some)
        case "hill":
            return sum(((s - q) ** 2 / s for s, q in some), Fraction(0))
        case "dean":
            steps = [
                sum((Fraction(2 * j * (j + 1), 2 * j + 1) for j in range(s)), Fraction(0)) for s, _ in some
            ]
            return sum((step / q - s for step, (s, q) in zip(steps, some, strict=True)), Fraction(0))
    return sum(((s + SHIFTS[criterion] - q) ** 2 / q for s, q in some), Fraction(0))


def apportionment(rng: np.random.Generator) -> ProblemCase:
    """Every criterion and quota; equal, huge, tiny and absent populations."""
    k = int(rng.integers(1, 6))
    populations = [
        rng.integers(0, 4, k).astype(float),
        rng.integers(1, 100, k).astype(float),
        rng.random(k),
        np.round(10 ** rng.uniform(-3, 6, k), 3),
        np.full(k, float(rng.integers(1, 5))),
        rng.integers(0, 3, k) * 10.0 ** float(rng.integers(0, 9)),
    ][rng.integers(6)]
    populations[0] += not populations.any()
    seats = int(rng.integers(1, 11))
    criterion = str(rng.choice([*DIVISORS, "total", "minimax", "range", "leximax"]))
    minimum = rng.integers(0, 3, k).tolist() if rng.random() < 0.4 else int(rng.integers(0, 3))
    quota = [None, "lower", "upper", "both"][rng.integers(4)]
    problem = Apportionment(populations, seats, minimum=minimum, criterion=criterion, quota=quota)
    exact = [Fraction(x) for x in populations.tolist()]
    quotas = [seats * x / sum(exact) for x in exact]
    least = np.broadcast_to(minimum, k).tolist()
    if criterion in ("hill", "adams", "dean"):
        least = [max(n, int(q > 0)) for n, q in zip(least, quotas, strict=True)]
    most = [seats if q > 0 else n for n, q in zip(least, quotas, strict=True)]
    if quota in ("lower", "both"):
        least = [max(n, q.__floor__()) for n, q in zip(least, quotas, strict=True)]
    if quota in ("upper", "both"):
        most = [min(n, q.__ceil__()) if q > 0 else n for n, q in zip(most, quotas, strict=True)]
    best = min((measure(criterion, s, quotas) for s in splits(least, most, seats)), default=None)
    if best is None:
        return ProblemCase(problem, "infeasible")
    return ProblemCase(problem, "optimal", float(best))


def coverage(rng: np.random.Generator) -> ProblemCase:
    """A linear program by scipy over the cells' frequencies of a simulation of the noise."""
    base = rng.integers(1, 400, 6)
    limited = np.floor(base * rng.uniform(0.02, 0.3, 6))
    illiterate = np.floor(limited * rng.uniform(0, 0.3, 6))
    scale, least = float(rng.choice([0.5, 2.0, 10.0])), float(rng.choice([0.5, 0.8, 0.9]))
    problem = CoverageDecision(
        np.stack([base, limited, illiterate], axis=1),
        mechanism=Nested(mechanism=AdditiveMechanism(Laplace(epsilon=1 / scale))),
        least_rate=least,
        first_cuts=[-1, 0],
        second_cuts=[-1, 0],
        holds_for=str(rng.choice(["every", "given"])),
    )
    covered = (limited > 0.05 * base) & (illiterate > 0.0131 * limited)
    # The law of a jurisdiction's noisy margins, by 200,000 draws; the second corner has huge counts.
    noise = rng.laplace(size=(200_000, 3))
    cells = [
        frequencies(noise, *row)
        for row in zip(base / scale, limited / scale, illiterate / scale, strict=True)
    ]
    if problem.holds_for == "every":
        guarded = [frequencies(noise, 0, 0, 0), frequencies(noise, np.inf, 0, 0)]
    else:
        guarded = [c for c, yes in zip(cells, covered, strict=True) if yes]
    cost = sum((c for c, yes in zip(cells, covered, strict=True) if not yes), np.zeros((3, 3))).ravel()
    number = np.arange(9).reshape(3, 3)
    pairs = np.concatenate(
        [
            np.stack([number[:-1].ravel(), number[1:].ravel()], 1),
            np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], 1),
        ]
    )
    rises = np.eye(9)[pairs[:, 0]] - np.eye(9)[pairs[:, 1]]
    rows = np.concatenate([rises, -np.array(guarded).reshape(-1, 9)])
    limits = np.concatenate([np.zeros(len(rises)), np.full(len(guarded), -least)])
    result = linprog(cost, rows, limits, bounds=(0, 1))
    value = float(result.fun)
    # The optimum of these cuts; the other methods choose their own. Each frequency has a standard error below
    # .0012, and prices of the least rates are below 10.
    return ProblemCase(problem, "optimal", value, skip=("margins", "posterior", "standard"), tolerance=0.06)


def frequencies(noise: Array, base: float, limited: float, illiterate: float) -> Array:
    """Of the nine cells of two cuts, at -1 and 0; with an infinite base the absolute threshold is met."""
    third = illiterate + noise[:, 0]
    second = limited + noise[:, 0] + noise[:, 1]
    first = base + noise.sum(axis=1)
    literacy = (third - 0.0131 * second) / np.sqrt(2 * ((1 - 0.0131) ** 2 + 0.0131**2))
    if np.isinf(base):
        enough = second / 2
    else:
        enough = (second - 0.05 * first) / np.sqrt(2 * (2 * 0.95**2 + 0.05**2))
    cell = 3 * np.searchsorted([-1, 0], literacy) + np.searchsorted([-1, 0], enough)
    return np.bincount(cell, minlength=9).reshape(3, 3) / len(noise)


CAMPAIGNS = {"apportionment": apportionment, "coverage-decision": coverage}
