"""Seeded instances: laws on curves with fixed and adaptive balls, and halfspaces of least adaptive loss."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.adaptive_robustness.classification import AdaptiveRobustClassification
from forcopt.models.adaptive_robustness.generators import draw_curves
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes

__all__ = ["INSTANCES"]


def _fixed(name: str, count: int, radius: float) -> RobustBayes:
    points, labels = draw_curves(name, count, seed=count)
    return RobustBayes.from_sample(points, labels, radius)


def _many_labels(count: int) -> RobustBayes:
    """Random points of the square with three labels: the conflicts are not bipartite."""
    rng = np.random.default_rng(count)
    return RobustBayes.from_sample(rng.random((count, 2)), rng.integers(0, 3, count), 0.4 / count**0.5)


def _halfspace(count: int, features: int, fraction: float) -> AdaptiveRobustClassification:
    """Two overlapping clouds; the maximum norm."""
    rng = np.random.default_rng(count)
    labels = np.arange(count) % 2
    points = rng.normal(size=(count, features)) + 1.5 * labels[:, None]
    return AdaptiveRobustClassification(points, labels, fraction, norm="linf")


INSTANCES = by_name(
    [
        *(
            Instance(f"robustness/{name}-{count}", partial(_fixed, name, count, radius), "lp")
            for name, count, radius in (
                ("sines", 100, 0.3), ("sines", 1000, 0.3), ("sines", 10_000, 0.2), ("circles", 1000, 2.5),
            )
        ),
        *(Instance(f"robustness/three-labels-{n}", partial(_many_labels, n), "milp") for n in (30, 100, 300)),
        *(
            Instance(f"robustness/halfspace-{n}-{d}", partial(_halfspace, n, d, 0.5), "milp")
            for n, d in ((20, 2), (40, 3), (60, 4))
        ),
    ]
)  # fmt: skip
