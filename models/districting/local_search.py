"""Simulated annealing over single moves of border nodes, then exact recombination of adjacent districts.

The annealer moves a node to an adjacent district if its own district stays connected and not empty.
Populations outside the bounds and broken side constraints are penalized, so infeasible plans occur on the
way. Then pairs of adjacent districts are cut anew until no pair improves: by exact covers where a pair has
at most 128 nodes, and by the exact search for dual cycles where it is planar.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.compiled import njit
from forcopt.errors import DeclarationError
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.graphs.weighted import WeightedGraph
from forcopt.graphs.window_cycles import WindowCycles
from forcopt.models.districting.districts import (
    CUT,
    DEVIATION,
    INERTIA,
    INVERSE,
    LEAST_CHANGE,
    OBJECTIVES,
    POLSBY_POPPER,
    SCHWARTZBERG,
    SCORES,
    SPLITS,
)
from forcopt.models.districting.plan import Plan, feasible_start, minimizing
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.tolerances import NOT_ZERO
from forcopt.problem import Outcome
from forcopt.problem.parts import Measure
from forcopt.status import Status

_MOMENT = 500_000
"""Moves between two looks at the clock."""

_BUDGET = 200_000
"""Partial covers of a pair of districts."""

_MOST_PATHS = 3_000_000
"""Dual paths of a pair of districts."""

_HOT, _COLD = 3.0, 0.1
"""The first and the last temperature, in typical changes of the objective."""

_PENALTY = 8.0
"""Of a broken constraint, in typical changes of the objective."""

_OUTSIDE = 0.25
"""The part of the penalty that a district outside its bounds pays, however near to them it is."""

_TYPICAL = {POLSBY_POPPER: 0.05, INVERSE: 0.3, SCHWARTZBERG: 0.1}
"""Typical changes of sums of scores."""

_SLACKS = (0.7, 1.0)
"""Cycles are searched up to these shares of the cost to beat; the first search is quick."""


class _Task(NamedTuple):
    """By what plans are judged."""

    first: Array
    """Where the neighbours of each vertex begin in `ends`."""
    ends: Array
    costs: Array
    weight: Array
    windows: Array
    means: Array
    kind: int
    inertia: Array
    """Of vertices about each other; for a score of compactness area and perimeter of each vertex; for the
    least change its people in each old district."""
    length: Array
    """Of the border to each of `ends`, for a score of compactness."""
    bond: Array
    """1 for pairs of vertices that share a district, -1 for pairs that do not; empty without such pairs."""
    cut_limit: int
    """The greatest number of cut pairs; -1 without a limit."""
    units: Array
    """The county of each vertex: row 0 for the objective, row i + 1 for limit i on splits."""
    split_limits: Array
    """For each limit, the greatest number of pairs of a county and a district that meet."""
    counted: Any
    """Rows that so many districts must satisfy: a `Counted`."""
    row_unit: Array
    typical: float
    """A typical change of the objective by a move."""
    penalty: float
    """Of each broken constraint, in the objective's unit."""
    outside: float
    """Of each district outside its bounds."""
    per_person: float
    """Of each person outside the bounds."""


class _Sums(NamedTuple):
    """Sums over the districts of a plan, kept up to date with each move."""

    people: Array
    size: Array
    moments: Array
    """``[d, j]``: the moment of district d about vertex j; or its area and its perimeter; or its people in
    old district j; else no columns."""
    inside: Array
    """``[i, u, d]``: the number of vertices of district d in county u of row i."""
    met: Array
    """For each row, the number of pairs of a county and a district that meet."""
    rows: Array
    """For each row and district."""


class _Totals(NamedTuple):
    """Sums over a whole plan."""

    cut: int
    pairs: int
    broken: int
    """Broken links."""
    over: int
    """By how much limits on splits are exceeded."""
    lacking: float
    """By how much rows are missed."""
    outside: int
    """The number of districts outside their bounds."""


@njit(cache=True)
def _charge(people, low, high, unit, fixed):  # type: ignore[no-untyped-def]
    """The penalty of a district outside the bounds: a fixed one, and one in proportion to the excess."""
    excess = max(0, low - people, people - high)
    return unit * excess + fixed if excess > 0 else 0.0


@njit(cache=True)
def _stays_connected(v, label, first, ends, seen, queue):  # type: ignore[no-untyped-def]
    """Whether v's district is connected, and not empty, without v."""
    d = label[v]
    seen[:] = False
    seen[v] = True
    wanted, head, tail = 0, 0, 0
    for e in range(first[v], first[v + 1]):
        wanted += label[ends[e]] == d
    if wanted == 0:
        return False
    for e in range(first[v], first[v + 1]):
        if label[ends[e]] == d:
            queue[0] = ends[e]
            seen[ends[e]] = True
            tail = 1
            break
    met = 1
    while head < tail and met < wanted:
        # `met` neighbours of v in its district are reached from the first one without v.
        u = queue[head]
        head += 1
        for e in range(first[u], first[u + 1]):
            x = ends[e]
            if not seen[x] and label[x] == d:
                seen[x] = True
                queue[tail] = x
                tail += 1
                for f in range(first[v], first[v + 1]):
                    met += ends[f] == x
    return met == wanted


@njit(cache=True)
def _more_broken(bond, label, v, a, b):  # type: ignore[no-untyped-def]
    """By how many the number of broken links changes if v moves from district a to b."""
    more = 0
    for u in range(bond.shape[0]):
        if bond[u, v] != 0 and u != v:
            more += bond[u, v] * ((label[u] == a) - (label[u] == b))
    return more


@njit(cache=True)
def _twice(length, label, ends, begin, end, a, b):  # type: ignore[no-untyped-def]
    """Twice the length of the borders, among those of a vertex, to each of two districts."""
    inner, outer = 0.0, 0.0
    for e in range(begin, end):
        inner += 2 * length[e] * (label[ends[e]] == a)
        outer += 2 * length[e] * (label[ends[e]] == b)
    return inner, outer


@njit(cache=True)
def _lacking(sums, counted, unit):  # type: ignore[no-untyped-def]
    """By how much rows are missed, in units; the districts nearest to a row must satisfy it, or leave it."""
    out = 0.0
    for i in range(len(counted.least)):
        over = np.maximum(counted.low[i] - sums[i], sums[i] - counted.high[i])
        met = np.sum(over <= 0)
        need, spare = counted.least[i] - met, met - counted.most[i]
        if need > 0:
            out += need + np.sort(over[over > 0])[:need].sum() / unit[i]
        elif spare > 0:
            out += spare + np.sort(1 - over[over <= 0])[:spare].sum() / unit[i]
    return out


@njit(cache=True)
def _value(kind, cut, people, means, moments, label, splits):  # type: ignore[no-untyped-def]
    """The objective of a plan."""
    k = len(people)
    if kind == CUT:
        return float(cut)
    if kind == SPLITS:
        return float(splits)
    if kind == DEVIATION:
        worst = 0.0
        for d in range(k):
            worst = max(worst, abs(people[d] - means[d]))
        return k * worst
    if kind == LEAST_CHANGE:
        kept = 0.0
        for d in range(k):
            kept += moments[d, d]
        return -kept
    if kind >= POLSBY_POPPER:
        total = 0.0
        for d in range(k):
            x = max(moments[d, 1], NOT_ZERO) ** 2 / (4 * np.pi * moments[d, 0])
            total += x if kind == INVERSE else np.sqrt(x) if kind == SCHWARTZBERG else -1 / x
        return total
    best = np.full(k, np.inf)
    for j in range(len(label)):
        best[label[j]] = min(best[label[j]], moments[label[j], j])
    return best.sum()


@njit(cache=True)
def _counted(task, label):  # type: ignore[no-untyped-def]
    """The sums and the totals of a plan."""
    n, k = len(label), label.max() + 1
    sums = _Sums(
        np.zeros(k, np.int64),
        np.zeros(k, np.int64),
        np.zeros((k, task.inertia.shape[1])),
        np.zeros((len(task.units), task.units.max() + 1, k), np.int64),
        np.zeros(len(task.units), np.int64),
        np.zeros((len(task.counted.least), k), np.int64),
    )
    cut, pairs, broken, over, outside = 0, 0, 0, 0, 0
    for v in range(n):
        # The sums are those of the vertices before v.
        d = label[v]
        sums.people[d] += task.weight[v]
        sums.size[d] += 1
        if task.inertia.shape[1] > 0:
            sums.moments[d] += task.inertia[v]
        for e in range(task.first[v], task.first[v + 1]):
            if v < task.ends[e] and d != label[task.ends[e]]:
                cut += task.costs[e]
                pairs += 1
            elif v < task.ends[e] and len(task.length) > 0:
                sums.moments[d, 1] -= 2 * task.length[e]
        for u in range(task.bond.shape[0]):
            if u < v and task.bond[u, v] != 0:
                broken += (task.bond[u, v] > 0) != (label[u] == d)
        for i in range(len(task.units)):
            sums.met[i] += sums.inside[i, task.units[i, v], d] == 0
            sums.inside[i, task.units[i, v], d] += 1
        for i in range(len(task.counted.least)):
            sums.rows[i, d] += task.counted.weights[i, v]
    for i in range(len(task.split_limits)):
        over += max(0, sums.met[i + 1] - task.split_limits[i])
    for d in range(k):
        outside += sums.people[d] < task.windows[d, 0] or sums.people[d] > task.windows[d, 1]
    lacking = _lacking(sums.rows, task.counted, task.row_unit)
    return sums, _Totals(cut, pairs, broken, over, lacking, outside)


@njit(cache=True)
def _anneal(task, label, hot, cold, steps, seed):  # type: ignore[no-untyped-def]
    """Run one schedule from `label` (changed).

    Give the best feasible labels and their value (infinite: none).
    """
    np.random.seed(seed)  # noqa: NPY002 - in compiled code this is numba's own generator
    # Plain arrays: a context costs time where the loop's own steps call a function with it.
    first, ends, costs, weight = task.first, task.ends, task.costs, task.weight
    low, high, unit, fixed = task.windows[:, 0], task.windows[:, 1], task.per_person, task.outside
    units, rows, limit, penalty = task.units, task.counted.weights, task.cut_limit, task.penalty
    sums, totals = _counted(task, label)
    people, size, moments, inside, met, held = sums
    cut, pairs, broken, over, lacking, outside = totals
    n, by_moment, ruled = len(label), task.inertia.shape[1] > 0, len(rows) > 0
    length, scored, inner, outer = task.length, len(task.length) > 0, 0.0, 0.0
    seen, queue, more_met = np.zeros(n, np.bool_), np.zeros(n, np.int64), np.zeros(len(units), np.int64)
    value = _value(task.kind, cut, people, task.means, moments, label, met[0])
    best, found = np.inf, label.copy()
    cooling = (cold / hot) ** (1.0 / max(1, steps))
    heat = hot
    for _ in range(steps):
        # Sums, totals and `value` are those of `label`; `found` is the best feasible plan so far.
        heat *= cooling
        feasible = outside == 0 and broken == 0 and over == 0 and lacking == 0.0
        if feasible and (limit < 0 or pairs <= limit) and value < best:
            best = value
            found[:] = label
        v = np.random.randint(n)  # noqa: NPY002
        if first[v] == first[v + 1]:
            continue
        a, b = label[v], label[ends[np.random.randint(first[v], first[v + 1])]]  # noqa: NPY002
        if a == b or size[a] == 1:
            continue
        w, more, more_pairs, more_over, more_lacking = weight[v], 0, 0, 0, 0.0
        for e in range(first[v], first[v + 1]):
            d = label[ends[e]]
            more += costs[e] * (d == a) - costs[e] * (d == b)
            more_pairs += (d == a) - (d == b)
        if scored:
            inner, outer = _twice(length, label, ends, first[v], first[v + 1], a, b)
        more_broken = _more_broken(task.bond, label, v, a, b)
        change = (
            _charge(people[a] - w, low[a], high[a], unit, fixed)
            + _charge(people[b] + w, low[b], high[b], unit, fixed)
            - _charge(people[a], low[a], high[a], unit, fixed)
            - _charge(people[b], low[b], high[b], unit, fixed)
        )  # fmt: skip
        change += penalty * more_broken
        if limit >= 0:
            change += penalty * (max(0, pairs + more_pairs - limit) - max(0, pairs - limit))
        for i in range(len(units)):
            more_met[i] = (inside[i, units[i, v], b] == 0) - (inside[i, units[i, v], a] == 1)
            if i > 0:
                now = met[i] - task.split_limits[i - 1]
                more_over += max(0, now + more_met[i]) - max(0, now)
        if ruled:
            held[:, a] -= rows[:, v]
            held[:, b] += rows[:, v]
            more_lacking = _lacking(held, task.counted, task.row_unit) - lacking
        change += penalty * (more_over + more_lacking)
        people[a] -= w
        people[b] += w
        label[v] = b
        if by_moment:
            moments[a] -= task.inertia[v]
            moments[b] += task.inertia[v]
            moments[a, 1] += inner  # 0 but for a score, whose second column is the perimeter
            moments[b, 1] -= outer
        after = _value(task.kind, cut + more, people, task.means, moments, label, met[0] + more_met[0])
        change += after - value
        label[v] = a
        worse = change > 0 and np.random.random() >= np.exp(-change / heat)  # noqa: NPY002
        if worse or not _stays_connected(v, label, first, ends, seen, queue):
            people[a] += w
            people[b] -= w
            if by_moment:
                moments[a] += task.inertia[v]
                moments[b] -= task.inertia[v]
                moments[a, 1] -= inner
                moments[b, 1] += outer
            if ruled:
                held[:, a] += rows[:, v]
                held[:, b] -= rows[:, v]
            continue
        label[v] = b
        size[a] -= 1
        size[b] += 1
        cut, pairs, broken, over = cut + more, pairs + more_pairs, broken + more_broken, over + more_over
        for i in range(len(units)):
            met[i] += more_met[i]
            inside[i, units[i, v], a] -= 1
            inside[i, units[i, v], b] += 1
        if ruled:
            lacking = _lacking(held, task.counted, task.row_unit)
        for d, moved in ((a, w), (b, -w)):  # populations are those after the move
            outside += people[d] < low[d] or people[d] > high[d]
            outside -= people[d] + moved < low[d] or people[d] + moved > high[d]
        value = after
    return found, best


@Districting.algorithm(
    "local-search",
    cites="Kirkpatrick, Gelatt and Vecchi (1983)",
    rules=("each", "one", "sum", "plan"),
)
@minimizing
def local_search(
    problem: Districting,
    *,
    start: Plan | None = None,
    restarts: int = 8,
    steps: int | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Simulated annealing, then exact recombination of adjacent pairs of districts.

    Parameters
    ----------
    problem : Districting
        With any objective and side constraints.
    start : Plan, optional
        A feasible plan. Each schedule then begins from the best plan.
    restarts : int, optional
        The number of schedules, each from a new random plan without a start.
    steps : int, optional
        Moves tried in each schedule; 10,000 for each node by default.
    seed : int or numpy.random.Generator, optional
        0 by default.

    Returns
    -------
    Outcome
        The best plan, without a bound.
    """
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    rng = np.random.default_rng(0 if seed is None else seed)
    steps = 10_000 * len(problem.nodes) if steps is None else steps
    best = feasible_start(problem, start)
    value, run = np.inf if best is None else problem.evaluate(best).objective, 0
    for run in range(1, restarts + 1):  # noqa: B007
        plan = _one_run(problem, rng, steps, deadline, None if start is None else best)
        if plan is not None:
            evaluation = problem.evaluate(plan)
            now = evaluation.objective
            if evaluation.feasible and now < value:  # seats may not fit the nodes that are fixed
                best, value = plan, now
                trace.add(now, float("-inf"))
        if trace.over:
            break
    if best is None:
        message = f"no feasible plan found in {run} runs; this proves nothing"
        return Outcome(None, status=Status.LIMIT, iterations=run * steps, message=message)
    return Outcome(best, iterations=run * steps, trace=trace.steps)


def annealed_kind(problem: Districting) -> int:
    """The number of the objective that is annealed: the cut in place of most sums over districts."""
    if problem.goal is None:
        return OBJECTIVES.index(str(problem.objective))
    for factor, node in problem.goal.function.terms:
        for kind, name in enumerate(SCORES, POLSBY_POPPER):
            if len(problem.goal.function.terms) == 1 and node == Measure(name=name):
                return kind if (factor < 0) == (kind == POLSBY_POPPER) else CUT
    return CUT


def _task(problem: Districting) -> _Task:
    """What the annealer needs of a problem."""
    g = problem.arrays
    kind = annealed_kind(problem)
    first, ends, edge = g.links
    costs = g.costs[edge]
    bond = np.zeros((g.size if problem.must_link or problem.cannot_link else 0,) * 2, np.int64)
    for group in problem.must_link:
        bond[np.ix_(group, group)] = 1
    for u, v in problem.cannot_link:
        bond[u, v] = bond[v, u] = -1
    units = [problem.units(problem.county) if kind == SPLITS else np.zeros(g.size, np.int64)]
    units += [problem.units(name) for name, _ in problem.limits("units")]
    counted = problem.counted
    typical, inertia, length = _TYPICAL.get(kind, 1.0), np.zeros((0, 0)), np.zeros(0)
    if kind == CUT and len(costs):
        typical = max(1.0, float(costs.mean()))
    elif kind == INERTIA:
        inertia = problem.inertia
        typical = max(NOT_ZERO, float(inertia.sum(axis=0).min()) / g.size)
    elif kind == DEVIATION:
        typical = max(1.0, float(g.weights.mean()) * problem.districts)
    elif kind == LEAST_CHANGE:
        typical, old = max(1.0, float(g.weights.mean())), problem.units(problem.enacted)[:, None]
        inertia = g.weights.astype(float)[:, None] * (old == np.arange(max(2, problem.districts)))
    elif kind >= POLSBY_POPPER:
        length = problem.lengths[edge]
        around = problem.border[1] + np.bincount(np.repeat(np.arange(g.size), np.diff(first)), length, g.size)
        inertia = np.column_stack([problem.border[0], around])
    limit = -1 if problem.cut_limit is None else problem.cut_limit
    arrays = first, ends, costs, g.weights, problem.windows, problem.means, kind, inertia, length, bond, limit
    limits = np.array([limit for _, limit in problem.limits("units")], np.int64)
    rules = np.array(units), limits, counted, np.maximum(1.0, np.abs(counted.weights).mean(axis=1))
    penalty = _PENALTY * typical
    per_person = penalty / max(1.0, float(g.weights.mean()))
    return _Task(*arrays, *rules, typical, penalty, _OUTSIDE * penalty, per_person)


def _one_run(
    problem: Districting, rng: np.random.Generator, steps: int, deadline: Deadline, start: Plan | None
) -> Plan | None:
    g, task = problem.arrays, _task(problem)
    label = random_parts(g, problem.districts, rng) if start is None else start.labels.copy()
    if problem.unequal_seats and start is None:  # the heaviest part gets the most seats
        rank = np.argsort(np.argsort(np.bincount(label, g.weights, problem.districts), kind="stable"))
        label = np.argsort(problem.means, kind="stable")[rank][label]
    if problem.keeps_numbers:
        old = problem.units(problem.enacted)
        whole = [len(g.components(np.flatnonzero(old == d).tolist())) == 1 for d in range(problem.districts)]
        label = old.copy() if start is None and all(whole) else problem.as_enacted(label)
    value, found = np.inf, label.copy()
    each = _MOMENT // (1 + (g.size if task.kind == INERTIA else 0) // 10)
    parts = max(1, -(-steps // each))
    for part in range(parts):
        hot, cold = (_HOT * task.typical * (_COLD / _HOT) ** (at / parts) for at in (part, part + 1))
        some, now = _anneal(task, label, hot, cold, -(-steps // parts), int(rng.integers(2**31)))
        if now < value:
            value, found = now, some
        if deadline.passed:
            break
    if not np.isfinite(value):
        return None
    if problem.objective == "cut" and not problem.unequal_seats and not problem.all_rules:
        found = _recombined(problem, found, deadline)
    return Plan.from_labels(problem, found)


def random_parts(graph: WeightedGraph, parts: int, rng: np.random.Generator) -> Array:
    """Grow connected parts from random nodes, the lightest first; each component gets its share of them.

    Needs as many parts as components, or more.
    """
    pieces = graph.components()
    people = np.array([max(1, graph.weights[piece].sum()) for piece in pieces], dtype=float)
    count = np.ones(len(pieces), int)
    for _ in range(parts - len(pieces)):
        open_ = np.array([len(p) for p in pieces]) > count
        count[int(np.argmax(np.where(open_, people / count, -1.0)))] += 1
    label = np.full(graph.size, -1, np.int64)
    seeds = [
        int(v) for piece, c in zip(pieces, count, strict=True) for v in rng.choice(piece, c, replace=False)
    ]
    label[seeds] = np.arange(parts)
    total = graph.weights[seeds].astype(float)
    border = [{u for u in graph.neighbours[v] if label[u] < 0} for v in seeds]
    while any(border):
        d = min((d for d in range(parts) if border[d]), key=lambda d: total[d])
        v = int(rng.choice(sorted(border[d])))
        label[v] = d
        total[d] += graph.weights[v]
        for b in border:
            b.discard(v)
        border[d] |= {u for u in graph.neighbours[v] if label[u] < 0}
    return label


def _recombined(problem: Districting, label: Array, deadline: Deadline) -> Array:
    """Cut pairs of adjacent districts anew while that makes the plan cheaper."""
    g = problem.arrays
    tried: set[frozenset[tuple[int, ...]]] = set()
    improved = True
    while improved:
        improved = False
        pairs = sorted({(min(a, b), max(a, b)) for a, b in label[g.edges].tolist() if a != b})
        for a, b in pairs:
            if deadline.passed:
                return label
            sides = [np.flatnonzero(label == d) for d in (a, b)]
            key = frozenset(tuple(side.tolist()) for side in sides)
            if key in tried:
                continue
            tried.add(key)
            nodes = np.sort(np.concatenate(sides))
            second = _cut_anew(problem, nodes, label[nodes] == b, deadline)
            if second is not None:
                label[nodes] = np.where(second, b, a)
                improved = True
    return label


def _cut_anew(problem: Districting, nodes: Array, second: Array, deadline: Deadline) -> Array | None:
    """Split a connected node set into two districts more cheaply: a mask of one; None if none is found."""
    from forcopt.graphs.kernels import LARGEST
    from forcopt.models.districting.set_partitioning import Cover

    g, (low, high) = problem.arrays, problem.population_bounds
    place = np.full(g.size, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    inner = (place[g.edges] >= 0).all(axis=1)
    part = WeightedGraph(g.weights[nodes], place[g.edges[inner]], g.costs[inner])
    must_link = [[int(place[v]) for v in group] for group in problem.must_link if place[group[0]] >= 0]
    cannot_link = [
        (int(place[u]), int(place[v])) for u, v in problem.cannot_link if place[u] >= 0 and place[v] >= 0
    ]
    now = part.cut_cost(second)
    if len(nodes) <= LARGEST:
        cover = Cover(part, low, high, 2, must_link, cannot_link, best=float(now))
        cover.step(_BUDGET)
        if cover.done or cover.best < now:
            return np.isin(np.arange(len(nodes)), cover.parts[1]) if cover.best < now else None
    try:
        dual = PlanarDual.of(part)
    except DeclarationError:  # not planar
        return None
    search = WindowCycles(
        dual, max(low, part.total - high), min(high, part.total - low), symmetric=True,
        must_link=[pair for group in must_link for pair in pairwise(group)], cannot_link=cannot_link,
    )  # fmt: skip

    def pause() -> None:
        deadline.check()
        if search.paths > _MOST_PATHS:
            raise TimeoutError

    best: Array | None = None
    separator = np.flatnonzero(second[part.edges[:, 0]] != second[part.edges[:, 1]]).tolist()
    with suppress(TimeoutError, MemoryError):
        for slack in _SLACKS:
            for _, edges in search.search(int(slack * (now - 1)), separator=separator, pause=pause):
                best = dual.sides(edges) == 1
            if best is not None:
                break
    return best
