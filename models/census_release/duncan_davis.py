"""The method of bounds for ecological inference."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["duncan_davis"]

Interval = tuple[float, float]


def duncan_davis(share: Array, support: Array, votes: Array) -> tuple[Interval, Interval]:
    """The least and greatest rates that no data of the units contradict.

    Parameters
    ----------
    share : Array
        The group's share of each unit's voters, from 0 to 1, shape ``(n,)``.
    support : Array
        The candidate's share of the votes.
    votes : Array
        Above 0.

    Returns
    -------
    tuple of two pairs
        The interval of the group's rate over all units, and that of the complement's. NaN for a group without
        voters.

    Raises
    ------
    DeclarationError
        For a share or a support outside of 0 and 1, which no rates explain.

    Notes
    -----
    In a unit with share x and support y the group's rate lies between ``max(0, (y - 1 + x) / x)`` and
    ``min(1, y / x)``; the overall rate is their mean weighted by the group's voters. These are the optima of
    the linear program over the units' two rates, which separates by unit.

    References
    ----------
    Duncan, Davis (1953), An alternative to ecological correlation.

    Examples
    --------
    >>> import numpy as np
    >>> duncan_davis(np.array([0.5]), np.array([0.75]), np.array([100.0]))
    ((0.5, 1.0), (0.5, 1.0))
    """
    for name, values in (("share", share), ("support", support)):
        outside = (values < 0) | (values > 1)
        if outside.any():
            at = int(np.argmax(outside))
            raise DeclarationError(
                f"{name} is {values[at]:g} in a unit with votes; the method of bounds needs shares from 0 to "
                "1, so that noisy ones must be cut first"
            )
    found = []
    for x in (share, 1 - share):
        voters = x * votes
        total = float(voters.sum())
        low = np.maximum(0.0, votes * (support - 1 + x)).sum()
        high = np.minimum(voters, votes * support).sum()
        found.append((float(low / total), float(high / total)) if total > 0 else (np.nan, np.nan))
    return found[0], found[1]
