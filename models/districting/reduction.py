"""Bin packing as districting: the hardness proof as a generator of instances."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx

from forcopt.errors import DeclarationError
from forcopt.models.districting.problem import Districting

__all__ = ["bin_packing"]


def bin_packing(values: Sequence[int], bins: int) -> Districting:
    """A planar instance whose plans are the assignments of items to (named) bins that fill every bin equally.

    Theorem 1 of Cohen-Addad et al. (FORC 2021), with the edge list and the target repaired: rows 1 to 2 n +
    1 of vertices, odd ones with k, even ones with k + 1; every vertex of an odd row is joined to the two
    nearest of each neighbouring even row. Weights are those of the paper times 2 n - 2, so that all are
    integers.

    Parameters
    ----------
    values : Sequence[int]
        Of the items, positive integers; at least two.
    bins : int
        How many; the values must sum to a multiple.

    Returns
    -------
    Districting
        With a tolerance of 0.

    Raises
    ------
    DeclarationError
        For fewer than two values, values that are not positive integers, or a sum that is not a multiple of
        `bins`.

    Examples
    --------
    >>> bin_packing([2, 1, 1], 2).count().total
    2
    """
    n, k = len(values), bins
    if n < 2 or any(not isinstance(v, int) or v < 1 for v in values):
        raise DeclarationError(f"values is {list(values)}; it must be two or more positive integers")
    if k < 1 or sum(values) % k:
        raise DeclarationError(f"bins is {bins}; it must divide the sum of the values, {sum(values)}")
    capacity, scale = sum(values) // k, 2 * n - 2
    graph: nx.Graph[tuple[int, int]] = nx.Graph()
    for row in range(1, 2 * n + 2):
        odd = row % 2 == 1
        weight = {
            1: scale * (k * capacity) ** 2,
            2 * n + 1: scale * (k * capacity) ** 4,
        }.get(row, 1 if odd else scale * values[row // 2 - 1])
        for j in range(1, k + (1 if odd else 2)):
            graph.add_node((row, j), population=weight, x=j + (0.5 if odd else 0.0), y=-row)
    for row in range(1, 2 * n + 2, 2):
        for j in range(1, k + 1):
            for other in (row - 1, row + 1):
                if 1 < other < 2 * n + 1:
                    graph.add_edge((row, j), (other, j))
                    graph.add_edge((row, j), (other, j + 1))
    target = (
        scale * ((k * capacity) ** 2 + (k * capacity) ** 4 + k * capacity) + scale // 2 + scale * capacity
    )
    return Districting(graph, k, bounds=(target, target))
