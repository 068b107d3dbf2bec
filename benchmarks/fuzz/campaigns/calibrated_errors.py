"""Calibrated scores with equal error rates, both stages, against scipy's linear programs."""

from __future__ import annotations

import numpy as np

from benchmarks.fuzz.case import ProblemCase
from benchmarks.fuzz.notions import least, random_notion, rows_of
from forcopt.fairness import EqualizedOdds, PredictiveValues
from forcopt.models.calibrated_errors import CalibratedEqualErrors, CalibratedTransport


def score(rng: np.random.Generator) -> np.ndarray:
    """One to five values on a grid, with masses that may be 0."""
    while True:
        values = rng.choice(20, size=int(rng.integers(1, 6)), replace=False) / 20 + rng.choice([0.0, 0.05])
        masses = rng.integers(0, 6, size=len(values)).astype(float)
        if masses.sum() and 0 < values @ masses < masses.sum():
            return np.array([values, masses / masses.sum()])


def cutoffs(rng: np.random.Generator) -> tuple[float, float, float]:
    """A cutoff, often one of the scores, an interval, and a margin."""
    return (
        float(rng.choice([0.2, 1 / 3, 0.5, 0.7, 0.9])),
        float(rng.choice([0.0, 0.0, 0.02, 0.1])),
        float(rng.choice([1e-2, 1e-3, 1e-4])),
    )


def equal_errors(rng: np.random.Generator) -> ProblemCase:
    """Stage 1: two or three groups; equal odds, or any notion over groups."""
    count = int(rng.integers(2, 4))
    scores = {f"g{a}": score(rng) for a in range(count)}
    cutoff, interval, margin = cutoffs(rng)
    shares = rng.integers(1, 5, size=count).astype(float)
    shares /= shares.sum()
    notion = EqualizedOdds() if rng.random() < 0.5 else random_notion(rng)
    problem = CalibratedEqualErrors(
        scores=scores,
        weights=dict(zip(scores, shares.tolist(), strict=True)),
        cutoff=cutoff,
        interval=interval,
        margin=margin,
        constraint=notion,
    )
    width = [s.shape[1] for s in scores.values()]
    part = np.zeros((count, 2, sum(width)))
    first = 0
    for a, (values, masses) in enumerate(scores.values()):
        part[a, :, first : first + width[a]] = shares[a] * masses * np.array([1 - values, values])
        first += width[a]
    mass = part.sum(axis=2)
    cost = (cutoff / (1 - cutoff) * part[:, 0] - part[:, 1]).sum(axis=0)
    calibration = PredictiveValues(cutoff + interval, 1 - (cutoff - max(interval, margin)))
    status, value = least(cost, rows_of(notion & calibration, part, mass))
    return ProblemCase(problem, status, value + float(mass[:, 1].sum()), skip=("qp",))


def transport(rng: np.random.Generator) -> ProblemCase:
    """Stage 2: a target that some score may lead to; any outputs, or some."""
    s = score(rng)
    cutoff, interval, margin = cutoffs(rng)
    values, masses = s
    negative, positive = masses * (1 - values), masses * values
    if rng.random() < 0.8:
        accepted = rng.choice([0.0, 0.5, 1.0], size=len(values))
        target = [negative @ accepted / negative.sum(), positive @ accepted / positive.sum()]
    else:
        target = rng.choice([0.0, 0.25, 0.5, 1.0], size=2).tolist()
    low, high = cutoff - max(interval, margin), cutoff + interval
    grid = np.unique(np.r_[values, rng.integers(0, 21, size=6) / 20])
    free = bool(rng.random() < 0.6)
    problem = CalibratedTransport(
        score=s,
        target=np.clip(target, 0, 1),
        cutoff=cutoff,
        interval=interval,
        margin=margin,
        outputs=None if free else grid,
    )
    # with any outputs: those of the grid, and both ends of the gap, where the pools of Stage 2 lie
    q = np.unique(np.r_[grid, low, high]) if free else grid
    q = q[(q <= low + 1e-12) | (q >= high - 1e-12)]
    n, m = len(values), len(q)
    if not m:
        return ProblemCase(problem, "infeasible")
    cost = ((values[:, None] - q) ** 2).ravel()
    rows, sides = [], []

    def equal(row: np.ndarray, side: float) -> None:
        rows.extend([row.ravel(), -row.ravel()])
        sides.extend([side, -side])

    for i in range(n):
        row = np.zeros((n, m))
        row[i] = 1.0
        equal(row, masses[i])
    for j in range(m):
        row = np.zeros((n, m))
        row[:, j] = values - q[j]
        equal(row, 0.0)
    above = q >= high - 1e-12
    equal(np.outer(1 - values, above), target[0] * negative.sum())
    equal(np.outer(values, above), target[1] * positive.sum())
    status, value = least(cost, (rows, sides), upper=None)
    return ProblemCase(problem, status, value)


CAMPAIGNS = {"calibrated-equal-errors": equal_errors, "calibrated-transport": transport}
