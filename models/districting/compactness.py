"""Compactness of districts: the scores of Polsby and Popper, and of Reock.

The node attributes ``area`` and ``boundary_perim`` and the edge attribute ``shared_perim`` are those of
GerryChain's graphs: the area of a node, the length of its border with the outside of the map, and the length
of the border between two nodes.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, is_missing
from forcopt.errors import DeclarationError, require
from forcopt.models.districting.districts import reader
from forcopt.problem.parts import Measure

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
    if borders(problem) is None:
        return np.zeros(0)
    read = reader(problem, labels == np.arange(problem.districts)[:, None])
    return read(Measure(name="polsby_popper"))


def borders(problem: Districting) -> tuple[Array, Array, Array, Array] | None:
    """Areas, outer borders, pairs of nodes and the lengths of their borders; None if one is missing."""
    return problem.once("measures", lambda: _measures(problem))


def _measures(problem: Districting) -> tuple[Array, Array, Array, Array] | None:
    graph, found = problem.graph, None
    edges = [(u, v, data) for u, v, data in graph.edges(data=True) if u != v]
    if problem.filled(AREA) and not any(is_missing(data.get(BORDER)) for *_, data in edges):
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
        require(np.isfinite(out[i]) and out[i] >= 0, f"{where!r}: {name}", value, "be a number, not negative")
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
        Empty if a node lacks ``geometry``, or the package shapely is missing. NaN for an empty district.

    Notes
    -----
    Area and circle are those of the geometry's own coordinates; project longitudes and latitudes first.

    References
    ----------
    .. [1] Reock, A note: measuring compactness as a requirement of legislative apportionment, Midwest Journal
       of Political Science 1961.
    """
    shapes = problem.once("shapes", lambda: _shapes(problem))
    if not shapes:
        return np.zeros(0)
    import shapely

    scores = np.full(problem.districts, np.nan)
    for d in range(problem.districts):
        members = np.flatnonzero(labels == d)
        if len(members):
            around = shapely.GeometryCollection([shapes[v].convex_hull for v in members])
            circle = np.pi * shapely.minimum_bounding_radius(around) ** 2
            scores[d] = sum(shapes[v].area for v in members) / circle
    return scores


def polygons_of(geometry: Any) -> list[Any]:
    """The polygons of a geometry, each a list of its outer ring and its holes.

    Raises
    ------
    DeclarationError
        If it is neither a Polygon nor a MultiPolygon.

    Notes
    -----
    Polygons without an outer ring, as of ``"coordinates": []``, are left out.
    """
    shape = getattr(geometry, "__geo_interface__", geometry)
    kind = shape.get("type") if hasattr(shape, "get") else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise DeclarationError(f"geometry must be a Polygon or MultiPolygon, not {kind!r}")
    polygons = [shape["coordinates"]] if kind == "Polygon" else shape["coordinates"]
    return [rings for rings in polygons or () if rings is not None and len(rings) and len(rings[0])]


def outlines(problem: Districting) -> list[list[Any]]:
    """The polygons of each node; empty if one has none, or its ``geometry`` is null or missing."""
    drawn = problem.nodes if problem.filled("geometry") else ()
    shapes = [polygons_of(problem.graph.nodes[v]["geometry"]) for v in drawn]
    return shapes if all(shapes) else []


def _shapes(problem: Districting) -> list[Any]:
    """The shape of each node; empty if one lacks a geometry, or shapely is missing."""
    shells = outlines(problem) if find_spec("shapely") else []
    if not shells:
        return []
    import shapely

    return [shapely.MultiPolygon([(rings[0], rings[1:]) for rings in polygons]) for polygons in shells]
