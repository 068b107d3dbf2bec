"""Asks HiGHS about models of plain arrays through one modelling library.

python benchmarks/solvers/peers.py LIBRARY < models.json > answers.jsonl

Each line has the status as the library tells it, its objective, and the seconds from the arrays to the
answer. Imports and a first model are outside.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

Data = dict[str, Any]
Answer = tuple[str, float | None]
"""A status in the library's own words, and its objective."""


def _arrays(data: Data) -> tuple[np.ndarray[Any, Any], ...]:
    names = ("cost", "lower", "upper", "low", "high")
    cost, lower, upper, low, high = (np.array(data[name], dtype=float) for name in names)
    return cost, lower, upper, np.array(data["rows"], dtype=float).reshape(-1, len(cost)), low, high


def forcopt(data: Data) -> Answer:
    """By this library."""
    from benchmarks.honesty.worker import declared

    s = declared(data).solve("highs", gap=0.0)
    return str(s.status.value), s.objective


def linopy(data: Data) -> Answer:
    """By linopy, handed over in memory."""
    import linopy
    import xarray as xr

    cost, lower, upper, rows, low, high = _arrays(data)
    m = linopy.Model()
    at = np.arange(len(cost))
    whole = np.array(data["integer"]) > 0
    parts = []
    for kind, name in ((~whole, "x"), (whole, "y")):
        if kind.any():
            coords = [xr.DataArray(at[kind], dims="c", coords={"c": at[kind]}).indexes["c"]]
            v = m.add_variables(lower[kind], upper[kind], coords=coords, name=name, integer=name == "y")
            parts.append((kind, v))

    def row(values: np.ndarray[Any, Any]) -> Any:
        return sum(
            (xr.DataArray(values[kind], coords={"c": at[kind]}, dims="c") * v).sum() for kind, v in parts
        )

    for number, values in enumerate(rows):
        if values.any():
            if np.isfinite(low[number]) and low[number] == high[number]:
                m.add_constraints(row(values) == low[number], name=f"e{number}")
                continue
            if np.isfinite(low[number]):
                m.add_constraints(row(values) >= low[number], name=f"l{number}")
            if np.isfinite(high[number]):
                m.add_constraints(row(values) <= high[number], name=f"u{number}")
        elif not low[number] <= 0 <= high[number]:
            return "cannot hold an empty row", None
    m.add_objective(row(cost), sense="max" if data["maximize"] else "min")
    _, end = m.solve("highs", io_api="direct", mip_rel_gap=0.0, output_flag=False)
    return str(end), float(m.objective.value) if end == "optimal" else None


def cvxpy(data: Data) -> Answer:
    """By CVXPY."""
    import cvxpy as cp

    cost, lower, upper, rows, low, high = _arrays(data)
    whole = np.flatnonzero(np.array(data["integer"]) > 0)
    x = cp.Variable(len(cost), integer=(whole,)) if whole.size else cp.Variable(len(cost))
    held = []
    for matrix, first, last in ((np.eye(len(cost)), lower, upper), (rows, low, high)):
        equal = np.isfinite(first) & (first == last)
        least, most = np.isfinite(first) & ~equal, np.isfinite(last) & ~equal
        held += [matrix[equal] @ x == first[equal]] if equal.any() else []
        held += [matrix[least] @ x >= first[least]] if least.any() else []
        held += [matrix[most] @ x <= last[most]] if most.any() else []
    sense = cp.Maximize if data["maximize"] else cp.Minimize
    problem = cp.Problem(sense(cost @ x), held)
    problem.solve(solver="HIGHS", highs_options={"mip_rel_gap": 0.0})
    return str(problem.status), None if problem.value is None else float(problem.value)


def pyomo(data: Data) -> Answer:
    """By Pyomo, through APPSI."""
    import pyomo.environ as pyo
    from pyomo.contrib.appsi.solvers import Highs
    from pyomo.core.expr import LinearExpression

    cost, lower, upper, rows, low, high = _arrays(data)

    def end(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    m = pyo.ConcreteModel()
    m.x = pyo.Var(
        range(len(cost)),
        domain=lambda _, j: pyo.Integers if data["integer"][j] else pyo.Reals,
        bounds=lambda _, j: (end(lower[j]), end(upper[j])),
    )
    columns = list(m.x.values())

    def linear(values: np.ndarray[Any, Any]) -> Any:
        return LinearExpression(linear_coefs=values.tolist(), linear_vars=columns)

    m.rows = pyo.Constraint(range(len(rows)), rule=lambda _, i: (end(low[i]), linear(rows[i]), end(high[i])))
    m.cost = pyo.Objective(expr=linear(cost), sense=pyo.maximize if data["maximize"] else pyo.minimize)
    solver = Highs()
    solver.config.load_solution = False
    solver.highs_options = {"mip_rel_gap": 0.0}
    found = solver.solve(m)
    known = found.best_feasible_objective
    return found.termination_condition.name, None if known is None else float(known)


def pyoptinterface(data: Data) -> Answer:
    """By PyOptInterface, with its own HiGHS."""
    import pyoptinterface as poi
    from pyoptinterface import highs

    cost, lower, upper, rows, low, high = _arrays(data)
    m = highs.Model()
    m.set_model_attribute(poi.ModelAttribute.Silent, True)
    m.set_raw_parameter("mip_rel_gap", 0.0)
    kinds = (poi.VariableDomain.Continuous, poi.VariableDomain.Integer)
    x = [
        m.add_variable(lb=first, ub=last, domain=kinds[whole > 0])
        for first, last, whole in zip(lower.tolist(), upper.tolist(), data["integer"], strict=True)
    ]

    def linear(values: np.ndarray[Any, Any]) -> Any:
        out = poi.ExprBuilder()
        for value, v in zip(values.tolist(), x, strict=True):
            if value:
                out += value * v
        return out

    for values, first, last in zip(rows, low.tolist(), high.tolist(), strict=True):
        if np.isfinite(first) and first == last:
            m.add_linear_constraint(linear(values), poi.Eq, first)
            continue
        if np.isfinite(first):
            m.add_linear_constraint(linear(values), poi.Geq, first)
        if np.isfinite(last):
            m.add_linear_constraint(linear(values), poi.Leq, last)
    sense = poi.ObjectiveSense.Maximize if data["maximize"] else poi.ObjectiveSense.Minimize
    m.set_objective(linear(cost), sense)
    m.optimize()
    end = m.get_model_attribute(poi.ModelAttribute.TerminationStatus).name
    value = float(m.get_model_attribute(poi.ModelAttribute.ObjectiveValue)) if end == "OPTIMAL" else None
    return end, value


LIBRARIES: dict[str, Callable[[Data], Answer]] = {
    f.__name__: f for f in (forcopt, linopy, cvxpy, pyomo, pyoptinterface)
}


def main() -> None:
    """Command line."""
    ask = LIBRARIES[sys.argv[1]]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries and solvers may print
    models = json.load(sys.stdin)
    for number, data in enumerate([models[0], *models]):
        began = time.perf_counter()
        try:
            status, value = ask(data)
        except Exception as error:  # a library's own words
            status, value = f"{type(error).__name__}: {error}"[:200], None
        seconds = time.perf_counter() - began
        if number:
            line = json.dumps({"status": status, "objective": value, "seconds": seconds})
            print(line, file=answers, flush=True)


if __name__ == "__main__":
    main()
