"""Set partitioning by column generation: a linear bound first, then only the districts that can matter.

The master takes some districts and pays for what they leave uncovered or cover twice; pricing enumerates
all connected districts of small reduced cost. With the bound LB and the shadow prices at its end, every
district of a plan of cost at most T has a reduced cost of at most T - LB: these are listed, and an integer
program over them finds the best plan or proves that none costs T or less. No branch-and-price is needed,
because the linear bound of districting is close.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import ceil

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Improvement
from forcopt.errors import DeclarationError
from forcopt.graphs.connected_sets import ConnectedSets
from forcopt.language.model import Model
from forcopt.loops.column_generation import Column, Duals, Pricing
from forcopt.loops.column_generation import column_generation as generate
from forcopt.models.districting.jit_warmup import jit_warmup
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["column_generation"]

_POOL = 10
"""The first master holds about so many districts for each node."""

_ROUND = 3000
"""So many columns are enough for a round."""

_MOST = 3_000_000
"""More districts than this are not handed to the integer program."""


_ROUNDING = 1e-6
"""Of a linear bound, before it is rounded up."""

_BRANCHES = 30_000_000
"""So many branches are looked at to list districts before the bound is improved, at first."""


class _Late(TimeoutError):
    """The time limit is reached."""


@Districting.algorithm(
    "column-generation",
    exact=True,
    cites="Mehrotra, Johnson and Nemhauser (1998); Marsten, Hogan and Blankenship (1975) for the box",
    prepare=jit_warmup("local-search", "column-generation"),
)
def column_generation(
    problem: Districting,
    *,
    start: Plan | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: Callable[[Improvement], bool | None] | None = None,
) -> Outcome:
    """Linear bound by column generation, then an integer program over all districts that can matter.

    Meant for districts of up to about twenty nodes, on graphs of any size.

    Args:
        problem: with the objective ``cut``; a `CutLimit` only if every edge costs 1.
        start: a feasible plan to beat, instead of the local search's.
        backend: solves the linear and integer programs; ``highs`` by default.
        time_limit: seconds.
        seed: of the local search.
        on_improvement: called with each better plan or bound; stop by returning True.
    """
    began = time.perf_counter()
    problem.require_cut("column-generation")
    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    if start is None:
        start = local_search(problem, restarts=8, seed=seed, time_limit=time_limit).decision
    elif not problem.evaluate(start).feasible:
        raise DeclarationError("start: the plan is not feasible; see evaluate(start).violations")
    run = _Run(problem, start, backend or "highs", began, time_limit, on_improvement)
    try:
        run.solve()
    except _Late as stop:
        status = Status.LIMIT if run.plan is None else Status.FEASIBLE
        return Outcome(run.plan, run.bound, status, run.looked_at, str(stop), run.trace)
    if run.plan is None:
        message = "no districts that cover every node once exist"
        return Outcome(None, float("inf"), Status.INFEASIBLE, run.looked_at, message, run.trace)
    return Outcome(run.plan, iterations=run.looked_at, trace=run.trace)


class _Run:
    """The state of one run. Costs are those of `arrays`, doubled: a cut edge counts in two districts.

    Attributes:
        plan: the best known.
        beat: a plan must cost less than this to be better (doubled).
        low: no plan costs less than this (doubled).
        linear, prizes, fee: a linear bound, and the shadow prices that prove it: no district has a negative
            reduced cost.
    """

    def __init__(
        self,
        problem: Districting,
        plan: Plan | None,
        backend: str,
        began: float,
        time_limit: float | None,
        on_improvement: Callable[[Improvement], bool | None] | None,
    ) -> None:
        self.problem, self.plan, self.backend = problem, plan, backend
        self.began, self.time_limit, self.on_improvement = began, time_limit, on_improvement
        arrays = problem.arrays
        # Districts grow from their heaviest node: few are left to grow from the light ones.
        import os
        self.order = np.argsort(-arrays.weights, kind="stable")
        self.graph = arrays.reordered(self.order.tolist())
        place = np.argsort(self.order)
        self.must_link = [(place[a], place[b]) for group in problem.must_link for a, b in pairwise(group)]
        self.cannot_link = [(place[a], place[b]) for a, b in problem.cannot_link]
        from forcopt.models.districting.cycle_districts import CycleDistricts
        self.cycles = CycleDistricts(self.graph, *problem.population_bounds, problem.districts) if os.environ.get("CYC") else None
        self.beat = 2 * int(arrays.costs.sum()) + 2
        if problem.cut_limit is not None:
            self.beat = min(self.beat, 2 * problem.cut_limit + 2)
        if plan is not None:
            self.beat = 2 * arrays.cut_cost(plan.labels)
        self.low = self.linear = 0.0
        self.cap = int(2.0 * self.beat / problem.districts * 0.65 + 4)
        self.prizes, self.fee = np.zeros(arrays.size), 0.0
        self.trace: list[Improvement] = []
        self.looked_at = 0

    @property
    def bound(self) -> float:
        """On the cost of a plan; costs are whole numbers before they are scaled."""
        return ceil(self.low / 2 - _ROUNDING) / self.problem.cost_scale

    @property
    def settled(self) -> bool:
        """Whether nothing better than the plan can exist."""
        return 2 * ceil(self.low / 2 - _ROUNDING) >= self.beat

    def note(self) -> None:
        value = float("inf") if self.plan is None else self.plan.cost
        if not self.trace or (value, self.bound) != (self.trace[-1].objective, self.trace[-1].bound):
            self.trace.append(Improvement(time.perf_counter() - self.began, value, self.bound))
            if self.on_improvement is not None and self.on_improvement(self.trace[-1]):
                raise _Late("stopped by on_improvement")

    def left(self) -> float | None:
        if self.time_limit is None:
            return None
        left = self.time_limit - (time.perf_counter() - self.began)
        if left <= 0:
            raise _Late("stopped by the time limit")
        return left

    def districts(
        self, threshold: float, prizes: Array | None = None, branches: float = np.inf
    ) -> Iterator[tuple[Array, Array]]:
        """Districts and the costs of their boundaries, where these exceed the prizes by at most `threshold`.

        Yields:
            What was found in each step, until there are no more, or so many branches were looked at:
            `cut_short` says which.
        """
        low, high = self.problem.population_bounds
        self.cut_short = False
        if self.cycles is not None:
            yield from self.by_cycles(threshold, np.zeros(self.graph.size) if prizes is None else prizes, branches)
            return
        search = ConnectedSets(self.graph, low, high, self.problem.districts, threshold, prizes)
        while not search.done:
            self.left()
            self.cut_short = search.looked_at > branches
            if self.cut_short:
                return
            before = search.looked_at
            sets, costs = search.step(most=20_000)
            self.looked_at += search.looked_at - before
            good = np.ones(len(sets), np.bool_)
            for a, b in self.must_link:
                good &= sets[:, a] == sets[:, b]
            for a, b in self.cannot_link:
                good &= ~(sets[:, a] & sets[:, b])
            yield sets[good], costs[good]

    def by_cycles(self, threshold, prizes, branches):
        before = self.cycles.paths
        def pause():
            self.left()
            if self.cycles.paths - before > branches:
                raise StopIteration
        for sets, costs in self.cycles.sets(threshold, prizes, self.left):
            good = np.ones(len(sets), np.bool_)
            for a, b in self.must_link:
                good &= sets[:, a] == sets[:, b]
            for a, b in self.cannot_link:
                good &= ~(sets[:, a] & sets[:, b])
            yield sets[good], costs[good]

    def first_pool(self) -> tuple[Array, Array]:
        """Districts with cheap boundaries."""
        wanted = _POOL * self.graph.size
        threshold = max(1.0, 0.8 * self.beat / self.problem.districts if self.plan else 1.0)
        while True:
            sets, costs = [], []
            for some, paid in self.districts(threshold):
                sets.append(some)
                costs.append(paid)
                if sum(map(len, sets)) > 20 * wanted:
                    break
            if sum(map(len, sets)) >= wanted or threshold > self.beat:
                return np.concatenate(sets), np.concatenate(costs)
            threshold *= 1.2

    def solve(self) -> None:
        """Bound and list in turn: a closer bound leaves fewer districts, but costs more to find.

        The master's shadow prices stay in a box; the first box is small and lies around prices in proportion
        to population, near which few branches of the enumeration survive.
        """
        n, k = self.graph.size, self.problem.districts
        self.note()
        sets, costs = self.first_pool()
        if not len(sets):
            self.low = float(self.beat)
            return
        guess = self.beat if self.plan is not None else k * float(costs.mean())
        self.prizes = guess * self.graph.weights / max(self.graph.total, 1)
        box, branches = max(guess / n / 4, 1e-3), _BRANCHES
        self.sets_most = 1000
        while not self.settled:
            sets, costs = self.bound_within(box, sets, costs)
            self.list_and_choose(branches)
            import sys
            print("BOX", box, self.linear, round(time.perf_counter()-self.began,2), self.looked_at, file=sys.stderr)
            box, branches = 2 * box, 3 * branches
            self.sets_most *= 4

    def bound_within(self, box: float, sets: Array, costs: Array) -> tuple[Array, Array]:
        """Solve the master with shadow prices in a box around the best ones; add to its districts."""
        n, k = self.graph.size, self.problem.districts
        model = Model("districts")
        taken = model.variable("taken", len(sets), lower=0)
        missing = model.variable("missing", n, lower=0)
        excess = model.variable("excess", n, lower=0)
        cover = model.subject_to(sets.T.astype(float) @ taken + missing - excess == 1, name="cover")
        count = model.subject_to(taken.sum() == k, name="count")
        model.minimize(taken @ costs + missing @ (self.prizes + box) - excess @ (self.prizes - box))

        def price(dual: Duals) -> Pricing:
            prizes, fee = dual(cover), float(dual(count))
            tiny = 1e-4 * self.beat / k
            found: list[Column] = []
            least, complete = -tiny, True
            if self.cycles is not None:
                import sys
                t0=time.perf_counter(); p0=self.cycles.paths
                for some, paid in self.cycles.sets(fee - tiny, prizes, self.left, self.cap):
                    reduced = paid - some @ prizes - fee
                    least = min(least, float(reduced.min(initial=0.0)))
                    for members, cost in zip(some, paid.tolist(), strict=True):
                        ones = {cover: members.astype(float), count: 1.0}
                        found.append(Column(float(cost), ones, data=members))
                    if len(found) > _ROUND:
                        break
                print("CAP", self.cap, self.cycles._most(fee-tiny,prizes), len(found), round(time.perf_counter()-t0,3), self.cycles.paths-p0, file=sys.stderr)
                if len(found) > 20 or (found and least < -0.5):
                    return Pricing(found, -np.inf)
                found.clear()
            t0=time.perf_counter()
            for some, paid in self.districts(fee - tiny, prizes):
                reduced = paid - some @ prizes - fee
                least = min(least, float(reduced.min(initial=0.0)))
                for members, cost in zip(some, paid.tolist(), strict=True):
                    ones = {cover: members.astype(float), count: 1.0}
                    found.append(Column(float(cost), ones, data=members))
                if len(found) > _ROUND:
                    complete = False
                    break
            linear = float(prizes.sum()) + k * (fee + least)
            import sys
            print("FULL", len(found), complete, round(time.perf_counter()-t0,3), linear, file=sys.stderr)
            if complete and linear > self.linear:
                self.linear, self.prizes, self.fee = linear, prizes, fee + least
                self.low = max(self.low, linear)
                self.note()
            return Pricing([] if self.settled else found, least if complete else -np.inf)

        found = generate(model, price, self.backend, total=k, time_limit=self.left()).columns
        self.left()
        if not found:
            return sets, costs
        return (
            np.concatenate([sets, np.array([c.data for c in found])]),
            np.concatenate([costs, np.array([c.cost for c in found])]),
        )

    def list_and_choose(self, branches: int) -> None:
        """Seek plans below a target, and raise it, until the bound meets the best plan or it takes long."""
        slack = 1.0  # by how much the target exceeds the linear bound
        while not self.settled:
            least = 2 * ceil(self.low / 2 - _ROUNDING)
            target = min(self.beat - 2, max(least, 2 * int((self.linear + slack) / 2)))
            sets, costs = [], []
            for some, paid in self.districts(self.fee + target - self.linear, self.prizes, branches):
                sets.append(some)
                costs.append(paid)
                if sum(map(len, sets)) > self.sets_most:
                    return
            if self.cut_short:
                return
            import sys
            print("LIST", target, self.linear, sum(map(len, sets)), "at", round(time.perf_counter()-self.began,2), file=sys.stderr)
            self.best_of(np.concatenate(sets), np.concatenate(costs), target)
            print("IP", round(time.perf_counter()-self.began,2), file=sys.stderr)
            self.low = max(self.low, min(self.beat, target + 2))
            self.note()
            slack = 1.5 * (target - self.linear)

    def best_of(self, sets: Array, costs: Array, target: int) -> None:
        """The best plan of at most the target's cost made of these districts, if there is one."""
        left = self.left()
        if not sets.any(axis=0).all():
            return
        model = Model("plan")
        taken = model.variable("taken", len(sets), binary=True)
        model.subject_to(sets.T.astype(float) @ taken == 1)
        model.subject_to(taken.sum() == self.problem.districts)
        model.subject_to(taken @ costs <= target)
        model.minimize(taken @ costs)
        said = model.solve(self.backend, time_limit=left, gap=0.0)
        if said.status.has_solution:
            chosen = np.flatnonzero(said[taken] > 0.5)
            self.plan = Plan.of(self.problem, [self.order[sets[i]].tolist() for i in chosen])
            self.beat = int(costs[chosen].sum())
            self.note()
        if said.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            self.left()
            raise _Late(f"{said.backend} said: {said.message}")
