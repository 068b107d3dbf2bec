"""Strict counterfactual order by pooling adjacent violators."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from forcopt.errors import DeclarationError
from forcopt.fairness.ranking import CounterfactualOrder
from forcopt.models.fair_ranking.problem import FairRanking
from forcopt.problem import Outcome

__all__ = ["isotonic"]


@FairRanking.algorithm("isotonic", exact=True, cites="Barlow et al. (1972); Rado (1952)")
def isotonic(problem: FairRanking, *, time_limit: float | None = None) -> Outcome:
    """Without slack: pool candidates whose scores run against the order; each pool shares its positions.

    Parameters
    ----------
    time_limit : float, optional
        Accepted like that of every method; a rule in closed form needs no clock.

    Notes
    -----
    Exposures fall along the counterfactual order, so that by Abel's summation only the concave majorant of
    the cumulated scores counts. Its slopes are the antitonic regression of the scores. O(n log n).
    """
    notions = problem.notions
    if len(notions) != 1 or not isinstance(notions[0], CounterfactualOrder) or notions[0].slack:
        raise DeclarationError("'isotonic' takes a CounterfactualOrder without slack, and nothing else")
    if problem.integer or problem.scores is None:
        raise DeclarationError("'isotonic' finds lotteries, for scores")
    order = np.lexsort((-problem.scores, -notions[0].scores))  # within ties by score
    blocks = isotonic_regression(problem.scores[order], increasing=False).blocks
    w = np.zeros(problem.size)
    w[: problem.length] = problem.position_weights
    starts, sizes = blocks[:-1], np.diff(blocks)
    e = np.empty(problem.size)
    e[order] = np.repeat(np.add.reduceat(w, starts) / sizes, sizes)
    return Outcome(problem.lottery(exposures=e), iterations=len(sizes))
