"""The vertex weight that a dual cycle encloses, as a sum of signed flows along the cycle."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.graphs.planar_dual import PlanarDual

__all__ = ["flow_sums", "separation_codes", "spanning_tree"]


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


def separation_codes(dual: PlanarDual, pairs: list[tuple[int, int]], codes: Array) -> Array:
    """Give each edge a code; the exclusive or along a cycle is that of the codes of all separated pairs.

    Parameters
    ----------
    dual : PlanarDual
        The dual of a connected graph with m edges.
    pairs : list of tuple of int
        Pairs of vertices.
    codes : ndarray of int64, shape (len(pairs),)
        One code for each pair, such as distinct powers of 2 or random numbers.

    Returns
    -------
    ndarray of int64, shape (m,)
        The codes of the edges.

    Notes
    -----
    A cycle separates the ends of a path if and only if it crosses the path an odd number of times. So each
    pair puts its code on the edges of the tree path between its ends. An edge of the tree carries
    the codes of all pairs with exactly one end in the subtree below it.

    Examples
    --------
    >>> from forcopt.graphs.weighted import WeightedGraph
    >>> path = WeightedGraph.of([1, 2, 4], [(0, 1), (1, 2)], [1, 1])
    >>> separation_codes(PlanarDual.of(path), [(0, 2), (1, 2)], np.array([1, 2])).tolist()
    [1, 3]
    """
    at = np.zeros(dual.graph.size, np.int64)
    for (a, b), code in zip(pairs, codes, strict=True):
        at[a] ^= code
        at[b] ^= code
    order, dart = spanning_tree(dual)
    out = np.zeros(len(dual.graph.edges), np.int64)
    for v, u in order[:0:-1].tolist():
        out[dart[v] // 2] = at[v]
        at[u] ^= at[v]
    return out
