"""Seeded instances: classifiers that err more on some groups than on others."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.fairness import DemographicParity, EqualizedOdds, ErrorParity, Notion
from forcopt.instance import Instance, by_name
from forcopt.models.fair_postprocessing.problem import FairPostprocessing

__all__ = ["INSTANCES", "draw"]


def draw(groups: int, constraint: Notion, seed: int) -> FairPostprocessing:
    """Draw a table: each group has 20 to 2000 records, base rates from 0.2 to 0.8, error rates to 0.4."""
    rng = np.random.default_rng(seed)
    people = rng.integers(20, 2001, groups)
    positive = np.maximum(1, np.minimum(people - 1, rng.binomial(people, rng.uniform(0.2, 0.8, groups))))
    labels = np.column_stack([people - positive, positive])
    wrong = rng.binomial(labels, rng.uniform(0.05, 0.4, (groups, 2)))
    right = labels - wrong
    # predicted 0: true negatives and missed positives; predicted 1: false alarms and true positives
    counts = np.array([[right[:, 0], wrong[:, 1]], [wrong[:, 0], right[:, 1]]]).transpose(0, 2, 1)
    return FairPostprocessing(counts=counts, constraint=constraint)


_NOTIONS = {"parity": DemographicParity(0.02), "odds": EqualizedOdds(0.05), "error": ErrorParity(0.01)}

INSTANCES = by_name(
    Instance(f"postprocessing/{short}-{groups}", partial(draw, groups, notion, groups), "lp")
    for groups in (3, 30, 300, 3000)
    for short, notion in _NOTIONS.items()
)
