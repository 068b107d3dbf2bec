"""PyOptInterface, which hands each variable and each row over to HiGHS as it is added."""

from __future__ import annotations

import numpy as np
import pyoptinterface as poi
import scipy.sparse as sp
from pyoptinterface import highs

from ..instances import Commitment, Dense, Hess, JobShop, Network, Transport
from ._poi import size, to_highspy

__all__ = [
    "DISTRIBUTIONS",
    "commitment",
    "dense",
    "hess",
    "jobshop",
    "loop",
    "network",
    "size",
    "to_highspy",
    "transport",
]

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


def loop(data: Transport) -> highs.Model:
    """The transport model term by term, as in a loop over a dictionary of arcs."""
    m = _model()
    arcs = list(zip(data.tail.tolist(), data.head.tolist(), strict=True))
    cost = dict(zip(arcs, data.cost.tolist(), strict=True))
    leaving: dict[int, list[tuple[int, int]]] = {}
    entering: dict[int, list[tuple[int, int]]] = {}
    for arc in arcs:
        leaving.setdefault(arc[0], []).append(arc)
        entering.setdefault(arc[1], []).append(arc)
    flow = {arc: m.add_variable(lb=0.0) for arc in arcs}
    for i, s in enumerate(data.supply.tolist()):
        m.add_linear_constraint(poi.quicksum(flow[a] for a in leaving[i]), poi.Leq, s)
    for j, d in enumerate(data.demand.tolist()):
        m.add_linear_constraint(poi.quicksum(flow[a] for a in entering[j]), poi.Geq, d)
    m.set_objective(poi.quicksum(cost[a] * flow[a] for a in arcs), poi.ObjectiveSense.Minimize)
    return m


def commitment(data: Commitment) -> highs.Model:
    """Unit commitment, in loops over units and hours; a range of rows is two rows."""
    m = _model()
    units, hours = range(len(data.pmax)), range(len(data.load))
    binary = poi.VariableDomain.Binary
    on = [[m.add_variable(domain=binary) for _ in hours] for _ in units]
    start = [[m.add_variable(domain=binary) for _ in hours] for _ in units]
    power = [[m.add_variable(lb=0.0) for _ in hours] for _ in units]
    objective = poi.ExprBuilder()
    for u in units:
        low, high, ramp, up = float(data.pmin[u]), float(data.pmax[u]), float(data.ramp[u]), int(data.up[u])
        for t in hours:
            m.add_linear_constraint(power[u][t] - high * on[u][t], poi.Leq, 0.0)
            m.add_linear_constraint(power[u][t] - low * on[u][t], poi.Geq, 0.0)
            begun = start[u][t] - on[u][t]
            m.add_linear_constraint(begun + on[u][t - 1] if t else begun, poi.Geq, 0.0)
            if t:
                m.add_linear_constraint(power[u][t] - power[u][t - 1], poi.Leq, ramp)
                m.add_linear_constraint(power[u][t] - power[u][t - 1], poi.Geq, -ramp)
            window = poi.quicksum(start[u][max(0, t - up + 1) : t + 1])
            m.add_linear_constraint(window - on[u][t], poi.Leq, 0.0)
            objective.add_affine_term(power[u][t], float(data.cost[u]))
            objective.add_affine_term(start[u][t], float(data.start[u]))
    for t in hours:
        m.add_linear_constraint(poi.quicksum(row[t] for row in power), poi.Eq, float(data.load[t]))
    m.set_objective(objective, poi.ObjectiveSense.Minimize)
    return m


def network(data: Network) -> highs.Model:
    """The network, in loops over arcs and goods."""
    m = _model()
    flow = [[m.add_variable(lb=0.0) for _ in row] for row in data.cost]
    used = [m.add_variable(domain=poi.VariableDomain.Binary) for _ in data.fixed]
    balance = [[poi.ExprBuilder() for _ in row] for row in data.supply]
    objective = poi.ExprBuilder()
    ends = zip(data.tail.tolist(), data.head.tolist(), strict=True)
    for arc, (tail, head) in enumerate(ends):
        m.add_linear_constraint(poi.quicksum(flow[arc]) - float(data.cap[arc]) * used[arc], poi.Leq, 0.0)
        for k, x in enumerate(flow[arc]):
            balance[tail][k].add_affine_term(x, 1.0)
            balance[head][k].add_affine_term(x, -1.0)
            objective.add_affine_term(x, float(data.cost[arc, k]))
        objective.add_affine_term(used[arc], float(data.fixed[arc]))
    for row, supply in zip(balance, data.supply.tolist(), strict=True):
        for out, amount in zip(row, supply, strict=True):
            m.add_linear_constraint(out, poi.Eq, amount)
    m.set_objective(objective, poi.ObjectiveSense.Minimize)
    return m


def jobshop(data: JobShop) -> highs.Model:
    """The job shop: two rows with a large constant for each pair of tasks on one machine."""
    m = _model()
    horizon, integer = data.horizon, poi.VariableDomain.Integer
    length = data.length.ravel().tolist()
    start = [m.add_variable(domain=integer, lb=0, ub=horizon) for _ in length]
    makespan = m.add_variable(domain=integer, lb=0, ub=horizon)
    steps = data.length.shape[1]
    for i, lasts in enumerate(length):
        if i % steps:
            m.add_linear_constraint(start[i] - start[i - 1], poi.Geq, length[i - 1])
        m.add_linear_constraint(start[i] - makespan, poi.Leq, -lasts)
    for i, j in zip(*(side.tolist() for side in data.pairs), strict=True):
        order = m.add_variable(domain=poi.VariableDomain.Binary)
        apart = start[i] - start[j]
        m.add_linear_constraint(apart + horizon * order, poi.Leq, horizon - length[i])
        m.add_linear_constraint(apart + horizon * order, poi.Geq, length[j])
    m.set_objective(makespan * 1.0, poi.ObjectiveSense.Minimize)
    return m
