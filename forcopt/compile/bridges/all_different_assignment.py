"""Integers that are all different, as an assignment of values.

``x_i = sum_v v y_iv``, ``sum_v y_iv = 1``, ``sum_i y_iv <= 1`` for the values v between the bounds of the
columns. Takes ``all_different``, gives rows and integers: for n elements and V values n V binaries and
2 n + V rows. Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.special_sets import AllDifferent


@bridge("all_different", gives=("rows", "integer"))
def all_different_assignment(relation: AllDifferent, draft: BridgeContext) -> None:
    """Give every element one value and every value at most one element."""
    x = relation.expression
    low, high = draft.finite_interval(x, "all_different_assignment")
    values = np.arange(np.ceil(low.min()), np.floor(high.max()) + 1)
    able = (low[:, None] <= values) & (values <= high[:, None])
    takes = draft.column("takes", able.shape, 0.0, able.astype(float), integer=True)
    draft.row(takes.sum(axis=1) == 1)
    draft.row(takes.sum(axis=0) <= 1)
    draft.row(takes @ values == x)
