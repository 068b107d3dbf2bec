"""The arrays of the reference, turned to columns with scipy first: HiGHS stores a model by columns."""

from __future__ import annotations

import highspy
import scipy.sparse as sp

from ..instances import Dense, Hess, Transport
from . import _arrays
from ._highs import accept, silent, size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("highspy",)


def _hand_over(arrays: _arrays.Arrays) -> highspy.Highs:
    shape = (len(arrays.row_lower), len(arrays.cost))
    matrix = sp.csr_array((arrays.value, arrays.index, arrays.start), shape=shape).tocsc()
    highs = silent()
    accept(
        highs.passModel(
            len(arrays.cost),
            len(arrays.row_lower),
            matrix.nnz,
            int(highspy.MatrixFormat.kColwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            arrays.cost,
            arrays.col_lower,
            arrays.col_upper,
            arrays.row_lower,
            arrays.row_upper,
            matrix.indptr,
            matrix.indices,
            matrix.data,
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
