"""Criteria, classifiers and targets for agents who take their cheapest way to be accepted.

Oracles: all sets of criteria; all faces of the arrangement of lines on which the response of an agent to a
linear classifier changes; all sets of targets on a line. The library counts costs within 1e-6 as equal; the
oracles count with and without such an allowance, and the optimum is known where both agree.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from benchmarks.fuzz.case import ProblemCase
from forcopt.models.strategic import (
    LeastEffortClassification,
    StrategicClassification,
    StrategicLinearClassifier,
    TargetDesign,
)

Array = np.ndarray
ALLOWANCE = 5e-6
"""Within which costs and truth scores may count as equal."""


def criteria(rng: np.random.Generator) -> ProblemCase:
    """Few agents and criteria with equal costs and ties."""
    agents, count = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    edges = [
        (a, c, float(rng.choice([0, 0.25, 0.5, 1.0, 1.5])), int(rng.random() < 0.5))
        for a in range(agents)
        for c in range(count)
        if rng.random() < 0.6
    ]
    weights = rng.integers(1, 4, size=agents).astype(float)
    limit = None if rng.random() < 0.3 else float(rng.integers(0, 4))
    penalty = float(rng.choice([0.0, 0.5, 2.0]))
    ties = str(rng.choice(["improvement", "gaming", "listed"]))
    zero = str(rng.choice(["take", "improve", "refuse"]))
    problem = StrategicClassification(
        agents=agents,
        criteria=count,
        edges=edges,
        weights=weights.tolist(),
        max_false_positives=limit,
        penalty=penalty,
        ties=ties,
        zero_utility=zero,
    )
    best = -np.inf
    for size in range(count + 1):
        for chosen in combinations(range(count), size):
            true = false = 0.0
            for a in range(agents):
                improves = taken([e for e in edges if e[0] == a and e[1] in chosen], ties, zero)
                true += weights[a] * (improves == 1)
                false += weights[a] * (improves == 0)
            if limit is None or false <= limit:
                best = max(best, true - penalty * false)
    return ProblemCase(problem, "optimal", best)


def taken(mine: list[tuple[int, int, float, int]], ties: str, zero: str) -> int | None:
    """Whether the edge that an agent takes improves it; None if it takes none."""
    if not mine:
        return None
    least = min(e[2] for e in mine)
    equal = [e for e in mine if e[2] == least]
    if ties == "improvement":
        edge = min(equal, key=lambda e: (-e[3], e[1]))
    elif ties == "gaming":
        edge = min(equal, key=lambda e: (e[3], e[1]))
    else:
        edge = equal[0]
    affordable = least < 1 or (least == 1 and (zero == "take" or (zero == "improve" and edge[3] == 1)))
    return edge[3] if affordable else None


def least_effort(rng: np.random.Generator) -> ProblemCase:
    """The least total cost of all moves for enough true positives."""
    agents, count = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    edges = [
        (a, c, float(rng.choice([0, 0.25, 0.5, 1.0, 1.5])), int(rng.random() < 0.6))
        for a in range(agents)
        for c in range(count)
        if rng.random() < 0.6
    ]
    weights = rng.integers(1, 4, size=agents).astype(float)
    limit = None if rng.random() < 0.3 else float(rng.integers(0, 4))
    wanted = float(rng.integers(0, weights.sum() + 1))
    problem = LeastEffortClassification(
        agents=agents,
        criteria=count,
        edges=edges,
        weights=weights.tolist(),
        max_false_positives=limit,
        min_true_positives=wanted,
    )
    best = np.inf
    for size in range(count + 1):
        for chosen in combinations(range(count), size):
            true = false = effort = 0.0
            for a in range(agents):
                mine = [e for e in edges if e[0] == a and e[1] in chosen]
                improves = taken(mine, "improvement", "take")
                true += weights[a] * (improves == 1)
                false += weights[a] * (improves == 0)
                effort += weights[a] * min(e[2] for e in mine) if improves is not None else 0.0
            if true >= wanted and (limit is None or false <= limit):
                best = min(best, effort)
    return ProblemCase(problem, "infeasible" if best == np.inf else "optimal", best)


def features(rng: np.random.Generator, agents: int, d: int) -> dict[str, object]:
    """Agents on a grid; some are equal, on the line of the truth, or 1e-4 from another."""
    X = rng.integers(0, 13, size=(agents, d)).astype(float)
    if rng.random() < 0.4:
        X += rng.choice([0.0, 1e-4, -1e-4], size=X.shape)
    improvable = rng.random(d) < 0.6
    return {
        "X": np.maximum(X, 0.0).tolist(),
        "truth": (rng.integers(0 if d > 1 else 1, 3, size=d).tolist(), float(rng.integers(4, 16))),
        "costs": rng.choice([0.1, 0.2, 0.25, 0.5], size=d).tolist(),
        "improvable": improvable.tolist(),
        "weights": rng.integers(1, 4, size=agents).astype(float).tolist(),
    }


def classifier(rng: np.random.Generator) -> ProblemCase:
    """A linear classifier of agents with one or two features."""
    d, agents = int(rng.integers(1, 3)), int(rng.integers(1, 7))
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


def subsets(count: int) -> list[list[int]]:
    """All sets of at most four: no more than one for each agent is taken."""
    return [list(c) for size in range(min(count, 4) + 1) for c in combinations(range(count), size)]


CAMPAIGNS = {
    "strategic-criteria": criteria,
    "least-effort-criteria": least_effort,
    "strategic-classifier": classifier,
    "targets-on-a-line": line_of_targets,
}
