"""Seeded instances: classifiers that err more on some groups than on others."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.fairness import DemographicParity, EqualizedOdds, ErrorParity, Notion
from forcopt.instance import Instance, by_name
from forcopt.models.fair_postprocessing.problem import FairPostprocessing
from forcopt.models.fair_postprocessing.scores import ScorePostprocessing


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


def draw_scores(records: int, constraint: Notion, seed: int) -> ScorePostprocessing:
    """Draw scores of two decimals that are informative to a different degree in each of three groups."""
    rng = np.random.default_rng(seed)
    groups, labels = rng.integers(0, 3, records), rng.integers(0, 2, records)
    scores = (labels * np.array([1.5, 1.0, 0.6])[groups] + rng.normal(size=records)).round(2)
    names = tuple(f"group {g}" for g in groups)
    return ScorePostprocessing(scores=scores, labels=labels, groups=names, constraint=constraint)


_NOTIONS = {"parity": DemographicParity(0.02), "odds": EqualizedOdds(0.05), "error": ErrorParity(0.01)}

_TABLES = [
    Instance(f"postprocessing/{short}-{groups}", partial(draw, groups, notion, groups), "lp")
    for groups in (3, 30, 300, 3000)
    for short, notion in _NOTIONS.items()
]
_SCORES = [
    Instance(f"postprocessing/scores-{short}-{n}", partial(draw_scores, n, notion, n), "lp")
    for n in (100, 3000)
    for short, notion in _NOTIONS.items()
]

INSTANCES = by_name([*_TABLES, *_SCORES])
