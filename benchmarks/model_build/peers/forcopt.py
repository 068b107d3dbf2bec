"""Forcopt: array expressions, handed over with `Model.to_highs`."""

from __future__ import annotations

import highspy
import numpy as np
import scipy.sparse as sp

import forcopt as fo
import forcopt.backends.highs  # what an export imports when it is first called: imports are not timed
import forcopt.loops.exchange

from ..instances import Dense, Hess, Transport
from ._highs import size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "loop", "size", "to_highspy", "transport"]

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
    m.subject_to(sum(flow[a] for a in leaving[i]) <= s for i, s in enumerate(data.supply.tolist()))
    m.subject_to(sum(flow[a] for a in entering[j]) >= d for j, d in enumerate(data.demand.tolist()))
    m.minimize(sum(cost[a] * flow[a] for a in arcs))
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
