"""Linear queries under correlated Gaussian noise, and methods that factor their workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import sqrt
from typing import Any, ClassVar, Literal, Self
from warnings import warn

import numpy as np
import scipy
from pydantic import Field, field_validator

from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require
from forcopt.language import Model, block, semidefinite, symmetric
from forcopt.loops.solution import ModelSolution
from forcopt.models.counting_queries import tolerances as tol
from forcopt.models.counting_queries.calibration import is_number, is_whole
from forcopt.privacy import AdditiveMechanism, Gaussian
from forcopt.privacy.losses import gaussian_shift
from forcopt.privacy.tolerances import CALIBRATED
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Outcome, Problem
from forcopt.problem.drawing import Sketch
from forcopt.status import Status


@dataclass(frozen=True, eq=False)
class Factorization:
    """A workload W as B A: A x is released with independent Gaussian noise, and B maps it to the answers.

    Attributes
    ----------
    left : Array
        B, shape ``(queries, r)``.
    right : Array
        A, shape ``(r, counts)``.
    """

    left: Array
    right: Array

    def __repr__(self) -> str:
        return f"<a factorization {self.left.shape[0]} x {self.left.shape[1]} x {self.right.shape[1]}>"


class LinearQueries(Problem):
    """Linear queries W x of counts x, released as ``B (A x + z)`` with Gaussian z, where W = B A.

    Parameters
    ----------
    workload : array_like
        W, shape ``(queries, counts)``, not 0 everywhere. A count whose column is 0 is free.
    epsilon, delta : float
        Above 0; delta below 1.
    error : {"max", "mean"}
        The root mean square error of the worst query, or the root of the mean over the queries.
    neighbours : {"add_remove", "substitute"}
        Whether one person adds 1 to one count, or moves from one count to another.

    Raises
    ------
    DeclarationError
        For an empty workload or parameters out of range.

    Notes
    -----
    The noise has standard deviation ``sigma * s``, with sigma from the analytic Gaussian mechanism and s
    the largest norm of a column of A, or of a difference of two. The least product of s and the largest
    norm of a row of B is the factorization norm gamma_2.

    References
    ----------
    Li, Miklau, Hay, McGregor and Rastogi (2015), The matrix mechanism; Edmonds, Nikolov and Ullman (2020),
    The power of factorization mechanisms.

    Examples
    --------
    >>> from forcopt.models import LinearQueries
    >>> s = LinearQueries.prefix(2, epsilon=1.0, delta=1e-6).solve()
    >>> round(s.evaluation.metrics["factorization norm"], 3)  # 2 / sqrt(3)
    1.155
    """

    family: ClassVar[str] = "counting"
    default_method: ClassVar[str] = "fixed-point"

    workload: Numbers
    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    delta: float = Field(gt=0.0, lt=1.0)
    error: Literal["max", "mean"] = "max"
    neighbours: Literal["add_remove", "substitute"] = "add_remove"

    @field_validator("workload")
    @classmethod
    def _is_matrix(cls, w: Array) -> Array:
        require(w.ndim == 2 and 0 not in w.shape, "the shape", w.shape, "be (queries, counts), not empty")
        if not w.any():
            raise DeclarationError("it is 0 everywhere; there is nothing to answer")
        return w

    @classmethod
    def prefix(cls, counts: int, epsilon: float, delta: float, **fields: Any) -> Self:
        """All sums of the first counts: continual counting."""
        return cls(workload=np.tri(_positive(counts)), epsilon=epsilon, delta=delta, **fields)

    @classmethod
    def ranges(cls, counts: int, epsilon: float, delta: float, **fields: Any) -> Self:
        """All sums of consecutive counts, ``counts (counts + 1) / 2`` of them."""
        x = np.arange(_positive(counts))
        rows = [(x >= i) & (x <= j) for i in x for j in x[i:]]
        return cls(workload=np.array(rows, dtype=float), epsilon=epsilon, delta=delta, **fields)

    @classmethod
    def marginals(
        cls, categories: Mapping[str, Any], order: int, epsilon: float, delta: float, **fields: Any
    ) -> Self:
        """All marginals of `order` attributes.

        Parameters
        ----------
        categories : Mapping
            The categories of each attribute, each once. They are public; those that occur in a table of
            records are not, so that a column of records is refused. Counts are the cells of the product of
            the categories, the last attribute the fastest.
        order : int
            From 1 to the number of attributes.
        epsilon, delta, fields
            See the class.
        """
        if not isinstance(categories, Mapping):
            raise DeclarationError(
                f"categories is a {type(categories).__name__}; it must map attributes to categories"
            )
        for name, column in categories.items():
            if len(np.unique(np.asarray(column))) < len(column):
                raise DeclarationError(
                    f"categories of {name!r} repeat; each is listed once, as the records are not public"
                )
        sizes = [len(column) for column in categories.values()]
        if not is_whole(order) or not 1 <= order <= len(sizes):
            raise DeclarationError(f"order is {order!r}; it must be a whole number from 1 to {len(sizes)}")
        if 0 in sizes:
            raise DeclarationError("an attribute of categories has none")
        if np.prod(sizes) > 5000:
            raise DeclarationError(f"the categories have {np.prod(sizes)} cells; at most 5,000 fit")
        cells = np.indices(sizes).reshape(len(sizes), -1).T
        rows = []
        for chosen in combinations(range(len(sizes)), order):
            code = np.ravel_multi_index(tuple(cells[:, list(chosen)].T), [sizes[i] for i in chosen])
            rows.append(np.eye(int(code.max()) + 1)[:, code])
        return cls(workload=np.concatenate(rows), epsilon=epsilon, delta=delta, **fields)

    @cached_property
    def sigma(self) -> float:
        """The standard deviation of the analytic Gaussian mechanism for sensitivity 1."""
        return 1 / gaussian_shift(self.epsilon, self.delta)

    @cached_property
    def changes(self) -> Array:
        """The changes by one person, as the columns of a matrix, shape ``(counts, changes)``."""
        n = self.workload.shape[1]
        if self.neighbours == "add_remove":
            return np.eye(n)
        i, j = np.triu_indices(n, 1)
        out = np.zeros((n, len(i)))
        out[i, np.arange(len(i))], out[j, np.arange(len(i))] = 1.0, -1.0
        return out

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        errors = np.linalg.norm(decision.left, axis=1) * evaluation.metrics["deviation"]
        title = f"Query {errors.argmax()} of {len(errors)} has the largest standard error, {errors.max():.3g}"
        return Sketch(title, errors, "query", unit="standard error of the answer")

    def evaluate(self, decision: Factorization) -> Evaluation:
        """Evaluate a factorization.

        Parameters
        ----------
        decision : Factorization
            B and A.

        Returns
        -------
        Evaluation
            The error; the violation ``"factorization"``, by which B A misses W on the changes by one person
            (relatively to its largest entry); metrics ``"factorization norm"``, ``"max"``, ``"mean"`` and
            ``"deviation"``, the standard deviation of the noise.
        """
        left, right = as_numbers(decision.left, "left"), as_numbers(decision.right, "right")
        if left.shape != (len(self.workload), right.shape[0]) or right.shape[1] != self.workload.shape[1]:
            shapes = f"{left.shape} and {right.shape}"
            raise DeclarationError(f"the factors have shapes {shapes}; the workload {self.workload.shape}")
        missed = self.workload - left @ right
        if self.neighbours == "substitute":  # the number of people is known, and its multiples are free
            missed = missed - missed.mean(axis=1, keepdims=True)
        wrong = float(np.abs(missed).max() / np.abs(self.workload).max())
        sensitivity = sqrt(self._sensitivity(right))
        rows = (left**2).sum(axis=1)
        deviation = self.sigma * sensitivity
        norms = {"max": sqrt(float(rows.max())), "mean": sqrt(float(rows.mean()))}
        metrics = {name: deviation * norm for name, norm in norms.items()}
        metrics |= {"factorization norm": sensitivity * norms[self.error], "deviation": deviation}
        violations = {"factorization": wrong} if wrong > FEASIBILITY_TOLERANCE else {}
        return Evaluation(metrics[self.error], violations, metrics)

    def mechanism(self, decision: Factorization) -> AdditiveMechanism:
        """The noise on A x, for a query of a `forcopt.privacy.Table`.

        ``(table.group_by(...).linear(decision.right) >> p.mechanism(decision)).release(ledger)`` releases
        A x + z; B times its values are the answers.

        Raises
        ------
        DeclarationError
            For factors that miss the workload.
        """
        found = self.evaluate(decision)
        if not found.feasible:
            raise DeclarationError(f"the factors miss the workload by {found.violation:.3g}")
        noise, size = found.metrics["deviation"], sqrt(self._sensitivity(decision.right))
        scaled: dict[str, Any] = {"sensitivity": size * (1 + CALIBRATED), "dimension": len(decision.right)}
        return AdditiveMechanism(Gaussian(scale=noise * (1 + CALIBRATED)), norm="l2", **scaled)

    def _sensitivity(self, right: Array) -> float:
        """The largest squared norm of one person's changes."""
        if self.neighbours == "add_remove":
            return float((right**2).sum(axis=0).max())
        gram = right.T @ right
        norms = np.diag(gram)
        return float((norms[:, None] + norms - 2 * gram).max())


def _positive(counts: int) -> int:
    require(is_whole(counts) and counts >= 1, "counts", counts, "be a whole number, at least 1")
    return int(counts)


@LinearQueries.algorithm("identity", cites="noise on each count", rank="published")
def identity(problem: LinearQueries, *, time_limit: float | None = None) -> Outcome:
    """Noise on each count, and sums of the noisy counts. It takes no time worth a limit."""
    return Outcome(Factorization(problem.workload, np.eye(problem.workload.shape[1])))


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
    branching : int, optional
        The number of children of a node, at least 2.

    Returns
    -------
    Outcome
        The factorization, without a bound.
    """
    require(is_whole(branching) and branching >= 2, "branching", branching, "be a whole number, at least 2")
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
        order = sum(w.shape)
        warn(f"sdp's cone has order {order}; beyond {LARGE} queries or counts use fixed-point", stacklevel=2)
    moving = problem.neighbours == "substitute"
    if moving:  # the number of people is known, and its multiples are free
        w = w - w.mean(axis=1, keepdims=True)
    size = float(np.abs(problem.workload).max())
    w = np.where(np.abs(w) > tol.RANK * size, w, 0.0) / size
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
        whole = block([[symmetric(outer), core], [core.T, inner]])
        model.subject_to(semidefinite(whole), name=model.unused_name("factors"))
        errors = squares if problem.error == "max" else squares.sum() / q
        model.subject_to(errors <= norm, name=model.unused_name("error"))
    model.subject_to(sensitivities <= norm, name=model.unused_name("sensitivity"))
    share = 1.0 if problem.error == "max" or not q else sqrt(q / len(w))

    def decision(result: ModelSolution) -> Factorization:
        if not q:
            return Factorization(np.zeros((len(w), 1)), np.zeros((1, w.shape[1])))
        matrix = np.asarray(result[inner])
        values, vectors = scipy.linalg.eigh(matrix)
        roots = np.sqrt(np.maximum(values, 0.0) + tol.RIDGE * np.diag(matrix).max())
        left = np.zeros((len(w), n))
        left[rows] = size * core @ (vectors / roots)
        right = np.zeros((n, w.shape[1]))
        right[:, columns] = (vectors * roots).T
        return Factorization(left, right)

    parts: dict[str, Any] = {"norm": norm, "squares": squares, "sensitivities": sensitivities}
    return Handles(norm, decision, unit=problem.sigma * share * size, **parts)


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
    gap : float, optional
        The relative gap between the bounds at which the method stops.
    most : int, optional
        The greatest number of steps.
    on_improvement : callable, optional
        Called with each better bound; it stops the method by returning True.

    Returns
    -------
    Outcome
        The factorization and the lower bound.
    """
    require(is_number(gap) and gap >= 0, "gap", gap, "be a number of at least 0")
    require(is_whole(most) and most >= 1, "most", most, "be a whole number, at least 1")
    trace = Trace(Deadline(time_limit), on_improvement)
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
        exact = np.abs(w - left @ right).max() <= tol.MISSED * largest
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
    bound = problem.sigma * share * lower * (1 - tol.BOUND_ROUNDING)
    status = Status.OPTIMAL if closed else Status.FEASIBLE
    return Outcome(Factorization(left, right), bound, status, steps, trace=trace.steps)


def _error(problem: LinearQueries, squares: Array) -> float:
    """The largest or the mean squared norm of the rows of B."""
    return float(squares.max() if problem.error == "max" else squares.mean())


def _weights(w: Array) -> Array:
    w = np.maximum(w, tol.DOMINATED * w.max())
    return np.asarray(w / w.sum())


def _factors(w: Array, u: Array, v: Array) -> tuple[float, Array, Array]:
    """The nuclear norm of ``sqrt(u) W sqrt(v)``, B and A, by the smaller Gram matrix or an SVD."""
    if w.shape[0] < w.shape[1]:
        nuclear, left, right = _factors(w.T, v, u)
        return nuclear, right.T, left.T
    m = np.sqrt(u)[:, None] * w * np.sqrt(v)
    if u.min() * v.min() > tol.BALANCED * u.max() * v.max():
        squares, vectors = scipy.linalg.eigh(m.T @ m)
        keep = squares > tol.GRAM_RANK * squares[-1]
        s, vectors = np.sqrt(squares[keep]), vectors[:, keep]
    else:  # dominated queries have tiny singular values, which the Gram matrix does not resolve
        s, vectors = scipy.linalg.svd(m, full_matrices=False)[1:]
        keep = s > tol.RANK * s[0]
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
