"""Factorizations of a workload: closed forms, a semidefinite program, a fixed point with a certified gap."""

from __future__ import annotations

from math import sqrt
from warnings import warn

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.language import block, semidefinite, symmetric
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.counting_queries.calibration import is_number, is_whole
from forcopt.models.counting_queries.linear_queries import Factorization, LinearQueries
from forcopt.models.counting_queries.tolerances import (
    BALANCED,
    BOUND_ROUNDING,
    DOMINATED,
    GRAM_RANK,
    MISSED,
    RANK,
    RIDGE,
)
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


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


LARGE = 64
"""Queries or counts beyond which an interior-point method takes minutes."""


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
    w = np.where(np.abs(w) > RANK * size, w, 0.0) / size
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
        exact = np.abs(w - left @ right).max() <= MISSED * largest
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
        bound=problem.sigma * share * lower * (1 - BOUND_ROUNDING),
        status=Status.OPTIMAL if closed else Status.FEASIBLE,
        iterations=steps,
        trace=trace.steps,
    )


def _error(problem: LinearQueries, squares: Array) -> float:
    """The largest or the mean squared norm of the rows of B."""
    return float(squares.max() if problem.error == "max" else squares.mean())


def _weights(w: Array) -> Array:
    w = np.maximum(w, DOMINATED * w.max())
    return np.asarray(w / w.sum())


def _factors(w: Array, u: Array, v: Array) -> tuple[float, Array, Array]:
    """The nuclear norm of ``sqrt(u) W sqrt(v)``, B and A, by the smaller Gram matrix or an SVD."""
    if w.shape[0] < w.shape[1]:
        nuclear, left, right = _factors(w.T, v, u)
        return nuclear, right.T, left.T
    m = np.sqrt(u)[:, None] * w * np.sqrt(v)
    if u.min() * v.min() > BALANCED * u.max() * v.max():
        squares, vectors = scipy.linalg.eigh(m.T @ m)
        keep = squares > GRAM_RANK * squares[-1]
        s, vectors = np.sqrt(squares[keep]), vectors[:, keep]
    else:  # dominated queries have tiny singular values, which the Gram matrix does not resolve
        s, vectors = scipy.linalg.svd(m, full_matrices=False)[1:]
        keep = s > RANK * s[0]
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
