"""The factorization norm by a fixed point of row and column weights, with a certified gap at each step."""

from __future__ import annotations

from math import sqrt

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.linear_queries import Factorization, LinearQueries
from forcopt.models.counting_queries.options import is_number, is_whole
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["fixed_point"]

FLOOR = 1e-12
"""Of a weight, relative to the largest: dominated queries keep that much."""

EXACT = 1e-9
"""By how much B A may miss W, relative to the largest entry of W."""


@LinearQueries.algorithm(
    "fixed-point", exact=True, cites="duality of gamma_2 (Lee, Shraibman and Spalek 2008)"
)
def fixed_point(
    problem: LinearQueries,
    *,
    gap: float = 1e-4,
    most: int = 5000,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Weigh queries and counts until the factors from the singular value decomposition are balanced.

    For weights u of the queries and v of the changes, both with sum 1, the nuclear norm of
    ``sqrt(u) W sqrt(v)`` is a lower bound on gamma_2, and its singular vectors give the factors
    ``B = W sqrt(v) V S^(-1/2)`` and ``A = S^(1/2) V' / sqrt(v)``, hence an upper bound. At the optimum all
    rows of weight have one norm, and so have all columns, so that u is multiplied by the squared norms of
    the rows of B, and v by the squared norms of the columns of A. For the mean error u stays uniform. One
    step is an eigendecomposition, O(min(queries, changes)^3).

    Stops at the relative `gap` between the two bounds, and is then optimal up to it.

    Parameters
    ----------
    problem : LinearQueries
        The problem.
    gap : float, optional
        The relative gap between the bounds at which the method stops.
    most : int, optional
        The greatest number of steps.
    time_limit : float, optional
        Seconds.
    on_improvement : callable, optional
        Called with each better bound; it stops the method by returning True.

    Returns
    -------
    Outcome
        The factorization and the lower bound.
    """
    if not (is_number(gap) and gap >= 0):
        raise DeclarationError(f"gap is {gap!r}; it must be a number of at least 0")
    if not is_whole(most) or most < 1:
        raise DeclarationError(f"most is {most!r}; it must be a whole number, at least 1")
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    w = problem.workload @ problem.changes if problem.neighbours == "substitute" else problem.workload
    rows, columns = np.flatnonzero(w.any(axis=1)), np.flatnonzero(w.any(axis=0))
    if not len(columns):
        left = np.zeros((len(problem.workload), 1))
        return Outcome(Factorization(left, np.zeros((1, problem.workload.shape[1]))), bound=0.0)
    w = w[np.ix_(rows, columns)]
    share = 1.0 if problem.error == "max" else sqrt(len(rows) / len(problem.workload))
    u, v = np.full(len(w), 1 / len(w)), np.full(w.shape[1], 1 / w.shape[1])
    largest = np.abs(w).max()
    lower, steps = 0.0, 0
    upper = sqrt(_error(problem, (w**2).sum(axis=1)))
    factors: tuple[Array, Array] = w, np.eye(w.shape[1])
    while steps < most:
        nuclear, left, right = _factors(w, u, v)
        steps += 1
        r, c = (left**2).sum(axis=1), (right**2).sum(axis=0)
        worst = sqrt(_error(problem, r) * float(c.max()))
        lower = max(lower, nuclear)
        exact = np.abs(w - left @ right).max() <= EXACT * largest
        if exact and worst < upper:
            upper, factors = worst, (left, right)
        stop = trace.add(problem.sigma * share * upper, problem.sigma * share * lower)
        if stop or trace.over or upper - lower <= gap * upper:
            break
        if problem.error == "max":
            u = _weights(u * (r / r.max()))
        v = _weights(v * (c / c.max()))
    left, right = _original(problem, rows, columns, *factors)
    closed = upper - lower <= gap * upper
    return Outcome(
        Factorization(left, right),
        bound=problem.sigma * share * lower * (1 - 1e-9),
        status=Status.OPTIMAL if closed else Status.FEASIBLE,
        iterations=steps,
        trace=trace.steps,
    )


def _error(problem: LinearQueries, squares: Array) -> float:
    """The largest or the mean squared norm of the rows of B."""
    return float(squares.max() if problem.error == "max" else squares.mean())


def _weights(w: Array) -> Array:
    w = np.maximum(w, FLOOR * w.max())
    return np.asarray(w / w.sum())


def _factors(w: Array, u: Array, v: Array) -> tuple[float, Array, Array]:
    """The nuclear norm of ``sqrt(u) W sqrt(v)``, B and A, by the smaller Gram matrix or an SVD."""
    if w.shape[0] < w.shape[1]:
        nuclear, left, right = _factors(w.T, v, u)
        return nuclear, right.T, left.T
    m = np.sqrt(u)[:, None] * w * np.sqrt(v)
    if u.min() * v.min() > 1e-8 * u.max() * v.max():
        squares, vectors = scipy.linalg.eigh(m.T @ m)
        keep = squares > 1e-13 * squares[-1]
        s, vectors = np.sqrt(squares[keep]), vectors[:, keep]
    else:  # dominated queries have tiny singular values, which the Gram matrix does not resolve
        s, vectors = scipy.linalg.svd(m, full_matrices=False)[1:]
        keep = s > 1e-14 * s[0]
        s, vectors = s[keep], vectors[keep].T
    left = (w * np.sqrt(v)) @ (vectors / np.sqrt(s))
    right = (vectors * np.sqrt(s)).T / np.sqrt(v)
    return float(s.sum()), left, right


def _original(
    problem: LinearQueries, rows: Array, columns: Array, left: Array, right: Array
) -> tuple[Array, Array]:
    """The factors with the rows and columns of zeros again; A on counts rather than on changes."""
    queries, counts = problem.workload.shape
    whole = np.zeros((queries, left.shape[1]))
    whole[rows] = left
    if problem.neighbours == "substitute":
        base = problem.workload - problem.workload.mean(axis=1, keepdims=True)
        return whole, np.linalg.lstsq(left, base[rows], rcond=None)[0]
    out = np.zeros((right.shape[0], counts))
    out[:, columns] = right
    return whole, out
