"""Seeded instances: exposure parity, prefix quotas, counterfactual order, sets; lotteries and rankings."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.fairness.ranking import (
    CounterfactualOrder,
    ExposureParity,
    InGroupFairness,
    PrefixQuotas,
    RankingNotion,
    SelectionParity,
)
from forcopt.instance import Instance, by_name
from forcopt.models.fair_ranking.generators import random_ranking
from forcopt.models.fair_ranking.problem import FairRanking

__all__ = ["INSTANCES"]


def _drawn(n: int, k: int, levels: tuple[int, ...], constraint: RankingNotion, integer: bool) -> FairRanking:
    return random_ranking(n, k, levels, seed=n + k, constraint=constraint, integer=integer)


def _by_order(n: int, k: int, slack: float, integer: bool) -> FairRanking:
    """Counterfactual scores that raise the first attribute's second level."""
    p = random_ranking(n, k, seed=n + k)
    raised = np.array([float(level) for level in p.groups["a"]])
    noise = np.random.default_rng(n).normal(0.0, 0.3, n)
    assert p.scores is not None
    scores = np.round(p.scores + 0.8 * raised + noise, 6)
    return p.replace(constraint=CounterfactualOrder(scores=scores, slack=slack), integer=integer)


def _set(n: int, k: int, integer: bool) -> FairRanking:
    demand = SelectionParity(0.5, by=("a",)) & SelectionParity(0.5, by=("b",))
    p = random_ranking(n, k, (3, 4), seed=n, constraint=demand, weights=np.ones(k), integer=integer)
    return p.replace(constraint=demand & InGroupFairness(0.75, by=())) if integer else p


_THREE = PrefixQuotas(by=("a",)) & PrefixQuotas(by=("b",)) & PrefixQuotas(by=("c",))

INSTANCES = by_name(
    [
        *(
            Instance(
                f"ranking/parity-{n}-{k}", partial(_drawn, n, k, (2, 2), ExposureParity(), False), method
            )
            for n, k, method in (
                (60, 10, "assignment"),
                (200, 20, "assignment"),
                (2000, 100, "prefix-counts"),
            )
        ),
        *(
            Instance(
                f"ranking/parity-ranking-{n}-{k}",
                partial(_drawn, n, k, (2, 2), ExposureParity(0.02), True),
                method,
            )
            for n, k, method in ((30, 10, "milp"), (100, 20, "prefix-counts"))
        ),
        *(
            Instance(
                f"ranking/quotas-{n}-{k}",
                partial(_drawn, n, k, (2, 2), PrefixQuotas(), True),
                "prefix-counts",
            )
            for n, k in ((100, 20), (500, 50))
        ),
        *(
            Instance(
                f"ranking/three-quotas-{n}-{k}",
                partial(_drawn, n, k, (2, 2, 3), _THREE, True),
                "prefix-counts",
            )
            for n, k in ((100, 20), (500, 50))
        ),
        Instance("ranking/order-40-10", partial(_by_order, 40, 10, 0.25, False), "assignment"),
        Instance("ranking/order-ranking-20-8", partial(_by_order, 20, 8, 0.25, True), "milp"),
        Instance("ranking/set-120-30", partial(_set, 120, 30, True), "milp"),
    ]
)
