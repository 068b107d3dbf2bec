"""The models in linopy, for its default path and for its sparse one."""

from __future__ import annotations

import highspy
import linopy
import numpy as np
import pandas as pd
import xarray as xr
from linopy.io import to_highspy

from ..instances import Dense, Hess, Transport


def dense(data: Dense, sparse: bool = False) -> highspy.Highs:
    """The dense model."""
    m = linopy.Model(sparse=sparse)
    rows, columns = pd.RangeIndex(data.n, name="i"), pd.RangeIndex(data.n, name="j")
    x = m.add_variables(lower=0, coords=[rows, columns], name="x")
    y = m.add_variables(lower=0, coords=[rows, columns], name="y")
    m.add_constraints(x - y >= xr.DataArray(np.arange(data.n), coords=[rows]))
    m.add_constraints(x + y >= 0)
    m.add_objective((2 * x).sum() + y.sum())
    return to_highspy(m, set_names=False)


def transport(data: Transport, sparse: bool = False) -> highspy.Highs:
    """The transport model, the arcs grouped by tail and by head."""
    m = linopy.Model(sparse=sparse)
    arcs = pd.RangeIndex(data.n_arcs, name="arc")
    flow = m.add_variables(lower=0, coords=[arcs], name="flow")
    tail = xr.DataArray(data.tail, coords=[arcs], name="source")
    head = xr.DataArray(data.head, coords=[arcs], name="sink")
    supply = xr.DataArray(data.supply, coords=[pd.RangeIndex(data.n_sources, name="source")])
    demand = xr.DataArray(data.demand, coords=[pd.RangeIndex(data.n_sinks, name="sink")])
    m.add_constraints(flow.groupby(tail).sum() <= supply, name="supply")
    m.add_constraints(flow.groupby(head).sum() >= demand, name="demand")
    m.add_objective((xr.DataArray(data.cost, coords=[arcs]) * flow).sum())
    return to_highspy(m, set_names=False)


def hess(data: Hess, sparse: bool = False) -> highspy.Highs:
    """The districting model; the links x[i,j] <= x[j,j] are masked on the diagonal."""
    m = linopy.Model(sparse=sparse)
    units, centres = pd.RangeIndex(data.n, name="i"), pd.RangeIndex(data.n, name="j")
    x = m.add_variables(binary=True, coords=[units, centres], name="x")
    unit = xr.DataArray(np.arange(data.n), coords=[centres])
    centre = x.sel(i=unit, j=unit).to_linexpr().drop_vars("i")
    population = xr.DataArray(data.population, coords=[units])
    load = (population * x).sum("i")
    off = xr.DataArray(~np.eye(data.n, dtype=bool), coords=[units, centres])
    m.add_constraints(x.sum("j") == 1, name="assign")
    m.add_constraints(x - centre <= 0, name="link", mask=off)
    m.add_constraints(load - data.lower * centre >= 0, name="at_least")
    m.add_constraints(load - data.upper * centre <= 0, name="at_most")
    m.add_constraints(centre.sum() == data.districts, name="number")
    m.add_objective((xr.DataArray(data.cost, coords=[units, centres]) * x).sum())
    return to_highspy(m, set_names=False)
