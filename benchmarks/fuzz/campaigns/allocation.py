"""Allocations of a sample to strata, against all allocations."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.fuzz.case import ProblemCase
from forcopt.models.allocation import StratifiedAllocation


def stratified(rng: np.random.Generator) -> ProblemCase:
    """Up to four strata; limits at both ends (a census, one unit, none left) are ordinary input."""
    strata = int(rng.integers(1, 5))
    sizes = rng.integers(1, 7, size=strata)
    deviations = np.where(rng.random(strata) < 0.15, 0.0, np.round(rng.gamma(2.0, 2.0, size=strata), 6))
    minimum = int(rng.integers(1, 3))
    sample = int(rng.integers(1, sizes.sum() + 2))
    problem = StratifiedAllocation(
        sizes=sizes.tolist(), deviations=deviations.tolist(), minimum=minimum, sample_size=sample
    )
    floors = np.minimum(minimum, sizes)
    best = float("inf")
    for counts in product(*(range(a, b + 1) for a, b in zip(floors, sizes, strict=True))):
        if sum(counts) <= sample:
            taken = np.array(counts)
            terms = sizes**2 * deviations**2 * (1 / taken - 1 / sizes)
            best = min(best, float(terms.sum()) / float(sizes.sum()) ** 2)
    return ProblemCase(problem, "infeasible" if best == float("inf") else "optimal", best)


CAMPAIGNS = {"stratified-allocation": stratified}
