"""Seeded instances: private tests that tell two laws of a count apart."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.amplification.hypothesis import DPHypothesisTest

__all__ = ["INSTANCES"]


def _test(counts: int, epsilon: float) -> DPHypothesisTest:
    """Two random laws of a count that differ a little everywhere."""
    rng = np.random.default_rng(counts)
    first = rng.dirichlet(np.ones(counts))
    second = first * rng.uniform(0.7, 1.3, counts)
    return DPHypothesisTest(first=first, second=second / second.sum(), epsilon=epsilon)


INSTANCES = by_name(
    Instance(f"amplification/test-{n}", partial(_test, n, 0.5), "lp") for n in (10, 100, 1000, 10000)
)
