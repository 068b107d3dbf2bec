"""Greedy deletion: while some agent games, withdraw the criterion it games on (Algorithm 1)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.models.strategic.problem import OpenCriteria, StrategicClassification, StrategicGraph, spans
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["greedy_deletion", "largest_gaming_free_set"]


@StrategicClassification.algorithm(
    "greedy-deletion", cites="Ahmadi et al. (2022), Algorithm 1, Theorem 2", rank="published"
)
def greedy_deletion(problem: StrategicClassification, *, time_limit: float | None = None) -> Outcome:
    """Withdraw criteria until no agent games: optimal where no false positive is allowed, otherwise feasible.

    The set that is left contains every set on which no agent games, and each agent that qualifies on any such
    set qualifies on this one. So it is optimal for weights, groups and values of any kind (properties a to
    d).
    """
    is_open, passes = largest_gaming_free_set(problem)
    decision = OpenCriteria(np.flatnonzero(is_open).tolist())
    proved = problem.allows_no_false_positive
    return Outcome(decision, status=Status.OPTIMAL if proved else Status.APPROXIMATE, iterations=passes)


def largest_gaming_free_set(problem: StrategicGraph, among: Array | None = None) -> tuple[Array, int]:
    """Give the largest set of criteria on which no agent (of positive weight) games, and the number of
    passes.

    A pass deletes every criterion that some agent games on. That is safe: an agent's cheapest open criterion
    stays its cheapest in any smaller set that holds it, so none of the deleted ones is in any gaming-free
    set. Pointers into the agents' lists only move forward, and a pass visits only agents whose criterion was
    just deleted: O(E) in all, after sorting.

    Parameters
    ----------
    problem : StrategicGraph
        Which.
    among : Array, optional
        Mask of the criteria to choose from; all by default.

    Returns
    -------
    tuple[Array, int]
        The mask of the set, shape ``(m,)``, and how many passes deleted something (Proposition 1: at most m).
    """
    graph, m = problem.graph, problem.criteria
    is_open = np.append(
        np.ones(m, dtype=bool) if among is None else among, True
    )  # the last entry means "none"
    edges = len(graph.criterion)
    criterion = np.append(graph.criterion, m)
    at, end = graph.start[:-1].copy(), graph.start[1:]
    chosen = np.where(at < end, criterion[np.minimum(at, edges)], m)
    by_criterion = sp.csr_array(
        (np.ones(edges, np.int8), graph.criterion, graph.start), shape=(problem.agents, m)
    ).tocsc()
    counted = problem.agent_weights > 0
    moving = np.flatnonzero(counted)
    passes = 0
    while True:
        behind = moving[~is_open[chosen[moving]]]
        while behind.size:
            at[behind] += 1
            chosen[behind] = np.where(at[behind] < end[behind], criterion[at[behind]], m)
            behind = behind[~is_open[chosen[behind]]]
        settled = moving[chosen[moving] < m]
        gamed = np.unique(chosen[settled[~graph.improves[at[settled]]]])
        if not gamed.size:
            return is_open[:m], passes
        passes += 1
        is_open[gamed] = False
        first, count = by_criterion.indptr[gamed], np.diff(by_criterion.indptr)[gamed]
        neighbours = by_criterion.indices[spans(first, count)]
        moving = neighbours[chosen[neighbours] == np.repeat(gamed, count)]
        moving = moving[counted[moving]]
