"""The modelling layer of highspy itself: `addVariables` and `addConstr` with Python expressions."""

from __future__ import annotations

import highspy

from ..instances import Commitment, Dense, Hess, JobShop, Network, Transport
from ._highs import silent, size, to_highspy

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

DISTRIBUTIONS = ("highspy",)


def dense(data: Dense) -> highspy.Highs:
    """The dense model."""
    n = data.n
    highs = silent()
    x = highs.addVariables(n, n, obj=2.0, out_array=True)
    y = highs.addVariables(n, n, obj=1.0, out_array=True)
    for i in range(n):
        highs.addConstrs(x[i] - y[i] >= i)
    highs.addConstrs((x + y >= 0).ravel())
    return highs


def transport(data: Transport) -> highspy.Highs:
    """The transport model."""
    highs = silent()
    flow = highs.addVariables(data.n_arcs, obj=data.cost.tolist(), out_array=True)
    outgoing: list[list[highspy.highs_var]] = [[] for _ in range(data.n_sources)]
    incoming: list[list[highspy.highs_var]] = [[] for _ in range(data.n_sinks)]
    for arc, tail, head in zip(flow, data.tail.tolist(), data.head.tolist(), strict=True):
        outgoing[tail].append(arc)
        incoming[head].append(arc)
    for arcs, supply in zip(outgoing, data.supply.tolist(), strict=True):
        highs.addConstr(highs.qsum(arcs) <= supply)
    for arcs, demand in zip(incoming, data.demand.tolist(), strict=True):
        highs.addConstr(highs.qsum(arcs) >= demand)
    return highs


def hess(data: Hess) -> highspy.Highs:
    """The districting model."""
    n = data.n
    highs = silent()
    x = highs.addBinaries(n, n, obj=data.cost.reshape(-1).tolist(), out_array=True)
    for i in range(n):
        highs.addConstr(x[i].sum() == 1)
    for i in range(n):
        highs.addConstrs(x[i, j] <= x[j, j] for j in range(n) if j != i)
    for j in range(n):
        load = (x[:, j] * data.population).sum()
        highs.addConstr(load - data.lower * x[j, j] >= 0)
        highs.addConstr(load - data.upper * x[j, j] <= 0)
    highs.addConstr(x.diagonal().sum() == data.districts)
    return highs


def commitment(data: Commitment) -> highspy.Highs:
    """Unit commitment, in loops over units and hours."""
    highs = silent()
    units, hours = range(len(data.pmax)), range(len(data.load))
    on = [[highs.addBinary() for _ in hours] for _ in units]
    start = [[highs.addBinary(obj=float(data.start[u])) for _ in hours] for u in units]
    power = [[highs.addVariable(lb=0.0, obj=float(data.cost[u])) for _ in hours] for u in units]
    for u in units:
        low, high, ramp, up = float(data.pmin[u]), float(data.pmax[u]), float(data.ramp[u]), int(data.up[u])
        for t in hours:
            highs.addConstr(power[u][t] - high * on[u][t] <= 0)
            highs.addConstr(power[u][t] - low * on[u][t] >= 0)
            before = on[u][t - 1] if t else 0.0
            highs.addConstr(start[u][t] - on[u][t] + before >= 0)
            if t:
                highs.addConstr(-ramp <= power[u][t] - power[u][t - 1] <= ramp)
            highs.addConstr(highs.qsum(start[u][max(0, t - up + 1) : t + 1]) - on[u][t] <= 0)
    for t in hours:
        highs.addConstr(highs.qsum(row[t] for row in power) == float(data.load[t]))
    return highs


def network(data: Network) -> highspy.Highs:
    """The network, in loops over arcs and goods."""
    highs = silent()
    leaving: list[list[int]] = [[] for _ in data.supply]
    entering: list[list[int]] = [[] for _ in data.supply]
    for arc, (tail, head) in enumerate(zip(data.tail.tolist(), data.head.tolist(), strict=True)):
        leaving[tail].append(arc)
        entering[head].append(arc)
    flow = [[highs.addVariable(lb=0.0, obj=c) for c in row] for row in data.cost.tolist()]
    used = [highs.addBinary(obj=c) for c in data.fixed.tolist()]
    for goods, opened, cap in zip(flow, used, data.cap.tolist(), strict=True):
        highs.addConstr(highs.qsum(goods) - cap * opened <= 0)
    for node, supply in enumerate(data.supply.tolist()):
        for k, amount in enumerate(supply):
            out = highs.qsum(flow[a][k] for a in leaving[node])
            highs.addConstr(out - highs.qsum(flow[a][k] for a in entering[node]) == amount)
    return highs


def jobshop(data: JobShop) -> highspy.Highs:
    """The job shop: two rows with a large constant for each pair of tasks on one machine."""
    highs = silent()
    horizon, integer = data.horizon, highspy.HighsVarType.kInteger
    length = data.length.ravel().tolist()
    start = [highs.addVariable(lb=0, ub=horizon, type=integer) for _ in length]
    makespan = highs.addVariable(lb=0, ub=horizon, obj=1, type=integer)
    steps = data.length.shape[1]
    for i, lasts in enumerate(length):
        if i % steps:
            highs.addConstr(start[i] - start[i - 1] >= length[i - 1])
        highs.addConstr(start[i] - makespan <= -lasts)
    for i, j in zip(*(side.tolist() for side in data.pairs), strict=True):
        order = highs.addBinary()
        highs.addConstr(start[i] - start[j] + horizon * order <= horizon - length[i])
        highs.addConstr(start[j] - start[i] - horizon * order <= -length[j])
    return highs
