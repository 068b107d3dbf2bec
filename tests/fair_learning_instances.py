"""The small instances that several tests use."""

import numpy as np

from forcopt.fairness import EqualizedOdds, PairwiseFairness
from forcopt.models.fair_classification import (
    AllFunctions,
    FairClassification,
    Finite,
    Halfspaces,
    Thresholds,
)

X12 = np.array([[0], [0], [1], [1], [2], [2], [0], [1], [2], [0], [1], [1]])
Y12 = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1])
A12 = np.repeat(["a", "b"], 6)
TABLE12 = np.array([0 * X12[:, 0], X12[:, 0] >= 2, X12[:, 0] >= 1, 0 * X12[:, 0] + 1]).astype(int)
"""Predict nobody, from 2 on, from 1 on, everybody."""


def twelve(constraint=None, hypotheses=None, **fields):
    """Twelve records with one feature and two groups; the least error is max(1/3, (1 - gamma) / 2)."""
    return FairClassification(
        features=X12,
        labels=Y12,
        groups=A12,
        constraint=constraint or EqualizedOdds(0.1),
        hypotheses=hypotheses or Finite(TABLE12),
        **fields,
    )


def line(gamma, budget):
    """Four points on a line, labels 0101, neighbours to be treated alike."""
    pairs = PairwiseFairness([(0, 1), (1, 0), (2, 3), (3, 2)], gamma=gamma, budget=budget)
    return FairClassification([[0], [1], [2], [3]], [0, 1, 0, 1], [0] * 4, pairs, hypotheses=Thresholds())


def xor(gamma, pairs=((1, 0), (0, 1), (2, 3), (3, 2))):
    """The corners of a square with the labels of exclusive or, by halfspaces."""
    square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    return FairClassification(
        square, [0, 1, 1, 0], [0] * 4, PairwiseFairness(pairs, gamma=gamma), hypotheses=Halfspaces()
    )


def free(labels, pairs, gamma=0.0, budget=0.0, **fields):
    """All functions of n different records."""
    n = len(labels)
    notion = PairwiseFairness(pairs, gamma=gamma, budget=budget, **fields)
    return FairClassification(np.arange(n)[:, None], labels, [0] * n, notion, hypotheses=AllFunctions())


def twenty(gamma, budget, hypotheses=None):
    """Twenty points on a line; every third of ten pairs is far apart."""
    i = np.arange(20)
    pairs = [p for k in range(10) for p in ((k, (7 * k + 5) % 20), ((7 * k + 5) % 20, k))]
    return FairClassification(
        i[:, None],
        (i >= 10) ^ (i % 5 == 3),
        [0] * 20,
        PairwiseFairness(pairs, gamma=gamma, budget=budget),
        hypotheses=hypotheses or Thresholds(),
    )


def random_problem(rng, groups=2, n=24, d=1, constraint=None, hypotheses=None):
    """Random records with every cell (group, label) filled."""
    cells = np.array([(a, y) for a in range(groups) for y in (0, 1)])
    a, y = np.vstack([cells, cells[rng.integers(0, len(cells), n - len(cells))]]).T
    x = rng.normal(size=(n, d)).round(1) + y[:, None] + 0.5 * a[:, None]
    return FairClassification(
        x, y, a, constraint or EqualizedOdds(0.1), hypotheses=hypotheses or Thresholds()
    )
