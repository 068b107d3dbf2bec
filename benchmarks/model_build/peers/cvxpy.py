"""CVXPY: its own reduction to HiGHS' data, passed to HiGHS as its interface would just before the solve."""

from __future__ import annotations

import cvxpy as cp
import highspy
import numpy as np
import scipy.sparse as sp

from ..instances import Commitment, Dense, Hess, JobShop, Network, Transport
from ._highs import accept, silent, size, to_highspy

__all__ = [
    "DISTRIBUTIONS",
    "commitment",
    "dense",
    "hess",
    "jobshop",
    "network",
    "size",
    "to_highspy",
    "transport",
]

DISTRIBUTIONS = ("cvxpy", "highspy")


def _hand_over(problem: cp.Problem) -> highspy.Highs:
    data, _, _ = problem.get_problem_data(cp.HIGHS)
    if "F" in data:  # versions that reduce to a quadratic program: A x == b, F x <= G
        matrix = sp.vstack([data["A"], data["F"]], format="csc")
        rhs, cost, equalities = np.concatenate([data["b"], data["G"]]), data["q"], len(data["b"])
    else:
        matrix, rhs, cost, equalities = data["A"].tocsc(), data["b"], data["c"], data["dims"].zero
    n_rows, n_columns = matrix.shape
    row_lower = np.full(n_rows, -np.inf)
    row_lower[:equalities] = rhs[:equalities]
    lower, upper = data["lower_bounds"], data["upper_bounds"]
    col_lower = np.full(n_columns, -np.inf) if lower is None else np.array(lower, dtype=np.float64)
    col_upper = np.full(n_columns, np.inf) if upper is None else np.array(upper, dtype=np.float64)
    integrality = np.zeros(n_columns, dtype=np.int32)
    integrality[np.array(data["int_vars_idx"], dtype=np.intp)] = 1
    binaries = np.array(data["bool_vars_idx"], dtype=np.intp)
    integrality[binaries] = 1
    col_lower[binaries] = np.maximum(col_lower[binaries], 0.0)
    col_upper[binaries] = np.minimum(col_upper[binaries], 1.0)
    highs = silent()
    accept(
        highs.passModel(
            n_columns,
            n_rows,
            matrix.nnz,
            int(highspy.MatrixFormat.kColwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            cost,
            col_lower,
            col_upper,
            row_lower,
            rhs,
            matrix.indptr,
            matrix.indices,
            matrix.data,
            integrality,
        )
    )
    return highs


def dense(data: Dense) -> highspy.Highs:
    """The dense model."""
    n = data.n
    x = cp.Variable((n, n), nonneg=True)
    y = cp.Variable((n, n), nonneg=True)
    constraints = [x - y >= np.arange(n)[:, None], x + y >= 0]
    return _hand_over(cp.Problem(cp.Minimize(cp.sum(2 * x + y)), constraints))


def transport(data: Transport) -> highspy.Highs:
    """The transport model, with the two incidence matrices of the arcs."""
    arcs = np.arange(data.n_arcs)
    ones = np.ones(data.n_arcs)
    out_of = sp.csr_array((ones, (data.tail, arcs)), shape=(data.n_sources, data.n_arcs))
    into = sp.csr_array((ones, (data.head, arcs)), shape=(data.n_sinks, data.n_arcs))
    flow = cp.Variable(data.n_arcs, nonneg=True)
    constraints = [out_of @ flow <= data.supply, into @ flow >= data.demand]
    return _hand_over(cp.Problem(cp.Minimize(data.cost @ flow), constraints))


def hess(data: Hess) -> highspy.Highs:
    """The districting model."""
    n = data.n
    x = cp.Variable((n, n), boolean=True)
    centre = cp.diag(x)
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    load = data.population @ x
    constraints = [
        cp.sum(x, axis=1) == 1,
        x[i, j] <= x[j, j],
        load >= data.lower * centre,
        load <= data.upper * centre,
        cp.sum(centre) == data.districts,
    ]
    return _hand_over(cp.Problem(cp.Minimize(cp.sum(cp.multiply(data.cost, x))), constraints))


def commitment(data: Commitment) -> highspy.Highs:
    """Unit commitment, arrays of units by hours; a window of hours is a row of cumulative starts."""
    shape = len(data.pmax), len(data.load)
    on, start = cp.Variable(shape, boolean=True), cp.Variable(shape, boolean=True)
    power = cp.Variable(shape, nonneg=True)
    pmin, pmax, ramp, cost, price = (
        column[:, None] for column in (data.pmin, data.pmax, data.ramp, data.cost, data.start)
    )
    rise = power[:, 1:] - power[:, :-1]
    constraints = [
        power <= cp.multiply(pmax, on),
        power >= cp.multiply(pmin, on),
        cp.sum(power, axis=0) == data.load,
        rise <= ramp,
        rise >= -ramp,
        start[:, 1:] >= on[:, 1:] - on[:, :-1],
        start[:, 0] >= on[:, 0],
    ]
    hours = np.arange(shape[1])
    for unit, k in enumerate(data.up.tolist()):
        window = sp.csr_array((hours <= hours[:, None]) & (hours > hours[:, None] - k), dtype=np.float64)
        constraints.append(window @ start[unit] <= on[unit])
    objective = cp.sum(cp.multiply(cost, power)) + cp.sum(cp.multiply(price, start))
    return _hand_over(cp.Problem(cp.Minimize(objective), constraints))


def network(data: Network) -> highspy.Highs:
    """The network, with the incidence matrix of the arcs."""
    arcs = np.arange(len(data.tail))
    ones = np.ones(len(arcs))
    ends = np.concatenate([data.tail, data.head]), np.concatenate([arcs, arcs])
    leaves = sp.csr_array((np.concatenate([ones, -ones]), ends), shape=(len(data.supply), len(arcs)))
    flow = cp.Variable(data.cost.shape, nonneg=True)
    used = cp.Variable(len(arcs), boolean=True)
    constraints = [cp.sum(flow, axis=1) <= cp.multiply(data.cap, used), leaves @ flow == data.supply]
    objective = cp.sum(cp.multiply(data.cost, flow)) + data.fixed @ used
    return _hand_over(cp.Problem(cp.Minimize(objective), constraints))


def jobshop(data: JobShop) -> highspy.Highs:
    """The job shop: the starts are chosen by the pairs of tasks on one machine, all at once."""
    horizon, length = data.horizon, data.length.ravel()
    start = cp.Variable(len(length), integer=True, bounds=[0, horizon])
    makespan = cp.Variable(integer=True, bounds=[0, horizon])
    first, second = data.pairs
    order = cp.Variable(len(first), boolean=True)
    apart = start[first] - start[second] + horizon * order
    later = np.flatnonzero(np.arange(len(length)) % data.length.shape[1])
    constraints = [
        start[later] >= start[later - 1] + length[later - 1],
        start + length <= makespan,
        apart <= horizon - length[first],
        apart >= length[second],
    ]
    return _hand_over(cp.Problem(cp.Minimize(makespan), constraints))
