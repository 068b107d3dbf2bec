"""Seeded points of two classes on curves in the plane whose distance varies; the library's instances."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from forcopt.arrays import Array, Seed
from forcopt.errors import DeclarationError
from forcopt.instance import by_name, family
from forcopt.models.adaptive_robustness.classification import AdaptiveRobustClassification
from forcopt.models.adaptive_robustness.classifiers import ReLUNetwork
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius

CURVES = ("sines", "s-figure", "nnn", "circles", "boxes")
"""The names of the generators."""


def draw_curves(name: str, count: int, seed: Seed = None) -> tuple[Array, Array]:
    """Draw points on the curves of two classes.

    Parameters
    ----------
    name : str
        ``"sines"``: two sine waves whose gap widens from 0.3 to 2. ``"s-figure"``: two parallel S curves with
        a narrowing gap. ``"nnn"``: three N-shaped lines of alternating labels. ``"circles"``: radii 2, 6, 12
        and 16, alternating. ``"boxes"``: nested squares with half-sides 2, 6 and 12, alternating.
    count : int
    seed : int or Generator, optional

    Returns
    -------
    points, labels : arrays, shapes (count, 2) and (count,)

    Notes
    -----
    The paper names these shapes and prints pictures of them, but no formulas: scales follow the radii that
    it tries.

    References
    ----------
    Chowdhury, Urner, FORC 2022, section 6.

    Examples
    --------
    >>> points, labels = draw_curves("circles", 100, seed=0)
    >>> sorted(set((points**2).sum(axis=1).round().astype(int).tolist()))
    [4, 36, 144, 256]
    """
    rng = np.random.default_rng(seed)
    if name == "sines":
        y = rng.integers(0, 2, count)
        x = rng.uniform(0, 4 * np.pi, count)
        gap = 0.3 + 1.7 * x / (4 * np.pi)
        return np.stack([x, np.sin(x) + y * gap], axis=1), y
    if name == "s-figure":
        y = rng.integers(0, 2, count)
        t = rng.uniform(0, 1, count)
        gap = 2.0 - 1.7 * t
        return np.stack([4 * np.sin(2 * np.pi * t) + y * gap, 10 * t], axis=1), y
    if name == "nnn":
        which = rng.integers(0, 3, count)
        t = rng.uniform(0, 3, count)
        leg = np.minimum(t.astype(int), 2)
        along = t - leg
        x = np.choose(leg, [np.zeros(count), 2 * along, np.full(count, 2.0)]) + 2.6 * which
        height = np.choose(leg, [4 * along, 4 * (1 - along), 4 * along]) + 0.4 * which
        return np.stack([x, height], axis=1), which % 2
    if name == "circles":
        which = rng.integers(0, 4, count)
        radius, angle = np.array([2.0, 6.0, 12.0, 16.0])[which], rng.uniform(0, 2 * np.pi, count)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), which % 2
    if name == "boxes":
        which, side = rng.integers(0, 3, count), rng.integers(0, 4, count)
        half, along = np.array([2.0, 6.0, 12.0])[which], rng.uniform(-1, 1, count)
        x = half * np.choose(side, [along, np.ones(count), along, -np.ones(count)])
        height = half * np.choose(side, [np.ones(count), along, -np.ones(count), along])
        return np.stack([x, height], axis=1), which % 2
    raise DeclarationError(f"name is {name!r}; it must be one of {', '.join(CURVES)}")


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


_CURVES = ("sines", 100, 0.3), ("sines", 1000, 0.3), ("sines", 10_000, 0.2), ("circles", 1000, 2.5)

INSTANCES = by_name(
    family("robustness/{}-{}", _fixed, "lp", *_CURVES),
    family("robustness/three-labels-{}", _many_labels, "milp", [30], [100], [300]),
    family("robustness/halfspace-{}-{}", _halfspace, "milp", (20, 2, 0.5), (40, 3, 0.5), (60, 4, 0.5)),
    family("robustness/network-{}-{}", _network, "milp", (5, 5), (20, 10), (30, 20)),
)
