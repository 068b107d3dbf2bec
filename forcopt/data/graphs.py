"""Adjacency graphs of geographic atoms: from files, and made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import is_missing
from forcopt.data.intake import read_json
from forcopt.errors import DeclarationError, require

if TYPE_CHECKING:
    import networkx as nx


def load_graph(path: str | Path) -> nx.Graph[Any]:
    """Read an adjacency graph from a JSON file.

    Two forms are read: ``nodes`` (each with ``id`` and attributes) with ``edges`` (each with ``source``,
    ``target`` and attributes; ``links`` will do as well), and GerryChain's, where ``adjacency`` lists the
    neighbours of each node (the output of `networkx.adjacency_data`). Other keys of the file become
    attributes of the graph.

    Parameters
    ----------
    path : str or Path
        A JSON file.

    Returns
    -------
    nx.Graph[Any]
        With the attributes of the file on nodes, edges and the graph.

    Raises
    ------
    DeclarationError
        If the file is neither, or an edge names a node that is not listed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "path.json"
    >>> _ = path.write_text('{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2}]}')
    >>> list(load_graph(path).edges)
    [(1, 2)]
    """
    data = read_json(path)
    try:
        return graph_from_dict(data)
    except DeclarationError as error:
        raise DeclarationError(f"{path}: {error}") from None


def graph_from_dict(data: Any) -> nx.Graph[Any]:
    """Read a graph from plain data; see `load_graph` for the two forms."""
    import networkx as nx

    if isinstance(data, Mapping) and data.get("type") == "FeatureCollection":
        raise DeclarationError(
            "this is GeoJSON: it has areas but does not list their neighbours; read it by "
            "Districting.from_file or forcopt.data.read_map"
        )
    if (
        not isinstance(data, Mapping)
        or "nodes" not in data
        or not data.keys() & {"edges", "links", "adjacency"}
    ):
        raise DeclarationError("a graph needs the keys 'nodes' and 'edges' (or 'links', or 'adjacency')")
    if data.get("directed"):
        raise DeclarationError("the graph is directed; it must be undirected")
    graph: nx.Graph[Any] = nx.MultiGraph() if data.get("multigraph") else nx.Graph()
    known = ("nodes", "edges", "links", "adjacency", "graph", "directed", "multigraph")
    facts = data.get("graph") or {}
    require(isinstance(facts, Mapping | list), "the graph's 'graph'", facts, "hold its attributes")
    graph.graph.update(dict(facts))
    graph.graph.update({k: v for k, v in data.items() if k not in known})
    for node in _listed(data["nodes"], "nodes"):
        if not isinstance(node, Mapping) or node.get("id") is None:
            raise DeclarationError(f"the node {node!r} has no 'id'")
        name = _hashable(node["id"])
        if name in graph:
            raise DeclarationError(f"the node {name!r} is listed twice")
        graph.add_node(name, **{k: v for k, v in node.items() if k != "id"})
    for edge in _listed_edges(data, list(graph)):
        ends = [_hashable(edge.get(end)) for end in ("source", "target")]
        for end in ends:
            if end not in graph:
                raise DeclarationError(f"an edge names the node {end!r}, which is not listed")
        graph.add_edge(*ends, **{k: v for k, v in edge.items() if k not in ("source", "target", "key")})
    return graph


def _listed(value: Any, key: str) -> list[Any]:
    require(isinstance(value, list | tuple), f"the graph's {key!r}", value, "be a list")
    return list(value)


def _listed_edges(data: Mapping[str, Any], nodes: list[Any]) -> list[dict[str, Any]]:
    if "adjacency" not in data:
        edges = _listed(data.get("edges", data.get("links")) or [], "edges")
        for edge in edges:
            if not isinstance(edge, Mapping):
                raise DeclarationError(f"the edge {edge!r} has no 'source' and 'target'")
        return edges
    rows = _listed(data["adjacency"], "adjacency")
    if len(rows) != len(nodes):
        raise DeclarationError(f"'adjacency' has {len(rows)} lists for {len(nodes)} nodes")
    found: list[dict[str, Any]] = []
    ends: Counter[tuple[Any, Any]] = Counter()
    for i, row in enumerate(rows):
        for edge in _listed(row, f"adjacency[{i}]"):
            if not isinstance(edge, Mapping) or "id" not in edge:
                raise DeclarationError(f"adjacency[{i}]: the neighbour {edge!r} has no 'id'")
            other = _hashable(edge.get("id"))
            ends[nodes[i], other] += 1
            if other == nodes[i] or ends[nodes[i], other] > ends[other, nodes[i]]:
                rest = {k: v for k, v in edge.items() if k != "id"}
                found.append({"source": nodes[i], "target": other, **rest})
    for (one, other), count in ends.items():
        if count != ends[other, one]:
            raise DeclarationError(
                f"'adjacency' lists {other!r} {count} times as a neighbour of {one!r}, and {one!r} "
                f"{ends[other, one]} times as a neighbour of {other!r}; every edge must stand at both ends"
            )
    return found


def graph_to_dict(graph: nx.Graph[Any], node_keys: Sequence[str], edge_keys: Sequence[str]) -> dict[str, Any]:
    """Give a graph as plain data with the attributes named, where they have a value."""

    def kept(attributes: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
        return {k: _plain(attributes[k]) for k in keys if not is_missing(attributes.get(k))}

    nodes = [{"id": _plain(v), **kept(a, node_keys)} for v, a in graph.nodes(data=True)]
    edges = [
        {"source": _plain(u), "target": _plain(v), **kept(a, edge_keys)} for u, v, a in graph.edges(data=True)
    ]
    told = {"graph": {"intake": list(graph.graph["intake"])}} if graph.graph.get("intake") else {}
    return {"multigraph": graph.is_multigraph(), "nodes": nodes, "edges": edges, **told}


def _plain(value: Any) -> Any:
    """Numpy numbers as Python's own, tuples as lists, geometries as GeoJSON."""
    value = getattr(value, "__geo_interface__", value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value


def _hashable(value: Any) -> Any:
    """JSON has no tuples: a node named by a list was named by a tuple."""
    if isinstance(value, Mapping):
        raise DeclarationError(f"a node is named {value!r}; 'id' must be text, a number or a list of these")
    return tuple(_hashable(v) for v in value) if isinstance(value, list) else value


def grid(rows: int, columns: int, population: Sequence[int] | int = 1) -> nx.Graph[Any]:
    """Make a grid graph; nodes are numbered row by row from 0.

    Parameters
    ----------
    rows : int
        At least 1.
    columns : int
        At least 1.
    population : Sequence[int] | int, default 1
        Of all atoms, or of each.

    Returns
    -------
    nx.Graph[Any]
        Nodes with the attributes ``population``, ``x`` (column) and ``y`` (minus the row).

    Raises
    ------
    DeclarationError
        If a side is below 1, or the number of populations is not the number of nodes.

    Examples
    --------
    >>> g = grid(2, 3, population=[1, 2, 3, 4, 5, 6])
    >>> len(g), g.number_of_edges(), g.nodes[5]
    (6, 7, {'population': 6, 'x': 2, 'y': -1})
    """
    import networkx as nx

    count = rows * columns
    if rows < 1 or columns < 1:
        raise DeclarationError(f"grid: {rows} rows and {columns} columns; both must be at least 1")
    people = [population] * count if isinstance(population, int) else list(population)
    if len(people) != count:
        raise DeclarationError(f"grid: {len(people)} populations for {count} nodes")
    graph: nx.Graph[Any] = nx.Graph()
    for i in range(count):
        graph.add_node(i, population=people[i], x=i % columns, y=-(i // columns))
    graph.add_edges_from((i, i + 1) for i in range(count) if (i + 1) % columns)
    graph.add_edges_from((i, i + columns) for i in range(count - columns))
    return graph


def delaunay(
    nodes: int,
    seed: int | np.random.Generator = 0,
    *,
    keep: float = 0.8,
    population: tuple[int, int] = (20_000, 34_000),
) -> nx.Graph[Any]:
    """Make a random planar, 2-connected graph: a Delaunay triangulation with edges removed.

    Parameters
    ----------
    nodes : int
        At least 4; points uniform in the unit square.
    seed : int or numpy.random.Generator, default 0
        Repeats it.
    keep : float, default 0.8
        The share of edges to keep, as far as that leaves the graph 2-connected.
    population : tuple[int, int], default (20000, 34000)
        The range, inclusive, from which populations are drawn uniformly.

    Returns
    -------
    nx.Graph[Any]
        Nodes 0, 1, ... with the attributes ``population``, ``x`` and ``y``.

    Raises
    ------
    DeclarationError
        For fewer than 4 nodes.

    Examples
    --------
    >>> g = delaunay(12, seed=1)
    >>> len(g), g.number_of_edges()
    (12, 19)
    """
    import networkx as nx
    from scipy.spatial import Delaunay

    require(nodes >= 4, "delaunay: nodes", nodes, "be at least 4")
    rng = np.random.default_rng(seed)
    points = rng.random((nodes, 2))
    people = rng.integers(population[0], population[1] + 1, nodes)
    graph: nx.Graph[Any] = nx.Graph()
    for i, (x, y) in enumerate(points):
        graph.add_node(i, population=int(people[i]), x=float(x), y=float(y))
    corners = Delaunay(points).simplices
    pairs = np.unique(np.sort(corners[:, [0, 1, 1, 2, 0, 2]].reshape(-1, 2), axis=1), axis=0)
    graph.add_edges_from((int(u), int(v)) for u, v in pairs)
    target = round(keep * len(pairs))
    for at in rng.permutation(len(pairs)):
        if graph.number_of_edges() <= target:
            break
        u, v = (int(i) for i in pairs[at])
        graph.remove_edge(u, v)
        if not nx.is_biconnected(graph):
            graph.add_edge(u, v)
    return graph
