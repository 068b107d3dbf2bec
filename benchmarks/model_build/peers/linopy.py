"""Linopy as it is by default, handed over with `linopy.io.to_highspy`."""

from __future__ import annotations

import highspy

from ..instances import Dense, Hess, Transport
from . import _linopy
from ._highs import size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

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
