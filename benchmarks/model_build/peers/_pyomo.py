"""The models in Pyomo, with `LinearExpression` for the long sums."""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ..instances import Dense, Hess, Transport


def dense(data: Dense) -> pyo.ConcreteModel:
    """The dense model."""
    m = pyo.ConcreteModel()
    m.i = pyo.RangeSet(0, data.n - 1)
    m.j = pyo.RangeSet(0, data.n - 1)
    m.x = pyo.Var(m.i, m.j, domain=pyo.NonNegativeReals)
    m.y = pyo.Var(m.i, m.j, domain=pyo.NonNegativeReals)
    x, y = m.x, m.y
    m.difference = pyo.Constraint(m.i, m.j, rule=lambda _, i, j: x[i, j] - y[i, j] >= i)
    m.total = pyo.Constraint(m.i, m.j, rule=lambda _, i, j: x[i, j] + y[i, j] >= 0)
    columns = [*x.values(), *y.values()]
    cost = [2.0] * len(x) + [1.0] * len(y)
    m.cost = pyo.Objective(expr=LinearExpression(linear_coefs=cost, linear_vars=columns))
    return m


def transport(data: Transport) -> pyo.ConcreteModel:
    """The transport model, the arcs gathered by source and by sink."""
    m = pyo.ConcreteModel()
    m.arc = pyo.RangeSet(0, data.n_arcs - 1)
    m.source = pyo.RangeSet(0, data.n_sources - 1)
    m.sink = pyo.RangeSet(0, data.n_sinks - 1)
    m.flow = pyo.Var(m.arc, domain=pyo.NonNegativeReals)
    columns = list(m.flow.values())
    outgoing: list[list[object]] = [[] for _ in range(data.n_sources)]
    incoming: list[list[object]] = [[] for _ in range(data.n_sinks)]
    for column, tail, head in zip(columns, data.tail.tolist(), data.head.tolist(), strict=True):
        outgoing[tail].append(column)
        incoming[head].append(column)
    supply, demand = data.supply.tolist(), data.demand.tolist()

    def total(arcs: list[object]) -> object:
        return LinearExpression(linear_coefs=[1.0] * len(arcs), linear_vars=arcs)

    m.supply = pyo.Constraint(m.source, rule=lambda _, s: (None, total(outgoing[s]), supply[s]))
    m.demand = pyo.Constraint(m.sink, rule=lambda _, t: (demand[t], total(incoming[t]), None))
    m.cost = pyo.Objective(expr=LinearExpression(linear_coefs=data.cost.tolist(), linear_vars=columns))
    return m


def hess(data: Hess) -> pyo.ConcreteModel:
    """The districting model."""
    n = data.n
    m = pyo.ConcreteModel()
    m.unit = pyo.RangeSet(0, n - 1)
    m.x = pyo.Var(m.unit, m.unit, domain=pyo.Binary)
    x = m.x
    columns = list(x.values())
    population = data.population.tolist()

    def balance(j: int, bound: float) -> object:
        weight = population.copy()
        weight[j] -= bound
        return LinearExpression(linear_coefs=weight, linear_vars=columns[j::n])

    def total(terms: list[object]) -> object:
        return LinearExpression(linear_coefs=[1.0] * n, linear_vars=terms)

    m.assign = pyo.Constraint(m.unit, rule=lambda _, i: (1.0, total(columns[i * n : (i + 1) * n]), 1.0))
    m.link = pyo.Constraint(
        m.unit,
        m.unit,
        rule=lambda _, i, j: pyo.Constraint.Skip if i == j else (None, x[i, j] - x[j, j], 0.0),
    )
    m.at_least = pyo.Constraint(m.unit, rule=lambda _, j: (0.0, balance(j, data.lower), None))
    m.at_most = pyo.Constraint(m.unit, rule=lambda _, j: (None, balance(j, data.upper), 0.0))
    m.number = pyo.Constraint(expr=(data.districts, total(columns[:: n + 1]), data.districts))
    cost = data.cost.reshape(-1).tolist()
    m.cost = pyo.Objective(expr=LinearExpression(linear_coefs=cost, linear_vars=columns))
    return m
