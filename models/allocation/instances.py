"""Seeded instances: strata of very different sizes and deviations, of several variables."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.allocation.generators import random_strata
from forcopt.models.allocation.precision import PrecisionAllocation

__all__ = ["INSTANCES"]


def _precise(strata: int, variables: int) -> PrecisionAllocation:
    """Several variables, the variance of each to be at most what a sample of 3 % would give it."""
    drawn = random_strata(strata, largest=300, seed=strata)
    rng = np.random.default_rng(strata)
    deviations = rng.lognormal(0.0, 1.0, (strata, variables))
    sizes = drawn.sizes.astype(float)
    sampled = np.maximum(1.0, 0.03 * sizes)
    shares = ((sizes / sizes.sum()) ** 2)[:, None] * deviations**2
    targets = (1 / sampled - 1 / sizes) @ shares
    return PrecisionAllocation(sizes=drawn.sizes, deviations=deviations, targets=targets)


INSTANCES = by_name(
    Instance(f"allocation/precision-{strata}-{v}", partial(_precise, strata, v), "milp")
    for strata, v in ((5, 2), (10, 2), (20, 3), (40, 2))
)
