"""Seeded instances of the library, and bin packing as districting: the hardness proof as a generator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import networkx as nx
import numpy as np

from forcopt.data import delaunay, grid
from forcopt.errors import DeclarationError
from forcopt.instance import Instance, by_name
from forcopt.models.districting.problem import Districting


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


def _grid(side: int, districts: int, tolerance: float) -> Districting:
    people = np.random.default_rng(side).integers(80, 121, side * side).tolist()
    return Districting(graph=grid(side, side, people), districts=districts, tolerance=tolerance)


def _planar(nodes: int, districts: int, tolerance: float) -> Districting:
    return Districting(graph=delaunay(nodes, seed=nodes), districts=districts, tolerance=tolerance)


_GRIDS = ((4, 2, 0.1), (5, 3, 0.1), (6, 2, 0.05), (6, 4, 0.1), (8, 4, 0.1), (10, 5, 0.05), (15, 8, 0.05))
_PLANAR = ((16, 2, 0.1), (20, 4, 0.2), (30, 3, 0.1), (40, 4, 0.1), (60, 5, 0.1), (100, 6, 0.05))

INSTANCES = by_name(
    [
        *(
            Instance(f"districting/grid-{side}-{k}", partial(_grid, side, k, tolerance), "flow")
            for side, k, tolerance in _GRIDS
        ),
        *(
            Instance(f"districting/planar-{n}-{k}", partial(_planar, n, k, tolerance), "flow")
            for n, k, tolerance in _PLANAR
        ),
        *(
            Instance(f"districting/shirabe-{n}-{k}", partial(_planar, n, k, tolerance), "shirabe")
            for n, k, tolerance in _PLANAR[:3]
        ),
        *(
            Instance(
                f"districting/per-district-{n}-{k}", partial(_planar, n, k, tolerance), "flow-per-district"
            )
            for n, k, tolerance in _PLANAR[:3]
        ),
    ]
)
