"""PyOptInterface, which hands each variable and each row over to HiGHS as it is added."""

from __future__ import annotations

import numpy as np
import pyoptinterface as poi
import scipy.sparse as sp
from pyoptinterface import highs

from ..instances import Dense, Hess, Transport
from ._poi import size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("pyoptinterface", "highsbox")


def _model() -> highs.Model:
    model = highs.Model()
    model.set_model_attribute(poi.ModelAttribute.Silent, True)
    return model


def dense(data: Dense) -> highs.Model:
    """The dense model."""
    n = data.n
    m = _model()
    x = [[m.add_variable(lb=0.0) for _ in range(n)] for _ in range(n)]
    y = [[m.add_variable(lb=0.0) for _ in range(n)] for _ in range(n)]
    for i in range(n):
        for a, b in zip(x[i], y[i], strict=True):
            m.add_linear_constraint(a - b, poi.Geq, i)
            m.add_linear_constraint(a + b, poi.Geq, 0.0)
    objective = poi.ExprBuilder()
    for i in range(n):
        for a, b in zip(x[i], y[i], strict=True):
            objective.add_affine_term(a, 2.0)
            objective.add_affine_term(b, 1.0)
    m.set_objective(objective, poi.ObjectiveSense.Minimize)
    return m


def transport(data: Transport) -> highs.Model:
    """The transport model, with the two incidence matrices of the arcs."""
    m = _model()
    flow = [m.add_variable(lb=0.0) for _ in range(data.n_arcs)]
    arcs = np.arange(data.n_arcs)
    ones = np.ones(data.n_arcs)
    out_of = sp.csr_array((ones, (data.tail, arcs)), shape=(data.n_sources, data.n_arcs))
    into = sp.csr_array((ones, (data.head, arcs)), shape=(data.n_sinks, data.n_arcs))
    m.add_m_linear_constraints(out_of, flow, poi.Leq, data.supply)
    m.add_m_linear_constraints(into, flow, poi.Geq, data.demand)
    index = np.fromiter((v.index for v in flow), dtype=np.int32, count=len(flow))
    m.set_objective(poi.ScalarAffineFunction.from_numpy(data.cost, index), poi.ObjectiveSense.Minimize)
    return m


def hess(data: Hess) -> highs.Model:
    """The districting model, its long rows from arrays of coefficients and of indices."""
    n = data.n
    m = _model()
    x = [[m.add_variable(domain=poi.VariableDomain.Binary) for _ in range(n)] for _ in range(n)]
    index = np.array([[v.index for v in row] for row in x], dtype=np.int32)
    affine = poi.ScalarAffineFunction.from_numpy
    ones = np.ones(n)
    centre = [x[j][j] for j in range(n)]
    for i in range(n):
        m.add_linear_constraint(affine(ones, index[i]), poi.Eq, 1.0)
    for i in range(n):
        for j, (a, b) in enumerate(zip(x[i], centre, strict=True)):
            if i != j:
                m.add_linear_constraint(a - b, poi.Leq, 0.0)
    for j in range(n):
        column = np.ascontiguousarray(index[:, j])
        for bound, sense in ((data.lower, poi.Geq), (data.upper, poi.Leq)):
            weight = data.population.copy()
            weight[j] -= bound
            m.add_linear_constraint(affine(weight, column), sense, 0.0)
    m.add_linear_constraint(affine(ones, np.diagonal(index).copy()), poi.Eq, float(data.districts))
    m.set_objective(affine(data.cost.reshape(-1), index.reshape(-1)), poi.ObjectiveSense.Minimize)
    return m
