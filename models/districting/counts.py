"""Exact counts of plans by cost; plans by rank, at random, and in order of cost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

import numpy as np

from forcopt.arrays import Array, generator, whole_number
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, check_known, require
from forcopt.graphs.dynamic_program import Bound, Program, Table, arcs_into
from forcopt.graphs.states import COUNT
from forcopt.models.districting.dynamic import check_features, sweep_of, tables_of
from forcopt.models.districting.plan import Plan, only_plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.tolerances import LIMIT, SAME_COST
from forcopt.problem import Outcome
from forcopt.problem.progress import ProgressLine, show_progress


class PlanCounts:
    """The exact number of plans of each cost; plans by rank, at random, and in order of cost.

    Made by `Districting.count`.

    Parameters
    ----------
    problem : Districting
        With the objective ``cut``.
    max_cost : float, optional
        Only plans of at most this cost are counted.
    method : {"frontier", "sphere-cut"}, optional
        Both take neither `Share` nor `SplitLimit`, and `Fixed` only beside equal seats. The order of the
        plans of a cost differs between them.
    time_limit : float, optional
        Seconds for the count; without it, plans are counted when a figure is first asked for.
    progress : bool, optional
        Show the elapsed time on the error output while counting.

    Raises
    ------
    TimeoutError
        If the count takes longer.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> counts = Districting(grid(3, 4), districts=3, tolerance=0).count()
    >>> counts.histogram, counts.total
    ({6: 2, 7: 6, 8: 15}, 23)
    >>> counts.unrank(6, 0).assignment == counts.unrank(6, 1).assignment
    False
    >>> [plan.cost for plan in counts.sample(2, cost=7, seed=1)]
    [7.0, 7.0]
    >>> [plan.cost for plan in counts.sample(3, seed=1)]
    [8.0, 7.0, 8.0]
    >>> len(list(counts.iterate(max_cost=7)))
    8
    """

    def __init__(
        self,
        problem: Districting,
        max_cost: float | None = None,
        method: str = "frontier",
        *,
        time_limit: float | None = None,
        progress: bool = False,
    ) -> None:
        programs = {"frontier": sweep_of, "sphere-cut": tables_of}
        check_known("counting method", method, programs)
        name = f"count with {method}"
        check_features(problem, name)
        self.problem = problem
        deadline = Deadline(time_limit)
        limits = [] if problem.most_cost is None else [problem.most_cost]
        if max_cost is not None:
            fits = isinstance(max_cost, int | float | np.number) and max_cost == max_cost
            require(fits, "max_cost", max_cost, "be a number")
            largest = float(problem.arrays.costs.sum())
            limits.append(int(np.floor(min(max_cost * problem.cost_scale, largest) + LIMIT)))
        self._most = most = min(limits, default=None)
        self._bound: Bound | None = None
        self._only = only_plan(problem)  # there are as many districts as components
        if self._only is None:
            self._program: Program = programs[method](problem, name)
        elif self._only.decision is not None and most is not None and most < 0:
            self._only = Outcome(None)
        if time_limit is not None or progress:
            with show_progress(ProgressLine(name, deadline), progress):
                self._by_cost = self._counted(deadline)

    @cached_property
    def _by_cost(self) -> dict[int, int]:
        return self._counted(Deadline())

    def _counted(self, deadline: Deadline) -> dict[int, int]:
        if self.problem.infeasibility_reason():
            return {}
        if self._only is not None:
            return {} if self._only.decision is None else {0: 1}
        try:
            if self._most is not None:  # states that cannot end at such a cost need not be counted
                self._bound = self._program.relaxation(None, self._most, stop=lambda: deadline.passed)
                if self._bound is None:
                    return {}
            return self._program.histogram(self._most, self._bound, lambda: deadline.passed)
        except TimeoutError:
            kind = MemoryError if deadline.full else TimeoutError
            raise kind(f"the plans are not counted: {deadline.end}; a smaller max_cost has fewer") from None

    @cached_property
    def _tables(self) -> tuple[list[Table], list[tuple[Array, Array]]]:
        """All tables with their arcs, and the arcs by the state that they make."""
        tables = self._program.run(COUNT, self._most, self._bound, track=True)
        return tables, arcs_into(tables)

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
        exact = round(cost * self.problem.cost_scale) if np.isfinite(cost) else -1
        if exact not in self._by_cost or abs(cost * self.problem.cost_scale - exact) > SAME_COST:
            known = ", ".join(f"{c:g}" for c in self.histogram) or "none"
            raise DeclarationError(f"no plan costs {cost:g}; costs that occur: {known}")
        return exact

    def unrank(self, cost: float, rank: int) -> Plan:
        """The plan of a rank among the plans of a cost: from 0, in the order of the tables.

        Raises
        ------
        DeclarationError
            If no plan has this cost, or fewer than ``rank + 1``.
        """
        exact = self._scaled(cost)
        count, rank = self._by_cost[exact], whole_number(rank, "rank")
        require(0 <= rank < count, "rank", rank, f"be from 0 to {count - 1} at cost {cost:g}")
        return self._ranked(exact, rank)

    def sample(
        self, size: int = 1, *, cost: float | None = None, seed: int | np.random.Generator | None = None
    ) -> list[Plan]:
        """Plans drawn independently and uniformly.

        Parameters
        ----------
        size : int, optional
            The number of plans.
        cost : float, optional
            Only plans of this cost are drawn; all plans that are counted by default.
        seed : int or numpy.random.Generator, optional
            Of the draws.

        Returns
        -------
        list of Plan

        Raises
        ------
        DeclarationError
            If there is no plan, or none of this cost.
        """
        rng, size = generator(seed), whole_number(size, "size", 0)
        if cost is not None:
            exact = self._scaled(cost)
            return [self.unrank(cost, below(self._by_cost[exact], rng)) for _ in range(size)]
        if self.total == 0:
            raise DeclarationError("the problem has no plan to draw")
        return [self._at(below(self.total, rng)) for _ in range(size)]

    def _at(self, rank: int) -> Plan:
        """The plan of a rank among all, in order of cost."""
        costs, counts = list(self._by_cost), list(self._by_cost.values())
        at = next(i for i, first in enumerate(accumulate(counts)) if rank < first)
        return self._ranked(costs[at], rank - sum(counts[:at]))

    def _ranked(self, cost: int, rank: int) -> Plan:
        if self._only is not None:
            return Plan.of(self.problem, self._only.decision.parts)
        return Plan.of(self.problem, self._program.ranked(*self._tables, cost, rank))

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
