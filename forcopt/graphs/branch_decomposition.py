"""Branch decompositions of planar graphs from a spanning tree of the radial graph.

A breadth-first tree of the radial graph (vertices and faces, joined at corners) from a root r leaves
corners whose dual forms a spanning tree over the edges of the graph. Every subtree of that is a cluster of
edges bounded by a closed curve through at most hops(r) vertices, so a 2-connected plane graph gets a
decomposition of width at most hops(r). Cohen-Addad et al. (FORC 2021) use it and cite it; graphs that are
not 2-connected first get phantom edges, and parts that are not planar get a decomposition along a vertex
order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import networkx as nx

from forcopt.graphs.planar_dual import faces
from forcopt.graphs.weighted import WeightedGraph, frontier_order

_ROOTS = 6
"""How many roots of least hops to try in full."""


@dataclass(eq=False)
class Cluster:
    """A set of edges in the decomposition.

    Attributes
    ----------
    edges : int
        Bit i for edge i of the decomposition.
    boundary : tuple[int, ...]
        The vertices with an edge inside and one outside.
    children : tuple[Cluster, Cluster], optional
        Two clusters, or none for a single edge.
    edge : int, default -1
        Its number, for a single edge.
    """

    edges: int
    boundary: tuple[int, ...]
    children: tuple[Cluster, Cluster] | None = None
    edge: int = -1


@dataclass(eq=False)
class BranchDecomposition:
    """A rooted branch decomposition.

    Attributes
    ----------
    graph : WeightedGraph
        Which it decomposes.
    edges : list[tuple[int, int]]
        The ends of its edges; those from `real` on are phantoms, which connect nothing and cost nothing.
    real : int
        The number of the graph's own edges.
    root : Cluster
        The cluster of all edges.
    planar : bool
        Whether it comes from the radial graph.
    hops : int, default 0
        The largest distance from the root of the radial graph; 0 if not planar.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> g = grid(4, 4)
    >>> d = BranchDecomposition.of(WeightedGraph.of([1] * 16, list(g.edges), [1] * 24))
    >>> d.width, d.hops
    (4, 4)
    """

    graph: WeightedGraph
    edges: list[tuple[int, int]]
    real: int
    root: Cluster
    planar: bool
    hops: int = 0
    clusters: list[Cluster] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        stack, order = [self.root], []
        while stack:
            cluster = stack.pop()
            order.append(cluster)
            stack.extend(cluster.children or ())
        self.clusters = order[::-1]  # children come before parents

    @property
    def width(self) -> int:
        """The size of the largest boundary."""
        return max(len(c.boundary) for c in self.clusters)

    @classmethod
    def of(cls, graph: WeightedGraph, extra: Iterable[tuple[int, int]] = ()) -> BranchDecomposition:
        """Decompose a graph with at least two vertices.

        Parameters
        ----------
        graph : WeightedGraph
            Any.
        extra : Iterable[tuple[int, int]], optional
            Pairs of vertices that some cluster must hold as well; pairs without an edge become phantoms.
        """
        plain: nx.Graph[int] = nx.Graph()
        plain.add_nodes_from(graph)
        plain.add_edges_from((int(u), int(v)) for u, v in graph.edges)
        real = [(int(u), int(v)) for u, v in graph.edges]
        wanted = [(min(e), max(e)) for e in extra if not plain.has_edge(*e)]
        plain.add_edges_from(wanted)
        wanted = sorted(set(wanted))
        planar, _ = nx.check_planarity(plain)
        edges = real + wanted + (_phantoms(plain) if planar else _bridges(plain))
        builder = _Builder(graph.size, edges)
        if not planar or len(edges) < 3:
            whole = WeightedGraph.of(graph.weights.tolist(), edges, [0] * len(edges))
            return cls(graph, edges, len(real), builder.along(frontier_order(whole)), False)
        _, embedding = nx.check_planarity(nx.Graph(edges))
        radial = _radial(edges, embedding)
        hops = nx.eccentricity(radial)
        options = sorted(radial, key=lambda root: (hops[root], root))[:_ROOTS]
        best = min((builder.from_cotree(_cotree(radial, root)) for root in options), key=_measure)
        return cls(graph, edges, len(real), best, True, hops[options[0]])


def _measure(root: Cluster) -> float:
    total, stack = 0.0, [root]
    while stack:
        cluster = stack.pop()
        total += 4.0 ** len(cluster.boundary)
        stack.extend(cluster.children or ())
    return total


def _bridges(graph: nx.Graph[int]) -> list[tuple[int, int]]:
    """Edges that connect the components."""
    return [(min(a), min(b)) for a, b in pairwise(sorted(nx.connected_components(graph), key=min))]


def _phantoms(graph: nx.Graph[int]) -> list[tuple[int, int]]:
    """Edges that make a planar graph 2-connected and leave it planar."""
    whole = graph.copy()
    added = _bridges(whole)
    whole.add_edges_from(added)
    while len(whole) > 2 and not nx.is_biconnected(whole):
        _, embedding = nx.check_planarity(whole)
        block = {frozenset(e): i for i, b in enumerate(nx.biconnected_component_edges(whole)) for e in b}
        v = min(nx.articulation_points(whole))
        around = list(embedding.neighbors_cw_order(v))
        for u, w in zip(around, around[1:] + around[:1], strict=True):
            # Neighbours that follow each other around v share a face, so the new edge crosses nothing.
            if block[frozenset((u, v))] != block[frozenset((v, w))] and not whole.has_edge(u, w):
                whole.add_edge(u, w)
                added.append((u, w))
                break
    return added


def _radial(edges: list[tuple[int, int]], embedding: Any) -> nx.Graph[Any]:
    """The radial graph of a 2-connected plane graph: vertices ``("v", i)`` and faces ``("f", i)``.

    An edge is a corner; it holds the numbers of the two edges that meet there.
    """
    number = {frozenset(e): i for i, e in enumerate(edges)}
    face = faces(embedding, embedding.edges)
    radial: nx.Graph[Any] = nx.Graph()
    for v in sorted(embedding):
        around = list(embedding.neighbors_cw_order(v))
        for u, w in zip(around, around[1:] + around[:1], strict=True):
            # With clockwise rotations the face of the half-edge (w, v) turns into (v, u) at v.
            corner_face = face[(w, v)] if face[(w, v)] == face[(v, u)] else face[(u, v)]
            corner = number[frozenset((u, v))], number[frozenset((v, w))]
            radial.add_edge(("v", v), ("f", corner_face), edges=corner)
    return radial


def _cotree(radial: nx.Graph[Any], root: tuple[str, int]) -> nx.Graph[int]:
    """The edges that meet at corners outside a breadth-first tree: a spanning tree over the edges."""
    tree = nx.Graph(nx.bfs_edges(radial, root))
    return nx.Graph(edges for *corner, edges in radial.edges(data="edges") if not tree.has_edge(*corner))


class _Builder:
    """Makes clusters with their boundaries."""

    def __init__(self, size: int, edges: list[tuple[int, int]]) -> None:
        self.edges = edges
        self.at = [0] * size
        for i, (u, v) in enumerate(edges):
            self.at[u] |= 1 << i
            self.at[v] |= 1 << i

    def boundary(self, edges: int) -> tuple[int, ...]:
        return tuple(v for v, at in enumerate(self.at) if at & edges and at & ~edges)

    def leaf(self, edge: int) -> Cluster:
        return Cluster(1 << edge, self.boundary(1 << edge), None, edge)

    def join(self, a: Cluster, b: Cluster) -> Cluster:
        return Cluster(a.edges | b.edges, self.boundary(a.edges | b.edges), (a, b))

    def merged(self, parts: list[Cluster]) -> Cluster:
        """Join two to four clusters in the order that keeps boundaries small."""
        parts = list(parts)
        while len(parts) > 1:
            a, b = min(combinations(parts, 2), key=lambda ab: len(self.boundary(ab[0].edges | ab[1].edges)))
            parts = [p for p in parts if p is not a and p is not b] + [self.join(a, b)]
        return parts[0]

    def from_cotree(self, tree: nx.Graph[int]) -> Cluster:
        root = min(e for e in tree if tree.degree[e] == 1)
        below: dict[int, list[Cluster]] = {e: [self.leaf(e)] for e in tree}
        for parent, e in reversed(list(nx.bfs_edges(tree, root))):
            below[parent].append(self.merged(below[e]))
        return self.merged(below[root])

    def along(self, order: list[int]) -> Cluster:
        """A caterpillar: edges in the order in which their later end appears."""
        when = {v: t for t, v in enumerate(order)}
        sequence = sorted(
            range(len(self.edges)), key=lambda i: sorted((when[v] for v in self.edges[i]), reverse=True)
        )
        cluster = self.leaf(sequence[0])
        for i in sequence[1:]:
            cluster = self.join(cluster, self.leaf(i))
        return cluster
