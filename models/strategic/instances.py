"""Seeded instances: random graphs and points, applicants for credit, and the reductions of the hardness
proofs, whose optima solve hard covering problems.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.strategic.generators import (
    credit,
    hitting_set,
    max_cover,
    random_discrete,
    random_linear,
    random_plane,
)
from forcopt.models.strategic.linear import StrategicLinearClassifier
from forcopt.models.strategic.problem import LeastEffortClassification, StrategicClassification
from forcopt.models.strategic.targets import TargetDesign

__all__ = ["INSTANCES"]


def _subsets(count: int, elements: int, size: int, seed: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        found[tuple(sorted(int(e) for e in rng.choice(elements, size, replace=False)))] = None
    return list(found)


def _cover(sets: int, elements: int, most: int) -> StrategicClassification:
    return max_cover(_subsets(sets, elements, 3, sets), elements, most)


def _hitting(sets: int, elements: int, size: int) -> TargetDesign:
    return hitting_set(_subsets(sets, elements, 3, sets), elements, size)


def _least_effort(agents: int, criteria: int) -> LeastEffortClassification:
    drawn = random_discrete(agents, criteria, density=0.5, seed=agents)
    shared: dict[str, Any] = {n: getattr(drawn, n) for n in ("agents", "criteria", "edges", "value")}
    return LeastEffortClassification(
        **shared, max_false_positives=agents // 10, min_true_positives=agents // 2
    )


def _classifier(agents: int, features: int) -> StrategicLinearClassifier:
    """A tenth of the agents qualify as they are; every other feature can be improved."""
    rng = np.random.default_rng(agents)
    X = rng.integers(0, 11, (agents, features)).astype(float)
    truth = rng.integers(1, 6, features)
    return StrategicLinearClassifier(
        X=X,
        truth=(truth.tolist(), float(np.quantile(X @ truth, 0.9))),
        costs=rng.integers(2, 11, features) / 20,
        improvable=(np.arange(features) % 2 == 0).tolist(),
        max_false_positives=agents // 20,
    )


INSTANCES = by_name(
    [
        *(
            Instance(
                f"strategic/random-{agents}-{criteria}-{most}",
                partial(random_discrete, agents, criteria, seed=agents, max_false_positives=most),
                "milp",
            )
            for agents, criteria, most in (
                (100, 25, 2), (100, 25, 8), (400, 40, 4), (400, 40, 20), (2000, 60, 20), (2000, 100, 100),
            )
        ),
        *(
            Instance(f"strategic/max-cover-{n}-{elements}-{k}", partial(_cover, n, elements, k), "milp")
            for n, elements, k in ((20, 15, 4), (60, 40, 8), (120, 60, 15), (300, 120, 30), (600, 240, 60))
        ),
        *(
            Instance(
                f"strategic/credit-{agents}-{most}",
                partial(credit, agents, seed=agents, max_false_positives=most),
                "milp",
            )
            for agents, most in ((100, 0), (100, 5), (1000, 20))
        ),
        *(
            Instance(f"strategic/least-effort-{a}-{c}", partial(_least_effort, a, c), "milp")
            for a, c in ((20, 8), (60, 15), (200, 30), (800, 60))
        ),
        *(
            Instance(f"strategic/linear-{a}-{f}", partial(random_linear, a, f, seed=a), "milp")
            for a, f in ((10, 2), (20, 3), (40, 4), (80, 6))
        ),
        *(
            Instance(f"strategic/classifier-{a}-{f}", partial(_classifier, a, f), "margin-milp")
            for a, f in ((10, 2), (40, 3), (100, 4), (400, 6))
        ),
        *(
            Instance(f"strategic/hitting-set-{s}-{e}-{k}", partial(_hitting, s, e, k), "milp")
            for s, e, k in ((4, 6, 2), (8, 8, 3), (12, 10, 3), (20, 12, 4))
        ),
        *(
            Instance(f"strategic/plane-{a}", partial(random_plane, a, seed=a), "milp")
            for a in (5, 10, 20, 40)
        ),
    ]
)  # fmt: skip
