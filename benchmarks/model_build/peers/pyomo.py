"""Pyomo, handed over by its APPSI interface, whose `set_instance` fills a highspy instance."""

from __future__ import annotations

import highspy
import pyomo.environ as pyo
from pyomo.contrib.appsi.solvers.highs import Highs

from ..instances import Dense, Hess, Transport
from . import _pyomo
from ._highs import size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("pyomo", "highspy")


def _hand_over(model: pyo.ConcreteModel) -> highspy.Highs:
    solver = Highs(only_child_vars=True)
    solver.set_instance(model)
    return solver._solver_model


def dense(data: Dense) -> highspy.Highs:
    """The dense model."""
    return _hand_over(_pyomo.dense(data))


def transport(data: Transport) -> highspy.Highs:
    """The transport model."""
    return _hand_over(_pyomo.transport(data))


def hess(data: Hess) -> highspy.Highs:
    """The districting model."""
    return _hand_over(_pyomo.hess(data))
