"""Linopy with `Model(sparse=True)`, which needs its newer arithmetic rules."""

from __future__ import annotations

import highspy
import linopy

from ..instances import Dense, Hess, JobShop, Network, Transport
from . import _linopy
from ._highs import size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "jobshop", "network", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("linopy", "highspy")

linopy.options["semantics"] = "v1"


def dense(data: Dense) -> highspy.Highs:
    """The dense model."""
    return _linopy.dense(data, sparse=True)


def transport(data: Transport) -> highspy.Highs:
    """The transport model."""
    return _linopy.transport(data, sparse=True)


def hess(data: Hess) -> highspy.Highs:
    """The districting model."""
    return _linopy.hess(data, sparse=True)


def network(data: Network) -> highspy.Highs:
    """The network."""
    return _linopy.network(data, sparse=True)


def jobshop(data: JobShop) -> highspy.Highs:
    """The job shop."""
    return _linopy.jobshop(data, sparse=True)
