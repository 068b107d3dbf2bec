"""Enumeration of all sets of safe pairs, for laws with few points."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness.constant import constant_loss
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["enumeration"]

MOST_PAIRS = 24
_CHUNK = 1 << 14


@RobustBayes.algorithm("enumeration", exact=True, cites="by definition", rank="oracle")
def enumeration(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Try every set of the pairs of positive mass; at most 24 of them."""
    pairs = np.argwhere(problem.masses > 0)
    if len(pairs) > MOST_PAIRS:
        raise DeclarationError(
            f"there are {len(pairs)} pairs of positive mass; enumeration takes {MOST_PAIRS} at most"
        )
    deadline = Deadline(time_limit)
    number = np.full(problem.masses.shape, -1)
    number[tuple(pairs.T)] = np.arange(len(pairs))
    edges = problem.conflicts
    a, b = number[edges[:, 0], edges[:, 1]], number[edges[:, 2], edges[:, 3]]
    mass = problem.masses[tuple(pairs.T)]
    decision, loss = constant_loss(problem)
    total = float(problem.masses.sum())
    for first in range(0, 1 << len(pairs), _CHUNK):
        if deadline.passed:
            return Outcome(decision, min(problem.bayes_risk, loss), Status.FEASIBLE, message="time ran out")
        codes = np.arange(first, min(first + _CHUNK, 1 << len(pairs)))
        bits = (codes[:, None] >> np.arange(len(pairs))) & 1 == 1
        fits = ~(bits[:, a] & bits[:, b]).any(axis=1)
        value = total - bits[fits] @ mass
        if len(value) and value.min() < loss - 1e-15:
            safe = np.zeros(problem.masses.shape, dtype=bool)
            safe[tuple(pairs.T)] = bits[fits][int(value.argmin())]
            decision, loss = problem.classifier(safe), float(value.min())
    return Outcome(decision, float(problem.masses[~decision.safe].sum()))
