"""Seeded instances: queries of different costs on a row of attributes."""

from __future__ import annotations

import numpy as np

from forcopt.instance import by_name, family
from forcopt.models.adaptive_queries.data_models import DecayingCorrelation
from forcopt.models.adaptive_queries.schedule import QuerySchedule


def random_schedule(attributes: int, queries: int, *, equal: bool = False, seed: int = 0) -> QuerySchedule:
    """Queries on random intervals of a row of attributes, with weights from 1 to 99.

    Parameters
    ----------
    attributes, queries : int
        How many; queries span at most 5 attributes.
    equal : bool, default False
        Whether all queries cost 1; otherwise a hundredth to a half of the budget.
    seed : int, default 0
        The seed.
    """
    rng = np.random.default_rng(seed)
    first = rng.integers(1, attributes + 1, queries)
    intervals = np.stack([first, np.minimum(first + rng.integers(0, 5, queries), attributes)], axis=1)
    weights = rng.integers(1, 100, queries).astype(float)
    costs = np.full(queries, 1.0) if equal else rng.integers(1, 51, queries) / 100
    return QuerySchedule(DecayingCorrelation(attributes, 0.5, 4), intervals, weights, costs)


INSTANCES = by_name(
    family("queries/schedule-{}-{}", random_schedule, "milp", (20, 60), (50, 150), (100, 300), (300, 1000))
)
