"""Exact cover by connected districts: branch and bound over bit masks.

Garfinkel and Nemhauser (1970) write districting as set partitioning over all connected sets of admissible
population. Here these sets are not listed first: the district of the first uncovered node is grown inside
the uncovered nodes, so only sets that can still be part of a plan are met, and a partial district
whose cut edges already cost too much is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit, uint64

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.graphs.bits import (
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
from forcopt.graphs.orders import spectral_order
from forcopt.models.districting.jit_warmup import jit_warmup
from forcopt.models.districting.plan import Plan, feasible_start
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.graphs.weighted import WeightedGraph

__all__ = ["Cover", "set_partitioning"]

CUT, INERTIA, DEVIATION, SPLITS = 0, 1, 2, 3
_KINDS = {"cut": CUT, "inertia": INERTIA, "deviation": DEVIATION, "splits": SPLITS}
_BUDGET = 500_000
"""Partial districts to look at between two looks at the clock."""


@njit(cache=True)
def _cost_to(v, among, cost):  # type: ignore[no-untyped-def]
    total = 0
    while has(among):
        total += cost[v, first(among)]
        among = without_first(among)
    return total


@njit(cache=True)
def _can_split(left, parts, near, weight, low, high):  # type: ignore[no-untyped-def]
    """Whether the components' weights allow exactly `parts` districts in all."""
    fewest, most = 0, 0
    while has(left):
        piece = single(first(left))
        grow = piece
        people = 0
        while has(grow):
            v = first(grow)
            grow = without_first(grow)
            people += weight[v]
            new = minus(meets((near[v, 0], near[v, 1]), left), piece)
            piece, grow = union(piece, new), union(grow, new)
        left = minus(left, piece)
        least = max(1, (people + high - 1) // high) if high > 0 else 1
        largest = people // low if low > 0 else parts
        if least > largest:
            return False
        fewest, most = fewest + least, most + largest
    return fewest <= parts <= most


@njit(cache=True)
def _district_value(kind, district, people, total, parts, inertia):  # type: ignore[no-untyped-def]
    if kind == DEVIATION:
        return abs(float(parts * people - total))
    best = np.inf
    centres = district
    while has(centres):
        j = first(centres)
        centres = without_first(centres)
        moment = 0.0
        rest = district
        while has(rest):
            moment += inertia[first(rest), j]
            rest = without_first(rest)
        best = min(best, moment)
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
def _admissible(chosen, weight, windows, surplus, least):  # type: ignore[no-untyped-def]
    """Whether districts fit windows of populations in some order, and enough of them meet each share.

    Windows rise in both bounds, so the order of populations fits if any order does.
    """
    people = np.zeros(len(chosen), np.int64)
    met = np.zeros(len(least), np.int64)
    sums = np.zeros(len(least), np.int64)
    for d in range(len(chosen)):
        rest = (chosen[d, 0], chosen[d, 1])
        sums[:] = 0
        while has(rest):
            v = first(rest)
            rest = without_first(rest)
            people[d] += weight[v]
            for i in range(len(least)):
                sums[i] += surplus[i, v]
        met += sums >= 0
    people.sort()
    for d in range(len(windows)):
        if not windows[d, 0] <= people[d] <= windows[d, 1]:
            return False
    return bool(np.all(met >= least))


@njit(cache=True)
def _search(  # type: ignore[no-untyped-def]
    near,
    weight,
    cost,
    must_link,
    cannot_link,
    low,
    high,
    parts,
    kind,
    inertia,
    limit,
    units,
    split_limits,
    windows,
    surplus,
    least,
    best,
    sets,
    numbers,
    left,
    values,
    chosen,
    found,
    top,
    budget,
):
    """Look at up to `budget` partial districts.

    A stack holds partial districts as frames: `sets[i]` the members and the nodes ruled out for it,
    `numbers[i]` its population, the cost and the number of edges from it to nodes ruled out, and the number
    of districts before it. `left[d]` holds the nodes not in the first d districts, `values[d]` their
    population (negated: the rest), objective and number of cut pairs. Row 0 of `units` holds the counties of
    the objective, row i + 1 the counties of limit i on splits; `split_limits` counts pairs of county and
    district.
    """
    seen = np.zeros(len(weight), np.bool_)
    adjacent = np.zeros(cost.shape, np.int64)
    for v in range(len(weight)):
        rest = (near[v, 0], near[v, 1])
        while has(rest):
            adjacent[v, first(rest)] = 1
            rest = without_first(rest)
    limited = limit >= 0
    total_weight = weight.sum()
    while top > 0 and budget > 0:
        budget -= 1
        top -= 1
        district, ruled_out = (sets[top, 0], sets[top, 1]), (sets[top, 2], sets[top, 3])
        people, spent, cuts, d = numbers[top, 0], numbers[top, 1], numbers[top, 2], numbers[top, 3]
        room = (left[d, 0], left[d, 1])
        base = values[d, 0]
        count = int(values[d, 1])
        if (base + spent if kind == CUT else base) >= best:
            continue
        broken = False
        for g in range(len(must_link)):
            group = (must_link[g, 0], must_link[g, 1])
            if has(meets(group, district)) and (has(meets(group, ruled_out)) or has(minus(group, room))):
                broken = True
        for g in range(len(cannot_link)):
            pair = (cannot_link[g, 0], cannot_link[g, 1])
            if not has(minus(pair, district)):
                broken = True
        if broken:
            continue
        # The nodes by which it can grow.
        rest = district
        border = (uint64(0), uint64(0))
        while has(rest):
            v = first(rest)
            rest = without_first(rest)
            border = union(border, (near[v, 0], near[v, 1]))
        rest = minus(meets(border, room), union(district, ruled_out))
        complete = True
        while has(rest):
            v = first(rest)
            rest = without_first(rest)
            if people + weight[v] <= high:
                more = spent + _cost_to(v, meets((near[v, 0], near[v, 1]), ruled_out), cost)
                more_cuts = cuts
                if limited:
                    more_cuts += _cost_to(v, meets((near[v, 0], near[v, 1]), ruled_out), adjacent)
                if kind != CUT or base + more < best:
                    grown = union(district, single(v))
                    sets[top, 0], sets[top, 1] = grown
                    sets[top, 2], sets[top, 3] = ruled_out
                    numbers[top, 0], numbers[top, 1] = people + weight[v], more
                    numbers[top, 2], numbers[top, 3] = more_cuts, d
                    top += 1
            ruled_out = union(ruled_out, single(v))
            spent += _cost_to(v, meets((near[v, 0], near[v, 1]), district), cost)
            if limited:
                cuts += _cost_to(v, meets((near[v, 0], near[v, 1]), district), adjacent)
            if (kind == CUT and base + spent >= best) or (limited and count + cuts > limit):
                complete = False
                break
        # The district as it stands, everything else ruled out.
        if not complete or people < low or (limited and count + cuts > limit):
            continue
        split = False
        for g in range(len(must_link)):
            group = (must_link[g, 0], must_link[g, 1])
            if has(meets(group, district)) and has(minus(group, district)):
                split = True
        if split:
            continue
        if kind == CUT:
            value = base + spent
        elif kind == SPLITS:
            value = base + _met(district, units[0], seen)
            if value + _met(minus(room, district), units[0], seen) >= best:
                continue
        else:
            own = _district_value(kind, district, people, total_weight, parts, inertia)
            value = max(base, own) if kind == DEVIATION else base + own
        if value >= best:
            continue
        room = minus(room, district)
        chosen[d, 0], chosen[d, 1] = district
        split = False
        for i in range(len(split_limits)):
            pairs = _met(room, units[i + 1], seen)
            for e in range(d + 1):
                pairs += _met((chosen[e, 0], chosen[e, 1]), units[i + 1], seen)
            split = split or pairs > split_limits[i]
        if split:
            continue
        after = parts - d - 1
        if after == 0:
            if not has(room) and _admissible(chosen, weight, windows, surplus, least):
                best = value
                found[:] = chosen
            continue
        if not has(room) or not _can_split(room, after, near, weight, low, high):
            continue
        left[d + 1, 0], left[d + 1, 1] = room
        values[d + 1, 0], values[d + 1, 1] = value, count + cuts
        v = first(room)
        sets[top, 0], sets[top, 1] = single(v)
        sets[top, 2], sets[top, 3] = uint64(0), uint64(0)
        numbers[top, 0], numbers[top, 1], numbers[top, 2], numbers[top, 3] = weight[v], 0, 0, d + 1
        top += 1
    return best, top, budget


def _words(groups: Any) -> Array:
    return np.array([mask(g) for g in groups], np.uint64).reshape(-1, 2)


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
    limit : int, optional
        The largest number of cut pairs.
    kind : int, optional
        The objective.
    inertia : ndarray, optional
        The matrix of moments, for the objective inertia.
    best : float, optional
        Only covers of a smaller value are sought.
    units : ndarray of int64, shape (1 + q, n), optional
        The county of each vertex, for the objective splits, then for each limit on splits.
    split_limits : sequence of int, optional
        For each of the q limits, the largest number of pairs of a county and a part that meet.
    windows : ndarray of int64, shape (parts, 2), optional
        Bounds on the weights of the parts, in some order; those of all parts by default.
    surplus : ndarray of int64, shape (s, n), optional
        A part meets share i if row i sums to 0 or more over it.
    least : sequence of int, optional
        The least number of parts that meet each share.

    Attributes
    ----------
    best : float
        The value of the best cover so far, or the given one before the first cover.
    looked_at : int
        The number of partial districts so far.
    """

    def __init__(
        self,
        graph: WeightedGraph,
        low: int,
        high: int,
        parts: int,
        must_link: Any = (),
        cannot_link: Any = (),
        limit: int | None = None,
        kind: int = CUT,
        inertia: Array | None = None,
        best: float = np.inf,
        units: Array | None = None,
        split_limits: Sequence[int] = (),
        windows: Array | None = None,
        surplus: Array | None = None,
        least: Sequence[int] = (),
    ) -> None:
        n = graph.size
        wide = np.zeros((0, 2), np.int64) if windows is None else windows[np.lexsort(windows.T[::-1])]
        extra = (
            np.zeros((1, n), np.int64) if units is None else units,
            np.array(split_limits, np.int64),
            np.ascontiguousarray(wide),
            np.zeros((0, n), np.int64) if surplus is None else surplus,
            np.array(least, np.int64),
        )
        moments = np.zeros((0, 0)) if inertia is None else inertia
        self.fixed = (
            masks(graph), graph.weights, graph.cost_matrix, _words(must_link), _words(cannot_link), low, high,
            parts, kind, moments, -1 if limit is None else limit, *extra,
        )  # fmt: skip
        # Frames wait beside a chain of at most n + parts partial districts, each with at most n offspring.
        frames = n * (n + parts) + parts + 1
        left = np.zeros((parts + 1, 2), np.uint64)
        left[0] = mask(range(n))
        self.state = (
            np.zeros((frames, 4), np.uint64),
            np.zeros((frames, 4), np.int64),
            left,
            np.zeros((parts + 1, 2)),
            np.zeros((parts, 2), np.uint64),
            np.zeros((parts, 2), np.uint64),
        )
        self.state[0][0, 0] = 1
        self.state[1][0, 0] = graph.weights[0]
        self.top, self.best, self.looked_at = 1, float(best), 0

    @property
    def done(self) -> bool:
        """Whether the search is complete."""
        return self.top == 0

    def step(self, budget: int = _BUDGET) -> bool:
        """Search up to `budget` partial districts; return whether a better cover was found."""
        before = self.best
        self.best, self.top, unused = _search(*self.fixed, self.best, *self.state, self.top, budget)
        self.looked_at += budget - unused
        return self.best < before

    @property
    def parts(self) -> list[list[int]]:
        """The best cover found."""
        return [members(words) for words in self.state[5]]


@Districting.algorithm(
    "set-partitioning",
    exact=True,
    cites="Garfinkel and Nemhauser (1970); Mehrotra, Johnson and Nemhauser (1998)",
    prepare=jit_warmup("local-search", "set-partitioning"),
)
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
    time_limit : float, optional
        Seconds.
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
    problem.require(
        "set-partitioning", "cut", "inertia", "deviation", "splits", takes=("seats", "Share", "SplitLimit")
    )
    if problem.unequal_seats and (problem.objective == "deviation" or problem._fixed()):
        others = (
            problem.inertia_takers if problem.objective == "inertia" else "'labels-separators' takes both"
        )
        raise DeclarationError(
            "method 'set-partitioning' takes different numbers of seats without Fixed and without the "
            f"objective deviation; {others}"
        )
    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    if len(problem.nodes) > LARGEST:
        raise DeclarationError(
            f"method 'set-partitioning' takes graphs of at most {LARGEST} nodes, not {len(problem.nodes)}; "
            "'column-generation' takes larger ones"
        )
    plan = start = feasible_start(problem, start)
    cover = search_for(problem, plan)
    sought = start is not None
    while not cover.done:
        if cover.step():
            plan = Plan.of(problem, [[problem_order(problem)[v] for v in part] for part in cover.parts])
            trace.add(problem.evaluate(plan).objective, float("-inf"))
        elif not cover.done and not sought:  # not done in a moment: now a good plan to beat pays
            sought = True
            share = None if deadline.left is None else deadline.left / 2
            found = _quick_plan(problem, share, seed)
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


def problem_order(problem: Districting) -> list[int]:
    """The order in which nodes are covered; each graph's is computed once."""
    cached = problem.__dict__.get("_cover_order")
    if cached is None:
        cached = problem.__dict__["_cover_order"] = spectral_order(problem.arrays)
    return list(cached)


def search_for(problem: Districting, plan: Plan | None) -> Cover:
    """Set up the search for a plan better than `plan`."""
    order = problem_order(problem)
    place = {v: i for i, v in enumerate(order)}
    kind = _KINDS[problem.objective]
    best = np.inf if plan is None else _in_units(problem, plan)
    low, high = problem.population_bounds
    limits, shares = problem.split_limits, problem.shares

    def units_of(attribute: str | None) -> Array:
        if attribute is None and kind != SPLITS:
            return np.zeros(len(order), np.int64)
        return problem.units(attribute or problem.county)[order]

    return Cover(
        problem.arrays.reordered(order),
        low,
        high,
        problem.districts,
        [[place[v] for v in group] for group in problem.must_link],
        [[place[v] for v in pair] for pair in problem.cannot_link],
        problem.cut_limit,
        kind,
        problem.inertia[np.ix_(order, order)] if kind == INERTIA else None,
        best,
        np.array([units_of(name) for name in (None, *(item.attribute for item in limits))]),
        [item.limit + int(problem.units(item.attribute).max()) + 1 for item in limits],
        problem.windows if problem.unequal_seats else None,
        np.array([problem.surplus(share)[order] for share in shares], np.int64).reshape(-1, len(order)),
        [share.districts for share in shares],
    )


def _in_units(problem: Districting, plan: Plan) -> float:
    """The plan's objective in the units of the search; a rounding is no improvement."""
    value = problem.evaluate(plan).objective
    return {  # floats, whatever they are worth: another type would be compiled for anew
        "cut": float(round(value * problem.cost_scale)),
        "deviation": float(round(value * problem.districts)),
        "inertia": value * (1 - 1e-12),
        "splits": value + (problem.units(problem.county).max() + 1.0 if problem.objective == "splits" else 0),
    }[problem.objective]


def _quick_plan(
    problem: Districting, time_limit: float | None, seed: int | np.random.Generator | None
) -> Plan | None:
    from forcopt.models.districting.local_search import local_search

    outcome = local_search(problem, restarts=8, seed=seed, time_limit=time_limit)
    found = outcome.decision
    assert found is None or isinstance(found, Plan)
    return found
