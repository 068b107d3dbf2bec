"""Criteria, classifiers and targets for agents who take their cheapest way to be accepted.

Oracles: all sets of criteria; all faces of the arrangement of lines on which the response of an agent to a
linear classifier changes; all sets of targets on a line; targets on a lattice. The library counts costs
within 1e-6 as equal; the oracles count with and without such an allowance, and the optimum is known where
both agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

from benchmarks.fuzz.case import ProblemCase
from forcopt.models.strategic import (
    LeastEffortClassification,
    StrategicClassification,
    StrategicLinearClassifier,
    TargetDesign,
    TargetDesign2D,
)

Array = np.ndarray
Edge = tuple[int, int, float, int]
ALLOWANCE = 5e-6
"""Within which costs and truth scores may count as equal."""


def graph(rng: np.random.Generator, improving: float) -> tuple[dict[str, Any], list[Edge], Array]:
    """Few agents and criteria with equal costs and ties: the shared fields, the edges and the weights."""
    agents, count = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    edges = [
        (a, c, float(rng.choice([0, 0.25, 0.5, 1.0, 1.5])), int(rng.random() < improving))
        for a in range(agents)
        for c in range(count)
        if rng.random() < 0.6
    ]
    weights = rng.integers(1, 4, size=agents).astype(float)
    fields = {"agents": agents, "criteria": count, "edges": edges, "weights": weights.tolist()}
    fields["max_false_positives"] = None if rng.random() < 0.3 else float(rng.integers(0, 4))
    return fields, edges, weights


def outcomes(
    fields: dict[str, Any], edges: list[Edge], weights: Array, ties: str, zero: str
) -> Iterator[tuple[float, float, float]]:
    """True positives, false positives and effort under every set of criteria within the limit."""
    limit = fields["max_false_positives"]
    for size in range(fields["criteria"] + 1):
        for chosen in combinations(range(fields["criteria"]), size):
            true = false = effort = 0.0
            for a, weight in enumerate(weights):
                mine = [e for e in edges if e[0] == a and e[1] in chosen]
                improves = taken(mine, ties, zero)
                true += weight * (improves == 1)
                false += weight * (improves == 0)
                effort += weight * min(e[2] for e in mine) if improves is not None else 0.0
            if limit is None or false <= limit:
                yield true, false, effort


def criteria(rng: np.random.Generator) -> ProblemCase:
    """The most true positives, all ways to break ties."""
    fields, edges, weights = graph(rng, 0.5)
    penalty = float(rng.choice([0.0, 0.5, 2.0]))
    ties = str(rng.choice(["improvement", "gaming", "listed"]))
    zero = str(rng.choice(["take", "improve", "refuse"]))
    problem = StrategicClassification(**fields, penalty=penalty, ties=ties, zero_utility=zero)
    found = outcomes(fields, edges, weights, ties, zero)
    return ProblemCase(problem, "optimal", max(true - penalty * false for true, false, _ in found))


def least_effort(rng: np.random.Generator) -> ProblemCase:
    """The least total cost of all moves for enough true positives."""
    fields, edges, weights = graph(rng, 0.6)
    wanted = float(rng.integers(0, weights.sum() + 1))
    problem = LeastEffortClassification(**fields, min_true_positives=wanted)
    found = outcomes(fields, edges, weights, "improvement", "take")
    best = min((effort for true, _, effort in found if true >= wanted), default=np.inf)
    return ProblemCase(problem, "infeasible" if best == np.inf else "optimal", best)


def taken(mine: list[Edge], ties: str, zero: str) -> int | None:
    """Whether the edge that an agent takes improves it; None if it takes none."""
    at_value = {"take": (0, 1), "improve": (1,), "refuse": ()}[zero]
    worth = [e for e in mine if e[2] < 1 or (e[2] == 1 and e[3] in at_value)]
    equal = [e for e in worth if e[2] == min(e[2] for e in worth)]
    if ties == "improvement":
        equal.sort(key=lambda e: (-e[3], e[1]))
    elif ties == "gaming":
        equal.sort(key=lambda e: (e[3], e[1]))
    return equal[0][3] if equal else None


def features(rng: np.random.Generator, agents: int, d: int) -> dict[str, object]:
    """Agents on a grid; some are equal, on the line of the truth, or 1e-4 from another.

    In most planes the truth weighs the feature that games more, so that it is no good classifier.
    """
    hard = d == 2 and rng.random() < 0.6
    X = rng.integers(0, 5 if hard else 13, size=(agents, d)).astype(float)
    if rng.random() < 0.4:
        X += rng.choice([0.0, 1e-4, -1e-4], size=X.shape)
    improvable = rng.random(d) < 0.6
    truth, threshold = rng.integers(0 if d > 1 else 1, 3, size=d), float(rng.integers(4, 16))
    costs = rng.choice([0.1, 0.2, 0.25, 0.5], size=d)
    if hard:  # agents prefer the feature that games
        improvable = rng.permutation([True, False])
        truth, threshold = np.where(improvable, 1, rng.integers(2, 4)), float(rng.integers(3, 9))
        costs[:] = rng.choice([0.25, 0.5, 1.0])
    return {
        "X": np.maximum(X, 0.0).tolist(),
        "truth": (truth.tolist(), threshold),
        "costs": costs.tolist(),
        "improvable": improvable.tolist(),
        "weights": rng.integers(1, 4, size=agents).astype(float).tolist(),
    }


def classifier(rng: np.random.Generator) -> ProblemCase:
    """A linear classifier of agents with one or two features."""
    d, agents = int(rng.choice([1, 2, 2])), int(rng.integers(1, 9))
    fields = features(rng, agents, d)
    limit = None if rng.random() < 0.25 else float(rng.choice([0, 0, 1, 2, 4]))
    penalty = float(rng.choice([0.0, 0.5, 2.0]))
    problem = StrategicLinearClassifier(**fields, max_false_positives=limit, penalty=penalty)
    weights = np.array(fields["weights"])
    found = []
    for allowance in (0.0, ALLOWANCE):
        best = -np.inf
        for true, false in arrangement(fields, allowance):
            value = true @ weights - penalty * (false @ weights)
            value[false @ weights > (np.inf if limit is None else limit)] = -np.inf
            best = max(best, float(value.max()))
        found.append(best)
    return ProblemCase(problem, "optimal" if found[0] == found[1] else "unknown", found[0])


def arrangement(fields: dict[str, object], allowance: float) -> list[tuple[Array, Array]]:
    """Who is a true and who a false positive in every face of the arrangement, by movement feature.

    If agents move along feature k, the classifier is ``z >= u`` for ``z = y_k + t y_j`` in units of effort,
    with t in [0, 1]. Agent i is accepted from ``u = z_i`` to ``z_i + 1``, and improves enough from ``z_i +
    need_i`` on.
    """
    costs, improvable = np.array(fields["costs"]), np.array(fields["improvable"])
    a, b = np.array(fields["truth"][0], dtype=float), float(fields["truth"][1])
    Y, gain = np.array(fields["X"]) * costs, a / costs
    lack = b - Y @ gain
    d = len(costs)
    out = []
    for k in range(d):
        other = Y[:, 1 - k] if d == 2 else np.zeros(len(Y))
        need = np.full(len(Y), np.inf)
        need[lack <= 1e-9] = -np.inf
        if improvable[k] and gain[k] > 0:
            need = np.where(lack > 1e-9, lack / gain[k], need)
        if gain.max() > 0:
            need[lack <= 1e-9 + allowance * gain.max()] = -np.inf
        ends = np.concatenate([np.ones(len(Y)), np.where(np.isfinite(need), need, 0.0)])
        slopes, starts = np.tile(other, 2), np.tile(Y[:, k], 2) + ends
        i, j = np.triu_indices(len(slopes), 1)
        apart = slopes[i] != slopes[j]
        cross = (starts[j] - starts[i])[apart] / (slopes[i] - slopes[j])[apart]
        t = np.unique(np.concatenate([cross[(cross >= 0) & (cross <= 1)], [0.0, 1.0]]))
        t = np.concatenate([t, (t[1:] + t[:-1]) / 2]) if d == 2 else np.zeros(1)
        if d == 2 and gain_order(improvable, k):
            t = t[t < 1.0]
        u = np.sort(starts[None] + t[:, None] * slopes[None], axis=1)
        outside = np.stack([u[:, 0] - 2.0, u[:, -1] + 2.0], axis=1)
        u = np.concatenate([u, (u[:, 1:] + u[:, :-1]) / 2, outside], axis=1)
        z = Y[:, k] + t[:, None] * other
        effort = np.maximum(u[:, :, None] - z[:, None, :], 0.0)
        enough = np.where(np.isneginf(need), True, effort >= need - 1e-9 - allowance)
        true = (effort <= 1 + 1e-9 + allowance) & enough
        false = (effort <= 1 + 1e-9 - 2 * allowance) & ~enough
        out.append((true.reshape(-1, len(Y)), false.reshape(-1, len(Y))))
    return out


def gain_order(improvable: Array, k: int) -> bool:
    """Whether the other of two features wins a tie with k: an improvable one first, then the lower index."""
    return bool((not improvable[1 - k], 1 - k) < (not improvable[k], k))


def line_of_targets(rng: np.random.Generator) -> ProblemCase:
    """Targets on a line: where some agent is no longer free, affordable or qualified, and between."""
    fields = features(rng, int(rng.integers(1, 5)), 1)
    c, X = fields["costs"][0], np.array(fields["X"])[:, 0]
    limit = float(fields["truth"][1]) / fields["truth"][0][0]
    weights, improvable = np.array(fields["weights"]), fields["improvable"][0]
    ends = np.unique(np.concatenate([X, X + 1 / c, [limit]]))
    points = np.unique(np.concatenate([ends, (ends[1:] + ends[:-1]) / 2, [ends[0] - 1, ends[-1] + 1]]))
    cost = np.maximum(points - X[:, None], 0.0) * c
    found = []
    for allowance in (0.0, ALLOWANCE):
        after = points if improvable else np.minimum(points, X[:, None])
        improves = np.broadcast_to(after >= limit - 1e-9 - allowance / c, cost.shape)
        best = 0.0
        for chosen in subsets(len(points)):
            honest = np.where(improves[:, chosen], cost[:, chosen], np.inf).min(axis=1, initial=np.inf)
            gaming = np.where(improves[:, chosen], np.inf, cost[:, chosen]).min(axis=1, initial=np.inf)
            games = gaming < np.minimum(honest, 1.0) - 1e-9 - allowance
            if not (games & (weights > 0)).any():
                best = max(best, float(weights[(honest <= 1 + 1e-9 + allowance) & ~games].sum()))
        found.append(best)
    return ProblemCase(TargetDesign(**fields), "optimal" if found[0] == found[1] else "unknown", found[0])


def targets_in_space(rng: np.random.Generator, d: int, density: int) -> tuple[dict[str, Any], float]:
    """Agents on a lattice, and the best gaming-free targets among the points of a lattice.

    Measured in effort, positions and the threshold are multiples of 1/4, and the truth weighs the improvable
    features by 0 or 1. The lattice has `density` points a unit. A point at which an agent games is in no
    gaming-free set: such points are deleted until nobody games.
    """
    n = int(rng.integers(1, 5))
    Y = rng.integers(0, 6, size=(n, d)) / 4
    improvable = rng.permutation(np.arange(d) < (1 if d == 2 else rng.integers(0, d + 1)))
    t = np.where(improvable, rng.random(d) < 0.85, rng.integers(0, 3, size=d)).astype(float)
    s = float(rng.integers(1, 12)) / 4
    costs, weights = rng.choice([0.125, 0.25, 0.5, 1.0], size=d), rng.integers(0, 4, size=n)
    fields = {
        "X": (Y / costs).tolist(),
        "truth": ((t * costs).tolist(), s),
        "costs": costs.tolist(),
        "improvable": improvable.tolist(),
        "weights": weights.tolist(),
    }
    Y, weights = Y[weights > 0], weights[weights > 0]
    if not len(Y):
        return fields, 0.0
    ends = [np.arange(y.min() * density, (y.max() + 1) * density + 1) for y in Y.T]
    points = np.array(list(product(*ends))) / density
    cost = np.maximum(points - Y[:, None], 0.0).sum(axis=2)
    improves = np.where(improvable, points, Y[:, None]) @ t >= s - 1e-9
    while True:
        worth = np.minimum(np.where(improves, cost, np.inf).min(axis=1, initial=np.inf), 1.0)
        kept = ~(~improves & (cost < worth[:, None] - 1e-9)).any(axis=0)
        if kept.all():
            honest = np.where(improves, cost, np.inf).min(axis=1, initial=np.inf)
            return fields, float(weights[honest <= 1 + 1e-9].sum())
        cost, improves = cost[:, kept], improves[:, kept]


def targets_in_the_plane(rng: np.random.Generator) -> ProblemCase:
    """Two features, one of them improvable: the optimum has its targets on the lattice of the data."""
    fields, best = targets_in_space(rng, 2, 4)
    return ProblemCase(TargetDesign2D(**fields), "optimal", best)


def targets(rng: np.random.Generator) -> ProblemCase:
    """Up to three features, any of them improvable, and a lattice of half the step."""
    fields, best = targets_in_space(rng, int(rng.integers(1, 4)), 8)
    return ProblemCase(TargetDesign(**fields), "optimal", best)


def subsets(count: int) -> list[list[int]]:
    """All sets of at most four: no more than one for each agent is taken."""
    return [list(c) for size in range(min(count, 4) + 1) for c in combinations(range(count), size)]


CAMPAIGNS = {
    "strategic-criteria": criteria,
    "least-effort-criteria": least_effort,
    "strategic-classifier": classifier,
    "targets-on-a-line": line_of_targets,
    "targets-in-the-plane": targets_in_the_plane,
    "targets-in-space": targets,
}
