"""Seeded instances of the library."""

from __future__ import annotations

import numpy as np

from forcopt.data import delaunay, grid
from forcopt.instance import by_name, family
from forcopt.models.districting.problem import Districting


def _grid(side: int, districts: int, tolerance: float) -> Districting:
    people = np.random.default_rng(side).integers(80, 121, side * side).tolist()
    return Districting(graph=grid(side, side, people), districts=districts, tolerance=tolerance)


def _planar(nodes: int, districts: int, tolerance: float) -> Districting:
    return Districting(graph=delaunay(nodes, seed=nodes), districts=districts, tolerance=tolerance)


_GRIDS = ((4, 2, 0.1), (5, 3, 0.1), (6, 2, 0.05), (6, 4, 0.1), (8, 4, 0.1), (10, 5, 0.05), (15, 8, 0.05))
_PLANAR = ((16, 2, 0.1), (20, 4, 0.2), (30, 3, 0.1), (40, 4, 0.1), (60, 5, 0.1), (100, 6, 0.05))

INSTANCES = by_name(
    family("districting/grid-{}-{}", _grid, "flow", *_GRIDS),
    family("districting/planar-{}-{}", _planar, "flow", *_PLANAR),
    family("districting/shirabe-{}-{}", _planar, "shirabe", *_PLANAR[:3]),
    family("districting/per-district-{}-{}", _planar, "flow-per-district", *_PLANAR[:3]),
)
