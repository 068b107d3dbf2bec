"""Simulated annealing over single moves of border nodes, then exact recombination of adjacent districts.

The annealer moves a node to an adjacent district if its own district stays connected and not empty.
Populations outside the bounds and broken side constraints are penalized, so infeasible plans occur on the
way. Then pairs of adjacent districts are cut anew until no pair improves: by exact covers where a pair has
at most 128 nodes, and by the exact search for dual cycles where it is planar.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
from numba import njit

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.graphs.weighted import WeightedGraph
from forcopt.graphs.window_cycles import WindowCycles
from forcopt.models.districting.jit_warmup import jit_warmup
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["local_search"]

_CUT, _INERTIA, _DEVIATION, _SPLITS = 0, 1, 2, 3

_MOMENT = 500_000
"""Moves between two looks at the clock."""

_BUDGET = 200_000
"""Partial covers of a pair of districts."""

_MOST_PATHS = 3_000_000
"""Dual paths of a pair of districts."""


@njit(cache=True)
def _charge(people, low, high, unit, fixed):  # type: ignore[no-untyped-def]
    """The penalty of a district outside the bounds: a fixed one, and one in proportion to the excess."""
    excess = max(0, low - people, people - high)
    return unit * excess + fixed if excess > 0 else 0.0


@njit(cache=True)
def _stays_connected(v, label, start, ends, seen, queue):  # type: ignore[no-untyped-def]
    """Whether v's district is connected, and not empty, without v."""
    d = label[v]
    seen[:] = False
    seen[v] = True
    wanted, head, tail = 0, 0, 0
    for e in range(start[v], start[v + 1]):
        wanted += label[ends[e]] == d
    if wanted == 0:
        return False
    for e in range(start[v], start[v + 1]):
        if label[ends[e]] == d:
            queue[0] = ends[e]
            seen[ends[e]] = True
            tail = 1
            break
    met = 1
    while head < tail and met < wanted:
        u = queue[head]
        head += 1
        for e in range(start[u], start[u + 1]):
            x = ends[e]
            if not seen[x] and label[x] == d:
                seen[x] = True
                queue[tail] = x
                tail += 1
                for f in range(start[v], start[v + 1]):
                    met += ends[f] == x
    return met == wanted


@njit(cache=True)
def _lacking(sums, least, unit):  # type: ignore[no-untyped-def]
    """By how much shares are missed, in units; the districts nearest to a share must meet it."""
    out = 0.0
    for i in range(len(least)):
        need = least[i] - np.sum(sums[i] >= 0)
        if need > 0:
            lack = np.sort(-sums[i][sums[i] < 0])
            out += need + lack[:need].sum() / unit[i]
    return out


@njit(cache=True)
def _value(kind, cut, people, means, moments, label, splits):  # type: ignore[no-untyped-def]
    k = len(people)
    if kind == _CUT:
        return float(cut)
    if kind == _SPLITS:
        return float(splits)
    if kind == _DEVIATION:
        worst = 0.0
        for d in range(k):
            worst = max(worst, abs(people[d] - means[d]))
        return k * worst
    best = np.full(k, np.inf)
    for j in range(len(label)):
        best[label[j]] = min(best[label[j]], moments[label[j], j])
    return best.sum()


@njit(cache=True)
def _anneal(  # type: ignore[no-untyped-def]
    label, start, ends, costs, weight, windows, means, kind, inertia, bond, limit, units, split_limits,
    surplus, least, share_unit, penalty, hot, cold, steps, seed
):  # fmt: skip
    """Run one schedule from `label` (changed).

    Give the best feasible labels and their value (infinite: none).
    """
    np.random.seed(seed)  # noqa: NPY002 - in compiled code this is numba's own generator
    n, k = len(label), label.max() + 1
    low, high = windows[:, 0], windows[:, 1]
    people, size = np.zeros(k, np.int64), np.zeros(k, np.int64)
    moments = np.zeros((k, n)) if kind == _INERTIA else np.zeros((k, 0))
    seen, queue = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    cut, pairs, broken = 0, 0, 0
    for v in range(n):
        people[label[v]] += weight[v]
        size[label[v]] += 1
        if kind == _INERTIA:
            moments[label[v]] += inertia[v]
        for e in range(start[v], start[v + 1]):
            if v < ends[e] and label[v] != label[ends[e]]:
                cut += costs[e]
                pairs += 1
        for u in range(bond.shape[0]):
            if u < v and bond[u, v] != 0:
                broken += (bond[u, v] > 0) != (label[u] == label[v])
    # Pairs of a county and a district that meet: the objective's counties first, then those of each limit.
    inside = np.zeros((len(units), units.max() + 1, k), np.int64)
    met = np.zeros(len(units), np.int64)
    more_met = np.zeros(len(units), np.int64)
    sums = np.zeros((len(least), k), np.int64)
    for v in range(n):
        for i in range(len(units)):
            met[i] += inside[i, units[i, v], label[v]] == 0
            inside[i, units[i, v], label[v]] += 1
        for i in range(len(least)):
            sums[i, label[v]] += surplus[i, v]
    over = 0
    for i in range(len(split_limits)):
        over += max(0, met[i + 1] - split_limits[i])
    lacking = _lacking(sums, least, share_unit)
    outside = 0
    for d in range(k):
        outside += people[d] < low[d] or people[d] > high[d]
    unit, fixed = penalty / max(1.0, weight.mean()), 0.25 * penalty
    value = _value(kind, cut, people, means, moments, label, met[0])
    best, found = np.inf, label.copy()
    cooling = (cold / hot) ** (1.0 / max(1, steps))
    heat = hot
    for _ in range(steps):
        heat *= cooling
        if (
            outside == 0 and broken == 0 and over == 0 and lacking == 0.0
            and (limit < 0 or pairs <= limit) and value < best
        ):  # fmt: skip
            best = value
            found[:] = label
        v = np.random.randint(n)  # noqa: NPY002
        if start[v] == start[v + 1]:
            continue
        a, b = label[v], label[ends[np.random.randint(start[v], start[v + 1])]]  # noqa: NPY002
        if a == b or size[a] == 1:
            continue
        more, more_pairs, more_broken = 0, 0, 0
        for e in range(start[v], start[v + 1]):
            d = label[ends[e]]
            more += costs[e] * (d == a) - costs[e] * (d == b)
            more_pairs += (d == a) - (d == b)
        for u in range(bond.shape[0]):
            if bond[u, v] != 0 and u != v:
                more_broken += bond[u, v] * ((label[u] == a) - (label[u] == b))
        w = weight[v]
        change = (
            _charge(people[a] - w, low[a], high[a], unit, fixed)
            + _charge(people[b] + w, low[b], high[b], unit, fixed)
            - _charge(people[a], low[a], high[a], unit, fixed)
            - _charge(people[b], low[b], high[b], unit, fixed)
        )  # fmt: skip
        change += penalty * more_broken
        if limit >= 0:
            change += penalty * (max(0, pairs + more_pairs - limit) - max(0, pairs - limit))
        more_over, more_lacking = 0, 0.0
        for i in range(len(units)):
            u = units[i, v]
            more_met[i] = (inside[i, u, b] == 0) - (inside[i, u, a] == 1)
        for i in range(len(split_limits)):
            now = met[i + 1] - split_limits[i]
            more_over += max(0, now + more_met[i + 1]) - max(0, now)
        if len(least) > 0:
            sums[:, a] -= surplus[:, v]
            sums[:, b] += surplus[:, v]
            more_lacking = _lacking(sums, least, share_unit) - lacking
            sums[:, a] += surplus[:, v]
            sums[:, b] -= surplus[:, v]
        change += penalty * (more_over + more_lacking)
        people[a] -= w
        people[b] += w
        label[v] = b
        if kind == _INERTIA:
            moments[a] -= inertia[v]
            moments[b] += inertia[v]
        after = _value(kind, cut + more, people, means, moments, label, met[0] + more_met[0])
        change += after - value
        label[v] = a
        if (
            (change > 0 and np.random.random() >= np.exp(-change / heat))  # noqa: NPY002
            or not _stays_connected(v, label, start, ends, seen, queue)
        ):
            people[a] += w
            people[b] -= w
            if kind == _INERTIA:
                moments[a] += inertia[v]
                moments[b] -= inertia[v]
            continue
        label[v] = b
        size[a] -= 1
        size[b] += 1
        cut, pairs, broken = cut + more, pairs + more_pairs, broken + more_broken
        over, lacking = over + more_over, lacking + more_lacking
        for i in range(len(units)):
            met[i] += more_met[i]
            inside[i, units[i, v], a] -= 1
            inside[i, units[i, v], b] += 1
        if len(least) > 0:
            sums[:, a] -= surplus[:, v]
            sums[:, b] += surplus[:, v]
            lacking = _lacking(sums, least, share_unit)
        for d in (a, b):
            moved = w if d == a else -w  # populations are those after the move
            outside += people[d] < low[d] or people[d] > high[d]
            outside -= people[d] + moved < low[d] or people[d] + moved > high[d]
        value = after
    return found, best


@Districting.algorithm(
    "local-search", cites="Kirkpatrick, Gelatt and Vecchi (1983)", prepare=jit_warmup("local-search")
)
def local_search(
    problem: Districting,
    *,
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
    restarts : int, optional
        The number of schedules, each from a new random plan.
    steps : int, optional
        Moves tried in each schedule; 10,000 for each node by default.
    time_limit : float, optional
        Seconds.
    seed : int or numpy.random.Generator, optional
        0 by default.
    on_improvement : callable, optional
        Called with each better plan; it stops the search by returning True.

    Returns
    -------
    Outcome
        The best plan, without a bound.
    """
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    rng = np.random.default_rng(0 if seed is None else seed)
    steps = 10_000 * len(problem.nodes) if steps is None else steps
    best: Plan | None = None
    value = np.inf
    run = 0
    for run in range(1, restarts + 1):  # noqa: B007
        plan = _one_run(problem, rng, steps, deadline)
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


def _one_run(problem: Districting, rng: np.random.Generator, steps: int, deadline: Deadline) -> Plan | None:
    g = problem.arrays
    kind = {"cut": _CUT, "inertia": _INERTIA, "deviation": _DEVIATION, "splits": _SPLITS}[problem.objective]
    start = np.cumsum([0] + [len(a) for a in g.neighbours])
    ends = np.array([u for a in g.neighbours for u in a], np.int64)
    tails = np.repeat(np.arange(g.size), np.diff(start))
    costs = g.cost_matrix[tails, ends]
    bond = np.zeros((0, 0), np.int64)
    if problem.must_link or problem.cannot_link:
        bond = np.zeros((g.size, g.size), np.int64)
        for group in problem.must_link:
            bond[np.ix_(group, group)] = 1
        for u, v in problem.cannot_link:
            bond[u, v] = bond[v, u] = -1
    label = random_parts(g, problem.districts, rng)
    if problem.unequal_seats:  # the heaviest part gets the most seats
        rank = np.argsort(np.argsort(np.bincount(label, g.weights, problem.districts), kind="stable"))
        label = np.argsort(problem.means, kind="stable")[rank][label]
    units = [problem.units(problem.county) if kind == _SPLITS else np.zeros(g.size, np.int64)]
    units += [problem.units(item.attribute) for item in problem.split_limits]
    split_limits = [
        item.limit + int(of.max()) + 1 for item, of in zip(problem.split_limits, units[1:], strict=True)
    ]
    surplus = np.array([problem.surplus(s) for s in problem.shares], np.int64).reshape(-1, g.size)
    least = np.array([share.districts for share in problem.shares], np.int64)
    share_unit = np.maximum(1.0, np.abs(surplus).mean(axis=1)) if len(least) else np.zeros(0)
    typical = {
        "cut": max(1.0, float(costs.mean())) if len(costs) else 1.0,
        "inertia": max(1e-300, float(problem.inertia.sum(axis=0).min()) / g.size)
        if kind == _INERTIA
        else 1.0,
        "deviation": max(1.0, float(g.weights.mean()) * problem.districts),
        "splits": 1.0,
    }[problem.objective]
    inertia = problem.inertia if kind == _INERTIA else np.zeros((0, 0))
    limit = -1 if problem.cut_limit is None else problem.cut_limit
    value, found = np.inf, label.copy()
    each = _MOMENT // (1 + (g.size if kind == _INERTIA else 0) // 10)
    parts = max(1, -(-steps // each))
    for part in range(parts):
        hot, cold = (3.0 * typical * (0.1 / 3.0) ** (at / parts) for at in (part, part + 1))
        some, now = _anneal(
            label, start, ends, costs, g.weights, problem.windows, problem.means, kind, inertia, bond, limit,
            np.array(units), np.array(split_limits, np.int64), surplus, least, share_unit,
            8.0 * typical, hot, cold, -(-steps // parts), int(rng.integers(2**31)),
        )  # fmt: skip
        if now < value:
            value, found = now, some
        if deadline.passed:
            break
    if not np.isfinite(value):
        return None
    plain = not (problem.unequal_seats or problem.shares or problem.split_limits)
    if kind == _CUT and problem.cut_limit is None and plain:
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
        ends = label[g.edges]
        pairs = sorted({(min(a, b), max(a, b)) for a, b in ends.tolist() if a != b})
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
    from forcopt.graphs.bits import LARGEST
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
        for slack in (0.7, 1.0):
            for _, edges in search.search(int(slack * (now - 1)), separator=separator, pause=pause):
                best = dual.sides(edges) == 1
            if best is not None:
                break
    return best
