"""The models in MathOpt, coefficient by coefficient, which is its fastest public way."""

from __future__ import annotations

import highspy
import numpy as np
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt

from ..instances import Dense, Hess, Transport
from ._highs import accept, silent


def dense(data: Dense) -> mathopt.Model:
    """The dense model."""
    n = data.n
    m = mathopt.Model()
    x = [[m.add_variable(lb=0.0) for _ in range(n)] for _ in range(n)]
    y = [[m.add_variable(lb=0.0) for _ in range(n)] for _ in range(n)]
    for i in range(n):
        for a, b in zip(x[i], y[i], strict=True):
            difference = m.add_linear_constraint(lb=float(i))
            difference.set_coefficient(a, 1.0)
            difference.set_coefficient(b, -1.0)
            total = m.add_linear_constraint(lb=0.0)
            total.set_coefficient(a, 1.0)
            total.set_coefficient(b, 1.0)
            m.objective.set_linear_coefficient(a, 2.0)
            m.objective.set_linear_coefficient(b, 1.0)
    return m


def transport(data: Transport) -> mathopt.Model:
    """The transport model."""
    m = mathopt.Model()
    supply = [m.add_linear_constraint(ub=value) for value in data.supply.tolist()]
    demand = [m.add_linear_constraint(lb=value) for value in data.demand.tolist()]
    for tail, head, cost in zip(data.tail.tolist(), data.head.tolist(), data.cost.tolist(), strict=True):
        flow = m.add_variable(lb=0.0)
        supply[tail].set_coefficient(flow, 1.0)
        demand[head].set_coefficient(flow, 1.0)
        m.objective.set_linear_coefficient(flow, cost)
    return m


def hess(data: Hess) -> mathopt.Model:
    """The districting model."""
    n = data.n
    m = mathopt.Model()
    x = [[m.add_binary_variable() for _ in range(n)] for _ in range(n)]
    cost = data.cost.tolist()
    population = data.population.tolist()
    at_least = [m.add_linear_constraint(lb=0.0) for _ in range(n)]
    at_most = [m.add_linear_constraint(ub=0.0) for _ in range(n)]
    number = m.add_linear_constraint(lb=data.districts, ub=data.districts)
    for i in range(n):
        assign = m.add_linear_constraint(lb=1.0, ub=1.0)
        weight = population[i]
        for j in range(n):
            variable = x[i][j]
            m.objective.set_linear_coefficient(variable, cost[i][j])
            assign.set_coefficient(variable, 1.0)
            if i == j:
                at_least[j].set_coefficient(variable, weight - data.lower)
                at_most[j].set_coefficient(variable, weight - data.upper)
                number.set_coefficient(variable, 1.0)
            else:
                at_least[j].set_coefficient(variable, weight)
                at_most[j].set_coefficient(variable, weight)
                link = m.add_linear_constraint(ub=0.0)
                link.set_coefficient(variable, 1.0)
                link.set_coefficient(x[j][j], -1.0)
    return m


def proto_to_highspy(proto: model_pb2.ModelProto) -> highspy.Highs:
    """The exported model in highspy; identifiers are dense, as nothing is ever deleted."""
    n_columns, n_rows = len(proto.variables.ids), len(proto.linear_constraints.ids)
    matrix = proto.linear_constraint_matrix
    rows = np.asarray(matrix.row_ids, dtype=np.int64)
    start = np.searchsorted(rows, np.arange(n_rows + 1)).astype(np.int32)
    cost = np.zeros(n_columns)
    linear = proto.objective.linear_coefficients
    cost[np.asarray(linear.ids, dtype=np.int64)] = linear.values
    highs = silent()
    accept(
        highs.passModel(
            n_columns,
            n_rows,
            len(rows),
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            proto.objective.offset,
            cost,
            np.asarray(proto.variables.lower_bounds),
            np.asarray(proto.variables.upper_bounds),
            np.asarray(proto.linear_constraints.lower_bounds),
            np.asarray(proto.linear_constraints.upper_bounds),
            start,
            np.asarray(matrix.column_ids, dtype=np.int32),
            np.asarray(matrix.coefficients),
            np.asarray(proto.variables.integers, dtype=np.int32),
        )
    )
    return highs
