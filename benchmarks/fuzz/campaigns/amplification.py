"""The exact privacy loss of small sampling designs, and tests between them, by scipy's linear programs."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from benchmarks.fuzz.case import ProblemCase
from forcopt.models import DPHypothesisTest, TightAmplification

Array = np.ndarray


def law(rng: np.random.Generator, count: int) -> Array:
    """Probabilities; some are 0."""
    weights = rng.integers(0, 5, size=count).astype(float)
    weights[int(rng.integers(count))] += 1.0
    return weights / weights.sum()


def graph(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Pairs of samples and their distances, some 0; the graph may have several parts."""
    pairs = [(i, j) for i in range(count) for j in range(i) if rng.random() < 0.5]
    steps = rng.choice([0.0, 1.0, 1.0, 2.0, 0.5], size=len(pairs))
    return np.array(pairs, dtype=int).reshape(-1, 2), steps


def loss(rng: np.random.Generator) -> ProblemCase:
    """The largest ratio of likelihoods: scale the smaller one to 1 and maximize the larger."""
    count = int(rng.integers(1, 7))
    before, after = law(rng, count), law(rng, count)
    pairs, steps = graph(rng, count)
    epsilon = float(rng.choice([0.01, 0.5, 1.0, 4.0]))
    problem = TightAmplification(
        before=before, after=after, edges=pairs.tolist(), steps=steps.tolist(), epsilon=epsilon
    )
    rows = []
    for (i, j), d in zip(pairs, steps, strict=True):
        for a, b in ((i, j), (j, i)):
            rows.append(np.eye(count)[a] - np.exp(epsilon * d) * np.eye(count)[b])
    best, status = 0.0, "optimal"
    for one, other in ((before, after), (after, before)):
        table = (np.array(rows), np.zeros(len(rows))) if rows else (None, None)
        found = linprog(-one, *table, other[None], [1.0], (0, None))
        if found.status == 3:
            return ProblemCase(problem, "unbounded")
        best = max(best, -float(found.fun))
    return ProblemCase(problem, status, best)


def test(rng: np.random.Generator) -> ProblemCase:
    """The best private test between two laws of a count."""
    count = int(rng.integers(1, 8))
    first, second = law(rng, count), law(rng, count)
    epsilon = float(rng.choice([0.01, 0.5, 1.0, 4.0, 30.0]))
    problem = DPHypothesisTest(first=first, second=second, epsilon=epsilon)
    rows, sides = [], []
    for i in range(count - 1):
        for a, b in ((i, i + 1), (i + 1, i)):
            row = np.exp(-epsilon) * np.eye(count)[a] - np.eye(count)[b]
            rows += [row, -row]
            sides += [0.0, 1 - np.exp(-epsilon)]
    table = (np.array(rows), np.array(sides)) if rows else (None, None)
    found = linprog(second - first, *table, bounds=(0, 1))
    return ProblemCase(problem, "optimal", -float(found.fun))


CAMPAIGNS = {"amplification": loss, "private-test": test}
