"""Seeded instances: calibrated scores of groups whose base rates differ."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors

__all__ = ["INSTANCES"]


def _scores(groups: int, values: int) -> CalibratedEqualErrors:
    """Each group has so many score values, from 0.02 to 0.98, and masses that grow or fall along them."""
    rng = np.random.default_rng(groups * values)
    scores = {}
    for name in range(groups):
        at = np.sort(rng.choice(np.arange(20, 981), values, replace=False)) / 1000
        mass = rng.integers(1, 100, values) * np.exp((0.5 - name / groups) * 3 * at)
        scores[str(name)] = np.array([at, mass / mass.sum()])
    return CalibratedEqualErrors(scores=scores, cutoff=0.5)


INSTANCES = by_name(
    Instance(f"calibrated/scores-{g}-{n}", partial(_scores, g, n), "lp")
    for g, n in ((2, 10), (3, 100), (10, 500))
)
