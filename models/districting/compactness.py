"""Compactness of districts: the scores of Polsby and Popper, and of Reock.

The node attributes ``area`` and ``boundary_perim`` and the edge attribute ``shared_perim`` are those of
GerryChain's graphs: the area of a node, the length of its border with the outside of the map, and the length
of the border between two nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.districting.tolerances import CIRCLE, NOT_ZERO

if TYPE_CHECKING:
    from forcopt.models.districting.problem import Districting

AREA, PERIMETER, BORDER = "area", "boundary_perim", "shared_perim"


def polsby_popper(problem: Districting, labels: Array) -> Array:
    """Give 4 pi area / perimeter**2 of each district: 1 for a disc, near 0 for a thin district.

    Parameters
    ----------
    problem : Districting
        Whose nodes have ``area`` (and ``boundary_perim`` at the border of the map), and whose edges have
        ``shared_perim``.
    labels : ndarray of int64, shape (n,)
        The district of each node.

    Returns
    -------
    ndarray, shape (districts,)
        Empty if a node lacks ``area`` or an edge lacks ``shared_perim``. NaN for an empty district.

    References
    ----------
    .. [1] Polsby and Popper, The third criterion: compactness as a procedural safeguard against partisan
       gerrymandering, Yale Law and Policy Review 1991.
    """
    measures = borders(problem)
    if measures is None:
        return np.zeros(0)
    area, outer, ends, length = measures
    inside = (labels >= 0) & (labels < problem.districts)
    k = problem.districts
    total = np.bincount(labels[inside], area[inside], k)
    around = np.bincount(labels[inside], outer[inside], k)
    cut = labels[ends[:, 0]] != labels[ends[:, 1]]
    for end in ends[cut].T:
        known = inside[end]
        around += np.bincount(labels[end][known], length[cut][known], k)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(4 * np.pi * total / around**2)


def borders(problem: Districting) -> tuple[Array, Array, Array, Array] | None:
    """Areas, outer borders, pairs of nodes and the lengths of their borders; None if one is missing."""
    return problem.once("measures", lambda: _measures(problem))


def _measures(problem: Districting) -> tuple[Array, Array, Array, Array] | None:
    graph, found = problem.graph, None
    edges = [(u, v, data) for u, v, data in graph.edges(data=True) if u != v]
    if all(AREA in graph.nodes[v] for v in problem.nodes) and all(BORDER in data for *_, data in edges):
        area = _numbers([(v, AREA, graph.nodes[v][AREA]) for v in problem.nodes])
        outer = _numbers([(v, PERIMETER, graph.nodes[v].get(PERIMETER, 0)) for v in problem.nodes])
        ends = np.array([(problem.place[u], problem.place[v]) for u, v, _ in edges], np.int64).reshape(-1, 2)
        found = (area, outer, ends, _numbers([((u, v), BORDER, data[BORDER]) for u, v, data in edges]))
    return found


def _numbers(items: list[tuple[Any, str, Any]]) -> Array:
    out = np.zeros(len(items))
    for i, (where, name, value) in enumerate(items):
        try:
            out[i] = value
        except (TypeError, ValueError):
            out[i] = np.nan
        if not (np.isfinite(out[i]) and out[i] >= 0):
            raise DeclarationError(f"{where!r}: {name} is {value!r}; it must be a number, not negative")
    return out


def reock(problem: Districting, labels: Array) -> Array:
    """Give the area of each district over the area of the smallest circle around it.

    Parameters
    ----------
    problem : Districting
        Whose nodes have ``geometry``.
    labels : ndarray of int64, shape (n,)
        The district of each node.

    Returns
    -------
    ndarray, shape (districts,)
        Empty if a node lacks ``geometry``. NaN for an empty district.

    Notes
    -----
    The area is computed from the geometry by the shoelace formula, holes subtracted, in the geometry's own
    coordinates; project longitudes and latitudes first.

    References
    ----------
    .. [1] Reock, A note: measuring compactness as a requirement of legislative apportionment, Midwest Journal
       of Political Science 1961.
    """
    shapes = problem.once("shapes", lambda: _shapes(problem))
    if not shapes:
        return np.zeros(0)
    scores = np.full(problem.districts, np.nan)
    for d in range(problem.districts):
        members = np.flatnonzero(labels == d)
        if len(members):
            _, radius = smallest_circle(np.concatenate([shapes[v][0] for v in members]))
            scores[d] = sum(shapes[v][1] for v in members) / (np.pi * radius**2)
    return scores


def polygons_of(geometry: Any) -> list[Any]:
    """The polygons of a geometry, each a list of its outer ring and its holes.

    Raises
    ------
    DeclarationError
        If it is neither a Polygon nor a MultiPolygon.
    """
    shape = getattr(geometry, "__geo_interface__", geometry)
    kind = shape.get("type") if hasattr(shape, "get") else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise DeclarationError(f"geometry must be a Polygon or MultiPolygon, not {kind!r}")
    return [shape["coordinates"]] if kind == "Polygon" else list(shape["coordinates"])


def _shapes(problem: Districting) -> list[tuple[Array, float]]:
    """The hull and the area of each node; empty if one lacks a geometry."""
    nodes = [problem.graph.nodes[v] for v in problem.nodes]
    if not all("geometry" in data for data in nodes):
        return []
    return [_hull_and_area(data["geometry"]) for data in nodes]


def _hull_and_area(geometry: Any) -> tuple[Array, float]:
    area, points = 0.0, []
    for polygon in polygons_of(geometry):
        for number, ring in enumerate(polygon):
            at = np.asarray(ring, dtype=float)[:, :2]
            (x, y), (x2, y2) = at.T, np.roll(at, -1, axis=0).T
            size = abs(float(np.sum(x * y2 - x2 * y))) / 2
            area += size if number == 0 else -size
            if number == 0:
                points.append(at)
    return _hull(np.concatenate(points)), area


def _hull(points: Array) -> Array:
    from scipy.spatial import ConvexHull, QhullError

    points = np.unique(points, axis=0)
    if len(points) < 4:
        return points
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:  # the points lie on a line
        return points


def smallest_circle(points: Array) -> tuple[Array, float]:
    """Give the center and the radius of the smallest circle around points.

    Parameters
    ----------
    points : ndarray, shape (n, 2)
        At least one.

    Returns
    -------
    center : ndarray, shape (2,)
    radius : float

    Notes
    -----
    Welzl's incremental algorithm on the convex hull, in expected linear time.

    References
    ----------
    .. [1] Welzl, Smallest enclosing disks (balls and ellipsoids), 1991.

    Examples
    --------
    >>> center, radius = smallest_circle(np.array([[0.0, 0], [2, 0], [1, 0.5]]))
    >>> center.tolist(), radius
    ([1.0, 0.0], 1.0)
    """
    points = np.random.default_rng(0).permutation(_hull(points))
    scale = CIRCLE * (1 + float(np.abs(points).max()))

    def outside(circle: tuple[Array, float], point: Array) -> bool:
        return float(np.hypot(*(point - circle[0]))) > circle[1] + scale

    circle = (points[0], 0.0)
    for i, p in enumerate(points):
        if not outside(circle, p):
            continue
        circle = (p, 0.0)
        for j, q in enumerate(points[:i]):
            if not outside(circle, q):
                continue
            circle = _diameter(p, q)
            for r in points[:j]:
                if outside(circle, r):
                    circle = _circumscribed(p, q, r)
    return circle


def _diameter(p: Array, q: Array) -> tuple[Array, float]:
    return (p + q) / 2, float(np.hypot(*(p - q))) / 2


def _circumscribed(p: Array, q: Array, r: Array) -> tuple[Array, float]:
    sides = 2 * np.array([q - p, r - p])
    if abs(np.linalg.det(sides)) < NOT_ZERO:  # on a line: the two that lie farthest apart
        return max((_diameter(a, b) for a, b in ((p, q), (p, r), (q, r))), key=lambda c: c[1])
    center = p + np.linalg.solve(sides, ((np.array([q, r]) - p) ** 2).sum(axis=1))
    return center, float(np.hypot(*(p - center)))
