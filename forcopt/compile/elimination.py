"""Elimination of continuous columns from rows, after Fourier and Motzkin."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.compile.program import Program

_MOST = 40
"""A column in more rows is not eliminated: pairs of rows take their place."""

Rows = tuple[sp.csr_array, Array, Array]
"""Coefficients, lower bounds and upper bounds."""


def eliminate(rows: Rows, column: int, lower: float = -np.inf, upper: float = np.inf) -> tuple[Rows, Rows]:
    """Replace rows by others that hold if and only if some value of a column satisfies them.

    Parameters
    ----------
    rows : tuple of csr_array, ndarray and ndarray
        Coefficients, lower bounds and upper bounds.
    column : int
        Continuous, and without a cost.
    lower, upper : float, optional
        The bounds of the column.

    Returns
    -------
    rest : Rows
        The rows without the column, and one for each pair of an upper and a lower bound on the column.
    held : Rows
        The rows that held the column, divided by its coefficient; `value_of` finds a value by them.

    References
    ----------
    Motzkin, Beiträge zur Theorie der linearen Ungleichungen (1936); Schrijver, Theory of Linear and Integer
    Programming (1986), section 12.2.

    Examples
    --------
    >>> a = sp.csr_array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])  # two rates, and their level
    >>> (left, low, high), _ = eliminate((a, np.zeros(2), np.full(2, 0.1)), 2)
    >>> left.toarray().tolist(), low.tolist(), high.tolist()
    ([[1.0, -1.0, 0.0]], [-0.1], [0.1])
    """
    matrix, low, high = rows
    by = np.asarray(matrix[:, [column]].toarray()).ravel()
    with_it = np.flatnonzero(by)
    scaled = sp.csr_array(matrix[with_it].multiply(1.0 / by[with_it][:, None]))
    unit = sp.csr_array(([1.0], ([0], [column])), shape=(1, matrix.shape[1]))
    held = sp.vstack([scaled, unit], format="csr") - sp.csr_array(
        (np.ones(len(with_it) + 1), (np.arange(len(with_it) + 1), np.full(len(with_it) + 1, column))),
        shape=(len(with_it) + 1, matrix.shape[1]),
    )
    turned = by[with_it] < 0
    ends = low[with_it] / by[with_it], high[with_it] / by[with_it]
    least = np.append(np.where(turned, ends[1], ends[0]), lower)
    most = np.append(np.where(turned, ends[0], ends[1]), upper)
    held = sp.csr_array(held)
    held.eliminate_zeros()
    # least_i - held_i <= x <= most_j - held_j, so held_j - held_i <= most_j - least_i.
    i, j = np.triu_indices(len(least), 1)
    pairs = sp.csr_array(held[j] - held[i])
    pairs.eliminate_zeros()
    bounds = least[j] - most[i], most[j] - least[i]
    useful = np.isfinite(bounds[0]) | np.isfinite(bounds[1])
    other = np.flatnonzero(by == 0)
    rest = (
        sp.csr_array(sp.vstack([matrix[other], pairs[useful]], format="csr")),
        np.concatenate([low[other], bounds[0][useful]]),
        np.concatenate([high[other], bounds[1][useful]]),
    )
    return rest, (held, least, most)


def value_of(held: Rows, point: Array) -> float:
    """A value of an eliminated column: the middle of what the rows leave, or the end that is nearest to 0.

    Parameters
    ----------
    held : Rows
        As `eliminate` gives them.
    point : ndarray
        The values of all columns; that of the eliminated one does not count.
    """
    matrix, low, high = held
    known = matrix @ point
    least, most = float((low - known).max()), float((high - known).min())
    if np.isfinite(least) and np.isfinite(most):
        return (least + most) / 2
    return float(np.clip(0.0, least, most))


def only_in_rows(program: Program) -> Array:
    """Whether each column is in a few rows, and neither in objectives nor in other constraints."""
    rows, special = program.rows, (program.cones, program.indicators, program.schedules, program.products)
    count = np.bincount(rows.indices, minlength=program.columns)
    costs = [stage.cost != 0 for stage in program.stages]
    free = (count <= _MOST) & ~np.logical_or.reduce([*costs, np.zeros(program.columns, np.bool_)])
    return free if not any(special) and not program.lazies and not program.is_staged else np.zeros_like(free)
