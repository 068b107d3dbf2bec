"""Exact counts of plans by cost; plans by rank, at random, and in order of cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, unknown
from forcopt.graphs.dynamic_program import Bound, Program, Table, arcs_into
from forcopt.graphs.states import COUNT
from forcopt.models.districting.dual_cycles import CycleCounter
from forcopt.models.districting.frontier import sweep_of
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.sphere_cut import tables_of

__all__ = ["PlanCounts", "below"]


class _Counter:
    """Counts and ranks by a dynamic program."""

    def __init__(self, program: Program, most: int | None) -> None:
        self.program, self.most = program, most

    @cached_property
    def bound(self) -> Bound | None:
        """States that cannot end in time need not be counted; pays only where costs are limited."""
        return None if self.most is None else self.program.relaxation(None, self.most)

    def histogram(self) -> dict[int, int]:
        """The number of partitions of each cost."""
        if self.most is not None and self.bound is None:
            return {}
        return self.program.histogram(self.most, self.bound)

    @cached_property
    def tables(self) -> list[Table]:
        """All tables with their arcs."""
        return self.program.run(COUNT, self.most, self.bound, track=True)

    @cached_property
    def into(self) -> list[tuple[Array, Array]]:
        """The arcs by the state that they make."""
        return arcs_into(self.tables)

    def ranked(self, cost: int, rank: int) -> list[list[int]]:
        """The parts of one of them."""
        return self.program.ranked(self.tables, self.into, cost, rank)


class _OneNode:
    """A single node is one district."""

    def histogram(self) -> dict[int, int]:
        """One partition, which cuts nothing."""
        return {0: 1}

    def ranked(self, cost: int, rank: int) -> list[list[int]]:
        """That partition."""
        return [[0]]


class PlanCounts:
    """The exact number of plans of each cost; plans by rank, at random, and in order of cost.

    Made by `Districting.count`.

    Parameters
    ----------
    problem : Districting
        With the objective ``cut`` and equal seats.
    max_cost : float, optional
        Only plans of at most this cost are counted.
    method : {"frontier", "sphere-cut", "dual-cycles"}, optional
        ``dual-cycles`` takes two districts, with any side constraints and seats; the others take neither
        `Share` nor `SplitLimit`. The order of the plans of a cost differs between methods.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> counts = Districting(grid(3, 4), districts=3, tolerance=0).count()
    >>> counts.histogram, counts.total
    ({6: 2, 7: 6, 8: 15}, 23)
    >>> counts.unrank(6, 0).assignment == counts.unrank(6, 1).assignment
    False
    >>> [plan.cost for plan in counts.sample(7, 2, seed=1)]
    [7.0, 7.0]
    >>> len(list(counts.iterate(max_cost=7)))
    8
    """

    def __init__(self, problem: Districting, max_cost: float | None = None, method: str = "frontier") -> None:
        programs: dict[str, Callable[[Districting], Program]] = {
            "frontier": sweep_of,
            "sphere-cut": tables_of,
        }
        if method not in (*programs, "dual-cycles"):
            raise unknown("counting method", method, [*programs, "dual-cycles"])
        if method != "dual-cycles":
            problem.require(f"count with {method}", "cut")
        self.problem = problem
        limits = [] if problem.most_cost is None else [problem.most_cost]
        if max_cost is not None:
            limits.append(int(np.floor(max_cost * problem.cost_scale + 1e-9)))
        most = min(limits, default=None)
        self._counter: _Counter | _OneNode | CycleCounter
        if len(problem.nodes) == 1:
            self._counter = _OneNode()
        elif method == "dual-cycles":
            self._counter = CycleCounter(problem, most)
        else:
            self._counter = _Counter(programs[method](problem), most)

    @cached_property
    def _by_cost(self) -> dict[int, int]:
        return {} if self.problem.infeasibility_reason() else self._counter.histogram()

    @property
    def histogram(self) -> dict[float, int]:
        """The number of plans of each cost, in increasing order; costs are ints if all edges' are."""
        scale = self.problem.cost_scale
        return {cost if scale == 1 else cost / scale: n for cost, n in self._by_cost.items()}

    @property
    def total(self) -> int:
        """The number of plans."""
        return sum(self._by_cost.values())

    def _scaled(self, cost: float) -> int:
        exact = round(cost * self.problem.cost_scale)
        if exact not in self._by_cost:
            known = ", ".join(f"{c:g}" for c in self.histogram) or "none"
            raise DeclarationError(f"no plan costs {cost:g}; costs that occur: {known}")
        return exact

    def unrank(self, cost: float, rank: int) -> Plan:
        """The plan of a rank among those of a cost: from 0, in the order of the tables.

        Raises
        ------
        DeclarationError
            If no plan has this cost, or fewer than ``rank + 1``.
        """
        exact = self._scaled(cost)
        if not 0 <= rank < self._by_cost[exact]:
            raise DeclarationError(
                f"rank is {rank}; it must be from 0 to {self._by_cost[exact] - 1} at cost {cost:g}"
            )
        return Plan.of(self.problem, self._counter.ranked(exact, rank))

    def sample(self, cost: float, size: int = 1, seed: int | np.random.Generator | None = None) -> list[Plan]:
        """Plans drawn independently and uniformly among all of a cost.

        Raises
        ------
        DeclarationError
            If no plan has this cost.
        """
        rng = np.random.default_rng(seed)
        count = self._by_cost[self._scaled(cost)]
        return [self.unrank(cost, below(count, rng)) for _ in range(size)]

    def iterate(self, max_cost: float | None = None) -> Iterator[Plan]:
        """All plans in order of cost, then of rank."""
        for cost, count in self.histogram.items():
            if max_cost is not None and cost > max_cost:
                return
            for rank in range(count):
                yield self.unrank(cost, rank)

    def __repr__(self) -> str:
        return f"<{self.total} plans of {len(self.histogram)} costs>"


def below(count: int, rng: np.random.Generator) -> int:
    """A uniform integer from 0 to count - 1, of any size (by rejection)."""
    bits = count.bit_length()
    while True:
        value = int.from_bytes(rng.bytes((bits + 7) // 8), "little") & ((1 << bits) - 1)
        if value < count:
            return value
