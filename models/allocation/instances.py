"""Random strata, establishments by their number of employees; and the instances of the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Seed
from forcopt.instance import by_name, family
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import StratifiedAllocation

CLASSES = (
    *((1, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 249), (250, 499), (500, 999), (1000, 1499)),
    *((1500, 2499), (2500, 4999), (5000, 10000)),
)
"""Numbers of employees by which County Business Patterns groups establishments, top-coded at 10,000."""

SPREADS = (
    *(1260.83, 620.76, 516.70, 1968.58, 832.43, 1946.55, 1057.72, 761.84, 256.85, 247.34, 305.88, 224.52),
)
"""N S of each class, up to a factor, as the published allocations imply them."""

LARGEST = 2000
"""How many establishments there are in the last class."""


def random_strata(
    strata: int, *, sampled: float = 0.05, largest: int = 10_000, seed: Seed = None, **fields: Any
) -> StratifiedAllocation:
    """Draw strata of very different sizes and deviations.

    Parameters
    ----------
    strata : int
        How many.
    sampled : float, default 0.05
        The share of all records in the sample, if no `sample_size` is given.
    largest : int, default 10000
        Sizes are from 2 to this, with equal chance for each order of magnitude.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem; deviations are lognormal by default.

    Examples
    --------
    >>> random_strata(3, seed=0).sizes.tolist()
    [454, 19, 2]
    """
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(np.log(2), np.log(largest + 1), strata)).astype(np.int64)
    least = float(np.minimum(fields.get("minimum", 1), sizes).sum())
    given: dict[str, Any] = {"sizes": sizes, "deviations": rng.lognormal(size=strata)}
    if "budget" not in fields:
        given["sample_size"] = max(least, float(round(sampled * sizes.sum())))
    return StratifiedAllocation(**given | fields)


def establishments(*, added: bool = False, sample_size: float = 10_000) -> StratifiedAllocation:
    """Establishments in twelve classes of their number of employees, whose mean is to be estimated.

    Made so that Neyman's allocation of 10,000, rounded up, is the one that Bun et al. (2022), section 6.2,
    computed from County Business Patterns; the table itself is not published with the paper. Values are
    spread evenly over each class; in the last one half are at 5000, half at 5500.

    Parameters
    ----------
    added : bool, default False
        With one establishment more, of 10,000 employees or above: a neighbouring population.
    sample_size : float, default 10000
        Of the problem.

    Examples
    --------
    >>> before, after = establishments(), establishments(added=True)
    >>> one, other = (p.solve("neyman", rounding="ceiling").decision for p in (before, after))
    >>> int(one.size), int(other.size), int(other.sizes[-1] - one.sizes[-1])
    (10004, 10005, 19)
    """
    spread = np.array([np.sqrt((b - a + 1) * (b - a + 2) / 12) for a, b in CLASSES[:-1]])
    middle = np.array([(a + b) / 2 for a, b in CLASSES[:-1]])
    # adding 10,000 to these raises N S by the amount that follows from the published allocations
    last = np.repeat([5000.0, 5500.0], LARGEST // 2)
    unit = LARGEST * last.std(ddof=1) / SPREADS[-1]
    sizes = np.round(unit * np.array(SPREADS[:-1]) / spread)
    if added:
        last = np.append(last, 10_000.0)
    return StratifiedAllocation(
        sizes=np.append(sizes, len(last)),
        deviations=np.append(spread, last.std(ddof=1)),
        means=np.append(middle, last.mean()),
        names=(*(f"{a}-{b}" for a, b in CLASSES[:-1]), "5000+"),
        sample_size=sample_size,
    )


def _precise(strata: int, variables: int) -> PrecisionAllocation:
    """Several variables, each with a variance of at most that in a sample of 3 %."""
    drawn = random_strata(strata, largest=300, seed=strata)
    rng = np.random.default_rng(strata)
    deviations = rng.lognormal(0.0, 1.0, (strata, variables))
    sizes = drawn.sizes.astype(float)
    sampled = np.maximum(1.0, 0.03 * sizes)
    shares = ((sizes / sizes.sum()) ** 2)[:, None] * deviations**2
    # the last bits of a product depend on the processor
    targets = ((1 / sampled - 1 / sizes) @ shares).round(9)
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
    family("allocation/precision-{}-{}", _precise, "milp", (5, 2), (10, 2), (20, 3), (40, 2)),
    family("allocation/budget-{}", _paid, "milp", [20], [100], [500], reduce=False),
    family("allocation/private-{}", _private, "milp", [20], [100], [500]),
)
