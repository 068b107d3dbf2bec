"""Noise for counts, private mechanisms and factorizations, by programs over all points and full matrices."""

from __future__ import annotations

from itertools import product
from math import exp, log, sqrt

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq, linprog
from scipy.special import log_ndtr

from benchmarks.fuzz.case import ProblemCase
from forcopt.models import CountingQueries, LatticeNoise, LinearQueries, PrivateMechanism


def private_law(
    loss: np.ndarray,
    pairs: list[tuple[np.ndarray, np.ndarray]],
    sums: sp.csr_array,
    epsilon: float,
    delta: float,
) -> float:
    """The least ``loss @ x`` over nonnegative x with ``sums x = 1`` and private pairs of outcomes.

    A pair holds the positions in x of the probabilities under two neighbours, outcome by outcome; -1 is the
    probability 0. NaN if there is none.
    """
    n, slack = len(loss), len(loss)
    rows: list[tuple[int, int, float]] = []
    right: list[float] = []
    for one, other in pairs:
        for a, b in zip(one.tolist(), other.tolist(), strict=True):
            at = len(right)
            rows += [(at, a, exp(-epsilon))] if a >= 0 else []
            rows += [(at, b, -1.0)] if b >= 0 else []
            rows.append((at, slack, -exp(-epsilon)))
            right.append(0.0)
            slack += 1
        rows += [(len(right), slack - 1 - i, 1.0) for i in range(len(one))]
        right.append(delta)
    at, column, value = zip(*rows, strict=True) if rows else ((), (), ())
    equal = sp.csr_array((sums.data, sums.indices, sums.indptr), shape=(sums.shape[0], slack))
    found = linprog(
        np.append(loss, np.zeros(slack - n)),
        A_ub=sp.csr_array((value, (at, column)), shape=(len(right), slack)) if rows else None,
        b_ub=right or None,
        A_eq=equal,
        b_eq=np.ones(sums.shape[0]),
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return float(found.fun) if found.status == 0 else float("nan")


def lattice(queries: int, radius: int, epsilon: float, delta: float) -> float:
    """The best joint law in a box, point by point, without symmetry."""
    points = list(product(range(-radius, radius + 1), repeat=queries))
    index = {x: i for i, x in enumerate(points)}
    pairs = []
    for change in product((-1, 0, 1), repeat=queries):
        if any(change):
            moved = [tuple(a - b for a, b in zip(x, change, strict=True)) for x in points]
            pairs.append((np.arange(len(points)), np.array([index.get(y, -1) for y in moved])))
    loss = np.abs(points).max(axis=1).astype(float)
    return private_law(loss, pairs, sp.csr_array(np.ones((1, len(points)))), epsilon, delta)


def joint_noise(rng: np.random.Generator) -> ProblemCase:
    """The lattice's law for one or two counts, often infeasible in a small box."""
    queries = int(rng.integers(1, 3))
    radius = int(rng.integers(1, 9 if queries == 1 else 5))
    epsilon, delta = float(np.exp(rng.uniform(-3, 2.5))), float(rng.choice([1e-3, 0.01, 0.1, 0.3, 0.9]))
    problem = LatticeNoise(queries=queries, epsilon=epsilon, delta=delta, radius=radius)
    value = lattice(queries, radius, epsilon, delta)
    return ProblemCase(problem, "infeasible" if np.isnan(value) else "optimal", value)


def one_count(rng: np.random.Generator) -> ProblemCase:
    """Whole noise for one count: no law is better than the best one in a large box."""
    epsilon, delta = float(rng.uniform(0.5, 3)), float(rng.choice([1e-3, 0.01, 0.1]))
    problem = CountingQueries(queries=1, epsilon=epsilon, delta=delta, whole=True)
    return ProblemCase(problem, "optimal", lattice(1, 40, epsilon, delta))


def mechanism(rng: np.random.Generator) -> ProblemCase:
    """Any loss, any graph of neighbours, perhaps a prior."""
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    whole = rng.random() < 0.6
    loss = (
        rng.integers(0, 5, (n, m)).astype(float)
        if whole
        else rng.random((n, m)) * 10.0 ** rng.integers(-3, 5)
    )
    edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6]
    epsilon, delta = (
        float(rng.choice([0, 0.01, 0.5, log(2), 3, 8, 12])),
        float(rng.choice([0, 0, 0.01, 0.1, 0.9])),
    )
    prior = None if rng.random() < 0.6 else rng.dirichlet(np.ones(n) * 0.5)
    problem = PrivateMechanism(
        loss=loss, edges=np.array(edges, dtype=int).reshape(-1, 2), epsilon=epsilon, delta=delta, prior=prior
    )
    matrix = cp.Variable((n, m), nonneg=True)
    size = max(1e-9, float(loss.max()))
    each = cp.sum(cp.multiply(matrix, loss / size), axis=1)
    rules = [cp.sum(matrix, axis=1) == 1]
    for a, b in [*edges, *((j, i) for i, j in edges)]:
        rules.append(cp.sum(cp.pos(exp(-epsilon) * matrix[a] - matrix[b])) <= delta * exp(-epsilon))
    goal = cp.max(each) if prior is None else prior @ each
    program = cp.Problem(cp.Minimize(goal), rules)
    program.solve(solver=cp.HIGHS)
    return ProblemCase(problem, "optimal", float(program.value) * size)


def factorization(rng: np.random.Generator) -> ProblemCase:
    """A small workload; the norm by a semidefinite program in which a row may shift by a constant."""
    m, n = (int(v) for v in rng.integers(1, 6, 2))
    w = rng.integers(-2, 3, (m, n)).astype(float) if rng.random() < 0.6 else rng.normal(size=(m, n))
    w[0, 0] = w[0, 0] or 1.0
    moving, mean = bool(rng.random() < 0.4), bool(rng.random() < 0.5)
    epsilon, delta = float(rng.uniform(0.3, 3)), float(10 ** rng.uniform(-8, -2))
    problem = LinearQueries(
        workload=w,
        epsilon=epsilon,
        delta=delta,
        error="mean" if mean else "max",
        neighbours="substitute" if moving else "add_remove",
    )
    whole, norm, shift = cp.Variable((m + n, m + n), PSD=True), cp.Variable(), cp.Variable((m, 1))
    left, right = whole[:m, :m], whole[m:, m:]
    rules = [whole[:m, m:] == (w + shift @ np.ones((1, n)) if moving else w)]
    rules.append(cp.trace(left) / m <= norm if mean else cp.diag(left) <= norm)
    if moving:
        rules += [right[i, i] + right[j, j] - 2 * right[i, j] <= norm for i in range(n) for j in range(i)]
    else:
        rules.append(cp.diag(right) <= norm)
    cp.Problem(cp.Minimize(norm), rules).solve(solver=cp.CLARABEL)
    value = float(norm.value) / shift_of(epsilon, delta)
    return ProblemCase(problem, "optimal", value, {"fixed-point": {"gap": 1e-7}}, tolerance=1e-4)


def shift_of(epsilon: float, delta: float) -> float:
    """The mu at which a Gaussian mechanism is exactly (epsilon, delta)-private."""

    def over(mu: float) -> float:
        above, other = log_ndtr(mu / 2 - epsilon / mu), log_ndtr(-mu / 2 - epsilon / mu)
        return float(above + np.log(-np.expm1(min(epsilon + other - above, -1e-300)))) - log(delta)

    return float(brentq(over, epsilon / (1 + 2 * sqrt(-2 * log(delta))) / 4, 60.0, xtol=1e-14))


CAMPAIGNS = {
    "counting-lattice": joint_noise,
    "counting-one": one_count,
    "counting-mechanism": mechanism,
    "counting-factorization": factorization,
}
