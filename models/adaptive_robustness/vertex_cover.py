"""Methods for robust Bayes classifiers: flows between conflicting pairs, and vertex covers."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.compiled import njit
from forcopt.errors import DeclarationError
from forcopt.language import Model, Variable, lexicographic, minimize
from forcopt.loops.solution import ModelSolution
from forcopt.models.adaptive_robustness.classifiers import NearestNeighbour
from forcopt.models.adaptive_robustness.neighbour_radius import constancy_radii
from forcopt.models.adaptive_robustness.robust_bayes import Pairing, RobustBayes, RobustClassifier
from forcopt.models.adaptive_robustness.tolerances import HALF, MASS, SAME_RADIUS
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


def constant_loss(problem: RobustBayes) -> tuple[RobustClassifier, float]:
    """The best constant classifier and its loss."""
    safe = np.zeros(problem.masses.shape, dtype=bool)
    safe[:, int(problem.masses.sum(axis=0).argmax())] = True
    return problem.classifier(safe), float(problem.masses[~safe].sum())


@RobustBayes.algorithm("constant", cites="Chowdhury, Urner (2022), section 3", rank="published")
def constant(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Predict the likeliest label everywhere; the bound is the Bayes risk."""
    decision, loss = constant_loss(problem)
    return Outcome(decision, min(problem.bayes_risk, loss))


def _safe(problem: RobustBayes, deadline: Deadline) -> Array:
    """Where the nearest neighbour on the likeliest labels predicts one label in the whole ball."""
    if problem.norm != "l2" or not isinstance(problem.domain, str):
        raise DeclarationError("bayes: margins are known for norm 'l2' and domain 'space'")
    label = problem.bayes_labels
    atoms = problem.masses.sum(axis=1) > 0
    nn = NearestNeighbour(problem.points[atoms], label[atoms])
    radii = constancy_radii(nn, problem.points, label, at_most=problem.radii, deadline=deadline)
    safe = np.zeros(problem.masses.shape, dtype=bool)
    safe[np.arange(len(label)), label] = (radii >= problem.radii * (1 - SAME_RADIUS)) & atoms
    return safe


def margin_mass(problem: RobustBayes) -> float:
    """The mass whose ball meets another likeliest label: Phi(r)."""
    return float(problem.masses[~_safe(problem, Deadline()).any(axis=1)].sum())


@RobustBayes.algorithm(
    "bayes", guarantee=margin_mass, cites="Chowdhury, Urner (2022), Theorem 5", rank="published"
)
def bayes(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Predict the likeliest label, extended to the nearest neighbour; lose the points near its border.

    Returns
    -------
    Outcome
        Its loss is above the least by at most the margin rate Phi(r) (Theorem 5, point by point: r may
        differ). If time runs out, points whose margin is not proved yet count as lost.
    """
    safe = _safe(problem, Deadline(time_limit))
    lost = ~safe.any(axis=1)
    decision = problem.classifier(safe)
    value = float(problem.masses[~safe].sum())
    return Outcome(decision, min(problem.bayes_risk, value), guarantee=float(problem.masses[lost].sum()))


_SCALE = 2**60
"""The unit of masses that have no small common denominator."""


class Network(NamedTuple):
    """The conflicts of two labels as a transport network, and the flow on it.

    Attributes
    ----------
    start, head : arrays
        The conflicts of point i with label 0 are ``head[start[i]:start[i + 1]]``, points with label 1.
    back_start, back : arrays
        The edges into each point with label 1.
    tail : array
        The point with label 0 of each edge.
    supply, demand : arrays of int64, shape (n,)
        The rest of the masses with label 0 and 1, in units of ``1 / denominator``.
    flow : array of int64
        On each edge.
    denominator : int
    exact : bool
        Whether the units give the masses exactly.
    """

    start: Array
    head: Array
    back_start: Array
    back: Array
    tail: Array
    supply: Array
    demand: Array
    flow: Array
    denominator: int
    exact: bool


def whole_masses(masses: Array) -> tuple[Array, int, bool]:
    """Masses as whole numbers over a common denominator; rounded down if it exceeds 10^9."""
    values = np.unique(masses)
    denominator = 1
    for value in values.tolist() if len(values) <= 1000 else ():
        near = Fraction(value).limit_denominator(10**6)
        denominator = lcm(denominator, near.denominator)
        if abs(float(near) - value) > MASS * max(value, 1e-3) or denominator > 10**9:
            break
    else:
        if len(values) <= 1000:
            return np.round(masses * denominator).astype(np.int64), denominator, True
    return np.floor(masses * float(_SCALE)).astype(np.int64), _SCALE, False


def network(problem: RobustBayes, conflicts: Array) -> Network:
    """Build the network without flow; two labels only."""
    n = len(problem.points)
    units, denominator, exact = whole_masses(problem.masses)
    tail, head = (np.ascontiguousarray(conflicts[:, side], dtype=np.int32) for side in (0, 2))
    start = np.searchsorted(tail, np.arange(n + 1)).astype(np.int64)
    into = sp.csr_array((np.arange(len(head), dtype=np.int32), head, start), shape=(n, n)).tocsc()
    back, back_start = into.data, into.indptr.astype(np.int64)
    flow = np.zeros(len(head), dtype=np.int64)
    supply, demand = units[:, 0].copy(), units[:, 1].copy()
    return Network(start, head, back_start, back, tail, supply, demand, flow, denominator, exact)


@njit(cache=True)
def _blocking_flow(net, low, high):  # type: ignore[no-untyped-def]  # pragma: no cover
    """One phase: levels from the points with supply left, then a blocking flow. Returns the pushed amount.

    ``low`` and ``high`` get the levels of the points with label 0 and 1, or -1 where none reaches.
    """
    start, head, back_start, back, tail = net.start, net.head, net.back_start, net.back, net.tail
    supply, demand, flow = net.supply, net.demand, net.flow
    n = len(supply)
    low[:] = -1
    high[:] = -1
    queue = np.empty(n, np.int64)
    first, last = 0, 0
    for i in range(n):
        if supply[i] > 0:
            low[i] = 0
            queue[last] = i
            last += 1
    found = -1
    while first < last:  # the queue holds points with label 0 by rising level
        i = queue[first]
        first += 1
        if found >= 0 and low[i] >= found:
            break
        for e in range(start[i], start[i + 1]):
            j = head[e]
            if high[j] >= 0:
                continue
            high[j] = low[i]
            if demand[j] > 0:
                found = low[i] + 1
            for b in range(back_start[j], back_start[j + 1]):
                f = back[b]
                if flow[f] > 0 and low[tail[f]] < 0:
                    low[tail[f]] = low[i] + 1
                    queue[last] = tail[f]
                    last += 1
    if found < 0:
        return 0
    pushed = 0
    at = start[:-1].copy()
    back_at = back_start[:-1].copy()
    forward = np.empty(n + 1, np.int64)  # the edges of the path: out of a point with label 0 ...
    backward = np.empty(n + 1, np.int64)  # ... and back to the next
    for root in range(n):
        while supply[root] > 0:  # the path so far climbs one level a step, by edges with room
            depth = 0
            i = root
            done = False
            while True:
                # look for an edge to the next level
                stepped = False
                while at[i] < start[i + 1]:
                    e = at[i]
                    j = head[e]
                    if high[j] != low[i]:
                        at[i] += 1
                        continue
                    if demand[j] > 0:
                        forward[depth] = e
                        done = True
                        break
                    while back_at[j] < back_start[j + 1]:
                        f = back[back_at[j]]
                        if flow[f] > 0 and low[tail[f]] == low[i] + 1:
                            break
                        back_at[j] += 1
                    if back_at[j] < back_start[j + 1]:
                        forward[depth] = e
                        backward[depth] = back[back_at[j]]
                        depth += 1
                        i = tail[backward[depth - 1]]
                        stepped = True
                        break
                    at[i] += 1
                if done:
                    break
                if stepped:
                    continue
                if depth == 0:
                    break
                depth -= 1  # a dead end: leave it for good
                j = head[forward[depth]]
                back_at[j] += 1
                i = tail[forward[depth]]
            if not done:
                break
            amount = min(supply[root], demand[head[forward[depth]]])
            for k in range(depth):
                amount = min(amount, flow[backward[k]])
            for k in range(depth + 1):
                flow[forward[k]] += amount
                if k < depth:
                    flow[backward[k]] -= amount
            supply[root] -= amount
            demand[head[forward[depth]]] -= amount
            pushed += amount
    return pushed


def push(net: Network, levels: tuple[Array, Array]) -> int:
    """Push one blocking flow; 0 if the flow is largest."""
    return int(_blocking_flow(net, *levels))


def pairing_of(net: Network) -> Pairing:
    """The matched pairs of a flow."""
    used = np.flatnonzero(net.flow)
    return Pairing(net.tail[used], net.head[used], net.flow[used], net.denominator)


def saturated_cover(problem: RobustBayes, net: Network) -> RobustClassifier:
    """Lose the masses that the flow uses up, then win back unnecessary losses."""
    positive = problem.masses > 0
    lost = positive & np.stack([net.supply == 0, net.demand == 0], axis=1)
    # a lost pair none of whose conflicts is safe may be safe: heavy ones first, on the side that gains most
    covers = []
    for first in (0, 1):
        kept = ~lost
        for side in (first, 1 - first):
            own, other = (net.tail, net.head) if side == 0 else (net.head, net.tail)
            blocked = np.zeros(len(kept), dtype=bool)
            blocked[own[kept[other, 1 - side] & positive[other, 1 - side]]] = True
            kept[:, side] |= ~blocked & positive[:, side]
        covers.append(kept)
    best = max(covers, key=lambda kept: problem.masses[kept].sum())
    return problem.classifier(best & positive, pairing_of(net))


@RobustBayes.algorithm("max-flow", exact=True, cites="Dinic (1970); Bhagoji et al. (2019), section 4")
def max_flow(
    problem: RobustBayes, *, time_limit: float | None = None, on_improvement: OnImprovement | None = None
) -> Outcome:
    """The largest flow from label 0 to label 1 along conflicts; its cut is the least loss. Two labels.

    Masses that are counts over a common denominator are whole numbers: then flow and cut are exact. Others
    are rounded down by less than 1e-18.

    Returns
    -------
    Outcome
        The decision carries the `Pairing`, which `RobustBayes.check_pairing` checks exactly. If time runs
        out, the cover by saturated pairs (or one label everywhere) and the flow so far as bound.

    Notes
    -----
    ``O(sqrt(n))`` phases of ``O(edges)`` for equal masses (Hopcroft-Karp), at most n phases for others.
    """
    if problem.labels != 2:
        raise DeclarationError(f"max-flow is for 2 labels, and there are {problem.labels}: use milp")
    trace = Trace(Deadline(time_limit), on_improvement)
    best, loss = constant_loss(problem)
    bound = problem.bayes_risk
    conflicts = problem.find_conflicts(trace.deadline)
    trace.add(loss, bound)
    if conflicts is None:
        why = f"{trace.end} before all conflicts were found"
        return Outcome(best, bound, Status.FEASIBLE, 0, why, trace.steps)
    net, n = network(problem, conflicts), len(problem.points)
    levels = (np.empty(n, np.int64), np.empty(n, np.int64))
    total, phases = 0, 0
    while pushed := push(net, levels):
        total, phases = total + pushed, phases + 1
        bound = max(bound, total / net.denominator)
        if trace.deadline.limit is not None or on_improvement is not None:
            cover = saturated_cover(problem, net)
            value = float(problem.masses[~cover.safe].sum())
            if value < loss:
                best, loss = cover, value
            if trace.add(loss, bound) or trace.over:
                why = "stopped before the flow was largest"
                return Outcome(best, min(bound, loss), Status.FEASIBLE, phases, why, trace.steps)
    low, high = levels
    safe = np.stack([low >= 0, high < 0], axis=1) & (problem.masses > 0)
    decision = problem.classifier(safe, pairing_of(net))
    loss = float(problem.masses[~safe].sum())
    trace.add(loss, loss)
    return Outcome(decision, loss, None, phases, trace=trace.steps)


@RobustBayes.formulation(
    "lp", exact=True, cites="Chowdhury, Urner (2022), section 3; Bhagoji et al. (2019)", whole="milp"
)
def lp(problem: RobustBayes, model: Model, *, agree: bool = False) -> Handles:
    """The vertex cover of least weight, whole as the conflict graph is bipartite. Two labels.

    Parameters
    ----------
    agree : bool
        Among the classifiers of least loss, one that predicts the likeliest label on the most mass.

    Returns
    -------
    Handles
        ``lost``, a variable for each pair of positive mass, shape ``(pairs,)``; ``pairs``, their points and
        labels; ``loss``.
    """
    if problem.labels != 2:
        raise DeclarationError(f"the lp is whole for 2 labels, and there are {problem.labels}: use milp")
    return _write(problem, model, integer=False, agree=agree)


@RobustBayes.formulation("milp", exact=True, cites="the vertex cover with binaries, for any number of labels")
def milp(problem: RobustBayes, model: Model, *, agree: bool = False) -> Handles:
    """The vertex cover of least weight with a binary for each pair; clique rows for each point.

    Parameters
    ----------
    agree : bool
        See `lp`.

    Returns
    -------
    Handles
        As for `lp`.
    """
    return _write(problem, model, integer=True, agree=agree)


def _write(problem: RobustBayes, model: Model, integer: bool, agree: bool) -> Handles:
    positive = problem.masses > 0
    number = np.full(positive.shape, -1)
    pairs = np.argwhere(positive)
    number[positive] = np.arange(len(pairs))
    mass = problem.masses[positive]
    unit = float(mass.mean())
    lost = model.variable(model.unused_name("lost"), len(pairs), lower=0, upper=1, integer=integer)
    edges = problem.conflicts
    left, right = number[edges[:, 0], edges[:, 1]], number[edges[:, 2], edges[:, 3]]
    if len(edges):
        model.subject_to(lost[left] + lost[right] >= 1, name=model.unused_name("conflict"))
    if problem.labels > 2:  # a point is safe with one label at most: stronger than its pairs of labels
        for point in np.flatnonzero(positive.sum(axis=1) > 2):
            own = number[point][positive[point]]
            model.subject_to(lost[own].sum() >= len(own) - 1, name=model.unused_name("point"))
    loss = (lost * (mass / unit)).sum()
    objective: object = loss
    if agree:
        agrees = pairs[:, 1] == problem.bayes_labels[pairs[:, 0]]
        weight = problem.masses.sum(axis=1)[pairs[:, 0]] * agrees / unit
        objective = lexicographic([minimize(loss), minimize((lost * weight).sum())])

    def decision(result: ModelSolution) -> RobustClassifier:
        safe = np.zeros(positive.shape, dtype=bool)
        safe[positive] = _rounded(1 - result[lost], pairs[:, 1], integer)
        return problem.classifier(safe)

    def start(decision: RobustClassifier) -> dict[Variable, Array]:
        return {lost: 1.0 - problem.classifier(decision.safe).safe[positive]}

    return Handles(objective, decision, start, unit=unit, lost=lost, pairs=pairs, loss=loss * unit)  # type: ignore[arg-type]


def _rounded(safe: Array, label: Array, integer: bool) -> Array:
    """Whole values of an optimal point: of any, as every threshold between the labels gives an optimum."""
    if integer:
        return safe > 0.5
    return np.where(label == 0, safe > 0.5 + HALF, safe > 0.5 - HALF / 2)
