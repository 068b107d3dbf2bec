"""The auditor's best response (Algorithm 1)."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array

__all__ = ["most_violated"]


def most_violated(losses: Array, limits: Array) -> Array:
    """The set of groups whose total loss exceeds the limit for sets of its size by the most.

    Among sets of one size the set of the largest losses is the worst, so that the prefixes of the sorted
    losses suffice: O(K log K) for exponentially many multipliers, of which at most one is not 0.

    Parameters
    ----------
    losses : Array
        Of the K groups.
    limits : Array
        ``η_1, ..., η_j`` for sets of 1, ..., j groups.

    Returns
    -------
    Array
        The groups, worst first; none if no limit is exceeded (a tie is no violation).

    References
    ----------
    Diana et al. (2021), Algorithm 1 and Fact 11.

    Examples
    --------
    >>> most_violated(np.array([0.2, 0.7, 0.5]), np.array([0.6, 1.3])).tolist()
    [1]
    >>> most_violated(np.array([0.2, 0.7, 0.5]), np.array([0.8, 1.0])).tolist()
    [1, 2]
    """
    order = np.argsort(-losses, kind="stable")
    excess = np.cumsum(losses[order])[: len(limits)] - limits
    worst = int(excess.argmax())
    return order[: worst + 1] if excess[worst] > 0 else order[:0]
