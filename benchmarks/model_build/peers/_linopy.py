"""The models in linopy, for its default path and for its sparse one."""

from __future__ import annotations

from typing import Any

import highspy
import linopy
import numpy as np
import pandas as pd
import xarray as xr
from linopy.io import to_highspy
from numpy.typing import NDArray

from ..instances import Commitment, Dense, Hess, JobShop, Network, Transport


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


def commitment(data: Commitment) -> highspy.Highs:
    """Unit commitment; a range of rows is two sets of rows.

    Of linopy's default path alone: its sparse one leaves out the rows of the first hour.
    """
    m = linopy.Model()
    units = pd.Index([f"u{i}" for i in range(len(data.pmax))], name="unit")
    hours = pd.RangeIndex(len(data.load), name="time")
    on = m.add_variables(binary=True, coords=[units, hours], name="on")
    start = m.add_variables(binary=True, coords=[units, hours], name="start")
    power = m.add_variables(lower=0, coords=[units, hours], name="power")
    pmin, pmax, ramp, cost, price = (
        xr.DataArray(a, coords=[units]) for a in (data.pmin, data.pmax, data.ramp, data.cost, data.start)
    )
    m.add_constraints(power - pmax * on <= 0)
    m.add_constraints(power - pmin * on >= 0)
    m.add_constraints(power.sum("unit") == xr.DataArray(data.load, coords=[hours]))
    rise = (power - power.shift(time=1)).isel(time=slice(1, None))
    m.add_constraints(rise <= ramp)
    m.add_constraints(rise >= -ramp)
    m.add_constraints(start - on + on.shift(time=1) >= 0)
    for unit, k in zip(units, data.up.tolist(), strict=True):
        m.add_constraints(start.sel(unit=unit).rolling(time=k).sum() - on.sel(unit=unit) <= 0)
    m.add_objective((cost * power).sum() + (price * start).sum())
    return to_highspy(m, set_names=False)


def network(data: Network, sparse: bool = False) -> highspy.Highs:
    """The flow grouped by the ends of the arcs."""
    m = linopy.Model(sparse=sparse)
    arc, goods = pd.RangeIndex(len(data.tail), name="arc"), pd.Index(["red", "blue"], name="good")
    nodes = pd.RangeIndex(len(data.supply), name="node")
    flow = m.add_variables(lower=0, coords=[arc, goods], name="flow")
    used = m.add_variables(binary=True, coords=[arc], name="used")
    m.add_constraints(flow.sum("good") - xr.DataArray(data.cap, coords=[arc]) * used <= 0)
    leaves, enters = (
        flow.groupby(xr.DataArray(end, coords=[arc], name="node")).sum() for end in (data.tail, data.head)
    )
    m.add_constraints(leaves - enters == xr.DataArray(data.supply, coords=[nodes, goods]))
    fixed = xr.DataArray(data.fixed, coords=[arc])
    m.add_objective((xr.DataArray(data.cost, coords=[arc, goods]) * flow).sum() + (fixed * used).sum())
    return to_highspy(m, set_names=False)


def jobshop(data: JobShop, sparse: bool = False) -> highspy.Highs:
    """The job shop: the starts are chosen by the pairs of tasks on one machine, all at once."""
    m = linopy.Model(sparse=sparse)
    jobs, steps = data.length.shape
    horizon = data.horizon
    task = pd.RangeIndex(jobs * steps, name="task")
    length = xr.DataArray(data.length.ravel().astype(float), coords=[task])
    start = m.add_variables(lower=0, upper=horizon, integer=True, coords=[task], name="start")
    makespan = m.add_variables(lower=0, upper=horizon, integer=True, name="makespan")

    def chosen(values: Any, positions: NDArray[np.integer]) -> Any:
        return values.isel(task=positions).assign_coords(task=np.arange(len(positions)))

    later = np.flatnonzero(np.arange(jobs * steps) % steps)
    step = chosen(start, later) - chosen(start, later - 1)
    m.add_constraints(step >= chosen(length, later - 1))
    m.add_constraints(start - makespan <= -length)
    first, second = data.pairs
    number = pd.RangeIndex(len(first), name="task")
    order = m.add_variables(binary=True, coords=[number], name="order")
    apart = chosen(start, first) - chosen(start, second) + horizon * order
    m.add_constraints(apart <= horizon - chosen(length, first))
    m.add_constraints(apart >= chosen(length, second))
    m.add_objective(1 * makespan)
    return to_highspy(m, set_names=False)
