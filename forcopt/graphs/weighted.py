"""Graphs as arrays of vertex weights and edge costs, and orders of their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Self

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.graphs.tolerances import FIEDLER


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """A simple undirected graph with integer vertex weights and edge costs.

    Attributes
    ----------
    weights : Array
        int64, shape (n,), not negative.
    edges : Array
        int64, shape (m, 2), positions of the ends, the smaller first; no loops, no parallels.
    costs : Array
        int64, shape (m,), not negative.

    Examples
    --------
    >>> g = WeightedGraph.of([1, 1, 1], [(0, 1), (2, 1), (1, 2)], [1, 2, 3])
    >>> g.edges.tolist(), g.costs.tolist()
    ([[0, 1], [1, 2]], [1, 5])
    """

    weights: Array
    edges: Array
    costs: Array

    @classmethod
    def of(cls, weights: Iterable[int], edges: Iterable[tuple[int, int]], costs: Iterable[int]) -> Self:
        """Merge parallel edges (their costs add) and drop loops."""
        merged: dict[tuple[int, int], int] = {}
        for (u, v), cost in zip(edges, costs, strict=True):
            if u != v:
                pair = (min(u, v), max(u, v))
                merged[pair] = merged.get(pair, 0) + int(cost)
        pairs = sorted(merged)
        return cls(
            np.array(list(weights), dtype=np.int64),
            np.array(pairs, dtype=np.int64).reshape(-1, 2),
            np.array([merged[p] for p in pairs], dtype=np.int64),
        )

    @property
    def size(self) -> int:
        """The number of vertices."""
        return len(self.weights)

    @property
    def total(self) -> int:
        """The sum of the vertex weights."""
        return int(self.weights.sum())

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """The neighbours of each vertex, in increasing order."""
        out: list[list[int]] = [[] for _ in range(self.size)]
        for u, v in self.edges.tolist():
            out[u].append(v)
            out[v].append(u)
        return [sorted(a) for a in out]

    @cached_property
    def links(self) -> tuple[Array, Array, Array]:
        """For compiled loops: where the links of each vertex begin, to whom they lead, and their edges."""
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        starts = np.searchsorted(ends[order, 0], np.arange(self.size + 1))
        numbers = np.concatenate([np.arange(len(self.edges))] * 2)
        return starts, np.ascontiguousarray(ends[order, 1]), numbers[order]

    @cached_property
    def cost_matrix(self) -> Array:
        """Edge costs as a symmetric int64 matrix; 0 where there is no edge."""
        out = np.zeros((self.size, self.size), np.int64)
        out[self.edges[:, 0], self.edges[:, 1]] = self.costs
        return out + out.T

    @cached_property
    def adjacency(self) -> Array:
        """A symmetric boolean matrix."""
        out = np.zeros((self.size, self.size), np.bool_)
        out[self.edges[:, 0], self.edges[:, 1]] = True
        return out | out.T

    def reordered(self, order: Iterable[int]) -> WeightedGraph:
        """The same graph whose vertex i is this one's ``order[i]``."""
        order = np.array(list(order), dtype=np.int64)
        place = np.empty(self.size, np.int64)
        place[order] = np.arange(self.size)
        edges = [(int(u), int(v)) for u, v in place[self.edges]]
        return WeightedGraph.of(self.weights[order].tolist(), edges, self.costs.tolist())

    def components(self, members: Iterable[int] | None = None) -> list[list[int]]:
        """The connected components of the graph, or of the subgraph that some vertices induce."""
        left = set(range(self.size)) if members is None else set(members)
        found = []
        for start in sorted(left):
            if start not in left:
                continue
            left.discard(start)
            piece = [start]
            for u in piece:
                for v in self.neighbours[u]:
                    if v in left:
                        left.discard(v)
                        piece.append(v)
            found.append(sorted(piece))
        return found

    def cut_cost(self, labels: Array) -> int:
        """The cost of the edges whose ends carry different labels."""
        return int(self.costs[labels[self.edges[:, 0]] != labels[self.edges[:, 1]]].sum())

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.size))


def component_labels(edges: Array, size: int) -> Array:
    """The number of the component of each vertex, for vertices 0 to `size` - 1 and edges of shape (m, 2)."""
    matrix = sp.coo_array((np.ones(len(edges)), tuple(edges.T)), shape=(size, size))
    return np.asarray(sp.csgraph.connected_components(matrix, directed=False)[1])


def _members(bits: int) -> Iterator[int]:
    """The members of a set of whole numbers, given as bits."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def frontier_order(graph: WeightedGraph, beam: int = 64, longest: float = np.inf) -> list[int]:
    """An order of the vertices whose frontiers are short.

    The frontier after some vertices is the set of those among them with a neighbour still to come. A beam
    search keeps the sets of processed vertices with the least sum of 3 to the frontier sizes so far, a
    measure of the number of states of a dynamic program along the order.

    Parameters
    ----------
    graph : WeightedGraph
        Any.
    beam : int, default 64
        How many sets to keep at each length.
    longest : float, default inf
        The most vertices that a frontier may have.

    Raises
    ------
    DeclarationError
        If no set with such a frontier is left.

    Examples
    --------
    >>> g = WeightedGraph.of([1] * 6, [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)], [1] * 7)
    >>> sorted(frontier_order(g))
    [0, 1, 2, 3, 4, 5]
    """
    near = [sum(1 << v for v in graph.neighbours[u]) for u in graph]
    everything = (1 << graph.size) - 1
    # processed set -> (measure, frontier, order so far as a linked list)
    level: dict[int, tuple[float, int, tuple[object, int] | None]] = {0: (0.0, 0, None)}
    for _ in range(graph.size):
        following: dict[int, tuple[float, int, tuple[object, int] | None]] = {}
        for done, (measure, frontier, path) in level.items():
            left = everything & ~done
            options = reduce(or_, (near[u] for u in _members(frontier)), 0) & left or left
            for v in _members(options):
                now = done | 1 << v
                edge = sum(1 << u for u in _members(frontier | 1 << v) if near[u] & ~now)
                value = measure + 3.0 ** edge.bit_count()
                better = now not in following or value < following[now][0]
                if better and edge.bit_count() <= longest:
                    following[now] = (value, edge, (path, v))
        level = dict(sorted(following.items(), key=lambda item: (item[1][0], item[0]))[:beam])
        if not level:
            raise DeclarationError(f"the frontiers grow beyond {longest} vertices")
    path = level[everything][2]
    order = []
    while path is not None:
        path, v = path  # type: ignore[assignment]
        order.append(v)
    return order[::-1]


def spectral_order(graph: WeightedGraph) -> list[int]:
    """The vertices along the Fiedler vector of each component: from one end of the graph to the other.

    Examples
    --------
    >>> g = WeightedGraph.of([1] * 4, [(2, 0), (0, 3), (3, 1)], [1] * 3)
    >>> spectral_order(g)
    [1, 3, 0, 2]
    """
    order = []
    for piece in graph.components():
        adjacency = graph.adjacency[np.ix_(piece, piece)].astype(float)
        _, vectors = np.linalg.eigh(np.diag(adjacency.sum(axis=0)) - adjacency)
        fiedler = np.round(vectors[:, min(1, len(piece) - 1)], 9)
        if fiedler[np.argmax(np.abs(fiedler) > FIEDLER)] < 0:  # an eigenvector's sign is free
            fiedler = -fiedler
        order += [piece[i] for i in np.lexsort((np.array(piece), fiedler))]
    return order
