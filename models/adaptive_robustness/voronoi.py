"""The radius of the nearest neighbour in the plane: the distance to the Voronoi edges between labels."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness.classifiers import NearestNeighbour
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius
from forcopt.models.adaptive_robustness.segment_tree import SegmentTree
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["Border", "border", "voronoi"]


class Border(NamedTuple):
    """The border between labels in the plane: segments from `start` by ``t * step``, ``0 <= t <= reach``.

    Attributes
    ----------
    start, step : arrays, shape (k, 2)
        The steps have length 1.
    reach : array, shape (k,)
        Infinite for rays.
    """

    start: Array
    step: Array
    reach: Array

    def nearest(self, points: Array) -> tuple[Array, Array]:
        """The nearest point of the border and its distance, for points of shape ``(m, 2)``."""
        return SegmentTree(self.start, self.step, self.reach).nearest(points)


def border(nn: NearestNeighbour) -> Border:
    """The Voronoi edges between atoms of different labels.

    Raises
    ------
    DeclarationError
        Outside of the plane, and for fewer than 4 distinct atoms or atoms on one line: use `cuts`.
    """
    if nn.features != 2:
        raise DeclarationError(f"voronoi is for the plane, and there are {nn.features} features: use cuts")
    atoms, first, place = np.unique(nn.points, axis=0, return_index=True, return_inverse=True)
    if len(atoms) < len(nn.points):
        same = nn.labels == nn.labels[first][place.reshape(-1)]
        if not same.all():
            raise DeclarationError("two atoms of different labels coincide; voronoi takes none: use cuts")
    labels = nn.labels[first]
    center = atoms.mean(axis=0)
    try:
        if len(atoms) < 4:
            raise scipy.spatial.QhullError("fewer than 4 atoms")
        diagram = scipy.spatial.Voronoi(atoms - center)
    except scipy.spatial.QhullError as error:
        raise DeclarationError(
            f"there is no Voronoi diagram ({str(error).splitlines()[0]}): use cuts"
        ) from None
    pairs = diagram.ridge_points
    between = labels[pairs[:, 0]] != labels[pairs[:, 1]]
    pairs, ends = pairs[between], np.array(diagram.ridge_vertices)[between]
    ray = ends.min(axis=1) < 0
    start = diagram.vertices[np.where(ray, ends.max(axis=1), ends[:, 0])] + center
    step = diagram.vertices[ends[:, 1]] + center - start
    reach = np.linalg.norm(step, axis=1)
    p, q = atoms[pairs[:, 0]], atoms[pairs[:, 1]]
    normal = np.stack([p[:, 1] - q[:, 1], q[:, 0] - p[:, 0]], axis=1)
    outward = np.where((((p + q) / 2 - center) * normal).sum(axis=1) >= 0, 1.0, -1.0)
    normal *= (outward / np.linalg.norm(normal, axis=1))[:, None]
    step = np.where(ray[:, None], normal, step / np.where(reach > 0, reach, 1)[:, None])
    return Border(start, step, np.where(ray, math.inf, reach))


@RobustnessRadius.algorithm("voronoi", exact=True, cites="Voronoi edges between labels, in the plane")
def voronoi(problem: RobustnessRadius, *, time_limit: float | None = None) -> Outcome:
    """The nearest Voronoi edge between different labels; at least 4 atoms, not on one line. O(n log n).

    Parameters
    ----------
    problem : RobustnessRadius
        Which.
    time_limit : float, optional
        Not checked while the diagram is computed.
    """
    nn = problem.classifier
    assert isinstance(nn, NearestNeighbour)
    if problem.is_misclassified:
        return Outcome(problem.point.copy(), 0.0)
    if (nn.labels == problem.label).all():
        return Outcome(None, status=Status.INFEASIBLE, message="all atoms have one label")
    # only edges of the label's own region matter; others are farther
    moved, far = border(nn).nearest(problem.point[None])
    return Outcome(moved[0], float(far[0]))
