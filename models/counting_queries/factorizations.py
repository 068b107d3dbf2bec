"""Factorizations in closed form: identity, workload, hierarchical and square root."""

from __future__ import annotations

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.linear_queries import Factorization, LinearQueries
from forcopt.models.counting_queries.options import is_whole
from forcopt.problem import Outcome

__all__ = ["hierarchical", "identity", "square_root", "workload"]


@LinearQueries.algorithm("identity", cites="noise on each count", rank="published")
def identity(problem: LinearQueries, *, time_limit: float | None = None) -> Outcome:
    """Noise on each count, and sums of the noisy counts. It takes no time worth a limit."""
    n = problem.workload.shape[1]
    return Outcome(Factorization(problem.workload, np.eye(n)))


@LinearQueries.algorithm("workload", cites="noise on each answer", rank="published")
def workload(problem: LinearQueries, *, time_limit: float | None = None) -> Outcome:
    """Independent noise on each answer. It takes no time worth a limit."""
    return Outcome(Factorization(np.eye(len(problem.workload)), problem.workload))


@LinearQueries.algorithm("hierarchical", cites="Hay, Rastogi, Miklau and Suciu (2010)", rank="published")
def hierarchical(problem: LinearQueries, *, branching: int = 2, time_limit: float | None = None) -> Outcome:
    """Noise on each node of a tree over the counts, and least squares for the answers.

    Every count is in one node of each level, so that the noise is larger by the root of their number.

    Parameters
    ----------
    problem : LinearQueries
        The problem.
    branching : int, optional
        The number of children of a node, at least 2.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Outcome
        The factorization, without a bound.
    """
    if not is_whole(branching) or branching < 2:
        raise DeclarationError(f"branching is {branching!r}; it must be a whole number, at least 2")
    n = problem.workload.shape[1]
    x, width, parts = np.arange(n), 1, []
    while True:
        blocks = x // width
        parts.append(np.eye(int(blocks[-1]) + 1)[:, blocks])
        if blocks[-1] == 0:
            break
        width *= branching
    tree = np.concatenate(parts)
    gram = tree.T @ tree
    return Outcome(Factorization(problem.workload @ np.linalg.solve(gram, tree.T), tree))


@LinearQueries.algorithm("square-root", cites="Henzinger, Upadhyay and Upadhyay (2023)", rank="published")
def square_root(problem: LinearQueries, *, time_limit: float | None = None) -> Outcome:
    """Prefix sums as the square of a lower triangular Toeplitz matrix with entries C(2 j, j) / 4^j."""
    n = problem.workload.shape[1]
    if problem.workload.shape != (n, n) or not np.array_equal(problem.workload, np.tri(n)):
        raise DeclarationError("square-root is for prefix sums: workload must be LinearQueries.prefix(n)")
    j = np.arange(1, n)
    entries = np.append(1.0, np.cumprod((2 * j - 1) / (2 * j)))
    lag = np.arange(n)[:, None] - np.arange(n)
    root = np.where(lag >= 0, entries[np.maximum(lag, 0)], 0.0)
    return Outcome(Factorization(root, root))
