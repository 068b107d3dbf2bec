"""Seeded instances: private tests between two laws of a count, and the loss of sampling designs."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.amplification.problem import DPHypothesisTest, TightAmplification


def _test(counts: int, epsilon: float) -> DPHypothesisTest:
    """Two random laws of a count that differ a little everywhere."""
    rng = np.random.default_rng(counts)
    first = rng.dirichlet(np.ones(counts))
    second = first * rng.uniform(0.7, 1.3, counts)
    return DPHypothesisTest(first=first, second=second / second.sum(), epsilon=epsilon)


def _design(population: int, epsilon: float) -> TightAmplification:
    """A sample of a random size, near a third of the population."""
    law = np.random.default_rng(population).binomial(population, 1 / 3, 10 * population)
    return TightAmplification.random_size(np.bincount(law, minlength=population + 1) / len(law), epsilon)


INSTANCES = by_name(
    (Instance(f"amplification/test-{n}", partial(_test, n, 0.5), "lp") for n in (10, 100, 1000, 10000)),
    (Instance(f"amplification/design-{n}", partial(_design, n, 0.5), "lp") for n in (10, 100, 1000)),
)
