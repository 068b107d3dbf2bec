"""The reference: numpy arrays passed to HiGHS by pointer, in one `passModel` call."""

from __future__ import annotations

import highspy

from ..instances import Dense, Hess, Transport
from . import _arrays
from ._highs import accept, silent, size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("highspy",)


def _hand_over(arrays: _arrays.Arrays) -> highspy.Highs:
    highs = silent()
    accept(
        highs.passModel(
            len(arrays.cost),
            len(arrays.row_lower),
            len(arrays.value),
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            arrays.cost,
            arrays.col_lower,
            arrays.col_upper,
            arrays.row_lower,
            arrays.row_upper,
            arrays.start,
            arrays.index,
            arrays.value,
            arrays.integrality,
        )
    )
    return highs


def dense(data: Dense) -> highspy.Highs:
    """The dense model."""
    return _hand_over(_arrays.dense(data))


def transport(data: Transport) -> highspy.Highs:
    """The transport model."""
    return _hand_over(_arrays.transport(data))


def hess(data: Hess) -> highspy.Highs:
    """The districting model."""
    return _hand_over(_arrays.hess(data))
