"""Forcopt: array expressions, handed over with `Model.to_highs`."""

from __future__ import annotations

import highspy
import numpy as np
import pandas as pd
import scipy.sparse as sp

import forcopt as fo
import forcopt.backends.highs  # what an export imports when it is first called: imports are not timed
import forcopt.loops.exchange

from ..instances import Commitment, Dense, Hess, JobShop, Network, Transport
from ._highs import size, to_highspy

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

DISTRIBUTIONS = ("forcopt", "highspy")


def dense(data: Dense) -> highspy.Highs:
    """The dense model."""
    n = data.n
    m = fo.Model("dense")
    x = m.variable("x", shape=(n, n), lower=0)
    y = m.variable("y", shape=(n, n), lower=0)
    m.subject_to(x - y >= np.arange(n)[:, None])
    m.subject_to(x + y >= 0)
    m.minimize((2 * x + y).sum())
    return m.to_highs()


def transport(data: Transport) -> highspy.Highs:
    """The transport model, with the two incidence matrices of the arcs."""
    arcs = np.arange(data.n_arcs)
    ones = np.ones(data.n_arcs)
    out_of = sp.csr_array((ones, (data.tail, arcs)), shape=(data.n_sources, data.n_arcs))
    into = sp.csr_array((ones, (data.head, arcs)), shape=(data.n_sinks, data.n_arcs))
    m = fo.Model("transport")
    flow = m.variable("flow", shape=data.n_arcs, lower=0)
    m.subject_to(out_of @ flow <= data.supply)
    m.subject_to(into @ flow >= data.demand)
    m.minimize(data.cost @ flow)
    return m.to_highs()


def loop(data: Transport) -> highspy.Highs:
    """The transport model term by term, as in a loop over a dictionary of arcs."""
    m = fo.Model("loop")
    arcs = list(zip(data.tail.tolist(), data.head.tolist(), strict=True))
    cost = dict(zip(arcs, data.cost.tolist(), strict=True))
    leaving: dict[int, list[tuple[int, int]]] = {}
    entering: dict[int, list[tuple[int, int]]] = {}
    for arc in arcs:
        leaving.setdefault(arc[0], []).append(arc)
        entering.setdefault(arc[1], []).append(arc)
    flow = {arc: m.variable(f"flow{arc}", lower=0) for arc in arcs}
    m.subject_to(fo.sum(flow[a] for a in leaving[i]) <= s for i, s in enumerate(data.supply.tolist()))
    m.subject_to(fo.sum(flow[a] for a in entering[j]) >= d for j, d in enumerate(data.demand.tolist()))
    m.minimize(fo.sum(cost[a] * flow[a] for a in arcs))
    return m.to_highs()


def hess(data: Hess) -> highspy.Highs:
    """The districting model."""
    n = data.n
    m = fo.Model("hess")
    x = m.variable("x", shape=(n, n), binary=True)
    unit = np.arange(n)
    centre = x[unit, unit]
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    load = data.population @ x
    m.subject_to(x.sum(axis=1) == 1)
    m.subject_to(x[i, j] <= x[j, j])
    m.subject_to(load >= data.lower * centre)
    m.subject_to(load <= data.upper * centre)
    m.subject_to(centre.sum() == data.districts)
    m.minimize((data.cost * x).sum())
    return m.to_highs()


def commitment(data: Commitment) -> highspy.Highs:
    """The units as a table, by names of axes."""
    fields = ("pmin", "pmax", "cost", "start", "ramp", "up")
    index = pd.Index([f"u{i}" for i in range(len(data.pmax))], name="unit")
    units = pd.DataFrame({field: getattr(data, field) for field in fields}, index)
    hours = pd.RangeIndex(len(data.load), name="time")
    m = fo.Model("commitment")
    on = m.variable("on", index=(units.index, hours), binary=True)
    start = m.variable("start", index=(units.index, hours), binary=True)
    power = m.variable("power", index=(units.index, hours), lower=0)
    m.subject_to(power <= units.pmax * on, power >= units.pmin * on)
    m.subject_to(power.sum("unit") == pd.Series(data.load, hours), name="balance")
    m.subject_to(power.diff("time").between(-units.ramp, units.ramp), name="ramp")
    m.subject_to(start >= on - on.shift(time=1))
    m.subject_to(start.sel(unit=u).rolling(time=k).sum() <= on.sel(unit=u) for u, k in units.up.items())
    m.minimize((units.cost * power).sum() + (units.start * start).sum())
    return m.to_highs()


def network(data: Network) -> highspy.Highs:
    """The arcs as a table, which is the index of the flow."""
    nodes = pd.Index([f"n{i}" for i in range(len(data.supply))], name="node")
    goods = pd.Index(["red", "blue"], name="good")
    index = pd.MultiIndex.from_arrays([nodes[data.tail], nodes[data.head]], names=["src", "dst"])
    arcs = pd.DataFrame({"cap": data.cap, "fixed": data.fixed}, index)
    m = fo.Model("network")
    flow = m.variable("flow", index=(arcs.index, goods), lower=0)
    used = m.variable("used", index=arcs.index, binary=True)
    m.subject_to(flow.sum("good") <= arcs.cap * used, name="cap")
    leaves, enters = flow.groupby("src").sum(), flow.groupby("dst").sum()
    leaves, enters = fo.align(leaves.rename(src="node"), enters.rename(dst="node"), join="outer")
    m.subject_to(leaves - enters == pd.DataFrame(data.supply, nodes, goods), name="flow balance")
    m.minimize((pd.DataFrame(data.cost, index, goods) * flow).sum() + (arcs.fixed * used).sum())
    return m.to_highs()


def jobshop(data: JobShop) -> highspy.Highs:
    """The tasks as intervals; a bridge writes the rows of the pairs."""
    length, machine = (
        pd.DataFrame(table).rename_axis(index="job", columns="step") for table in (data.length, data.machine)
    )
    m = fo.Model("jobshop")
    shape = (length.index, length.columns)
    start = m.variable("start", index=shape, lower=0, upper=data.horizon, integer=True)
    task = m.interval(start, length)
    m.subject_to(start >= task.end.shift(step=1))
    m.subject_to(fo.no_overlap(task, by=machine))
    makespan = m.variable("makespan", lower=0, upper=data.horizon, integer=True)
    m.subject_to(task.end <= makespan)
    m.minimize(makespan)
    return m.to_highs()
