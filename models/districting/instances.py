"""Seeded instances of the library."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.data import delaunay, grid
from forcopt.instance import Instance, by_name
from forcopt.models.districting.problem import Districting


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
