"""Bounds on the fragmentation of districts in homogeneous trees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["greedy_bound", "square_bound"]


def greedy_bound(branching: Sequence[int], districts: int, *, as_printed: bool = False) -> float:
    """An upper bound on the fragmentation of a greedy district.

    Parameters
    ----------
    branching : Sequence[int]
        Children of each unit by level, n_1 to n_{d-1}.
    districts : int
        k; the district has one k-th of the leaves, rounded down.
    as_printed : bool, default False
        Theorem 6 as printed, which is false if the first level has fewer than k units.

    Returns
    -------
    float
        ``sum_l n_l / 4``. If k divides the leaves, ``n_l p (1 - p)`` on the levels with ``p = n_1 ... n_{l-1}
        / k`` up to 1.

    Notes
    -----
    On a level whose unit holds the rest of the district, p is that unit's weight before it is split, not 1/k
    as the printed proof has it. For (2, 6, 2) and k = 8 the fragmentation is 1.40625 and the
    printed bound 1.375.

    References
    ----------
    Cohen et al. (2021), Theorem 6.

    Examples
    --------
    >>> greedy_bound((484, 4, 25), 4), greedy_bound((2, 6, 2), 8, as_printed=True)
    (98.0, 1.375)
    """
    above = np.concatenate([[1.0], np.cumprod(branching)[:-1]])  # units before each level
    n = np.asarray(branching, dtype=float)
    if as_printed:
        early = above < districts
        return float(((districts - 1) / districts**2) * n[early].sum() + n[~early].sum() / 4)
    if int(np.prod(branching)) % districts:
        return float(n.sum() / 4)
    p = above / districts
    return float((n * np.where(p <= 1, p * (1 - p), 0.25)).sum())


def square_bound(branching: Sequence[int], districts: int) -> float:
    """A lower bound on the mean fragmentation of a square district at a random place.

    Parameters
    ----------
    branching, districts
        See `greedy_bound`.

    Notes
    -----
    Theorem 6. For (484, 4, 25) and 4 districts the formula gives 348.33; the paper reports 264. The exact
    mean is 444.4751.

    Examples
    --------
    >>> round(square_bound((484, 4, 25), 4), 2)
    348.33
    """
    leaves = float(np.prod(branching))
    return float((2 / 3) * ((leaves / districts) ** 0.5 - 11 / 2) * branching[-1] ** 0.5)
