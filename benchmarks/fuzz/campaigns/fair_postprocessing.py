"""Post-processing of a classifier's predictions, against scipy's linear programs of the rates."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from benchmarks.fuzz.case import ProblemCase
from forcopt.fairness import DemographicParity, EqualizedOdds, EqualOpportunity, FalsePositiveParity
from forcopt.models.fair_postprocessing import FairPostprocessing

NOTIONS = {
    EqualizedOdds: ((0,), (1,)),
    EqualOpportunity: ((1,),),
    FalsePositiveParity: ((0,),),
    DemographicParity: ((0, 1),),
}
"""The labels over which each notion's rates of predictions 1 are taken."""


def postprocessing(rng: np.random.Generator) -> ProblemCase:
    """Two or three groups, small counts; equal rates up to a tolerance that may be 0."""
    groups = int(rng.integers(1, 4))
    counts = rng.integers(1, 9, size=(2, groups, 2)).astype(float)
    notion = list(NOTIONS)[int(rng.integers(len(NOTIONS)))]
    tolerance = float(rng.choice([0.0, 0.01, 0.1, 0.5]))
    problem = FairPostprocessing(counts=counts.tolist(), constraint=notion(tolerance))
    total = counts.sum()
    # p[h, a] at position h * groups + a; error = P(label 1) + sum p (mass of label 0 - mass of label 1)
    cost = ((counts[:, :, 0] - counts[:, :, 1]) / total).ravel()
    rows, sides = [], []
    for labels in NOTIONS[notion]:
        mass = counts[:, :, list(labels)].sum(axis=2)
        rate = [np.zeros((2, groups)) for _ in range(groups)]
        for a in range(groups):
            rate[a][:, a] = mass[:, a] / mass[:, a].sum()
        for a in range(groups):
            for b in range(groups):
                if a != b:
                    rows.append((rate[a] - rate[b]).ravel())
                    sides.append(tolerance)
    found = linprog(cost, rows or None, sides or None, bounds=(0, 1))
    return ProblemCase(problem, "optimal", float(found.fun + counts[:, :, 1].sum() / total))


CAMPAIGNS = {"fair-postprocessing": postprocessing}
