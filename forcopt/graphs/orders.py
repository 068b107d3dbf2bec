"""Orders of the vertices: with short frontiers (path decompositions), and along the Fiedler vector."""

from __future__ import annotations

import numpy as np

from forcopt.graphs.weighted import WeightedGraph

__all__ = ["frontier_order", "frontier_sizes", "spectral_order"]


def frontier_order(graph: WeightedGraph, beam: int = 64) -> list[int]:
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

    Examples
    --------
    >>> g = WeightedGraph.of([1] * 6, [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)], [1] * 7)
    >>> max(frontier_sizes(g, frontier_order(g)))
    2
    """
    near = [sum(1 << v for v in graph.neighbours[u]) for u in graph]
    everything = (1 << graph.size) - 1
    # processed set -> (measure, frontier, order so far as a linked list)
    level: dict[int, tuple[float, int, tuple[object, int] | None]] = {0: (0.0, 0, None)}
    for _ in range(graph.size):
        following: dict[int, tuple[float, int, tuple[object, int] | None]] = {}
        for done, (measure, frontier, path) in level.items():
            left = everything & ~done
            options = 0
            rest = frontier
            while rest:
                u = (rest & -rest).bit_length() - 1
                rest &= rest - 1
                options |= near[u]
            options = options & left or left
            while options:
                v = (options & -options).bit_length() - 1
                options &= options - 1
                now = done | 1 << v
                edge = 0
                rest = frontier | 1 << v
                while rest:
                    u = (rest & -rest).bit_length() - 1
                    rest &= rest - 1
                    if near[u] & ~now:
                        edge |= 1 << u
                value = measure + 3.0 ** edge.bit_count()
                if now not in following or value < following[now][0]:
                    following[now] = (value, edge, (path, v))
        best = sorted(following.items(), key=lambda item: (item[1][0], item[0]))[:beam]
        level = dict(best)
    path = level[everything][2]
    order = []
    while path is not None:
        path, v = path  # type: ignore[assignment]
        order.append(v)
    return order[::-1]


def frontier_sizes(graph: WeightedGraph, order: list[int]) -> list[int]:
    """The number of processed vertices with a neighbour still to come, after each vertex of the order."""
    last = {u: max((order.index(v) for v in graph.neighbours[u]), default=-1) for u in graph}
    return [sum(last[u] > i for u in order[: i + 1]) for i in range(len(order))]


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
        if fiedler[np.argmax(np.abs(fiedler) > 1e-6)] < 0:  # an eigenvector's sign is free
            fiedler = -fiedler
        order += [piece[i] for i in np.lexsort((np.array(piece), fiedler))]
    return order
