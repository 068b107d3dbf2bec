"""Maps of geographic units: from their areas to the graph of neighbours, with all faults by unit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations_with_replacement, pairwise
from math import dist
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from forcopt.arrays import Array
from forcopt.data import intake
from forcopt.data.graphs import graph_from_dict
from forcopt.data.intake import FIRST_ROW, Expected, Findings, Fixes, cell_text, check_table, read_json, typed
from forcopt.data.tolerances import CORNERS, OVERLAP
from forcopt.errors import DeclarationError, required

if TYPE_CHECKING:
    import networkx as nx

_EARTH = 6_371_007.2
"""The radius in metres of the sphere with the area of the earth."""

_PEOPLE = 8e9
"""All people on earth."""

_NAMES = ("GEOID20", "GEOID10", "GEOID", "id", "code", "name")
"""Properties that name the units of a file of which the user names none."""

_SOUTH, _NORTH = -60, 84
"""Degrees of latitude beyond which nobody lives."""

_MOST_HOLES = 5
"""Holes of the map that are noted; lakes are, too."""

Pairs = dict[tuple[int, int], float]


def read_map(
    path: str | Path,
    population: str,
    *,
    identifier: str | None = None,
    adjacency: Literal["rook", "queen"] = "rook",
    bridge: bool = False,
    fixes: Fixes | None = None,
) -> tuple[nx.Graph[Any], Findings]:
    """Read the graph of units that are neighbours, with everything that was found in the file.

    Parameters
    ----------
    path : str or Path
        GeoJSON; a shapefile, GeoPackage or whatever else geopandas reads; or the JSON of a graph, such as
        GerryChain's, see `forcopt.data.load_graph`.
    population : str
        The property with the number of people.
    identifier : str, optional
        The property that names the units; by default the first that the file has of GEOID20, GEOID10, GEOID,
        id, code and name. Without any, the features are numbered from 0.
    adjacency : {"rook", "queen"}, default "rook"
        Whether neighbours share a border, or a corner at least.
    bridge : bool, default False
        Whether to join the parts of a map that is not connected by edges to the nearest unit.
    fixes : mapping, optional
        Of the properties, see `forcopt.data.intake.Fixes`.

    Returns
    -------
    tuple[networkx.Graph, Findings]
        Nodes have all properties of the file after the fixes, ``geometry``, and ``area`` (square metres),
        ``boundary_perim`` (the metres of the border with the outside), ``x`` and ``y``. Edges have
        ``shared_perim``, the metres of the common border. Bridges are noted, and have ``bridge`` and no
        border.

    Notes
    -----
    Degrees are projected by Lambert's azimuthal projection around the middle of the map, which keeps areas.
    With shapely, borders are intersections of areas. Without it, neighbours must have the same corners.
    Borders between parts of one unit do not count. Neighbours come from borders, so a unit whose geometry is
    null or empty is a fault.

    If more than 180 degrees of longitude hold no corner, the map lies across the meridian 180: before the
    projection, longitudes west of this gap get 360 degrees more. A step of more than 180 degrees along a
    border is taken for one across the meridian 180. ``geometry`` keeps the longitudes of the file.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> def square(x, people):
    ...     ring = [[x, 0], [x + 0.1, 0], [x + 0.1, 0.1], [x, 0.1], [x, 0]]
    ...     shape = {"type": "Polygon", "coordinates": [ring]}
    ...     return {"type": "Feature", "properties": {"id": f"u{x}", "people": people}, "geometry": shape}
    >>> units = {"type": "FeatureCollection", "features": [square(0, 120), square(0.1, 80)]}
    >>> path = Path(tempfile.mkdtemp()) / "units.geojson"
    >>> _ = path.write_text(json.dumps(units))
    >>> graph, found = read_map(path, "people")
    >>> sorted(graph.nodes), graph.number_of_edges(), len(found.faults)
    (['u0', 'u0.1'], 1, 0)
    """
    found = Findings()
    file = Path(path).name
    import networkx as nx

    pd = required("pandas", "read_map")

    shapes, facts, graph = map_facts(Path(path), file, found)
    table = pd.DataFrame([_texts(values) for values in facts])
    if identifier == population:
        raise DeclarationError(f"{file}: {population!r} cannot both name the units and count their people")
    if identifier is None:
        known = [name for name in _NAMES if name in table.columns and name != population]
        identifier = next((name for name in known if (table[name].fillna("") != "").all()), None)
    schema = {population: Expected("count")} | ({identifier: Expected("key")} if identifier else {})
    frame, _ = check_table(table, file, schema, fixes=fixes, findings=found)
    if found.faults:
        return graph, found
    people = typed(frame, schema)[population]
    kept = [row - FIRST_ROW for row in frame.index]
    names: list[Any] = frame[identifier].tolist() if identifier else kept
    if not 0 < people.sum() < _PEOPLE:
        rule = "is the sum of all units; choose the column that counts people by population (--population)"
        found.fault(file, 0, population, f"{people.sum():,}", rule)
    if len(graph):
        nodes = [list(graph)[i] for i in kept]
        graph = nx.relabel_nodes(graph.subgraph(nodes), dict(zip(nodes, names, strict=True)))
        rings: list[list[Array]] = []
    else:
        for name, at in zip(names, kept, strict=True):
            graph.add_node(name, **facts[at])
        rings = _add_borders(graph, [shapes[i] for i in kept], adjacency, file, found)
    _take_fixes(graph, names, table.iloc[kept].fillna(""), frame, facts)
    for name, count in zip(names, people.tolist(), strict=True):
        graph.nodes[name][population] = count
    if not found.faults:
        _join_parts(graph, rings, bridge, file, found)
    graph.graph["intake"] = [str(note) for note in found.notes]
    return graph, found


def map_facts(
    path: Path, file: str, found: Findings
) -> tuple[list[Any], list[dict[str, Any]], nx.Graph[Any]]:
    """The geometries and properties of a file, and its graph if it holds one."""
    import networkx as nx

    if path.suffix.lower() in (".json", ".geojson"):
        data = read_json(path)
        if not isinstance(data, Mapping) or data.get("type") not in ("FeatureCollection", "Topology"):
            graph = graph_from_dict(data)
            facts = [{"id": cell_text(v), **values} for v, values in graph.nodes(data=True)]
            return [], facts, graph
        if data["type"] == "Topology":
            raise DeclarationError(f"{path} is TopoJSON; save it as GeoJSON")
    else:
        try:
            import geopandas
        except ImportError:
            raise DeclarationError(f"{path}: pip install geopandas, or save it as GeoJSON") from None
        try:
            frame = geopandas.read_file(path)
        except Exception as error:
            raise DeclarationError(f"{path} is no map that geopandas reads: {error}") from None
        if not hasattr(frame, "crs"):
            raise DeclarationError(f"{path} is a table, not a map: it has no borders")
        if frame.crs is None:
            found.note(file, 0, "", path.name, "states no projection; its coordinates are taken as they are")
        data = (frame.to_crs(4326) if frame.crs is not None else frame).__geo_interface__
    features = data.get("features")
    if not isinstance(features, list):
        raise DeclarationError(f"{path}: features must be a list of objects")
    for number, feature in enumerate(features):
        if not isinstance(feature, Mapping) or not isinstance(feature.get("properties"), Mapping | None):
            raise DeclarationError(f"{path}: feature {number} and its properties must be objects")
    facts = [
        {**({"id": cell_text(f["id"])} if "id" in f else {}), **(f.get("properties") or {})} for f in features
    ]
    return [feature.get("geometry") for feature in features], facts, nx.Graph()


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): cell_text(v) for name, v in values.items() if not isinstance(v, list | dict)}


def _take_fixes(graph: nx.Graph[Any], names: list[Any], given: Any, frame: Any, facts: list[Any]) -> None:
    """Give the nodes the cells and columns that fixes changed; numbers where the column has numbers."""
    columns = zip(given.columns, frame.columns, given.to_numpy().T, frame.to_numpy().T, strict=True)
    for was, now, cells, fixed in columns:
        if was == now and (cells == fixed).all():
            continue
        numeric = any(isinstance(values.get(was), Number) for values in facts)
        for name, old, new in zip(names, cells, fixed, strict=True):
            node = graph.nodes[name]
            if was in node:
                node[now] = node.pop(was)
            if old != new and (now in node or not old):  # a node of a graph has its id beside
                node[now] = new
                if numeric and intake.is_number(new):
                    node[now] = int(number) if (number := float(new)).is_integer() else number


# -- areas ---------------------------------------------------------------------------------------------------


def _add_borders(
    graph: nx.Graph[Any], shapes: list[Any], adjacency: str, file: str, found: Findings
) -> list[list[Array]]:
    """Add areas to the nodes, and edges with the lengths of their borders; gives the projected rings."""
    names = list(graph)
    rings: list[list[Array]] = []
    for row, (name, shape) in enumerate(zip(names, shapes, strict=True), FIRST_ROW):
        try:
            rings.append(_rings_of(shape))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            found.fault(file, row, "geometry", str(name), f"has no area: {error}; draw it again")
            rings.append([])
    corners = np.concatenate([ring for part in rings for ring in part] or [np.zeros((1, 2))])
    degrees = bool((np.abs(corners) <= (180, 90)).all())
    low, high = corners[:, 1].min(), corners[:, 1].max()
    turned = high < _SOUTH or low > _NORTH if degrees else (np.abs(corners) <= (90, 180)).all()
    if turned:
        rule = "has a latitude where nobody lives, or beyond 90 degrees: longitude must come before latitude"
        found.fault(file, 0, "geometry", f"{corners[0].tolist()}", rule)
    if found.faults:
        return rings
    if degrees:
        gaps = np.diff(lons := np.sort(corners[:, 0]))
        west = lons[gaps.argmax()] if gaps.max() > 180 else -np.inf
        rings = [[_unwrapped(ring, west) for ring in part] for part in rings]
        corners = np.concatenate([ring for part in rings for ring in part])
        middle = np.radians((corners.min(axis=0) + corners.max(axis=0)) / 2)
        rings = [[_projected(ring, middle) for ring in part] for part in rings]
    sizes = np.array([abs(sum(map(_signed_area, part))) for part in rings])
    try:
        import shapely
    except ImportError:
        rule = "shapely is not installed: neighbours are units with the same corners"
        found.note(file, 0, "geometry", "", rule)
        pairs = _same_corners(rings)
    else:
        pairs = _intersections(rings, names, sizes, file, found, shapely)
    for i, name in enumerate(names):
        if sizes[i] == 0:
            found.fault(file, i + FIRST_ROW, "geometry", str(name), "has no area; draw it again")
            continue
        x, y = np.mean(rings[i][0][:-1], axis=0).tolist()
        graph.nodes[name].update(geometry=shapes[i], area=round(float(sizes[i]), 1), x=x, y=y)
    around = np.array([pairs.pop((i, i), 0.0) for i in range(len(names))])
    for (i, j), length in sorted(pairs.items()):
        around[[i, j]] -= length
        if adjacency == "queen" or length > 0:
            graph.add_edge(names[i], names[j], shared_perim=round(length, 1))
    for i, name in enumerate(names):
        graph.nodes[name]["boundary_perim"] = round(max(float(around[i]), 0.0), 1)
    unit = "degrees, projected to metres" if degrees else "the units of the file"
    count = f"{graph.number_of_edges():,} pairs of neighbours"
    found.facts[f"borders of {file}"] = f"{count} ({adjacency}); {unit}"
    return rings


def _rings_of(shape: Any) -> list[Array]:
    """The closed rings of a polygon or of several, each of shape ``(n, 2)``."""
    kind = shape["type"] if shape else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise ValueError(f"its geometry is {kind}")
    parts = [shape["coordinates"]] if kind == "Polygon" else shape["coordinates"]
    raw = [np.array([point[:2] for point in ring]) for p in parts for ring in p]
    if text := [ring.flat[0] for ring in raw if ring.dtype.kind in "US"]:
        raise ValueError(f"its coordinates are text, such as {str(text[0])!r}; they must be numbers")
    rings = [np.round(ring.astype(float), CORNERS) for ring in raw]
    for ring in rings:
        plain = len(ring) >= 4 and ring.shape[1:] == (2,) and np.isfinite(ring).all()
        if not plain or (ring[0] != ring[-1]).any():
            raise ValueError("a ring must be closed, of four points or more, of two numbers each")
    if not rings:
        raise ValueError("it is empty")
    # outer rings turn one way and holes the other, whichever way the file has them
    holes = [k > 0 for p in parts for k in range(len(p))]
    return [r if (_signed_area(r) > 0) != hole else r[::-1] for r, hole in zip(rings, holes, strict=True)]


def _signed_area(ring: Array) -> float:
    x, y = (ring - ring[0]).T
    return float(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2


def _projected(ring: Array, middle: Array) -> Array:
    """Metres from the middle, by Lambert's azimuthal projection."""
    turn, lat = np.radians(ring[:, 0]) - middle[0], np.radians(ring[:, 1])
    sin, cos = np.sin(middle[1]), np.cos(middle[1])
    scale = _EARTH * np.sqrt(2 / (1 + sin * np.sin(lat) + cos * np.cos(lat) * np.cos(turn)))
    up = cos * np.sin(lat) - sin * np.cos(lat) * np.cos(turn)
    return np.stack([scale * np.cos(lat) * np.sin(turn), scale * up], axis=1)


def _unwrapped(ring: Array, west: float) -> Array:
    """A ring with 360 degrees more up to a longitude, and without jumps; it turns the same way."""
    moved: Array = ring + np.outer(ring[:, 0] <= west, (360.0, 0.0))
    moved[:, 0] = np.unwrap(moved[:, 0], period=360)
    return moved if _signed_area(moved) * _signed_area(ring) > 0 else moved[::-1]


def _same_corners(rings: list[list[Array]]) -> Pairs:
    """The lengths of the segments that two units share, 0 if they share a corner only; perimeters for one."""
    common: dict[frozenset[tuple[float, ...]], set[int]] = defaultdict(set)  # of a corner, or of two
    for i, part in enumerate(rings):
        for ring in part:
            for a, b in pairwise(map(tuple, ring.tolist())):
                common[frozenset([a])].add(i)
                common[frozenset([a, b])] ^= {i} if a != b else set()  # not between parts of a unit
    pairs: Pairs = defaultdict(float)
    for ends, units in common.items():
        length = dist(*ends) if len(ends) == 2 else 0.0
        for pair in combinations_with_replacement(sorted(units), 2):
            pairs[pair] += length
    return pairs


def _intersections(
    rings: list[list[Array]], names: list[Any], sizes: Array, file: str, found: Findings, shapely: Any
) -> Pairs:
    """The lengths of the common borders, by shapely; areas that cross themselves or each other are faults.

    A unit's border with itself is its perimeter.
    """
    areas = []
    for i, part in enumerate(rings):
        shape = shapely.Polygon()
        lines = [shapely.Polygon(ring) for ring in part]
        for ring, line in zip(part, lines, strict=True):
            if not line.is_valid:
                rule = f"has a border that crosses itself ({shapely.is_valid_reason(line)}); draw it again"
                found.fault(file, i + FIRST_ROW, "geometry", str(names[i]), rule)
                line = shapely.make_valid(line)
            shape = shape | line if _signed_area(ring) > 0 else shape - line
        areas.append(shape)
    tree = shapely.STRtree(areas)
    left, right = tree.query(areas, predicate="intersects")
    left, right = left[left < right], right[left < right]
    common = shapely.intersection(np.array(areas)[left], np.array(areas)[right])
    for i, j, over in zip(left.tolist(), right.tolist(), shapely.area(common).tolist(), strict=True):
        if (share := over / min(sizes[i], sizes[j])) > OVERLAP:
            rule = f"overlaps {names[i]!r} of row {i + FIRST_ROW} by {share:.0%}; draw it again"
            found.fault(file, j + FIRST_ROW, "geometry", str(names[j]), rule)
    whole = shapely.get_parts(shapely.union_all(areas))
    holes = [shapely.Polygon(hole) for part in whole for hole in getattr(part, "interiors", ())]
    for hole in sorted(holes, key=shapely.area, reverse=True)[:_MOST_HOLES]:
        i = int(tree.nearest(hole))
        large = f"{hole.area / np.median(sizes):.2g} times as large as a usual unit"
        rule = f"is beside a hole in the map, {large} ({len(holes)} in all); is a unit missing?"
        found.note(file, i + FIRST_ROW, "geometry", str(names[i]), rule)
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    own = {(i, i): area.length for i, area in enumerate(areas)}
    return dict(zip(pairs, shapely.length(common).tolist(), strict=True)) | own


# -- parts ---------------------------------------------------------------------------------------------------


def _join_parts(
    graph: nx.Graph[Any], rings: list[list[Array]], bridge: bool, file: str, found: Findings
) -> None:
    """Name the parts that the largest one does not reach, or join them to the nearest unit."""
    import networkx as nx
    from scipy.spatial import KDTree

    place = {name: i for i, name in enumerate(graph)}
    parts = sorted(nx.connected_components(graph), key=lambda p: (-len(p), min(place[v] for v in p)))
    reached = set(parts[0])
    for part in parts[1:]:
        own = sorted(part, key=place.__getitem__)
        shown = ", ".join(map(str, own[:5])) + (f" and {len(own) - 5} more" if len(own) > 5 else "")
        several = f"{len(own)} units that no border joins to the others"
        what = "an island without neighbours" if len(own) == 1 else several
        row = place[own[0]] + FIRST_ROW
        if not bridge or not rings:
            rule = f"is {what}; join it by bridge=True (--bridge)" if rings else f"is {what}; add an edge"
            found.fault(file, row, "geometry", shown, rule)
            continue
        others = [(name, point) for name in reached for ring in rings[place[name]] for point in ring]
        ours = [(name, point) for name in own for ring in rings[place[name]] for point in ring]
        away, at = KDTree(np.array([p for _, p in others])).query(np.array([p for _, p in ours]))
        near = int(np.argmin(away))
        ends = ours[near][0], others[int(at[near])][0]
        graph.add_edge(*ends, shared_perim=0.0, bridge=True)
        rule = f"is {what}; {ends[0]} was joined to {ends[1]}, {away[near]:,.0f} away"
        found.note(file, row, "geometry", shown, rule)
        reached |= part
