"""Pyoframe, whose expressions are polars data frames; it hands over through PyOptInterface."""

from __future__ import annotations

import highspy
import numpy as np
import polars as pl
import pyoframe as pf
import scipy.sparse as sp

from ..instances import Dense, Hess, Transport
from . import _poi

__all__ = ["DISTRIBUTIONS", "EXTRA_COLUMNS", "dense", "hess", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("pyoframe", "pyoptinterface", "highsbox")
EXTRA_COLUMNS = 1  # the column "ONE", fixed at 1, which holds constant terms


def _model() -> pf.Model:
    return pf.Model("highs", print_uses_variable_names=False)


def size(model: pf.Model) -> tuple[int, int]:
    """Numbers of rows and columns."""
    return _poi.size(model.poi)


def to_highspy(model: pf.Model) -> highspy.Highs:
    """The model, by way of a file, its constant column moved into the bounds of the rows."""
    highs = _poi.to_highspy(model.poi)
    lp = highs.getLp()
    matrix = sp.csc_array(
        (lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_), shape=(lp.num_row_, lp.num_col_)
    )
    constant = matrix[:, [0]].toarray().ravel()
    rows = np.arange(lp.num_row_, dtype=np.int32)
    highs.changeRowsBounds(
        lp.num_row_, rows, np.asarray(lp.row_lower_) - constant, np.asarray(lp.row_upper_) - constant
    )
    highs.changeObjectiveOffset(lp.offset_ + lp.col_cost_[0])
    highs.deleteCols(1, np.array([0], dtype=np.int32))
    return highs


def dense(data: Dense) -> pf.Model:
    """The dense model."""
    m = _model()
    grid = pf.Set(i=range(data.n), j=range(data.n))
    m.x = pf.Variable(grid, lb=0)
    m.y = pf.Variable(grid, lb=0)
    row = pf.Param(pl.DataFrame({"i": np.arange(data.n), "row": np.arange(data.n)}))
    m.difference = m.x - m.y >= row.over("j")
    m.total = m.x + m.y >= 0
    m.minimize = (2 * m.x + m.y).sum()
    return m


def transport(data: Transport) -> pf.Model:
    """The transport model, the arcs summed by source and by sink."""
    m = _model()
    arcs = pl.DataFrame({"source": data.tail, "sink": data.head, "cost": data.cost})
    m.flow = pf.Variable(arcs.select("source", "sink"), lb=0)
    sources = pl.DataFrame({"source": np.arange(data.n_sources, dtype=np.int32), "supply": data.supply})
    sinks = pl.DataFrame({"sink": np.arange(data.n_sinks, dtype=np.int32), "demand": data.demand})
    m.supply = m.flow.sum_by("source") <= pf.Param(sources)
    m.demand = m.flow.sum_by("sink") >= pf.Param(sinks)
    m.minimize = (pf.Param(arcs) * m.flow).sum()
    return m


def hess(data: Hess) -> pf.Model:
    """The districting model."""
    n = data.n
    m = _model()
    unit = np.arange(n)
    m.x = pf.Variable(pf.Set(i=unit, j=unit), vtype="binary")
    centre = m.x.filter(pl.col("i") == pl.col("j")).sum_by("j")
    population = pf.Param(pl.DataFrame({"i": unit, "population": data.population}))
    load = (population * m.x).sum_by("j")
    pairs = {"i": np.repeat(unit, n), "j": np.tile(unit, n), "cost": data.cost.reshape(-1)}
    m.assign = m.x.sum_by("i") == 1
    m.link = m.x.filter(pl.col("i") != pl.col("j")) <= centre.over("i")
    m.at_least = load - data.lower * centre >= 0
    m.at_most = load - data.upper * centre <= 0
    m.number = centre.sum() == data.districts
    m.minimize = (pf.Param(pl.DataFrame(pairs)) * m.x).sum()
    return m
