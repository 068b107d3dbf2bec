"""Seeded instances: records whose labels depend on a score that means less for some groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from forcopt.fairness import DemographicParity, EqualizedOdds, Notion
from forcopt.instance import Instance, by_name
from forcopt.learning import AllFunctions, Hypotheses, Thresholds
from forcopt.models.fair_classification.problem import FairClassification


def draw(
    records: int, groups: int, constraint: Notion, hypotheses: Hypotheses, seed: int
) -> FairClassification:
    """Draw records: a whole score from 0 to 99, a group, and a label that follows the score and noise."""
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.arange(groups), rng.integers(0, groups, records - groups)])
    score = rng.integers(0, 100, records)
    noise = rng.normal(0, 10 + 30 * group / groups)
    labels = (score + noise > 40 + 20 * group / groups).astype(int)
    columns: dict[str, Any] = {"features": score[:, None], "labels": labels, "groups": group}
    return FairClassification(**columns, constraint=constraint, hypotheses=hypotheses)


_CASES = {
    "thresholds-parity": (DemographicParity(0.02), Thresholds()),
    "thresholds-odds": (EqualizedOdds(0.02), Thresholds()),
    "all-odds": (EqualizedOdds(0.02), AllFunctions()),
}

INSTANCES = by_name(
    Instance(f"learning/{short}-{records}", partial(draw, records, groups, *case, records), "lp")
    for records, groups in ((200, 2), (2000, 4), (20000, 8))
    for short, case in _CASES.items()
)
