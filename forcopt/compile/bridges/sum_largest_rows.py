"""``t >=`` the sum of the k largest of d numbers, by its linear programming dual.

The sum of the k largest x_j is the least ``k q + sum_j s_j`` with ``s_j >= x_j - q``, ``s_j >= 0``
(Ogryczak and Tamir, 2003). Takes ``sum_largest``, gives rows: d + 1 for each element, with d + 1 new
columns. Exact; for integral arguments q and s are integral at an optimum (q is the k-th largest).
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridges.base import bridge
from forcopt.compile.draft import Draft
from forcopt.language.relations import AtomRelation


@bridge("sum_largest")
def sum_largest_rows(relation: AtomRelation, draft: Draft) -> None:
    """Write the dual of choosing the k largest."""
    (x,) = relation.arguments
    whole = draft.is_integral(x)
    # Some optimum has the k-th largest as threshold. Only integer models are told: a bound may take the
    # multiplier that belongs to the arguments' own bounds.
    low, high = draft.interval(x) if whole else (np.full((1, 1), -np.inf), np.full((1, 1), np.inf))
    low, high = low.min(axis=1), high.max(axis=1)
    threshold = draft.column("threshold", x.shape[0], low, high, implied_integer=whole)
    excess = draft.column("excess", x.shape, lower=0.0, implied_integer=whole)
    draft.row(excess >= x - threshold[:, None])
    draft.row(relation.result >= relation.parameter * threshold + excess.sum(axis=1))
