"""MathOpt (OR-tools), as far as the exported protocol buffer: no solver is given the model."""

from __future__ import annotations

import highspy
from ortools.math_opt import model_pb2

from ..instances import Dense, Hess, Transport
from . import _mathopt

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("ortools",)


def size(proto: model_pb2.ModelProto) -> tuple[int, int]:
    """Numbers of rows and columns."""
    return len(proto.linear_constraints.ids), len(proto.variables.ids)


def to_highspy(proto: model_pb2.ModelProto) -> highspy.Highs:
    """The exported model in highspy."""
    return _mathopt.proto_to_highspy(proto)


def dense(data: Dense) -> model_pb2.ModelProto:
    """The dense model."""
    return _mathopt.dense(data).export_model()


def transport(data: Transport) -> model_pb2.ModelProto:
    """The transport model."""
    return _mathopt.transport(data).export_model()


def hess(data: Hess) -> model_pb2.ModelProto:
    """The districting model."""
    return _mathopt.hess(data).export_model()
