"""Set partitioning by column generation: a linear bound first, then the districts of small reduced cost.

The master program chooses districts and pays penalties for nodes that it leaves uncovered or covers twice.
Pricing lists all connected districts of negative reduced cost. Let LB be the linear bound. The reduced costs
of the districts of a plan of cost at most T sum to at most T - LB, so all but one are at most (T - LB) / 2.
The districts up to this half are listed, and a search finds the best plan of which they lack at most one
district, or proves that no plan costs T or less. If this takes long, and with limits on sums over all
districts, all districts up to T - LB are listed, and an integer program chooses among them. The linear bound
of districting is close to the optimum, so no branch-and-price is needed.

On connected planar graphs districts are listed as cycles of the dual graph (`CycleDistricts`), on others, and
on small ones, by growth from their heaviest node (`ConnectedSets`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from math import ceil, log2

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.graphs.connected_sets import ConnectedSets
from forcopt.graphs.weighted import WeightedGraph
from forcopt.language.model import Model
from forcopt.loops.column_generation import Column, Duals, Pricing
from forcopt.loops.column_generation import column_generation as generate
from forcopt.models.districting.bound_certificate import BoundCertificate
from forcopt.models.districting.cycle_districts import CycleDistricts
from forcopt.models.districting.districts import bounded, holds, reader
from forcopt.models.districting.exact_cover import cheapest_cover
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan, feasible_start, minimizing, only_plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.tolerances import ROUNDING
from forcopt.problem import Outcome
from forcopt.status import Status

_POOL = 3
"""The first master program holds about this number of districts for each node."""

_LISTED = 40
"""The list that is priced first holds about this multiple of that number."""

_SOME = 300
"""The number of districts of the list that join the master program at a time."""

_ENTRIES = 2_000_000
"""The first master program has at most about this number of coefficients: solvers read it without a clock."""

_ROUND = 1000
"""Pricing stops at this number of districts, and adds the best ones up to this number."""

_MOST = 300_000
"""The integer program takes at most this number of districts."""

_BITS = 32
"""Longer costs are scaled where a solver sees them: HiGHS ended with an error at 1e11."""

_FAR, _CLOSEST = 0.25, 1e-3
"""The first and the least share of the way that prices go from the best ones to those of the master."""

_CLOSE = 2e-3
"""Reduced costs above minus this share of the mean boundary are taken for 0: so far may the bound be off."""

_FIRST = 1000
"""The first list for an integer program holds at most this number of districts; before a longer list, the
bound is improved."""

_LIGHT = 20
"""Lists for the search of exact covers hold at most this multiple of that number."""

_BRANCHES = 30_000_000
"""The first list and the first search for a plan may look at this number of branches or districts, then the
bound is improved."""

_COVERS = 10
"""The search for an exact cover may look at this multiple of districts."""

_STEP = 0.02
"""The first target exceeds the linear bound by at least this share of it."""

_SMALL_DISTRICT = 15
"""Districts of up to this number of nodes on average may grow from nodes on planar graphs, too."""

_SMALL_GRAPH = 40
"""They do so on graphs of up to this number of nodes."""

_WIDE = 1.5
"""They do so if the largest population exceeds this multiple of the smallest."""

_SHARE = 0.3
"""The search for the least cost of a district may take this share of the time limit; that of one of two
districts without rules, which is a plan, all of it."""

_PATIENCE = 2_000_000
"""Paths of the search for one of two districts, after which a local search seeks a plan."""


def _estimate(values: Array, largest: float, most: int, edge: float) -> float:
    """The threshold up to which about `most` districts exist, from all values up to another one.

    Numbers of districts grow exponentially: half of the values lie above the median. They at most double in
    each tenth of the mean cost of an edge.
    """
    if not len(values):
        return largest + edge
    doubling = max(largest - float(np.median(values)), edge / 10)
    return largest + doubling * log2(max(most / len(values), 0.5))


def _grows(problem: Districting) -> bool:
    """Whether growth lists districts faster: few nodes, on a small graph or in a wide window."""
    n, (low, high) = len(problem.nodes), problem.population_bounds
    return n <= _SMALL_DISTRICT * problem.districts and (n <= _SMALL_GRAPH or high > _WIDE * low)


class _Stopped(TimeoutError):
    """The time limit is reached, or the caller asked to stop."""


@Districting.algorithm(
    "column-generation",
    exact=True,
    cites="Mehrotra, Johnson and Nemhauser (1998); Marsten, Hogan and Blankenship (1975) for the box",
    rules=("each", "one", "sum"),
)
@minimizing
def column_generation(
    problem: Districting,
    *,
    start: Plan | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Linear bound by column generation, then a search for plans of districts of small reduced cost.

    Parameters
    ----------
    problem : Districting
        With the objective ``cut``, or a sum over districts, and any side constraints. Districts of up to
        about twenty nodes are proved, on graphs of any size; on larger districts the bound is weaker.
    start : Plan, optional
        A feasible plan; only cheaper ones are sought. A local search gives one by default, of two districts
        on a planar graph only if the search for their cycle takes long.
    backend : str, optional
        Solves the linear and integer programs; ``highs`` by default.
    seed : int or numpy.random.Generator, optional
        Of the local search.

    Returns
    -------
    Outcome
        The bound rises from the start: first the least cost of a district on planar graphs, then
        the linear bound, then the costs of lists of districts without a plan.

    Raises
    ------
    DeclarationError
        For another objective, or a start that is not feasible.

    References
    ----------
    .. [1] Mehrotra, Johnson and Nemhauser, An optimization based heuristic for political districting,
       Management Science 1998.
    .. [2] Marsten, Hogan and Blankenship, The boxstep method for large-scale optimization, Operations
       Research 1975.
    """
    trace = Trace(Deadline(time_limit), on_improvement)
    problem.require("column-generation", "cut", "goal", takes=("seats",))
    if (outcome := only_plan(problem)) is not None:
        return outcome
    if problem.goal is not None:
        from forcopt.models.districting.additive import additive

        return additive(problem, start, trace, seed, True)
    start = feasible_start(problem, start)
    run = _Run(problem, start, backend or "highs", trace)
    run.seed = seed
    return ended(run)


def ended(run: _Run) -> Outcome:
    """The outcome of a run to its end, or to its limits."""
    try:
        run.solve()
    except (_Stopped, MemoryError) as stop:
        status = Status.LIMIT if run.plan is None else Status.FEASIBLE
        reason, trace = str(stop), run.trace.steps
        return Outcome(run.plan, run.bound, status, run.looked_at, reason, trace, proof=run.proof())
    if run.plan is None:
        message = "no districts that cover every node once exist"
        return Outcome(None, float("inf"), Status.INFEASIBLE, run.looked_at, message, run.trace.steps)
    return Outcome(run.plan, iterations=run.looked_at, trace=run.trace.steps, proof=run.proof())


class _Run:
    """The state of one run. Costs are those of `arrays`, doubled: a cut edge counts in two districts.

    Attributes
    ----------
    plan : Plan or None
        The best known.
    beat : int
        A plan must cost less than this to be better (doubled).
    low : float
        No plan costs less than this (doubled).
    linear, prizes, fee
        A linear bound, and the shadow prices that prove it: no district has a negative reduced cost.
    """

    seed: int | np.random.Generator | None = None
    fine = 0.0  # the first target exceeds the bound by at least this share of the best plan's cost

    def __init__(self, problem: Districting, plan: Plan | None, backend: str, trace: Trace) -> None:
        self.problem, self.plan, self.backend, self.trace = problem, plan, backend, trace
        arrays = problem.arrays
        # Districts grow from their heaviest node: few are left to grow from the light ones.
        self.order = np.argsort(-arrays.weights, kind="stable")
        self.graph = arrays.reordered(self.order.tolist())
        self.place = place = np.argsort(self.order)
        self.must_link = [(place[a], place[b]) for a, b in problem.linked]
        self.cannot_link = [(place[a], place[b]) for a, b in problem.cannot_link]
        self.beat = 2 * int(arrays.costs.sum()) + 2
        if problem.most_cost is not None:
            self.beat = min(self.beat, 2 * problem.most_cost + 2)
        if plan is not None:
            self.beat = self.paid(plan)
        self.low = self.linear = 0.0
        # Bits of districts, and their costs.
        self.listed = np.zeros((0, -(-arrays.size // 8)), np.uint8), np.zeros(0, np.int64)
        self.prizes, self.fee = np.zeros(arrays.size), 0.0
        self.edge = float(arrays.costs.mean()) if len(arrays.costs) else 1.0
        # How many districts have each window of populations.
        self.windows = Counter(tuple(window) for window in problem.windows.tolist())
        self.looked_at, self.most, self.cut_short, self.sought = 0, _FIRST, False, False
        # Of the way from the best prices to those of the master, on which districts are priced.
        self.share = _FAR
        self.long_at = np.nan  # the linear bound when a list was last too long
        self.reached = -1.0  # by how much a list that was short enough exceeded the linear bound, at most
        # Whether districts that partition the nodes are a plan.
        self.plain = not (problem.unequal_seats or problem.all_rules)
        self.cycles: CycleDistricts | None = None
        self.many, self.finest = _LISTED, 1.0
        self.smooth = False  # whether prices go from the best ones to those of the master
        if not _grows(problem):
            with suppress(DeclarationError):  # disconnected or not planar: districts grow from nodes
                self.cycles = CycleDistricts(self.graph, *problem.population_bounds, problem.districts)
                self.smooth = True
                if problem.districts == 2:
                    links = self.must_link, self.cannot_link
                    self.cycles.cheapest.must_link, self.cycles.cheapest.cannot_link = links

    @property
    def bound(self) -> float:
        """On the cost of a plan; costs are whole numbers before they are scaled."""
        return ceil(self.low / 2 - ROUNDING) / self.problem.cost_scale

    @property
    def settled(self) -> bool:
        """Whether nothing better than the plan can exist."""
        return 2 * ceil(self.low / 2 - ROUNDING) >= self.beat

    @property
    def value(self) -> float:
        """The objective of the plan."""
        return float("inf") if self.plan is None else self.plan.cost

    def note(self) -> None:
        """Report a better plan or bound to the caller."""
        value, steps = self.value, self.trace.steps
        if not steps or (value, self.bound) != (steps[-1].objective, steps[-1].bound):
            self.trace.add(value, self.bound)
            self.pause()

    def take(self, parts: list[Array]) -> None:
        """Keep a plan, given as sets, if it is feasible and better."""
        plan = Plan.of(self.problem, [self.order[part].tolist() for part in parts])
        beat = self.paid(plan)
        if beat < self.beat and self.problem.evaluate(plan).feasible:
            self.plan, self.beat, self.finest = plan, beat, max(1.0, self.fine * beat)
            self.note()

    def paid(self, plan: Plan) -> int:
        """The cost of a plan."""
        return 2 * self.problem.arrays.cut_cost(plan.labels)

    def seek(self) -> None:
        """Seek a first plan by local search, once, in half of the time that is left."""
        if self.plan is None and not self.sought:
            self.sought = True
            left = self.trace.deadline.left
            limit = None if left is None else left / 2
            plan = local_search(self.problem, seed=self.seed, time_limit=limit).decision
            if plan is not None:
                self.take([plan.labels[self.order] == d for d in range(self.problem.districts)])

    def pause(self) -> None:
        """Stop in time, or raise `MemoryError`: a shorter list may do."""
        try:
            self.trace.check()
        except TimeoutError as stop:
            raise _Stopped(str(stop)) from None

    def districts(
        self, threshold: float, prizes: Array | None = None, branches: float = np.inf
    ) -> Iterator[tuple[Array, Array]]:
        """Districts and the costs of their boundaries, where these exceed the prizes by at most `threshold`.

        `cut_short` is true if more branches than `branches` were needed.
        """
        self.cut_short, fixed = False, self.problem._fixed()
        for sets, costs in self._all_districts(threshold, prizes, branches):
            good = np.ones(len(sets), np.bool_)
            for a, b in self.must_link:
                good &= sets[:, a] == sets[:, b]
            for a, b in self.cannot_link:
                good &= ~(sets[:, a] & sets[:, b])
            if self.problem.unequal_seats:
                good &= self.slots(sets).any(axis=0)
            for rule in self.problem.all_rules:
                if rule.scope in ("each", "one"):
                    named = sets[:, self.place]
                    kept = holds(self.problem, rule, named)
                    good &= kept if rule.part is None else kept | ~named[:, fixed[rule.part]].any(axis=1)
            yield sets[good], costs[good]

    def slots(self, sets: Array) -> Array:
        """Whether each window of populations admits each district, shape (windows, count)."""
        problem = self.problem
        people = sets @ self.graph.weights
        low, high = np.array(list(self.windows)).T
        fits = (people >= low[:, None]) & (people <= high[:, None])
        for d, nodes in problem._fixed().items():
            apart = np.array([w != tuple(problem.windows[d].tolist()) for w in self.windows])
            fits[apart] &= ~sets[:, self.place[nodes]].any(axis=1)
        return np.asarray(fits)

    def _all_districts(
        self, threshold: float, prizes: Array | None, branches: float
    ) -> Iterator[tuple[Array, Array]]:
        yield from self.listed_on(self.graph, self.cycles, threshold, prizes, branches)

    def listed_on(
        self,
        graph: WeightedGraph,
        cycles: CycleDistricts | None,
        threshold: float,
        prizes: Array | None,
        branches: float,
    ) -> Iterator[tuple[Array, Array]]:
        """Connected sets by the costs of a graph, as its cycles or by growth; see `districts`."""
        low, high = self.problem.population_bounds
        if cycles is not None:
            before = cycles.paths
            free = np.zeros(graph.size) if prizes is None else prizes
            for sets, costs in cycles.sets(threshold, free, self.pause):
                self.looked_at += cycles.paths - before
                before = cycles.paths
                yield sets, costs
            return
        search = ConnectedSets(graph, low, high, self.problem.districts, threshold, prizes)
        while not search.done:
            self.pause()
            self.cut_short = search.looked_at > branches
            if self.cut_short:
                return
            before = search.looked_at
            sets, costs = search.step(budget=200_000, most=20_000)
            self.looked_at += search.looked_at - before
            yield sets, costs

    def first_pool(self) -> tuple[Array, Array]:
        """Districts with cheap boundaries."""
        n, wanted = self.graph.size, _POOL * self.graph.size
        threshold = max(1.0, 0.8 * self.beat / self.problem.districts if self.plan else 1.0)
        while True:
            bits, costs, ones = [np.zeros((0, -(-n // 8)), np.uint8)], [np.zeros(0, np.int64)], 0
            for some, paid in self.districts(threshold):
                bits.append(np.packbits(some, axis=1))
                costs.append(paid)
                ones += int(some.sum())
                if sum(map(len, bits)) > self.many * wanted:
                    break
            if sum(map(len, bits)) >= wanted or threshold > self.beat:
                pool, paid = np.concatenate(bits), np.concatenate(costs)
                self.keep(pool, paid)
                step = 1 + max(ones // _ENTRIES, len(pool) // (4 * n))
                return np.unpackbits(pool[::step], axis=1, count=n).view(np.bool_), paid[::step]
            threshold *= 1.2

    def keep(self, bits: Array, costs: Array) -> None:
        """Add districts, given as bits, to the list that is priced first."""
        bits = np.concatenate([self.listed[0], bits])
        bits, first = np.unique(bits, axis=0, return_index=True)
        self.listed = bits, np.concatenate([self.listed[1], costs])[first]

    def from_list(self, prizes: Array, fee: float, tiny: float) -> tuple[Array, Array]:
        """Districts of the list with the least reduced costs, if these are below ``-tiny``."""
        bits, costs = self.listed
        by_byte = np.zeros(8 * bits.shape[1])
        by_byte[: self.graph.size] = prizes
        sums = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) @ by_byte.reshape(-1, 8).T
        reduced = costs - fee
        for i, column in enumerate(bits.T):
            reduced = reduced - sums[column, i]
        best = np.argsort(reduced)[:_SOME]
        best = best[reduced[best] < -tiny]
        return np.unpackbits(bits[best], axis=1, count=self.graph.size).astype(np.bool_), costs[best]

    def solve(self) -> None:
        """Bound and list in turn: a closer bound leaves fewer districts, but costs more to find.

        The least cost of a district comes first. Of two districts on a planar graph it is that of a plan.

        The master's shadow prices stay in a box; the first box is small and lies around prices in proportion
        to population, near which few districts have a small reduced cost.
        """
        n, k = self.graph.size, self.problem.districts
        by_cycle = k == 2 and self.cycles is not None
        if not by_cycle:
            self.seek()
        self.note()
        if self.cycles is not None:
            limit = self.trace.deadline.limit
            share = Deadline(None if limit is None else (1.0 if by_cycle and self.plain else _SHARE) * limit)

            def pause() -> None:
                self.pause()
                if share.passed:
                    raise TimeoutError

            try:
                for least, sides in self.cycles.least_cost(pause, lambda: self.beat / k):
                    if by_cycle and sides is not None:
                        self.take([sides == 0, sides == 1])
                    elif self.cycles.paths > _PATIENCE:
                        self.seek()
                    self.low = max(self.low, min(float(k * least), self.beat))
                    self.improve(self.prizes, float(least))
                    self.note()
                    if self.settled:
                        return
            except _Stopped:
                raise
            except (TimeoutError, MemoryError):
                pass  # the linear bound follows
            self.seek()
        sets, costs = self.first_pool()
        if not len(sets):
            self.low = float(self.beat)
            return
        guess = self.beat if self.plan is not None else k * float(costs.mean())
        centre = guess * self.graph.weights / max(self.graph.total, 1)
        box, branches = max(guess / n / 4, 1e-3), _BRANCHES
        while not self.settled:
            try:
                sets, costs = self.bound_within(centre, box, sets, costs)
            except MemoryError:
                self.list_and_choose(branches)
                if not self.settled:
                    raise
            self.list_and_choose(branches)
            centre, box, branches = self.prizes, 2 * box, 3 * branches
            self.most = min(4 * self.most, _MOST) if self.most < _MOST else 2 * self.most

    def bound_within(self, centre: Array, box: float, sets: Array, costs: Array) -> tuple[Array, Array]:
        """Solve the master with shadow prices in a box around the best ones; add to its districts."""
        n, k = self.graph.size, self.problem.districts
        model = Model("districts")
        taken = model.variable("taken", len(sets), lower=0)
        missing = model.variable("missing", n, lower=0)
        excess = model.variable("excess", n, lower=0)
        incidence = sp.csr_array(sets.T, dtype=float)
        cover = model.subject_to(incidence @ taken + missing - excess == 1, name="cover")
        count = model.subject_to(taken.sum() == k, name="count")
        model.minimize(taken @ costs + missing @ (centre + box) - excess @ (centre - box))

        tiny = _CLOSE * self.beat / k
        self.share = _FAR

        def price(dual: Duals) -> Pricing:
            prizes, fee = dual(cover), float(dual(count))

            def columns(sets: Array, costs: Array) -> list[Column]:
                return [
                    Column(float(cost), {cover: members.astype(float), count: 1.0}, data=members)
                    for members, cost in zip(sets, costs.tolist(), strict=True)
                ]

            known = columns(*self.from_list(prizes, fee, tiny))
            if known:
                return Pricing(known, -np.inf)
            if self.smooth:
                return Pricing(columns(*self.between(prizes, fee, tiny)), -np.inf)
            reduced, found = [-tiny], []
            for some, paid in self.districts(fee - tiny, prizes):
                self.pause()
                reduced.append(float((paid - some @ prizes - fee).min(initial=0.0)))
                found += columns(some, paid)
                if len(found) > _ROUND:
                    return Pricing(found, -np.inf)
            self.improve(prizes, fee + min(reduced))
            return Pricing([] if self.settled else found, min(reduced))

        self.pause()
        found = generate(model, price, self.backend, total=k, time_limit=self.trace.deadline.left).columns
        self.pause()
        if not found:
            return sets, costs
        more = np.array([c.data for c in found]), np.array([c.cost for c in found])
        return np.concatenate([sets, more[0]]), np.concatenate([costs, more[1]])

    def improve(self, prizes: Array, fee: float) -> None:
        """Keep prices that prove a better linear bound: no district has a reduced cost below the fee."""
        linear = float(prizes.sum()) + self.problem.districts * fee
        if linear > self.linear:
            self.linear, self.prizes, self.fee = linear, prizes, fee
            self.low = max(self.low, linear)
            self.note()

    def between(self, prizes: Array, fee: float, tiny: float) -> tuple[Array, Array]:
        """Price between the best prices and those of the master, until districts are found or both agree.

        All districts of the master have a reduced cost of at least `fee` at its own prices, and of at least
        ``self.fee`` at the best ones, so of at least their mean in the middle. A district below the mean is
        thus below `fee` at the master's prices. If there is none, the middle has the best prices.
        """
        k = self.problem.districts
        while not self.settled and self.beat - 2 - self.linear > self.reached:
            gap = (float(prizes.sum()) + k * fee - self.linear) / k
            if gap <= tiny:
                break
            share = self.share
            margin = share * gap / 2
            middle = (1 - share) * self.prizes + share * prizes
            least = (1 - share) * self.fee + share * fee - margin
            found, paid = [np.zeros((0, self.graph.size), np.bool_)], [np.zeros(0, np.int64)]
            try:
                for some, costs in self.districts(least, middle):
                    self.pause()
                    found.append(some)
                    paid.append(costs)
                    if sum(map(len, found)) > _ROUND:
                        break
            except MemoryError:
                if share < _CLOSEST:
                    raise
                self.share /= 2
            if sum(map(len, found)):
                sets, costs = np.concatenate(found), np.concatenate(paid)
                best = np.argsort(costs - sets @ prizes, kind="stable")[:_ROUND]
                return sets[best], costs[best]
            if self.share == share:
                self.improve(middle, least)
                self.share = min(1.0, 2 * share)
        return np.zeros((0, self.graph.size), np.bool_), np.zeros(0, np.int64)

    def list_and_choose(self, branches: int) -> None:
        """Seek plans below a target, and raise it, until the bound meets the best plan or it takes long."""
        slack = max(self.finest, _STEP * self.linear, self.reached)  # of the target over the linear bound
        while not self.settled:
            least = min(self.beat - 2, 2 * ceil(self.low / 2 - ROUNDING))
            target = min(self.beat - 2, max(least, 2 * int((self.linear + slack) / 2)))
            slack = 1.5 * (target - self.linear)
            further = self.settle(target, branches)
            if further is None:
                self.reached = -1.0
                if not self.smooth or target <= least:
                    return
                slack = (least + target) / 2 - self.linear - 1
                continue
            self.reached = max(self.reached, target - self.linear)
            self.low = max(self.low, min(self.beat, target + 2))
            self.note()
            slack = 2 * (further - self.fee) if self.smooth else max(slack, 2 * (further - self.fee))
            if self.smooth and self.linear + slack < self.low:  # first a better bound
                return

    def settle(self, target: int, branches: int) -> float | None:
        """Seek the best plan that costs at most a target, if the list is short.

        Returns the threshold up to which the next list may grow.
        """
        largest, k = self.fee + (target - self.linear) / 2, self.problem.districts
        if self.plain:
            listed = self.list_up_to(largest, branches, _LIGHT * self.most)
            if listed is None:
                return None
            sets, costs = listed
            values = costs - sets @ self.prizes
            further = _estimate(values, largest, _LIGHT * self.most if self.smooth else _FIRST, self.edge)
            if self.smooth and k <= 3:  # a plan that costs one edge more is often of these districts, too
                target = min(self.beat - 2, target + 2 * max(1, int(self.edge)))
            room = target - self.linear
            near = values <= self.fee + room / 2 + ROUNDING
            sets, costs, reduced = sets[near], costs[near], (values[near] - self.fee).clip(min=0)
            links = [(a, b, True) for a, b in self.must_link] + [(a, b, False) for a, b in self.cannot_link]
            low, high = self.problem.population_bounds
            try:
                plan = cheapest_cover(
                    self.graph, sets, costs, reduced, k, low, high, target, room,
                    above=largest - self.fee, links=links, looks=_COVERS * branches, pause=self.pause,
                )  # fmt: skip
            except OverflowError:
                pass  # an integer program follows
            else:
                if plan is not None:
                    self.take(plan)
                return further
        largest = self.fee + target - self.linear
        listed = self.list_up_to(largest, branches, self.most)
        if listed is not None:
            self.best_of(*listed, target)
        return None if listed is None else largest

    def list_up_to(self, largest: float, branches: float, most: int) -> tuple[Array, Array] | None:
        """All districts of cost less prizes up to a threshold; None if these or branches are too many.

        None also if they exceed the memory limit, unless they did so with the same linear bound before. The
        least of a complete list proves a better linear bound.
        """
        sets, costs = [np.zeros((0, self.graph.size), np.bool_)], [np.zeros(0, np.int64)]
        try:
            for some, paid in self.districts(largest, self.prizes, branches):
                sets.append(some)
                costs.append(paid)
                if sum(map(len, sets)) > most:
                    break
            self.trace.deadline.memory.reserve(2 * sum(some.nbytes for some in sets))
        except MemoryError:
            if self.linear == self.long_at:
                raise
            self.long_at = self.linear
            return None
        every, cost = np.concatenate(sets), np.concatenate(costs)
        self.keep(np.packbits(every, axis=1), cost)
        if self.cut_short or len(every) > most:
            return None
        self.improve(self.prizes, float((cost - every @ self.prizes).min(initial=largest)))
        return every, cost

    def proof(self) -> BoundCertificate | None:
        """A certificate of the bound by the prices, where one can be checked: on planar graphs."""
        problem = self.problem
        if self.cycles is None or problem.side_constraints or not self.plain or not self.linear:
            return None
        if problem.districts < 2 or problem.population_bounds[0] < 1:
            return None
        prices = self.prizes[np.argsort(self.order)]
        labels = None if self.plan is None else self.plan.labels
        bound = ceil(self.low / 2 - ROUNDING)
        return BoundCertificate.of(problem, bound, prices, self.fee - ROUNDING, plan=labels)

    def best_of(self, sets: Array, costs: Array, target: int) -> None:
        """The best plan of at most the target's cost made of these districts, if there is one."""
        if not sets.any(axis=0).all():
            return
        model = Model("plan")
        taken = model.variable("taken", len(sets), binary=True)
        model.subject_to(sp.csr_array(sets.T, dtype=float) @ taken == 1)
        model.subject_to(taken.sum() == self.problem.districts)
        unit = 2.0 ** max(0, int(costs.max()).bit_length() - _BITS)
        model.subject_to(taken @ (costs / unit) <= (1 + ROUNDING) * target / unit)  # `take` compares exactly
        read = reader(self.problem, sets[:, self.place])
        for rule in self.problem.all_rules:
            if rule.scope == "sum":
                model.subject_to(bounded(taken @ rule.function.value(read), rule))
        if self.problem.unequal_seats:  # each district goes to a window that admits it
            window, column = np.nonzero(self.slots(sets))
            given = model.variable("given", len(column), binary=True)
            ones, count = np.ones(len(column)), np.arange(len(column))
            by_column = sp.csr_array((ones, (column, count)), shape=(len(sets), len(column)))
            by_window = sp.csr_array((ones, (window, count)), shape=(len(self.windows), len(column)))
            model.subject_to(by_column @ given == taken)
            model.subject_to(by_window @ given == np.array(list(self.windows.values())))
        model.minimize(taken @ (costs / unit))
        self.pause()
        result = model.solve(self.backend, time_limit=self.trace.deadline.left, gap=0.0)
        if result.status.has_solution:
            self.take([sets[i] for i in np.flatnonzero(result[taken] > 0.5)])
        if result.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            self.pause()
            raise _Stopped(f"{result.backend}: {result.message}")
