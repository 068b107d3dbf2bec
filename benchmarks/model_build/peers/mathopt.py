"""MathOpt (OR-tools), handed over to its own HiGHS by creating an incremental solver, which is not run."""

from __future__ import annotations

import highspy
from ortools.math_opt.python import mathopt

from ..instances import Dense, Hess, Transport
from . import _mathopt

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("ortools",)

Result = tuple[mathopt.Model, mathopt.IncrementalSolver]


def _hand_over(model: mathopt.Model) -> Result:
    return model, mathopt.IncrementalSolver(model, mathopt.SolverType.HIGHS)


def size(result: Result) -> tuple[int, int]:
    """Numbers of rows and columns."""
    model, _ = result
    return model.get_num_linear_constraints(), model.get_num_variables()


def to_highspy(result: Result) -> highspy.Highs:
    """The model, by way of its protocol buffer."""
    model, _ = result
    return _mathopt.proto_to_highspy(model.export_model())


def dense(data: Dense) -> Result:
    """The dense model."""
    return _hand_over(_mathopt.dense(data))


def transport(data: Transport) -> Result:
    """The transport model."""
    return _hand_over(_mathopt.transport(data))


def hess(data: Hess) -> Result:
    """The districting model."""
    return _hand_over(_mathopt.hess(data))
