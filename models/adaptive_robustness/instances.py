"""Seeded instances: laws on curves with fixed and adaptive balls, and halfspaces of least adaptive loss."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.adaptive_robustness.classification import AdaptiveRobustClassification
from forcopt.models.adaptive_robustness.classifiers import ReLUNetwork
from forcopt.models.adaptive_robustness.generators import draw_curves
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius


def _fixed(name: str, count: int, radius: float) -> RobustBayes:
    points, labels = draw_curves(name, count, seed=count)
    # rounded, since the last bits of a sine depend on the C library
    return RobustBayes.from_sample(points.round(9), labels, radius)


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


def _network(features: int, units: int) -> RobustnessRadius:
    """A random network with two layers, and a point that it calls 1."""
    rng = np.random.default_rng(features)
    sizes = [features, units, units, 1]
    weights = [rng.normal(size=shape) / shape[0] ** 0.5 for shape in pairwise(sizes)]
    net = ReLUNetwork(weights=tuple(weights), biases=tuple(rng.normal(size=k) / 10 for k in sizes[1:]))
    point = rng.random(features)
    label = int(net.predict(point[None])[0])
    return RobustnessRadius(
        classifier=net, point=point, label=label, norm="linf", box=(np.array(-1.0), np.array(2.0))
    )


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
        *(
            Instance(f"robustness/network-{d}-{k}", partial(_network, d, k), "milp")
            for d, k in ((5, 5), (20, 10), (30, 20))
        ),
    ]
)  # fmt: skip
