"""Graphs as arrays: the input of every algorithm on vertex weights and edge costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from forcopt.arrays import Array

__all__ = ["WeightedGraph"]


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
    def of(
        cls, weights: Iterable[int], edges: Iterable[tuple[int, int]], costs: Iterable[int]
    ) -> WeightedGraph:
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
