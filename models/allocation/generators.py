"""Instances: random strata, and establishments by their number of employees."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.models.allocation.problem import StratifiedAllocation

__all__ = ["establishments", "random_strata"]

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
    strata: int,
    *,
    sampled: float = 0.05,
    largest: int = 10_000,
    seed: int | np.random.Generator | None = None,
    **fields: Any,
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
