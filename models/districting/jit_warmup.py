"""Run methods once on a small graph, so that numba compiles their kernels before a clock runs."""

from __future__ import annotations

from collections.abc import Callable

from forcopt.data.graphs import grid
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

    return prepare
