"""Several classes as cells (record, class): a classifier with C classes as 0/1 entries, one 1 a record."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array

__all__ = ["as_cells", "costs_by_class"]


def as_cells(codes: Any, classes: int) -> Array:
    """The predictions as methods compare them.

    Parameters
    ----------
    codes : array_like
        The predicted class of each record, from 0; shape ``(..., n)``.
    classes : int
        Their number, C.

    Returns
    -------
    Array
        The codes themselves for two classes; for more, 1 where record i has class c, at place ``i * C + c``
        of shape ``(..., n * C)``. Either way costs and rates are linear in the entries.

    Examples
    --------
    >>> as_cells([2, 0], 3).tolist()
    [0, 0, 1, 1, 0, 0]
    """
    given = np.asarray(codes).astype(np.int64)
    if classes == 2:
        return given
    return np.eye(classes, dtype=np.int64)[given].reshape(*given.shape[:-1], -1)


def costs_by_class(costs: Array, classes: int) -> Array:
    """The cost of each class for each record, shape ``(n, C)``, from the costs of the cells of `as_cells`.

    Examples
    --------
    >>> costs_by_class(np.array([0.5, -1.0]), 2).tolist()
    [[0.0, 0.5], [0.0, -1.0]]
    """
    if classes == 2:
        return np.column_stack([np.zeros(len(costs)), costs])
    return costs.reshape(-1, classes)
