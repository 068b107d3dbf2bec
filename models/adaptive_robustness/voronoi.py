"""The radius of the nearest neighbour in the plane: the nearest Voronoi edge between labels."""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness.classifiers import NearestNeighbour
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius
from forcopt.problem import Outcome
from forcopt.status import Status

_LEAF = 8


class SegmentTree:
    """Bounding boxes of segments ``start + t * step``, ``0 <= t <= reach``, in the order of a Morton curve.

    Parameters
    ----------
    start, step : arrays, shape (k, 2)
        The steps have length 1.
    reach : array, shape (k,)
        May be infinite.

    Examples
    --------
    >>> tree = SegmentTree(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]]), np.array([2.0]))
    >>> points, far = tree.nearest(np.array([[3.0, 0.0], [1.0, 5.0]]))
    >>> points.tolist(), far.tolist()
    ([[2.0, 0.0], [1.0, 0.0]], [1.0, 5.0])
    """

    def __init__(self, start: Array, step: Array, reach: Array) -> None:
        order = np.argsort(_morton(start), kind="stable")
        self.start, self.step, self.reach = (np.ascontiguousarray(a[order]) for a in (start, step, reach))
        with np.errstate(invalid="ignore"):
            ends = self.start + np.where(self.step == 0, 0.0, self.step * self.reach[:, None])
        leaves = 1 << max(0, -(-len(start) // _LEAF) - 1).bit_length()
        pad = ((0, leaves * _LEAF - len(start)), (0, 0))
        low = np.pad(np.minimum(self.start, ends), pad, constant_values=np.inf)
        high = np.pad(np.maximum(self.start, ends), pad, constant_values=-np.inf)
        self.low, self.high = np.full((2 * leaves, 2), np.inf), np.full((2 * leaves, 2), -np.inf)
        self.low[leaves:] = low.reshape(leaves, _LEAF, 2).min(axis=1)
        self.high[leaves:] = high.reshape(leaves, _LEAF, 2).max(axis=1)
        level = leaves
        while level > 1:  # parents hold their children
            half = level // 2
            self.low[half:level] = self.low[level : 2 * level].reshape(half, 2, 2).min(axis=1)
            self.high[half:level] = self.high[level : 2 * level].reshape(half, 2, 2).max(axis=1)
            level = half

    def nearest(self, points: Array) -> tuple[Array, Array]:
        """The nearest point of the segments and its distance, for points of shape ``(m, 2)``; O(log k) each
        where segments are spread out."""
        at, far = np.zeros((len(points), 2)), np.full(len(points), np.inf)
        given = np.ascontiguousarray(points, dtype=float)
        _search(given, self.start, self.step, self.reach, self.low, self.high, at, far)
        return at, far


def _morton(points: Array) -> Array:
    """Places along a Morton curve of 2^16 x 2^16 cells."""
    low, spread = points.min(axis=0), np.ptp(points, axis=0)
    cells = ((points - low) / np.where(spread > 0, spread, 1) * 65535).astype(np.int64)
    code = np.zeros(len(points), dtype=np.int64)
    for bit in range(16):
        for axis in range(2):
            code |= ((cells[:, axis] >> bit) & 1) << (2 * bit + axis)
    return code


@numba.njit(cache=True)
def _box_distance(low, high, node, x, y):  # type: ignore[no-untyped-def]  # pragma: no cover
    dx = max(low[node, 0] - x, 0.0, x - high[node, 0])
    dy = max(low[node, 1] - y, 0.0, y - high[node, 1])
    return dx * dx + dy * dy


@numba.njit(cache=True)
def _search(points, start, step, reach, low, high, at, far):  # type: ignore[no-untyped-def]  # pragma: no cover
    leaves = len(low) // 2
    stack = np.empty(128, np.int64)
    for i in range(len(points)):
        x, y = points[i, 0], points[i, 1]
        best = np.inf
        stack[0] = 1
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if _box_distance(low, high, node, x, y) >= best:
                continue
            if node >= leaves:
                first = (node - leaves) * _LEAF
                for k in range(first, min(first + _LEAF, len(start))):
                    t = (x - start[k, 0]) * step[k, 0] + (y - start[k, 1]) * step[k, 1]
                    t = min(max(t, 0.0), reach[k])
                    px, py = start[k, 0] + t * step[k, 0], start[k, 1] + t * step[k, 1]
                    apart = (px - x) ** 2 + (py - y) ** 2
                    if apart < best:
                        best = apart
                        at[i, 0], at[i, 1] = px, py
                continue
            left, right = 2 * node, 2 * node + 1
            if _box_distance(low, high, left, x, y) < _box_distance(low, high, right, x, y):
                left, right = right, left
            stack[top], stack[top + 1] = left, right
            top += 2
        far[i] = np.sqrt(best)


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
