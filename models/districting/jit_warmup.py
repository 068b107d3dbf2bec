"""Run methods once on a small graph, so that what numba compiles for them is there before a clock runs."""

from __future__ import annotations

from collections.abc import Callable

from forcopt.data.graphs import grid
from forcopt.models.districting.problem import Districting

__all__ = ["jit_warmup"]


def jit_warmup(*methods: str) -> Callable[[], None]:
    """Give a function that runs these methods; the types that they compile for are those of any problem."""

    def prepare() -> None:
        problem = Districting(grid(5, 5), districts=5, bounds=(4, 6))
        for name in methods:
            problem.solve(name, seed=0)

    return prepare
