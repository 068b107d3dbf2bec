"""The two ends: the highest bids win, which is best for welfare, and all ads have equal chances."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.fair_auctions.rules import by_units, check_ell, read_values

__all__ = ["best_welfare", "highest_bid", "two_ads", "uniform"]


def highest_bid(values: Any, slots: int) -> Array:
    """The ad with the h-th highest value gets slot h; ads with equal values share their slots equally.

    Parameters
    ----------
    values : array_like
        Effective values, at least 0; shape ``(T, n)`` or ``(n,)``.
    slots : int
        From 0 to n.

    Returns
    -------
    Array
        Shape ``(T, n, slots)``.

    Examples
    --------
    >>> highest_bid([1, 2, 2], 2)[0].tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    """
    u = read_values(values, slots)
    above = (u[:, None, :] > u[:, :, None]).sum(axis=2)
    equal = (u[:, None, :] == u[:, :, None]).sum(axis=2)
    users, ads = u.shape
    return by_units(lambda h: np.clip((h - above) / equal, 0.0, 1.0), users, ads, slots)


def uniform(values: Any, slots: int) -> Array:
    """Every ad has every slot with probability 1 / n.

    Parameters
    ----------
    values : Any
        Shape ``(n,)``, or ``(T, n)`` for T users.
    slots : int
        k, at most n.

    Returns
    -------
    Array
        Probabilities, shape ``(T, n, k)``.

    Examples
    --------
    >>> uniform([3, 1], 1)[0].tolist()
    [[0.5], [0.5]]
    """
    u = read_values(values, slots)
    return np.full((*u.shape, slots), 1.0 / u.shape[1])


def two_ads(values: Any, ell: float = 1.0) -> Array:
    """The best symmetric stable rule for two ads and one slot: at every profile no other one does better.

    Parameters
    ----------
    values : array_like
        Effective values of two ads, shape ``(T, 2)`` or ``(2,)``.
    ell : float, default 1.0
        Of the stability ``1 - lambda ** (-2 ell)``.

    Returns
    -------
    Array
        Shape ``(T, 2, 1)``. The higher value wins with probability ``1 - (low / high) ** (2 ell) / 2``.

    Notes
    -----
    Exchanging the values gives a pair of users with ``lambda = high / low`` whose shares are exchanged, too,
    so that no symmetric rule may give the higher one more.

    Examples
    --------
    >>> two_ads([2, 1])[0, :, 0].tolist()
    [0.875, 0.125]
    """
    u, ell = read_values(values, 1), check_ell(ell)
    if u.shape[1] != 2:
        raise DeclarationError(f"values are of {u.shape[1]} ads; the rule is for two")
    low, high = u.min(axis=1), u.max(axis=1)
    lost = 0.5 * np.divide(low, high, out=np.ones(len(u)), where=high > 0) ** (2 * ell)
    first = np.where(u[:, 0] >= u[:, 1], 1 - lost, lost)
    return np.stack([first, 1 - first], axis=1)[:, :, None]


def best_welfare(values: Array, slots: Array) -> Array:
    """The largest welfare of each user: values in falling order times slot factors.

    Parameters
    ----------
    values : Array
        Effective values, shape ``(T, n)``.
    slots : Array
        Slot factors that do not rise, shape ``(k,)`` with ``k <= n``.

    Returns
    -------
    Array
        Shape ``(T,)``, in the unit of the values.

    Examples
    --------
    >>> best_welfare(np.array([[8.0, 4, 2, 1]]), np.array([1, 0.5, 0.25])).tolist()
    [10.5]
    """
    return np.asarray(-np.sort(-values, axis=1)[:, : len(slots)] @ slots)
