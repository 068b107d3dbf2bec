"""The convex hull of a group's ROC curve: all rates that randomised thresholds on a score reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forcopt.arrays import Array
from forcopt.learning.thresholds import middles

__all__ = ["RocHull", "roc_hull"]


@dataclass(frozen=True, eq=False)
class RocHull:
    """The vertices of the hull of a ROC curve, from "nobody" on, below the curve and back above it.

    Attributes
    ----------
    thresholds : Array
        For each of the v vertices, the score from which on 1 is predicted, see `middles`; infinite for
        nobody, minus infinite for everybody. Shape ``(v,)``.
    positives : Array
        The mass with label 0 and with label 1 that is predicted 1, shape ``(v, 2)``.
    """

    thresholds: Array
    positives: Array


def roc_hull(scores: Array, labels: Array, weights: Array) -> RocHull:
    """Find the vertices of the convex hull of a ROC curve.

    Parameters
    ----------
    scores : Array
        Of the records of one group, shape ``(n,)``.
    labels : Array
        0 or 1, shape ``(n,)``.
    weights : Array
        At least 0, shape ``(n,)``.

    Returns
    -------
    RocHull
        A mixture of thresholds reaches a pair of rates if and only if the pair is a mixture of vertices.

    Notes
    -----
    O(n log n): the points of a ROC curve rise in both coordinates, so that one pass of Andrew's monotone
    chain after the sort gives either side of the hull.

    References
    ----------
    Provost and Fawcett (2001): Robust classification for imprecise environments; Hardt, Price and Srebro
    (2016), section 4.2.

    Examples
    --------
    >>> hull = roc_hull(np.array([4, 3, 2, 1]), np.array([1, 0, 1, 0]), np.ones(4))
    >>> hull.thresholds.tolist()
    [inf, -inf, 1.5, 3.5]
    >>> hull.positives.tolist()
    [[0.0, 0.0], [2.0, 2.0], [1.0, 2.0], [0.0, 1.0]]
    """
    values, place = np.unique(-scores, return_inverse=True)  # from the largest score down
    mass = np.stack([np.bincount(place, weights * (labels == y), len(values)) for y in (0, 1)], axis=1)
    points = np.vstack([np.zeros((1, 2)), np.cumsum(mass, axis=0)])
    thresholds = np.concatenate([[np.inf], middles(-values[::-1])[::-1], [-np.inf]])
    lower, upper = _chain(points, 1.0), _chain(points, -1.0)
    around = lower + [k for k in reversed(upper) if k not in set(lower)]
    return RocHull(thresholds[around], points[around])


def _chain(points: Array, side: float) -> list[int]:
    """The vertices on one side of the hull of points that rise in both coordinates, from first to last."""
    x, y = points[:, 0].tolist(), points[:, 1].tolist()
    chain: list[int] = []
    for k in range(len(x)):
        if chain and x[k] == x[chain[-1]] and y[k] == y[chain[-1]]:
            continue
        while len(chain) >= 2:
            i, j = chain[-2], chain[-1]
            turn = (x[j] - x[i]) * (y[k] - y[i]) - (y[j] - y[i]) * (x[k] - x[i])
            if side * turn > 0:
                break
            chain.pop()
        chain.append(k)
    return chain
