"""Exact cover by connected districts: branch and bound over bit masks.

Garfinkel and Nemhauser (1970) write districting as set partitioning over all connected sets of admissible
population. Here these sets are not listed first: the district of the first uncovered node is grown inside
the uncovered nodes, so only sets that can still be part of a plan are met, and a partial district
whose cut edges already cost too much is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.compiled import int64, njit, uint64
from forcopt.errors import DeclarationError
from forcopt.graphs.kernels import (
    LARGEST,
    first,
    has,
    mask,
    masks,
    meets,
    members,
    minus,
    single,
    union,
    without_first,
)
from forcopt.graphs.weighted import WeightedGraph
from forcopt.models.districting.districts import (
    CUT,
    DEVIATION,
    INERTIA,
    OBJECTIVES,
    SPLITS,
    no_rows,
    violation,
)
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan, feasible_start, minimizing
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.short_borders import fewest_cuts, problem_order
from forcopt.models.districting.tolerances import LESS
from forcopt.problem import Outcome
from forcopt.status import Status

_BUDGET = 500_000
"""Partial districts to look at between two looks at the clock."""

_BITS = 18
"""The memo has two to this power of entries, of 32 bytes and more."""

_SHIFT, _MIX = np.uint64(64 - _BITS), np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
"""Multiplicative hashing by odd numbers without a pattern."""


class _Task(NamedTuple):
    """What a cover must satisfy. Sets of vertices are pairs of 64-bit words; vertices count from 0."""

    near: Array
    """The neighbours of each vertex."""
    weight: Array
    cost: Array
    """The cost of the edge of each pair of vertices, 0 without one."""
    adjacent: Array
    """1 for each pair of vertices with an edge."""
    must_link: Array
    """Groups that share a district."""
    cannot_link: Array
    """Pairs that do not."""
    low: int
    high: int
    parts: int
    kind: int
    inertia: Array
    """``[j, v]``: of vertex v about vertex j."""
    cut_limit: int
    """The greatest number of cut pairs; -1 without a limit."""
    units: Array
    """The county of each vertex: row 0 for the objective, row i + 1 for limit i on splits."""
    split_limits: Array
    """For each limit, the greatest number of pairs of a county and a district that meet."""
    windows: Array
    counted: Any
    """Rows that so many districts must satisfy: a `Counted`."""
    checked: bool
    """Whether each cover found needs a further check."""


class _Stack(NamedTuple):
    """Partial districts that are still to be grown; the last one is next."""

    district: Array
    ruled_out: Array
    """The vertices that it must not get."""
    people: Array
    spent: Array
    """The cost of its edges to vertices ruled out."""
    cuts: Array
    """Their number."""
    depth: Array
    """The number of complete districts before it."""


class _Memo(NamedTuple):
    """What earlier chains left, how many of their districts satisfy each row, and their objective."""

    left: Array
    met: Array
    """The number of districts comes first."""
    value: Array


class _Chain(NamedTuple):
    """The complete districts before the partial ones, by their number d."""

    left: Array
    """The vertices that are in none of the first d districts."""
    value: Array
    """The objective of the first d districts."""
    cuts: Array
    """The number of pairs that they cut."""
    met: Array
    """How many of them satisfy each row."""
    chosen: Array
    found: Array
    """The best cover so far."""
    seen: Array
    """Scratch, for counties."""


@njit(inline="always")
def _pair(words, i):  # type: ignore[no-untyped-def]
    """Row i as a set."""
    return (words[i, 0], words[i, 1])


@njit(cache=True)
def _sum_over(v, among, matrix):  # type: ignore[no-untyped-def]
    """The sum of the entries of a vertex and each one of a set."""
    total = 0
    while has(among):
        total += matrix[v, first(among)]
        among = without_first(among)
    return total


@njit(cache=True)
def _can_split(task, left, parts):  # type: ignore[no-untyped-def]
    """Whether the components' weights allow exactly `parts` districts in all."""
    fewest, most = 0, 0
    while has(left):
        # The components taken from `left` so far allow from `fewest` to `most` districts.
        piece = single(first(left))
        grow = piece
        people = 0
        while has(grow):
            v = first(grow)
            grow = without_first(grow)
            people += task.weight[v]
            new = minus(meets(_pair(task.near, v), left), piece)
            piece, grow = union(piece, new), union(grow, new)
        left = minus(left, piece)
        least = max(1, (people + task.high - 1) // task.high) if task.high > 0 else 1
        largest = people // task.low if task.low > 0 else parts
        if least > largest:
            return False
        fewest, most = fewest + least, most + largest
    return fewest <= parts <= most


@njit(cache=True)
def _inertia(task, district):  # type: ignore[no-untyped-def]
    """The moment of a district about its best centre."""
    best = np.inf
    centres = district
    while has(centres):
        j = first(centres)
        centres = without_first(centres)
        best = min(best, _sum_over(j, district, task.inertia))
    return best


@njit(cache=True)
def _met(nodes, unit, seen):  # type: ignore[no-untyped-def]
    """The number of units (counties) that a set of nodes meets."""
    seen[:] = False
    count = 0
    while has(nodes):
        u = unit[first(nodes)]
        nodes = without_first(nodes)
        if not seen[u]:
            seen[u] = True
            count += 1
    return count


@njit(cache=True)
def _admissible(task, chosen):  # type: ignore[no-untyped-def]
    """Whether districts fit windows of populations in some order.

    Windows rise in both bounds, so the order of populations fits if any order does.
    """
    people = np.zeros(len(chosen), np.int64)
    for d in range(len(chosen)):
        rest = _pair(chosen, d)
        while has(rest):
            people[d] += task.weight[first(rest)]
            rest = without_first(rest)
    people.sort()
    fits = True
    for d in range(len(task.windows)):
        fits &= task.windows[d, 0] <= people[d] <= task.windows[d, 1]
    return fits


@njit(cache=True)
def _breaks_a_row(task, chain, d, district):  # type: ignore[no-untyped-def]
    """Whether too few or too many districts would satisfy a row; else count those that satisfy it."""
    for i in range(len(task.counted.least)):
        total = _sum_over(i, district, task.counted.weights)
        met = chain.met[d, i] + (task.counted.low[i] <= total <= task.counted.high[i])
        if met > task.counted.most[i] or met + task.parts - d - 1 < task.counted.least[i]:
            return True
        chain.met[d + 1, i] = met
    return False


@njit(cache=True)
def _breaks_links(task, district, ruled_out, room):  # type: ignore[no-untyped-def]
    """Whether no district that holds these vertices, and not those ruled out, satisfies all links."""
    for g in range(len(task.must_link)):
        group = _pair(task.must_link, g)
        if has(meets(group, district)) and (has(meets(group, ruled_out)) or has(minus(group, room))):
            return True
    together = False
    for g in range(len(task.cannot_link)):
        together |= not has(minus(_pair(task.cannot_link, g), district))
    return together


@njit(cache=True)
def _value(task, chain, d, best, district, people, spent):  # type: ignore[no-untyped-def]
    """The objective of the first d districts and one more; infinite if no cover with them beats the best."""
    base = chain.value[d]
    if task.kind == CUT:
        return base + spent
    if task.kind == INERTIA:
        return base + _inertia(task, district)
    if task.kind == DEVIATION:
        return max(base, abs(float(task.parts * people - task.weight.sum())))
    value = base + _met(district, task.units[0], chain.seen)
    rest = minus(_pair(chain.left, d), district)
    return np.inf if value + _met(rest, task.units[0], chain.seen) >= best else value


@njit(cache=True)
def _splits_too_much(task, chain, d, room):  # type: ignore[no-untyped-def]
    """Whether the first d + 1 districts and the undivided rest exceed a limit on splits."""
    for i in range(len(task.split_limits)):
        pairs = _met(room, task.units[i + 1], chain.seen)
        for e in range(d + 1):
            pairs += _met(_pair(chain.chosen, e), task.units[i + 1], chain.seen)
        if pairs > task.split_limits[i]:
            return True
    return False


@njit(cache=True)
def _complete(task, chain, d, best, district, people, spent):  # type: ignore[no-untyped-def]
    """Put a complete district after the first d ones; give the objective, infinite if none beats the best."""
    if _breaks_links(task, district, minus(district, district), district) or _breaks_a_row(
        task, chain, d, district
    ):
        return np.inf
    value = _value(task, chain, d, best, district, people, spent)
    chain.chosen[d, 0], chain.chosen[d, 1] = district
    left = minus(_pair(chain.left, d), district)
    chain.left[d + 1, 0], chain.left[d + 1, 1] = left
    after = task.parts - d - 1
    if value >= best or has(left) != (after > 0) or _splits_too_much(task, chain, d, left):
        return np.inf
    if after == 0:
        return value if _admissible(task, chain.chosen) else np.inf
    return value if _can_split(task, left, after) else np.inf


@njit(cache=True)
def _known(memo, chain, d, value):  # type: ignore[no-untyped-def]
    """Whether the memo has what d districts leave, at no higher value; else it gets this."""
    if len(memo.value) == 0:
        return False
    left, met = _pair(chain.left, d), chain.met[d]
    at = int64((left[0] * _MIX[0] ^ left[1] * _MIX[1]) >> _SHIFT)
    same = memo.left[at, 0] == left[0] and memo.left[at, 1] == left[1] and memo.met[at, 0] == d
    if same and (memo.met[at, 1:] == met).all() and memo.value[at] <= value:
        return True
    memo.left[at, 0], memo.left[at, 1], memo.met[at, 0] = left[0], left[1], d
    memo.met[at, 1:], memo.value[at] = met, value
    return False


@njit(cache=True)
def _search(task, stack, chain, memo, best, top, budget):  # type: ignore[no-untyped-def]
    """Look at up to `budget` partial districts; give the best value, the new top and the budget left."""
    # Plain arrays: a context costs time where the loop's own steps call a function with it.
    near, weight, cost, adjacent = task.near, task.weight, task.cost, task.adjacent
    by_cost, limit, limited = task.kind == CUT, task.cut_limit, task.cut_limit >= 0
    linked = len(task.must_link) + len(task.cannot_link) > 0
    while top > 0 and budget > 0:
        # A cover that beats `best` extends a partial district below `top`, with the chain before it.
        budget -= 1
        top -= 1
        district, ruled_out = _pair(stack.district, top), _pair(stack.ruled_out, top)
        people, spent, cuts, d = stack.people[top], stack.spent[top], stack.cuts[top], stack.depth[top]
        room, base, before = _pair(chain.left, d), chain.value[d], chain.cuts[d]
        if (base + spent if by_cost else base) >= best:
            continue
        if linked and _breaks_links(task, district, ruled_out, room):
            continue
        rest, border = district, (uint64(0), uint64(0))
        while has(rest):
            border = union(border, _pair(near, first(rest)))
            rest = without_first(rest)
        rest, whole = minus(meets(border, room), union(district, ruled_out)), True
        while has(rest) and whole:
            # Border vertices taken from `rest` are ruled out, so each set is grown once.
            v = first(rest)
            rest = without_first(rest)
            if people + weight[v] <= task.high:
                more = spent + _sum_over(v, meets(_pair(near, v), ruled_out), cost)
                if not by_cost or base + more < best:
                    stack.district[top, 0], stack.district[top, 1] = union(district, single(v))
                    stack.ruled_out[top, 0], stack.ruled_out[top, 1] = ruled_out
                    stack.people[top], stack.spent[top] = people + weight[v], more
                    stack.cuts[top], stack.depth[top] = cuts, d
                    if limited:
                        stack.cuts[top] += _sum_over(v, meets(_pair(near, v), ruled_out), adjacent)
                    top += 1
            ruled_out = union(ruled_out, single(v))
            spent += _sum_over(v, meets(_pair(near, v), district), cost)
            if limited:
                cuts += _sum_over(v, meets(_pair(near, v), district), adjacent)
            whole = not (by_cost and base + spent >= best) and not (limited and before + cuts > limit)
        # The district as it stands, everything else ruled out.
        if not whole or people < task.low or (limited and before + cuts > limit):
            continue
        value = _complete(task, chain, d, best, district, people, spent)
        if value < best and d + 1 == task.parts:
            best = value
            chain.found[:] = chain.chosen
            if task.checked:
                break
        elif value < best and not _known(memo, chain, d + 1, value):
            v = first(_pair(chain.left, d + 1))
            chain.value[d + 1], chain.cuts[d + 1] = value, before + cuts
            stack.district[top, 0], stack.district[top, 1] = single(v)
            stack.ruled_out[top, :] = 0
            stack.people[top], stack.spent[top], stack.cuts[top], stack.depth[top] = weight[v], 0, 0, d + 1
            top += 1
    return best, top, budget


class Cover:
    """A search for the best exact cover, advanced in steps.

    Parameters
    ----------
    graph : WeightedGraph
        Its vertices are covered in their order; at most 128.
    low, high : int
        Inclusive bounds on the weight of a part.
    parts : int
        The number of parts.
    must_link, cannot_link : sequence, optional
        Groups of vertices that share a part, and pairs that do not.
    best : float, optional
        Only covers of a smaller value are sought.
    accept : callable, optional
        A further check of each cover found, given as lists of vertices.
    **more : Any
        What else a cover must satisfy, and the objective: see `_Task`. Windows rise.

    Attributes
    ----------
    best : float
        The value of the best cover so far, or the given one before the first cover.
    looked_at : int
        The number of partial districts so far.
    parts : list of list of int
        The best cover found.
    """

    def __init__(
        self,
        graph: WeightedGraph,
        low: int,
        high: int,
        parts: int,
        must_link: Any = (),
        cannot_link: Any = (),
        *,
        best: float = np.inf,
        accept: Callable[[list[list[int]]], bool] | None = None,
        **more: Any,
    ) -> None:
        n = graph.size
        facts: dict[str, Any] = {"kind": CUT, "inertia": np.zeros((0, 0)), "cut_limit": -1}
        facts |= {"units": np.zeros((1, n), np.int64), "split_limits": np.zeros(0, np.int64)}
        facts |= {"windows": np.zeros((0, 2), np.int64), "counted": no_rows(n)} | more
        arrays = masks(graph.neighbours), graph.weights, graph.cost_matrix, graph.adjacency.astype(np.int64)
        links, checked = (masks(must_link), masks(cannot_link)), accept is not None
        self.task = _Task(*arrays, *links, low, high, parts, checked=checked, **facts)
        # Frames wait beside a chain of at most n + parts partial districts, each with at most n offspring.
        frames = n * (n + parts) + parts + 1
        self.stack = _Stack(*np.zeros((2, frames, 2), np.uint64), *np.zeros((4, frames), np.int64))
        self.chain = _Chain(
            left=np.zeros((parts + 1, 2), np.uint64),
            value=np.zeros(parts + 1),
            cuts=np.zeros(parts + 1, np.int64),
            met=np.zeros((parts + 1, len(self.task.counted.least)), np.int64),
            chosen=np.zeros((parts, 2), np.uint64),
            found=np.zeros((parts, 2), np.uint64),
            seen=np.zeros(n, np.bool_),
        )
        # What is left decides alone what may follow, unless other rules join districts.
        alone = accept is None and self.task.cut_limit < 0 and parts > 3
        alone = alone and not len(self.task.windows) and not len(self.task.split_limits)
        entries, rows = 1 << _BITS if alone else 0, len(self.task.counted.least)
        self.memo = _Memo(
            np.zeros((entries, 2), np.uint64), np.zeros((entries, rows + 1), np.int64), np.zeros(entries)
        )
        self.chain.left[0] = mask(range(n))
        self.stack.district[0, 0], self.stack.people[0] = 1, graph.weights[0]
        self.top, self.best, self.looked_at = 1, float(best), 0
        self.accept, self.parts = accept, [[0]]

    @property
    def done(self) -> bool:
        """Whether the search is complete."""
        return self.top == 0

    def step(self, budget: int = _BUDGET) -> bool:
        """Search up to `budget` partial districts; return whether a better cover was found."""
        before = self.best
        while budget > 0 and not self.done:
            state = (self.task, self.stack, self.chain, self.memo)
            value, self.top, left = _search(*state, self.best, self.top, budget)
            self.looked_at += budget - left
            budget = left
            if value < self.best:
                parts = [members(words) for words in self.chain.found]
                if self.accept is None or self.accept(parts):
                    self.best, self.parts = value, parts
        return self.best < before


@Districting.algorithm(
    "set-partitioning",
    exact=True,
    cites="Garfinkel and Nemhauser (1970); Mehrotra, Johnson and Nemhauser (1998)",
    rules=("each", "one", "sum", "plan"),
)
@minimizing
def set_partitioning(
    problem: Districting,
    *,
    start: Plan | None = None,
    budget: int | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Exact cover by connected districts, grown from the first uncovered node and bounded by cost.

    Parameters
    ----------
    problem : Districting
        With any objective and side constraints, and at most 128 nodes.
    start : Plan, optional
        A feasible plan; only cheaper ones are sought. A local search seeks one if the method takes long.
    budget : int, optional
        The search ends after this number of partial districts, on every machine with the same plan; it is
        rounded up to a multiple of 500,000.
    seed : int or numpy.random.Generator, optional
        Of that local search.
    on_improvement : callable, optional
        Called with each better plan; it stops the method by returning True.

    Returns
    -------
    Outcome
        The method gives no bound before it ends.

    Raises
    ------
    DeclarationError
        On larger graphs, or if the start is not feasible.
    """
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    problem.require("set-partitioning", "cut", "inertia", "deviation", "splits", "goal", takes=("seats",))
    if problem.unequal_seats and (problem.objective == "deviation" or problem._fixed()):
        inertia, both = problem.objective == "inertia", "'labels-separators' takes both"
        others = problem.inertia_takers if inertia else both
        raise DeclarationError(
            "method 'set-partitioning' takes different numbers of seats without Fixed and without the "
            f"objective deviation; {others}"
        )
    if len(problem.nodes) > LARGEST:
        raise DeclarationError(
            f"method 'set-partitioning' takes graphs of at most {LARGEST} nodes, not {len(problem.nodes)}; "
            "'column-generation' takes larger ones"
        )
    if problem.goal is not None:
        from forcopt.models.districting.additive import additive

        return additive(problem, start, trace, seed, False)
    plan = start = feasible_start(problem, start)
    if budget is None and (outcome := fewest_cuts(problem, trace, plan)) is not None:
        return outcome
    cover = search_for(problem, plan)
    sought = start is not None
    while not cover.done:
        if cover.step():
            plan = Plan.of(problem, [[problem_order(problem)[v] for v in part] for part in cover.parts])
            trace.add(problem.evaluate(plan).objective, float("-inf"))
        elif not cover.done and not sought:  # not done in a moment: now a good plan to beat pays
            sought = True
            share = None if deadline.left is None else deadline.left / 2
            found = local_search(problem, restarts=8, seed=seed, time_limit=share).decision
            if found is not None and _in_units(problem, found) < cover.best:
                plan, cover.best = found, _in_units(problem, found)
                trace.add(problem.evaluate(plan).objective, float("-inf"))
        if trace.over or (budget is not None and cover.looked_at >= budget):
            break
    if not cover.done:
        status = Status.LIMIT if plan is None else Status.FEASIBLE
        message = trace.end if trace.over else f"stopped by the budget of {budget} partial districts"
        return Outcome(plan, float("-inf"), status, cover.looked_at, message, trace.steps)
    if plan is None:
        message = "no exact cover by connected districts exists"
        return Outcome(None, float("inf"), Status.INFEASIBLE, cover.looked_at, message, trace.steps)
    return Outcome(plan, iterations=cover.looked_at, trace=trace.steps)


def search_for(problem: Districting, plan: Plan | None) -> Cover:
    """Set up the search for a plan better than `plan`."""
    order = problem_order(problem)
    place = {v: i for i, v in enumerate(order)}
    kind = OBJECTIVES.index(str(problem.objective))
    limits = problem.limits("units")

    def accept(parts: list[list[int]]) -> bool:
        labels = Plan.of(problem, [[order[v] for v in part] for part in parts]).labels
        return not any(violation(problem, rule, labels) for rule in problem.other_rules)

    def units_of(attribute: str | None) -> Array:
        if attribute is None and kind != SPLITS:
            return np.zeros(len(order), np.int64)
        return problem.units(attribute or problem.county)[order]

    windows = problem.windows if problem.unequal_seats else np.zeros((0, 2), np.int64)
    return Cover(
        problem.arrays.reordered(order),
        *problem.population_bounds,
        problem.districts,
        [[place[v] for v in group] for group in problem.must_link],
        [[place[v] for v in pair] for pair in problem.cannot_link],
        best=np.inf if plan is None else _in_units(problem, plan),
        accept=accept if problem.other_rules else None,
        cut_limit=-1 if problem.cut_limit is None else problem.cut_limit,
        kind=kind,
        inertia=np.ascontiguousarray(problem.inertia[np.ix_(order, order)].T)
        if kind == INERTIA
        else np.zeros((0, 0)),
        units=np.array([units_of(name) for name in (None, *(name for name, _ in limits))]),
        split_limits=np.array([limit for _, limit in limits], np.int64),
        windows=np.ascontiguousarray(windows[np.lexsort(windows.T[::-1])]),
        counted=problem.counted.reordered(order),
    )


def _in_units(problem: Districting, plan: Plan) -> float:
    """The plan's objective in the units of the search; a rounding is no improvement."""
    value = problem.evaluate(plan).objective
    return {  # floats, whatever they are worth: another type would be compiled for anew
        "cut": float(round(value * problem.cost_scale)),
        "deviation": float(round(value * problem.districts)),
        "inertia": value * (1 - LESS),
        "splits": value + (problem.units(problem.county).max() + 1.0 if problem.objective == "splits" else 0),
    }[str(problem.objective)]
