"""Seeded instances: strata of very different sizes and deviations, by a binary for each record more."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.allocation.generators import random_strata
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import StratifiedAllocation

__all__ = ["INSTANCES"]


def _precise(strata: int, variables: int) -> PrecisionAllocation:
    """Several variables, each with a variance of at most that in a sample of 3 %."""
    drawn = random_strata(strata, largest=300, seed=strata)
    rng = np.random.default_rng(strata)
    deviations = rng.lognormal(0.0, 1.0, (strata, variables))
    sizes = drawn.sizes.astype(float)
    sampled = np.maximum(1.0, 0.03 * sizes)
    shares = ((sizes / sizes.sum()) ** 2)[:, None] * deviations**2
    targets = ((1 / sampled - 1 / sizes) @ shares).round(
        9
    )  # the last bits of a product depend on the processor
    return PrecisionAllocation(sizes=drawn.sizes, deviations=deviations, targets=targets)


def _paid(strata: int) -> StratifiedAllocation:
    """Records cost from 5 to 50, and a tenth of them all can be paid for."""
    costs = np.random.default_rng(strata).integers(5, 51, strata)
    sizes = random_strata(strata, largest=300, seed=strata).sizes
    budget = float(round(0.1 * float(costs @ sizes)))
    return random_strata(strata, largest=300, seed=strata, costs=costs, budget=budget)


def _private(strata: int) -> PrivateAllocation:
    """A fifth of the records, and noise for a variable that ranges over four of the largest deviations."""
    drawn = random_strata(strata, largest=300, seed=strata)
    fields: dict[str, Any] = {"sizes": drawn.sizes, "deviations": drawn.deviations}
    size, widest = float(drawn.sizes.sum() // 5), float(drawn.deviations.max())
    return PrivateAllocation(**fields, sample_size=size, epsilon=np.array(1.0), value_bound=4 * widest)


INSTANCES = by_name(
    [
        *(
            Instance(f"allocation/precision-{strata}-{v}", partial(_precise, strata, v), "milp")
            for strata, v in ((5, 2), (10, 2), (20, 3), (40, 2))
        ),
        *(
            Instance(f"allocation/budget-{strata}", partial(_paid, strata), "milp", {"reduce": False})
            for strata in (20, 100, 500)
        ),
        *(
            Instance(f"allocation/private-{strata}", partial(_private, strata), "milp")
            for strata in (20, 100, 500)
        ),
    ]
)
