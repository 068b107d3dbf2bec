"""Losses of sampling designs against all their samples.

Every sample of a small population is listed by its records, and the program over all private densities is
solved by HiGHS through scipy; the library groups samples by symmetry instead.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from math import comb, exp, floor

import numpy as np
from scipy.optimize import linprog

from benchmarks.fuzz.case import ProblemCase
from forcopt.models import TightAmplification
from forcopt.privacy import (
    ClusterSample,
    Design,
    PoissonSample,
    ProportionalAllocation,
    RandomizedRounding,
    SimpleRandomSample,
    StratifiedSample,
)

Law = dict[frozenset[tuple[int, int]], float]
"""The probability of each sample; a record is its stratum or cluster and its number."""


def shares(rate: float, count: int) -> dict[int, float]:
    """The sizes of a share that is rounded at random."""
    below = floor(rate * count + 1e-9)
    up = rate * count - below
    return {below: 1 - up, below + 1: up} if up > 1e-9 else {below: 1.0}


def simple(records: list[tuple[int, int]], sizes: dict[int, float]) -> Law:
    """All subsets of each size, equally likely given the size."""
    return {
        frozenset(s): p / comb(len(records), m)
        for m, p in sizes.items()
        for s in combinations(records, m)
        if p > 0
    }


def independent(laws: list[Law]) -> Law:
    """The union of independent samples."""
    out: Law = {}
    for choice in product(*(law.items() for law in laws)):
        sample = frozenset().union(*(s for s, _ in choice))
        out[sample] = out.get(sample, 0.0) + float(np.prod([p for _, p in choice]))
    return out


def ratio(before: Law, after: Law, epsilon: float, relation: str) -> float:
    """The largest ratio of the likelihoods of an outcome of an epsilon-private mechanism."""
    records = sorted(set().union(*before, *after))
    samples = [frozenset(s) for m in range(len(records) + 1) for s in combinations(records, m)]
    p, q = (np.array([law.get(s, 0.0) for s in samples]) for law in (before, after))
    rows = []
    for i, s in enumerate(samples):
        for j, t in enumerate(samples):
            step = len(s ^ t) == 1 if relation == "add_remove" else len(s - t) == len(t - s) == 1
            if step:
                row = np.zeros(len(samples))
                row[i], row[j] = 1.0, -exp(epsilon)
                rows.append(row)
    best = 0.0
    for one, other in ((p, q), (q, p)):
        found = linprog(
            -one,
            A_ub=np.array(rows) if rows else None,
            b_ub=np.zeros(len(rows)) if rows else None,
            A_eq=other[None],
            b_eq=[1.0],
            method="highs",
        )
        assert found.status == 0, found.message
        best = max(best, -float(found.fun))
    return best


def design(rng: np.random.Generator) -> ProblemCase:
    """A design of any kind on a population of at most six records."""
    counts = [int(n) for n in rng.integers(1, 4, size=2)]
    changed, epsilon = int(rng.integers(2)), float(np.exp(rng.uniform(-2, 1)))
    rate = float(rng.choice([0.1, 0.25, 1 / 3, 0.5, 0.7]))
    kind = str(rng.choice(["simple", "poisson", "rounding", "proportional", "stratified", "cluster"]))
    if kind in ("simple", "poisson", "rounding"):
        counts, changed = [int(rng.integers(1, 6))], 0
    relation = "substitute" if kind in ("simple", "stratified") else "add_remove"
    first = [[(s, i) for i in range(n)] for s, n in enumerate(counts)]
    second = [list(part) for part in first]
    if relation == "substitute":
        second[changed][0] = (changed, 99)
    else:
        second[changed].append((changed, 99))
    size = [int(rng.integers(0, n + 1)) for n in counts]
    chosen = int(rng.integers(1, len(counts) + 1))

    def law(parts: list[list[tuple[int, int]]]) -> Law:
        if kind == "poisson":
            n = len(parts[0])
            return simple(parts[0], {m: comb(n, m) * rate**m * (1 - rate) ** (n - m) for m in range(n + 1)})
        if kind == "cluster":
            sets = list(combinations(parts, chosen))
            return {frozenset().union(*s): 1 / len(sets) for s in sets}
        sizes = [
            {size[i]: 1.0} if relation == "substitute" else shares(rate, len(part))
            for i, part in enumerate(parts)
        ]
        return independent([simple(part, s) for part, s in zip(parts, sizes, strict=True)])

    names = ["a", "b"]
    designs: dict[str, Callable[[], Design]] = {
        "simple": lambda: SimpleRandomSample(size=size[0]),
        "poisson": lambda: PoissonSample(rate=rate),
        "rounding": lambda: RandomizedRounding(rate=rate),
        "proportional": lambda: ProportionalAllocation(by="s", rate=rate),
        "stratified": lambda: StratifiedSample(by="s", sizes=dict(zip(names, size, strict=True))),
        "cluster": lambda: ClusterSample(by="s", chosen=chosen),
    }
    made = designs[kind]()
    population = dict(zip(names, counts, strict=False)) if len(counts) > 1 else counts[0]
    p = TightAmplification.of(made, population, epsilon, changed=changed)
    return ProblemCase(p, "optimal", ratio(law(first), law(second), epsilon, relation))


CAMPAIGNS = {"sampling-design": design}
