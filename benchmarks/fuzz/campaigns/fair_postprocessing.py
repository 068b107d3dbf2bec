"""Post-processing of a classifier's predictions and scores, against scipy's linear programs of the rates."""

from __future__ import annotations

import numpy as np

from benchmarks.fuzz.case import ProblemCase
from benchmarks.fuzz.notions import declared, defined, least, random_notion, rows_of
from forcopt.fairness import AllOf, BoundedGroupLoss, ErrorParity
from forcopt.models.fair_postprocessing import (
    FairPostprocessing,
    MulticlassPostprocessing,
    ScorePostprocessing,
)


def postprocessing(rng: np.random.Generator) -> ProblemCase:
    """One to three groups, small counts, some 0; any notion."""
    while True:
        groups = int(rng.integers(1, 4))
        counts = rng.integers(0, 9, size=(2, groups, 2)) * int(rng.choice([1, 1, 1, 100_000]))
        if rng.random() < 0.7:
            counts = counts + 1
        notion, mass = random_notion(rng), counts.sum(axis=0).astype(float)
        if not mass.sum():
            continue
        problem = declared(
            lambda c=counts, n=notion: FairPostprocessing(counts=c.tolist(), constraint=n),
            defined(notion, mass),
        )
        if problem is not None:
            break
    total = float(counts.sum())
    # p[h, a] is column h * groups + a; error = P(label 1) + sum p (mass of label 0 - mass of label 1)
    cost = ((counts[:, :, 0] - counts[:, :, 1]) / total).ravel()
    part = np.zeros((groups, 2, 2 * groups))
    for h in (0, 1):
        for a in range(groups):
            part[a, :, h * groups + a] = counts[h, a]
    status, value = least(cost, rows_of(notion, part, mass))
    return ProblemCase(problem, status, value + counts[:, :, 1].sum() / total, skip=("dp-postprocessing",))


def scores(rng: np.random.Generator) -> ProblemCase:
    """Scores with ties, of one to three groups, with weights of any size; any notion."""
    while True:
        n = int(rng.integers(1, 14))
        score, label = rng.integers(0, 5, size=n), rng.integers(0, 2, size=n)
        group = rng.integers(0, int(rng.integers(1, 4)), size=n)
        weights = rng.choice([1.0, 1.0, 2.0, 0.0, 0.25], size=n) * rng.choice([1.0, 1e-6, 1e6])
        if not weights.sum():
            continue
        names = np.unique(group)
        mass = np.array([[weights[(group == a) & (label == y)].sum() for y in (0, 1)] for a in names])
        notion = random_notion(rng)
        problem = declared(
            lambda g=group, s=score, w=weights, y=label, m=notion: ScorePostprocessing(
                scores=s, labels=y, groups=g.tolist(), constraint=m, weights=w
            ),
            defined(notion, mass),
        )
        if problem is not None:
            break
    # a column for every threshold of every group: predict 1 from the k-th distinct score on, or never
    columns, owner = [], []
    for a, name in enumerate(names):
        for cut in [*np.unique(score), np.inf]:
            chosen = (group == name) & (score >= cut)
            column = np.zeros((len(names), 2))
            column[a] = [weights[chosen & (label == y)].sum() for y in (0, 1)]
            columns.append(column)
            owner.append(a)
    part, total = np.stack(columns, axis=-1), weights.sum()
    rows, sides = rows_of(notion, part / total, mass / total)
    each = np.eye(len(names))[:, owner]
    rows += [*each, *-each]
    sides += [1.0] * len(names) + [-1.0] * len(names)
    status, value = least((part[:, 0] - part[:, 1]).sum(axis=0) / total, (rows, sides))
    return ProblemCase(problem, status, value + mass[:, 1].sum() / total)


def classes(rng: np.random.Generator) -> ProblemCase:
    """Two or three classes, one to three groups, small counts; any notion, class by class."""
    while True:
        c, k = int(rng.integers(2, 4)), int(rng.integers(1, 4))
        counts = rng.integers(0, 7, size=(c, k, c)) * int(rng.choice([1, 1, 100_000]))
        if rng.random() < 0.8:
            counts = counts + 1
        if not counts.sum():
            continue
        notion = random_notion(rng)
        parts = notion.notions if isinstance(notion, AllOf) else (notion,)
        size = counts.sum(axis=(0, 2)).astype(float)
        of_class = counts.sum(axis=0).astype(float)
        # column (h, a, j): a record of group a that is predicted h gets class j
        shape, each = (c, k, c), np.arange(c * k * c)
        at = np.stack(np.unravel_index(each, shape))
        fair = [
            (part, None if isinstance(part, ErrorParity | BoundedGroupLoss) else y)
            for part in parts
            for y in range(1 if isinstance(part, ErrorParity | BoundedGroupLoss) else c)
        ]
        masses = [
            np.stack([size - of_class[:, y], of_class[:, y]], axis=1)
            if y is not None
            else np.stack([size, 0 * size], axis=1)
            for _, y in fair
        ]
        good = all(defined(part, mass) for (part, _), mass in zip(fair, masses, strict=True))
        problem = declared(
            lambda n=counts, m=notion: MulticlassPostprocessing(counts=n.tolist(), constraint=m), good
        )
        if problem is not None:
            break
    rows, sides = [], []
    for (part, y), mass in zip(fair, masses, strict=True):
        share = np.zeros((k, 2, len(each)))
        for e, h, a, j in zip(each, *at, strict=True):
            if y is None:
                share[a, 0, e] = counts[h, a].sum() - counts[h, a, j]
            elif j == y:
                share[a, :, e] = counts[h, a].sum() - counts[h, a, y], counts[h, a, y]
        found, ends = rows_of(part, share, mass)
        rows += found
        sides += ends
    one = np.array([(at[0] == h) & (at[1] == a) for h in range(c) for a in range(k)], dtype=float)
    rows += [*one, *-one]
    sides += [1.0] * len(one) + [-1.0] * len(one)
    status, value = least(-counts[at[0], at[1], at[2]] / counts.sum(), (rows, sides))
    return ProblemCase(problem, status, value + 1.0)


CAMPAIGNS = {
    "fair-postprocessing": postprocessing,
    "score-postprocessing": scores,
    "multiclass-postprocessing": classes,
}
