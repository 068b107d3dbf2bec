"""Small random rankings with demands, against all arrangements, and the best lottery over them by an LP."""

from __future__ import annotations

from itertools import permutations
from math import ceil, floor

import numpy as np
from scipy.optimize import linprog

from benchmarks.fuzz.case import ProblemCase
from forcopt.errors import DeclarationError
from forcopt.fairness import (
    CounterfactualOrder,
    ExposureParity,
    InGroupFairness,
    PrefixQuotas,
    ProportionalExposure,
    SelectionParity,
)
from forcopt.models import FairRanking

Random = np.random.Generator
Rows = list[tuple[np.ndarray, float]]
"""Linear rows ``a p <= b`` over the arrangements: the value of each arrangement, and the right-hand side."""


def exposures(orders: np.ndarray, weights: np.ndarray, n: int) -> np.ndarray:
    """The weight of each candidate's position in each arrangement, shape ``(arrangements, n)``."""
    table = np.zeros((len(orders), n))
    for j, weight in enumerate(weights):
        table[np.arange(len(orders)), orders[:, j]] += weight
    return table


def within(values: np.ndarray, low: float, high: float) -> Rows:
    return [(values, high), (-values, -low)]


def group_masks(groups: dict[str, list[str]], by: tuple[str, ...] | None, n: int) -> dict[str, np.ndarray]:
    names = tuple(groups) if by is None else by
    if not names:
        return {"all": np.ones(n, bool)}
    keys = [", ".join(levels) for levels in zip(*(groups[name] for name in names), strict=True)]
    return {key: np.array([k == key for k in keys]) for key in dict.fromkeys(keys)}


def rows_of(
    notion: object, orders: np.ndarray, weights: np.ndarray, scores: np.ndarray, groups: dict[str, list[str]]
) -> tuple[Rows, np.ndarray]:
    """The rows of a demand, and which arrangements are allowed at all."""
    n, k = len(scores), len(weights)
    table = exposures(orders, weights, n)
    mean = weights.sum() / n
    rows: Rows = []
    allowed = np.ones(len(orders), bool)
    match notion:
        case ProportionalExposure():
            for mask in group_masks(groups, notion.by, n).values():
                due = scores[mask].mean() / scores.mean()
                quotient = table[:, mask].mean(axis=1) / mean
                rows += within(quotient, due - notion.tolerance, due + notion.tolerance)
        case ExposureParity():
            for mask in group_masks(groups, notion.by, n).values():
                quotient = table[:, mask].mean(axis=1) / mean
                rows += within(quotient, 1 - notion.tolerance, 1 + notion.tolerance)
        case SelectionParity():
            at = notion.at or k
            for mask in group_masks(groups, notion.by, n).values():
                rate = mask[orders[:, :at]].mean(axis=1) / mask.mean()
                rows += within(rate, 1 - notion.tolerance, 1 + notion.tolerance)
        case PrefixQuotas():
            for name, mask in group_masks(groups, notion.by, n).items():
                for j in range(1, k + 1):
                    count = mask[orders[:, :j]].sum(axis=1).astype(float)
                    low = (mask.mean() if notion.least is None else notion.least.get(name, 0.0)) * j
                    high = (mask.mean() if notion.most is None else notion.most.get(name, 1.0)) * j
                    rows += within(count, floor(low + 1e-9), ceil(high - 1e-9))
        case InGroupFairness():
            for mask in group_masks(groups, notion.by, n).values():
                for a, order in enumerate(orders):
                    chosen = np.isin(np.arange(n), order)
                    if (mask & chosen).any() and (mask & ~chosen).any():
                        worst, best = scores[mask & chosen].min(), scores[mask & ~chosen].max()
                        allowed[a] &= worst >= notion.ratio * best - 1e-12
        case CounterfactualOrder():
            order_scores = np.asarray(notion.scores)
            for i in range(n):
                for j in range(n):
                    if order_scores[i] > order_scores[j] + notion.slack:
                        rows.append((table[:, j] - table[:, i], 0.0))
        case _:
            raise NotImplementedError(notion)
    return rows, allowed


def demand(rng: Random, n: int, k: int, groups: dict[str, list[str]], integer: bool) -> object:
    """A random demand on random attributes."""
    names = list(groups)
    by = None if rng.random() < 0.5 else tuple(name for name in names if rng.random() < 0.5)
    kind = int(rng.integers(6 if integer else 5))
    tolerance = float(rng.choice([0.0, 0.1, 0.25, 0.5, 1.0]))
    if kind == 0:
        return ExposureParity(tolerance, by=by)
    if kind == 1:
        return ProportionalExposure(tolerance, by=by)
    if kind == 2:
        return SelectionParity(
            tolerance, at=int(rng.integers(1, k + 1)) if rng.random() < 0.5 else None, by=by
        )
    if kind == 3:
        if rng.random() < 0.5:
            return PrefixQuotas(by=by)
        keys = [key for key in group_masks(groups, by, n) if rng.random() < 0.7]
        least = {key: float(rng.integers(0, 3)) / 5 for key in keys}
        most = {key: min(1.0, least[key] + float(rng.integers(0, 4)) / 5) for key in keys}
        return PrefixQuotas(least=least, most=most, by=by)
    if kind == 4:
        return CounterfactualOrder(
            rng.integers(0, 5, n).astype(float).tolist(), slack=float(rng.choice([0.0, 0.5, 1.0, 2.0]))
        )
    return InGroupFairness(float(rng.choice([0.0, 0.5, 0.8, 1.0])), by=by)


def instance(rng: Random, integer: bool, by_position: bool = False) -> ProblemCase:
    """A ranking of at most six candidates; the truth by all arrangements (an LP over them for a lottery)."""
    while True:
        n = int(rng.integers(1, 7))
        k = int(rng.integers(1, n + 1))
        groups = {
            name: [f"{name.lower()}{v}" for v in rng.integers(0, int(rng.integers(1, 4)), n)]
            for name in ("A", "B")[: int(rng.integers(1, 3))]
        }
        scores = (
            rng.integers(0, 4, n).astype(float)
            if rng.random() < 0.5
            else np.round(rng.exponential(2.0, n), 3)
        )
        weights: np.ndarray = 1 / np.log2(1 + np.arange(1, k + 1))
        if rng.random() < 0.3:
            weights = np.ones(k)
        elif rng.random() < 0.3:
            weights = np.sort(rng.integers(0, 4, k).astype(float))[::-1].copy()
            weights[0] = max(weights[0], 1.0)
        utilities = np.round(rng.normal(2, 2, (n, k)), 2)
        notions = [demand(rng, n, k, groups, integer) for _ in range(int(rng.choice([0, 1, 1, 1, 2, 3])))]
        graded = any(isinstance(d, (ProportionalExposure, InGroupFairness)) for d in notions)
        if graded and (by_position or scores.sum() <= 0):
            continue
        break
    constraint = None
    for d in notions:
        constraint = d if constraint is None else constraint & d  # type: ignore[operator]
    given = {"utilities": utilities} if by_position else {"scores": scores}
    try:
        problem = FairRanking(
            **given, positions=k, weights=weights, groups=groups, constraint=constraint, integer=integer
        )
    except DeclarationError:  # quotas that contradict each other are refused: draw again
        return instance(rng, integer, by_position)
    orders = np.array(list(permutations(range(n), k)))
    table = exposures(orders, weights, n)
    values = utilities[orders, np.arange(k)].sum(axis=1) if by_position else table @ scores
    rows: Rows = []
    allowed = np.ones(len(orders), bool)
    for d in notions:
        more, some = rows_of(d, orders, weights, scores, groups)
        rows += more
        allowed &= some
    if integer:
        for left, right in rows:
            allowed &= left <= right + 1e-9
        if not allowed.any():
            return ProblemCase(problem, "infeasible")
        return ProblemCase(problem, "optimal", float(values[allowed].max()))
    result = linprog(
        -values,
        A_ub=np.array([left for left, _ in rows]) if rows else None,
        b_ub=np.array([right for _, right in rows]) if rows else None,
        A_eq=np.ones((1, len(orders))),
        b_eq=[1.0],
    )
    if result.status == 2:
        return ProblemCase(problem, "infeasible")
    return (
        ProblemCase(problem, "optimal", float(-result.fun))
        if result.status == 0
        else ProblemCase(problem, "unknown")
    )


def lottery(rng: Random) -> ProblemCase:
    return instance(rng, integer=False)


def lottery_by_position(rng: Random) -> ProblemCase:
    return instance(rng, integer=False, by_position=True)


def one_ranking(rng: Random) -> ProblemCase:
    return instance(rng, integer=True, by_position=bool(rng.random() < 0.2))


CAMPAIGNS = {
    "ranking-lottery": lottery,
    "ranking-lottery-by-position": lottery_by_position,
    "one-ranking": one_ranking,
}
