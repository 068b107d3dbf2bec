"""Pyomo, handed over as an LP file that HiGHS reads."""

from __future__ import annotations

import tempfile
from pathlib import Path

import highspy
import pyomo.environ as pyo
from pyomo.repn.plugins.lp_writer import LPWriter

from ..instances import Dense, Hess, Transport
from . import _pyomo
from ._highs import read, size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("pyomo", "highspy")


def _hand_over(model: pyo.ConcreteModel) -> highspy.Highs:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lp"
        with path.open("w") as stream:
            LPWriter().write(model, stream)
        return read(str(path))


def dense(data: Dense) -> highspy.Highs:
    """The dense model."""
    return _hand_over(_pyomo.dense(data))


def transport(data: Transport) -> highspy.Highs:
    """The transport model."""
    return _hand_over(_pyomo.transport(data))


def hess(data: Hess) -> highspy.Highs:
    """The districting model."""
    return _hand_over(_pyomo.hess(data))
