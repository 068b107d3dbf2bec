"""The factorization norm as a semidefinite program."""

from __future__ import annotations

from math import sqrt
from warnings import warn

import numpy as np
import scipy

from forcopt.language import block, semidefinite, symmetric
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.counting_queries.linear_queries import Factorization, LinearQueries
from forcopt.problem import Handles

__all__ = ["sdp"]

LARGE = 64
"""Queries or counts beyond which an interior-point method takes minutes."""

RIDGE = 1e-9
"""Added to the Gram matrix of A, relative to its largest diagonal entry, so that it has an inverse."""


@LinearQueries.formulation(
    "sdp", exact=True, cites="Linial, Mendelson, Schechtman and Shraibman (2007); Edmonds et al. (2020)"
)
def sdp(problem: LinearQueries, model: Model) -> Handles:
    """Gram matrices P = B B' and Q = A' A such that ``[[P, W], [W', Q]]`` is semidefinite.

    By the Schur complement such P and Q exist exactly if W = B A with rows of B of squared norms at most
    ``P_ii``. The largest ``P_ii`` (for the mean error their mean) and the squared sensitivity ``d' Q d`` of
    every change d are at most gamma_2. One semidefinite cone of order queries + counts; an interior-point
    step is O((queries + counts)^6).

    Returns
    -------
    Handles
        ``norm``: gamma_2, in units of the largest ``|W_ij|``; ``squares``: ``P_ii`` of the queries that are
        not 0, shape ``(rows,)``; ``sensitivities``: ``d' Q d`` of each change. With sensitivities at most 1,
        ``squares`` are squared errors in units of (sigma times the largest ``|W_ij|``) squared, which
        `Model.leximax` can make small one after the other.

    Warns
    -----
    UserWarning
        Beyond 64 queries or counts, where ``fixed-point`` is faster by orders of magnitude.
    """
    w = problem.workload
    if max(w.shape) > LARGE:
        warn(
            f"sdp has a cone of order {sum(w.shape)}; beyond {LARGE} queries or counts use fixed-point",
            stacklevel=2,
        )
    moving = problem.neighbours == "substitute"
    if moving:  # the number of people is known, and its multiples are free
        w = w - w.mean(axis=1, keepdims=True)
    size = float(np.abs(problem.workload).max())
    w = np.where(np.abs(w) > 1e-14 * size, w, 0.0) / size
    rows = np.flatnonzero(w.any(axis=1))
    columns = np.arange(w.shape[1]) if moving else np.flatnonzero(w.any(axis=0))
    core = w[np.ix_(rows, columns)]
    q, n = core.shape
    norm = model.variable(model.unused_name("norm"), lower=0)
    gram = model.variable(model.unused_name("gram"), n * (n + 1) // 2)
    outer = model.variable(model.unused_name("outer"), q * (q + 1) // 2)
    inner = symmetric(gram)
    squares = outer[np.cumsum(np.arange(1, q + 1)) - 1]
    diagonal = gram[np.cumsum(np.arange(1, n + 1)) - 1]
    sensitivities = diagonal
    if moving:
        i, j = np.triu_indices(n, 1)
        sensitivities = diagonal[i] + diagonal[j] - 2 * inner[i, j]
    if q:
        model.subject_to(
            semidefinite(block([[symmetric(outer), core], [core.T, inner]])),
            name=model.unused_name("factors"),
        )
        model.subject_to(
            (squares if problem.error == "max" else squares.sum() / q) <= norm,
            name=model.unused_name("error"),
        )
    model.subject_to(sensitivities <= norm, name=model.unused_name("sensitivity"))
    share = 1.0 if problem.error == "max" or not q else sqrt(q / len(w))

    def decision(result: ModelSolution) -> Factorization:
        if not q:
            return Factorization(np.zeros((len(w), 1)), np.zeros((1, w.shape[1])))
        matrix = np.asarray(result[inner])
        values, vectors = scipy.linalg.eigh(matrix)
        roots = np.sqrt(np.maximum(values, 0.0) + RIDGE * np.diag(matrix).max())
        left = np.zeros((len(w), n))
        left[rows] = size * core @ (vectors / roots)
        right = np.zeros((n, w.shape[1]))
        right[:, columns] = (vectors * roots).T
        return Factorization(left, right)

    return Handles(
        objective=norm,
        decision=decision,
        unit=problem.sigma * share * size,
        norm=norm,
        squares=squares,
        sensitivities=sensitivities,
    )
