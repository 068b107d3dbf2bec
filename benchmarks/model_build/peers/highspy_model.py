"""The modelling layer of highspy itself: `addVariables` and `addConstr` with Python expressions."""

from __future__ import annotations

import highspy

from ..instances import Dense, Hess, Transport
from ._highs import silent, size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

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
