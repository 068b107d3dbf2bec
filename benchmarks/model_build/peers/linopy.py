"""Linopy as it is by default, handed over with `linopy.io.to_highspy`."""

from __future__ import annotations

import highspy

from ..instances import Commitment, Dense, Hess, JobShop, Network, Transport
from . import _linopy
from ._highs import size, to_highspy

__all__ = [
    "DISTRIBUTIONS",
    "commitment",
    "dense",
    "hess",
    "jobshop",
    "network",
    "size",
    "to_highspy",
    "transport",
]

DISTRIBUTIONS = ("linopy", "highspy")


def dense(data: Dense) -> highspy.Highs:
    """The dense model."""
    return _linopy.dense(data)


def transport(data: Transport) -> highspy.Highs:
    """The transport model."""
    return _linopy.transport(data)


def hess(data: Hess) -> highspy.Highs:
    """The districting model."""
    return _linopy.hess(data)


def commitment(data: Commitment) -> highspy.Highs:
    """Unit commitment."""
    return _linopy.commitment(data)


def network(data: Network) -> highspy.Highs:
    """The network."""
    return _linopy.network(data)


def jobshop(data: JobShop) -> highspy.Highs:
    """The job shop."""
    return _linopy.jobshop(data)
