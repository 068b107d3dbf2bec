"""CVXPY: its own reduction to HiGHS' data, passed to HiGHS as its interface would just before the solve."""

from __future__ import annotations

import cvxpy as cp
import highspy
import numpy as np
import scipy.sparse as sp

from ..instances import Dense, Hess, Transport
from ._highs import accept, silent, size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

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
