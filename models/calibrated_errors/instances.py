"""Seeded instances: calibrated scores of groups whose base rates differ."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.instance import by_name, family
from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors
from forcopt.models.calibrated_errors.transport import CalibratedTransport


def _score(values: int, slope: float, rng: np.random.Generator) -> Array:
    """Score values from 0.02 to 0.98, and masses that grow or fall along them."""
    at = np.sort(rng.choice(np.arange(20, 981), values, replace=False)) / 1000
    mass = (rng.integers(1, 100, values) * np.exp(slope * at)).round(9)  # exp's last bits are the processor's
    return np.array([at, mass / mass.sum()])


def _groups(groups: int, values: int) -> CalibratedEqualErrors:
    """The first group has the most of high scores, the last of low ones."""
    rng = np.random.default_rng(groups * values)
    scores = {str(name): _score(values, (0.5 - name / groups) * 3, rng) for name in range(groups)}
    return CalibratedEqualErrors(scores=scores, cutoff=0.5)


def _transport(values: int) -> CalibratedTransport:
    """The target is a tenth of the way from the score's own error rates to their mean, which is chance."""
    share, mass = score = _score(values, 0.0, np.random.default_rng(values))
    rates = np.array([(mass * of)[share >= 0.5].sum() / (mass * of).sum() for of in (1 - share, share)])
    return CalibratedTransport(score=score, target=0.9 * rates + 0.1 * rates.mean(), cutoff=0.5)


INSTANCES = by_name(
    family("calibrated/scores-{}-{}", _groups, "lp", (2, 10), (3, 100), (10, 500)),
    family("calibrated/transport-{}", _transport, "lp", [10], [100], [500]),
)
