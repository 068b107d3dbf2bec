"""The dual of a connected planar graph, and weights that its cycles enclose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.graphs.weighted import WeightedGraph, component_labels


@dataclass(frozen=True, eq=False)
class PlanarDual:
    """The dual multigraph of a connected plane graph.

    Edge e of the graph joins ``graph.edges[e] = (u, v)``. It has two darts: 2e leads from u to v, and 2e + 1
    leads from v to u. The dual dart of d leads from the face on the left of d to the face on its right, which
    is the face on the left of the opposite dart ``d ^ 1``.

    Attributes
    ----------
    graph : WeightedGraph
        The primal graph.
    face : ndarray of int64, shape (2 m,)
        The face on the left of each dart.
    faces : int
        The number of faces, the outer face included.

    Notes
    -----
    The dual has parallel edges where two faces share several edges, and a loop for each bridge. A graph
    without edges has one face. The embedding takes linear time (Boyer and Myrvold; networkx uses the
    left-right planarity test). All results about bonds and cycles hold for every embedding.

    **Bonds are cycles.** For a vertex set S of a connected plane graph, both S and its complement are
    connected if and only if the dual edges of the cut of S form a simple cycle [1]_. The proof has two
    steps. The duals of a cut form an even subgraph of the dual, so a disjoint union of simple cycles. Each
    of these cycles separates the plane by the Jordan curve theorem, so it is a nonempty cut. A bond is a
    minimal nonempty cut, hence exactly one cycle. If all darts of the cut point to S, then
    their dual darts form a directed cycle, with S on one side of all of them.

    References
    ----------
    .. [1] Diestel, Graph Theory, Proposition 4.6.1.

    Examples
    --------
    >>> square = WeightedGraph.of([1] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1] * 4)
    >>> PlanarDual.of(square).faces
    2
    >>> path = WeightedGraph.of([1] * 3, [(0, 1), (1, 2)], [1] * 2)
    >>> PlanarDual.of(path).face.tolist()
    [0, 0, 0, 0]
    """

    graph: WeightedGraph
    face: Array
    faces: int

    @classmethod
    def of(cls, graph: WeightedGraph) -> PlanarDual:
        """Embed a connected graph and trace its faces.

        Parameters
        ----------
        graph : WeightedGraph
            Connected and planar.

        Returns
        -------
        PlanarDual
            Faces are numbered by their first dart.

        Raises
        ------
        DeclarationError
            If the graph is disconnected or not planar.
        """
        if len(graph.components()) > 1:
            raise DeclarationError("the graph is disconnected; its dual is defined for each component alone")
        plain: nx.Graph[int] = nx.Graph()
        plain.add_nodes_from(range(graph.size))
        plain.add_edges_from(graph.edges.tolist())
        planar, embedding = nx.check_planarity(plain)
        if not planar:
            raise DeclarationError("the graph is not planar, so it has no dual")
        dart = {}
        for e, (u, v) in enumerate(graph.edges.tolist()):
            dart[u, v], dart[v, u] = 2 * e, 2 * e + 1
        of_half_edge = faces(embedding, dart)
        face = np.array([of_half_edge[half] for half in sorted(dart, key=lambda half: dart[half])], np.int64)
        return cls(graph, face, max(int(face.max(initial=0)) + 1, 1))

    @cached_property
    def links(self) -> tuple[Array, Array]:
        """For compiled loops: the start of each face's darts in a list, and the list of darts by face."""
        order = np.argsort(self.face, kind="stable")
        return np.searchsorted(self.face[order], np.arange(self.faces + 1)), order

    def sides(self, edges: Array) -> Array:
        """Label the vertices by the component in which the removal of edges leaves them.

        Parameters
        ----------
        edges : array_like of int
            Positions of edges, such as the edges that a dual cycle crosses.

        Returns
        -------
        ndarray of int64, shape (n,)
            Components are numbered by their first vertex; a cycle gives the labels 0 and 1.
        """
        keep = np.ones(len(self.graph.edges), np.bool_)
        keep[np.asarray(edges, np.int64)] = False
        labels = component_labels(self.graph.edges[keep], self.graph.size)
        _, first = np.unique(labels, return_index=True)
        return np.asarray(np.argsort(np.argsort(first))[labels], np.int64)


def faces(embedding: Any, half_edges: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """The face beside each half-edge of an embedding by networkx, numbered in order of appearance."""
    found: dict[tuple[int, int], int] = {}
    count = 0
    for u, v in half_edges:
        if (u, v) not in found:
            around = embedding.traverse_face(u, v)
            found |= dict.fromkeys(pairwise([*around, around[0]]), count)
            count += 1
    return found


def spanning_tree(dual: PlanarDual, root: int = 0) -> tuple[Array, Array]:
    """Give a breadth-first spanning tree of the primal graph.

    Parameters
    ----------
    dual : PlanarDual
        The dual of a connected graph with n vertices.
    root : int, optional
        A vertex.

    Returns
    -------
    order : ndarray of int64, shape (n, 2)
        Each vertex, after its parent, with its parent; the root first, with itself.
    dart : ndarray of int64, shape (n,)
        The dart from the parent to each vertex; -1 for the root.
    """
    starts, ends, numbers = dual.graph.links
    dart = np.full(dual.graph.size, -2, np.int64)
    dart[root] = -1
    order = [(root, root)]
    for u, _ in order:
        for a in range(starts[u], starts[u + 1]):
            v, e = int(ends[a]), int(numbers[a])
            if dart[v] == -2:
                dart[v] = 2 * e + (u > v)
                order.append((v, u))
    return np.array(order, np.int64), dart


def flow_sums(dual: PlanarDual, weights: Array, root: int = 0) -> Array:
    """Give each dual dart a value whose sum along a simple dual cycle gives the enclosed weight.

    Parameters
    ----------
    dual : PlanarDual
        The dual of a connected graph with n vertices and m edges.
    weights : ndarray, shape (n,)
        Vertex weights; of any sign, integers or floats.
    root : int, optional
        A vertex. The values differ between roots, the enclosed weights do not.

    Returns
    -------
    ndarray, shape (2 m,)
        ``flow[d ^ 1] == -flow[d]``. Let S be the set of vertices to which the darts of a directed simple dual
        cycle point. The sum of the cycle's values is ``weights[S].sum()`` if the root lies outside S, and
        ``weights[S].sum() - weights.sum()`` if it lies in S.

    Notes
    -----
    Every vertex sends its weight along a spanning tree to the root. The flow on the tree edge from v to its
    parent is the weight of the subtree of v. Flow is conserved at all vertices, so the net flow out of S is
    the supply in S minus the demand in S: the weight of S, minus the total if the root lies in S. By the
    duality of bonds and cycles, the cycle crosses just the edges between S and its complement. A dart
    that points to S counts the flow on the opposite dart, which leaves S. Linear time.

    Examples
    --------
    >>> from forcopt.graphs.weighted import WeightedGraph
    >>> path = WeightedGraph.of([1, 2, 4], [(0, 1), (1, 2)], [1, 1])
    >>> flow_sums(PlanarDual.of(path), path.weights).tolist()
    [6, -6, 4, -4]
    """
    order, dart = spanning_tree(dual, root)
    subtree = np.array(weights)
    flow = np.zeros(len(dual.face), subtree.dtype)
    for v, u in order[:0:-1].tolist():
        flow[dart[v]], flow[dart[v] ^ 1] = subtree[v], -subtree[v]
        subtree[u] += subtree[v]
    return flow
