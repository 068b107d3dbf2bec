"""Exact dynamic programming along a vertex order, bounded by its own coarser runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.graphs.frontier import COUNT, Bound, Sweep, Table, number
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["PlanCounts", "frontier", "sweep_of"]

Array = np.ndarray[Any, Any]

_FINER = (10, 20, 60, 200, 800)
"""Relaxations weigh parts in these fractions of the mean, one after the other, each bounded by the one before."""

_FEW = 20_000
"""States of a relaxation that are few enough to go on without a finer one."""


def sweep_of(problem: Districting, method: str = "frontier") -> Sweep:
    """The sweep along a short-frontier order; each problem's is planned once.

    Raises:
        DeclarationError: for another objective, a `CutLimit` with costs other than 1, or a frontier longer
            than 16.
    """
    problem.require(method, "cut")
    if problem.cut_limit is not None and (problem.arrays.costs != 1).any():
        raise DeclarationError(f"method {method!r} takes a CutLimit only if every edge costs 1")
    cached = problem.__dict__.get("_sweep")
    if cached is None:
        low, high = problem.population_bounds
        chained = [(a, b) for group in problem.together for a, b in zip(group, group[1:], strict=False)]
        cached = Sweep(problem.arrays, low, high, problem.districts, apart=problem.apart, joined=chained)
        problem.__dict__["_sweep"] = cached
    assert isinstance(cached, Sweep)
    return cached


@Districting.algorithm(
    "frontier", exact=True, cites="Cohen-Addad et al. (FORC 2021), Theorem 2, on a path decomposition"
)
def frontier(
    problem: Districting,
    *,
    start: Plan | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
) -> Outcome:
    """Dynamic programming over the frontier of a vertex order, bounded by coarser runs of itself.

    A local search gives a cost to beat. The same programme with populations left out, then rounded ever more
    finely, gives for each state a bound on the cost of what is left; only states that may still beat it are kept.

    Args:
        problem: with the objective ``cut``.
        start: a feasible plan to beat, instead of the local search's.
        time_limit: seconds; looked at after each vertex.
        seed: of the local search.
    """
    began = time.perf_counter()
    reason = problem.obstacle()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    sweep = sweep_of(problem)
    plan = start
    if plan is None:
        plan = local_search(problem, restarts=4, seed=seed, time_limit=time_limit).decision
    elif not problem.evaluate(plan).feasible:
        raise DeclarationError("start: the plan is not feasible; see evaluate(start).violations")
    most = problem.cut_limit
    if plan is not None:
        most = problem.arrays.cut_cost(plan.labels) - 1
    states = 0
    least = 0

    def late() -> bool:
        return time_limit is not None and time.perf_counter() - began > time_limit

    try:
        bound: Bound | None = None
        if len(problem.nodes) > 16:
            for parts in (None, *_FINER):
                unit = None if parts is None else int(problem.mean / parts)
                if unit is not None and unit < 2:
                    break
                bound = sweep.relaxation(unit, most, bound, late)
                states += sweep.states
                if bound is None:
                    return _settled(problem, plan, states)
                least = max(least, bound.least)
                if unit is not None and sum(map(len, bound.costs)) < _FEW:
                    break
        found = sweep.cheapest(most, bound, late)
    except TimeoutError:
        status = Status.LIMIT if plan is None else Status.FEASIBLE
        return Outcome(plan, least / problem.cost_scale, status, states, "stopped by the time limit")
    states += sweep.states
    if found is None:
        return _settled(problem, plan, states)
    return Outcome(Plan.of(problem, found[1]), iterations=states)


def _settled(problem: Districting, plan: Plan | None, states: int) -> Outcome:
    """No plan beats the one known."""
    if plan is None:
        message = "the dynamic programme ends without a plan"
        return Outcome(None, float("inf"), Status.INFEASIBLE, states, message)
    return Outcome(plan, iterations=states)


class PlanCounts:
    """The exact number of plans of each cost; plans by rank, at random, and in order of cost.

    Made by `Districting.count`.

    Args:
        problem: with the objective ``cut``.
        max_cost: only plans of at most this cost are counted; all if left out.

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

    def __init__(self, problem: Districting, max_cost: float | None = None) -> None:
        self.problem = problem
        self._sweep = sweep_of(problem)
        limits = [] if problem.cut_limit is None else [problem.cut_limit]
        if max_cost is not None:
            limits.append(int(np.floor(max_cost * problem.cost_scale + 1e-9)))
        self._most = min(limits, default=None)

    @cached_property
    def _bound(self) -> Bound | None:
        """States that cannot end in time need not be counted; pays only where costs are limited."""
        return None if self._most is None else self._sweep.relaxation(None, self._most)

    @cached_property
    def _by_cost(self) -> dict[int, int]:
        if self.problem.obstacle() or (self._most is not None and self._bound is None):
            return {}
        return self._sweep.histogram(self._most, self._bound)

    @property
    def histogram(self) -> dict[float, int]:
        """The number of plans of each cost, in increasing order; costs are ints if all edges' are."""
        scale = self.problem.cost_scale
        return {cost if scale == 1 else cost / scale: n for cost, n in self._by_cost.items()}

    @property
    def total(self) -> int:
        """The number of plans."""
        return sum(self._by_cost.values())

    @cached_property
    def _tables(self) -> list[Table]:
        return self._sweep.run(COUNT, self._most, self._bound, track=True)

    @cached_property
    def _into(self) -> list[tuple[Array, Array]]:
        """For each table its arcs in order of the state that they lead to, and where each state's begin."""
        out = []
        for table in self._tables:
            order = np.argsort(table.arcs[:, 2], kind="stable")
            starts = np.searchsorted(table.arcs[order, 2], np.arange(len(table.rows) + 1))
            out.append((table.arcs[order], starts))
        return out

    def _scaled(self, cost: float) -> int:
        exact = round(cost * self.problem.cost_scale)
        if exact not in self._by_cost:
            known = ", ".join(f"{c:g}" for c in self.histogram) or "none"
            raise DeclarationError(f"no plan costs {cost:g}; costs that occur: {known}")
        return exact

    def unrank(self, cost: float, rank: int) -> Plan:
        """The plan of a rank among those of a cost: from 0, in the order of the tables.

        Raises:
            DeclarationError: if no plan has this cost, or fewer than ``rank + 1``.
        """
        exact = self._scaled(cost)
        if not 0 <= rank < self._by_cost[exact]:
            raise DeclarationError(
                f"rank is {rank}; it must be from 0 to {self._by_cost[exact] - 1} at cost {cost:g}"
            )
        last = self._tables[-1]
        state = int(np.flatnonzero(last.rows[:, 3] == exact)[0])
        picks = []
        for t in range(len(self._tables) - 1, -1, -1):
            arcs, starts = self._into[t]
            for before, d, _ in arcs[starts[state] : starts[state + 1]].tolist():
                ways = 1 if t == 0 else number(self._tables[t - 1].values[before])
                if rank < ways:
                    picks.append(d)
                    state = before
                    break
                rank -= ways
        return Plan.of(self.problem, self._sweep.parts_of(picks[::-1]))

    def sample(self, cost: float, size: int = 1, seed: int | np.random.Generator | None = None) -> list[Plan]:
        """Plans drawn independently and uniformly among all of a cost.

        Raises:
            DeclarationError: if no plan has this cost.
        """
        rng = np.random.default_rng(seed)
        count = self._by_cost[self._scaled(cost)]
        return [self.unrank(cost, _below(count, rng)) for _ in range(size)]

    def iterate(self, max_cost: float | None = None) -> Iterator[Plan]:
        """All plans in order of cost, then of rank."""
        for cost, count in self.histogram.items():
            if max_cost is not None and cost > max_cost:
                return
            for rank in range(count):
                yield self.unrank(cost, rank)

    def __repr__(self) -> str:
        return f"<{self.total} plans of {len(self.histogram)} costs>"


def _below(count: int, rng: np.random.Generator) -> int:
    """A uniform integer from 0 to count - 1, of any size (by rejection)."""
    bits = count.bit_length()
    while True:
        value = int.from_bytes(rng.bytes((bits + 7) // 8), "little") & ((1 << bits) - 1)
        if value < count:
            return value

