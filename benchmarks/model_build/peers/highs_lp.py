"""The same arrays, assigned to the fields of a `highspy.HighsLp` which is then passed to HiGHS."""

from __future__ import annotations

import highspy

from ..instances import Dense, Hess, Transport
from . import _arrays
from ._highs import accept, silent, size, to_highspy

__all__ = ["DISTRIBUTIONS", "dense", "hess", "size", "to_highspy", "transport"]

DISTRIBUTIONS = ("highspy",)


def _hand_over(arrays: _arrays.Arrays) -> highspy.Highs:
    lp = highspy.HighsLp()
    lp.num_col_ = len(arrays.cost)
    lp.num_row_ = len(arrays.row_lower)
    lp.col_cost_ = arrays.cost
    lp.col_lower_ = arrays.col_lower
    lp.col_upper_ = arrays.col_upper
    lp.row_lower_ = arrays.row_lower
    lp.row_upper_ = arrays.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = arrays.start
    lp.a_matrix_.index_ = arrays.index
    lp.a_matrix_.value_ = arrays.value
    if arrays.integrality.any():  # the field takes a list of enumeration members only
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[kind] for kind in arrays.integrality.tolist()]
    highs = silent()
    accept(highs.passModel(lp))
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
