"""Criteria against agents who take their cheapest way to be accepted, by all sets of criteria."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from benchmarks.fuzz.case import ProblemCase
from forcopt.models.strategic import StrategicClassification


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


CAMPAIGNS = {"strategic-criteria": criteria}
