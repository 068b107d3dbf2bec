"""Dependence of distant attributes: runs of related attributes, and the order of dependent blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError

__all__ = ["dependence_order", "run_probability"]


def run_probability(links: int, related: float, length: int) -> float:
    """The probability of a run of at least `length` related links among independent ones.

    Parameters
    ----------
    links : int
        The number of links, at least 0.
    related : float
        The probability q that a link is related, from 0 to 1.
    length : int
        The length of the run, at least 0.

    Returns
    -------
    float
        The probability. O(links).

    Raises
    ------
    DeclarationError
        For a negative number, or a probability outside of [0, 1].

    Notes
    -----
    The first run of length r ends at link j with probability ``(1 - q) q^r (1 - R[j - r - 1])``, where
    ``R[i]`` is the probability of a run among the first i links. All terms are positive, so that
    small probabilities keep their digits.

    Examples
    --------
    >>> run_probability(9, 0.5, 3)
    0.46484375
    """
    if links < 0 or length < 0 or not 0 <= related <= 1:
        raise DeclarationError(
            f"links is {links}, length {length}, related {related}; numbers must be at least 0, the "
            "probability from 0 to 1"
        )
    if length == 0:
        return 1.0
    if length > links:
        return 0.0
    run = related**length
    step = (1 - related) * run
    found = np.zeros(links + 1)
    found[length] = run
    for j in range(length + 1, links + 1):
        found[j] = found[j - 1] + step * (1 - found[j - length - 1])
    return float(min(found[-1], 1.0))


def dependence_order(pmf: Any, tolerance: float = 1e-12) -> int:
    """The least k for which blocks are k-dependent.

    Blocks are k-dependent if the first s blocks and all blocks from s + k + 1 on are independent, for each s.

    Parameters
    ----------
    pmf : array_like
        The joint probabilities, one axis for each block.
    tolerance : float, default 1e-12
        By how much a joint probability may differ from the product.

    Returns
    -------
    int
        From 0 (independent) to one less than the number of blocks. O(m^2) passes over the table.

    Raises
    ------
    DeclarationError
        For entries that are negative or do not sum to 1.

    References
    ----------
    Du and Dwork (2022), Definition 6.

    Examples
    --------
    >>> dependence_order([[0.25, 0.25], [0.25, 0.25]]), dependence_order([[0.5, 0.0], [0.0, 0.5]])
    (0, 1)
    """
    table = as_numbers(pmf, "pmf")
    if table.ndim == 0 or (table < 0).any() or abs(float(table.sum()) - 1) > 1e-9:
        raise DeclarationError("pmf must hold probabilities that sum to 1, one axis for each block")
    m = table.ndim
    for k in range(m - 1):
        if all(_independent(table, s, s + k, tolerance) for s in range(1, m - k)):
            return k
    return m - 1


def _independent(table: Any, before: int, after: int, tolerance: float) -> bool:
    """Whether the axes up to `before` and those from `after` on are independent."""
    left = int(np.prod(table.shape[:before]))
    joint = table.sum(axis=tuple(range(before, after))).reshape(left, -1)
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return bool((np.abs(joint - product) <= tolerance).all())
