"""Fair classification over tiny classes, against scipy's linear program over all hypotheses."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.fuzz.case import ProblemCase
from benchmarks.fuzz.notions import declared, defined, least, random_notion, rows_of
from forcopt.fairness import AllOf, BoundedGroupLoss, ErrorParity, PairwiseFairness
from forcopt.models.fair_classification import AllFunctions, FairClassification, Finite, Thresholds

SKIP = ("dp-oracle-learner", "two-step")


def tables(rng: np.random.Generator) -> ProblemCase:
    """Listed hypotheses or thresholds, missing groups, weights of any size; any notion over groups."""
    while True:
        n = int(rng.integers(1, 11))
        x, label = rng.integers(0, 4, size=n), rng.integers(0, 2, size=n)
        if rng.random() < 0.1:
            label[:] = label[0]
        group = rng.integers(0, int(rng.integers(1, 4)), size=n)
        missing = rng.random(n) < rng.choice([0.0, 0.0, 0.3])
        if missing.all():
            continue
        weights = rng.choice([1.0, 1.0, 2.0, 0.0, 0.5], size=n) * rng.choice([1.0, 1e-7, 1e7])
        if not weights.sum():
            continue
        names = np.unique(group[~missing])
        if len(names) == 1 and missing.any():
            continue
        if rng.random() < 0.5:
            table = rng.integers(0, 2, size=(int(rng.integers(1, 7)), n))
            hypotheses: object = Finite(table)
        else:
            cuts = [x >= c for c in range(5)]
            table = np.array([*cuts, *(~c for c in cuts)]).astype(int)
            hypotheses = Thresholds()
        w = weights / weights.sum()
        cell = [[(group == a) & ~missing & (label == y) for y in (0, 1)] for a in names]
        mass = np.array([[w[c].sum() for c in row] for row in cell])
        notion = random_notion(rng)
        problem = declared(
            lambda x=x, y=label, g=group, m=missing, c=notion, w=weights, h=hypotheses: FairClassification(
                features=x[:, None].astype(float),
                labels=y,
                groups=[None if gone else str(name) for name, gone in zip(g, m, strict=True)],
                constraint=c,
                weights=w,
                hypotheses=h,
            ),
            defined(notion, mass),
        )
        if problem is not None:
            break
    part = np.array([[table[:, c] @ w[c] for c in row] for row in cell])
    error = (table != label) @ w
    status, value = least(error, rows_of(notion, part, mass), mixture=True)
    return ProblemCase(problem, status, value, skip=SKIP)


def pairs(rng: np.random.Generator) -> ProblemCase:
    """One decision for each distinct row, and pairs with a budget."""
    n = int(rng.integers(2, 8))
    x, label = rng.integers(0, 4, size=n), rng.integers(0, 2, size=n)
    q = int(rng.integers(1, 6))
    chosen = np.array([rng.choice(n, size=2, replace=False) for _ in range(q)])
    share = rng.choice([1.0, 0.5, 0.0], size=q)
    gamma, budget = float(rng.choice([0.0, 0.0, 0.2])), float(rng.choice([0.0, 0.05, 0.3]))
    notion = PairwiseFairness(pairs=chosen, gamma=gamma, budget=budget, weights=share)
    problem = FairClassification(
        features=x[:, None].astype(float),
        labels=label,
        groups=["a"] * n,
        constraint=notion,
        hypotheses=AllFunctions(),
    )
    values, place = np.unique(x, return_inverse=True)
    # columns: p of each value, then the violation of each pair
    v = len(values)
    cost = np.zeros(v + q)
    np.add.at(cost, place, np.where(label == 1, -1.0, 1.0) / n)
    rows, sides = [], []
    for k, (i, j) in enumerate(chosen.tolist()):
        row = np.zeros(v + q)
        row[place[i]] += 1.0
        row[place[j]] -= 1.0
        row[v + k] = -1.0
        rows.append(row)
        sides.append(gamma)
    mean = (share > 0) if budget == 0.0 else share / q  # without a budget every pair must hold
    rows.append(np.append(np.zeros(v), mean).astype(float))
    sides.append(budget)
    status, value = least(cost, (rows, sides))
    return ProblemCase(problem, status, value + float(label.mean()), skip=SKIP)


def classes(rng: np.random.Generator) -> ProblemCase:
    """Three or four classes: listed hypotheses, or one class for each distinct row; any notion, classwise."""
    while True:
        c, n = int(rng.integers(3, 5)), int(rng.integers(3, 9))
        x, label = rng.integers(0, 3, size=n), rng.integers(0, c, size=n)
        group = rng.integers(0, int(rng.integers(1, 4)), size=n)
        missing = rng.random(n) < rng.choice([0.0, 0.0, 0.3])
        names = np.unique(group[~missing])
        if missing.all() or (len(names) == 1 and missing.any()):
            continue
        weights = rng.choice([1.0, 1.0, 2.0, 0.0, 0.5], size=n) * rng.choice([1.0, 1e-7, 1e7])
        if not weights.sum():
            continue
        if rng.random() < 0.5:
            table = rng.integers(0, c, size=(int(rng.integers(1, 9)), n))
            hypotheses: object = Finite(table)
        else:
            rows, place = np.unique(x, return_inverse=True)
            table = np.array(list(product(range(c), repeat=len(rows))))[:, place]
            hypotheses = AllFunctions()
        w, notion = weights / weights.sum(), random_notion(rng)
        parts = notion.notions if isinstance(notion, AllOf) else (notion,)
        member = np.array([(group == a) & ~missing for a in names]) * w
        size = member.sum(axis=1)
        fair = []  # notion, how much of each cell a hypothesis predicts, and the mass of the cell
        for part in parts:
            if isinstance(part, ErrorParity | BoundedGroupLoss):
                wrong = member @ (table != label).T
                fair.append((part, np.stack([wrong, 0 * wrong], axis=1), np.stack([size, 0 * size], axis=1)))
                continue
            for y in range(c):
                sides = [member * (label != y), member * (label == y)]
                share = np.stack([side @ (table == y).T for side in sides], axis=1)
                fair.append((part, share, np.stack([side.sum(axis=1) for side in sides], axis=1)))
        problem = declared(
            lambda x=x, y=label, g=group, m=missing, d=notion, w=weights, h=hypotheses, c=c: (
                FairClassification(
                    features=x[:, None].astype(float),
                    labels=y,
                    groups=[None if gone else str(name) for name, gone in zip(g, m, strict=True)],
                    constraint=d,
                    weights=w,
                    hypotheses=h,
                    classes=[f"class {k}" for k in range(c)],
                )
            ),
            all(defined(part, mass) for part, _, mass in fair),
        )
        if problem is not None:
            break
    rows, ends = [], []
    for part, share, mass in fair:
        found, limits = rows_of(part, share, mass)
        rows += found
        ends += limits
    status, value = least((table != label) @ w, (rows, ends), mixture=True)
    return ProblemCase(problem, status, value, skip=SKIP)


CAMPAIGNS = {
    "fair-classification": tables,
    "multiclass-classification": classes,
    "pairwise-classification": pairs,
}
