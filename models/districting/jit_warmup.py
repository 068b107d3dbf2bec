"""Run methods once on a small graph, so that numba compiles their kernels before a clock runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.data.graphs import grid
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.graphs.window_cycles import WindowCycles
from forcopt.models.districting.all_but_one import plan_of_all_but_one
from forcopt.models.districting.cycle_districts import CycleDistricts
from forcopt.models.districting.problem import Districting

__all__ = ["jit_warmup"]


def jit_warmup(*methods: str, districts: int = 5) -> Callable[[], None]:
    """Give a function that runs methods on a grid; its argument types are those of every problem.

    Parameters
    ----------
    *methods : str
        Names of methods.
    districts : int, optional
        The number of districts of the 25 nodes.

    Returns
    -------
    callable
        Takes no arguments.
    """

    def prepare() -> None:
        size = 25 / districts
        problem = Districting(grid(5, 5), districts=districts, bounds=(int(0.8 * size), int(1.2 * size)))
        for name in methods:
            problem.solve(name, seed=0)
        if "column-generation" in methods:  # districts as cycles, and bounds on reduced costs
            graph = problem.arrays
            listed = CycleDistricts(graph, 4, 6, districts)
            list(listed.sets(4.0, graph.weights * 0.1))
            list(listed.least_cost())
            cycles = WindowCycles(PlanarDual.of(graph), 4, 6)
            cycles.many = 0
            list(cycles.sets(10, graph.weights * 1.0, 5.0))
            singles, costs = np.packbits(np.eye(25, dtype=bool), axis=1), np.ones(25, np.int64)
            plan_of_all_but_one(graph, singles, costs, np.zeros(25), 3, 1, 25, 99, 1.0)

    return prepare
