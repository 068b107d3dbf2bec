"""Seeded instances: private tests between two laws of a count, and the loss of sampling designs."""

from __future__ import annotations

import numpy as np

from forcopt.instance import by_name, family
from forcopt.models.amplification.problem import DPHypothesisTest, TightAmplification


def _test(counts: int) -> DPHypothesisTest:
    """Two random laws of a count that differ a little everywhere."""
    rng = np.random.default_rng(counts)
    first = rng.dirichlet(np.ones(counts))
    second = first * rng.uniform(0.7, 1.3, counts)
    return DPHypothesisTest(first=first, second=second / second.sum(), epsilon=0.5)


def _design(population: int) -> TightAmplification:
    """A sample of a random size, near a third of the population."""
    law = np.random.default_rng(population).binomial(population, 1 / 3, 10 * population)
    return TightAmplification.random_size(np.bincount(law, minlength=population + 1) / len(law), 0.5)


INSTANCES = by_name(
    family("amplification/test-{}", _test, "lp", [10], [100], [1000], [10000]),
    family("amplification/design-{}", _design, "lp", [10], [100], [1000]),
)
