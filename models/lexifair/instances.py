"""Seeded instances: mixtures of stumps whose largest group error is as small as possible."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.learning import Stumps
from forcopt.models.lexifair.classification import LexifairClassification

__all__ = ["INSTANCES"]


def _conflict(records: int, features: int, groups: int) -> LexifairClassification:
    """Each group's labels follow a feature of its own, and noise; features take 50 values."""
    rng = np.random.default_rng(records)
    values = rng.integers(0, 50, (records, features)).astype(float)
    group = np.concatenate([np.arange(groups), rng.integers(0, groups, records - groups)])
    above = values[np.arange(records), group % features] + rng.normal(0, 8, records) > 25
    members = tuple(tuple(np.flatnonzero(group == k).tolist()) for k in range(groups))
    return LexifairClassification(
        labels=above.astype(int), groups=members, hypotheses=Stumps(features=values), levels=1
    )


INSTANCES = by_name(
    Instance(f"lexifair/stumps-{n}-{d}-{k}", partial(_conflict, n, d, k), "compact")
    for n, d, k in ((200, 3, 4), (2000, 10, 20), (20000, 40, 100))
)
