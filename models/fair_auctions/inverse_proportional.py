"""Generalized inverse proportional allocation (IPA): Algorithms 1 and 3, for all users at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.models.fair_auctions.rules import by_rank, check_ell, read_values

__all__ = ["inverse_proportional", "inverse_proportional_guarantee"]


def inverse_proportional(values: Any, slots: int, ell: float = 1.0, *, as_printed: bool = False) -> Array:
    """Give every ad 1 and take it back in inverse proportion to values, until the slots are full.

    Parameters
    ----------
    values : array_like
        Effective values (ad factor times value), at least 0; shape ``(T, n)`` or ``(n,)`` for one user.
    slots : int
        From 0 to n.
    ell : float, default 1.0
        The share taken back is in proportion to ``g(u) = u ** -ell``.
    as_printed : bool, default False
        Algorithm 3 as the paper has it. If fewer than h ads have a positive value, its shares leave [0, 1]:
        values (1, 0, 0) and 2 units give ad 0 a share of 2.

    Returns
    -------
    Array
        The probability that an ad has a slot, shape ``(T, n, slots)``. It does not depend on slot factors,
        nor on the scale of a user's values.

    Raises
    ------
    DeclarationError
        Naming user and ad, or the parameter.

    Notes
    -----
    The first h slots together have shares ``a_i = 1 - min(1, t g(u_i))`` with ``sum(a) = h``. With values
    sorted, s ads have a positive share, where s is the largest number with
    ``(s - h) g(u_s) < g(u_1) + ... + g(u_s)``; then ``t = (s - h) / (g(u_1) + ... + g(u_s))``. If at most h
    values are positive, those ads get 1 and the others share the rest: the limit of tiny values, which the
    paper leaves out. Values are divided by the (h + 1)-th largest, so that nothing overflows.
    O(T n (log n + slots)).

    References
    ----------
    Chawla, Rezvan and Sauerberg (2022), Algorithms 1 and 3; Theorems 9, 11, 12, 19 and 20.

    Examples
    --------
    >>> inverse_proportional([8, 4, 2, 1], 3)[0].round(4).tolist()
    [[0.6667, 0.1905, 0.0762], [0.3333, 0.381, 0.1524], [0.0, 0.4286, 0.3048], [0.0, 0.0, 0.4667]]
    """
    u, ell = read_values(values, slots), check_ell(ell)
    rule = _printed if as_printed else _units
    return by_rank(u, slots, lambda ranked, positive, h: rule(ranked, positive, h, ell))


def _units(ranked: Array, positive: Array, h: int, ell: float) -> Array:
    """The shares of h units for values that fall within each row."""
    n = ranked.shape[1]
    if h == n:
        return np.ones(ranked.shape)
    rank = np.arange(1, n + 1)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        g = (ranked / ranked[:, h, None]) ** -ell
        total = np.cumsum(g, axis=1)
        holds = (rank > h) & (rank <= positive[:, None]) & ((rank - h) * g < total)
        s = np.where(holds.any(axis=1), n - holds[:, ::-1].argmax(axis=1), h + 1)
        level = (s - h) / np.take_along_axis(total, s[:, None] - 1, axis=1)[:, 0]
        share = np.where(rank <= s[:, None], np.clip(1.0 - level[:, None] * g, 0.0, 1.0), 0.0)
    few = positive <= h
    if few.any():
        rest = (h - positive[few]) / (n - positive[few])
        share[few] = np.where(rank <= positive[few, None], 1.0, rest[:, None])
    return share


def _printed(ranked: Array, positive: Array, h: int, ell: float) -> Array:
    """Algorithm 3, step by step, user by user."""
    n = ranked.shape[1]
    out = np.zeros(ranked.shape)
    for t, count in enumerate(positive.tolist()):
        share, u = out[t, :], ranked[t, :]
        if count == 0:
            share[:] = h / n
            continue
        s, g = count, u[:count] ** -ell
        while (s - h) * g[s - 1] >= g[:s].sum():
            s -= 1
        share[:s] = 1 - (s - h) * g[:s] / g[:s].sum()
    return out


def inverse_proportional_guarantee(ell: float) -> float:
    """The share of the largest welfare that the rule keeps whatever the values are (Theorem 12).

    Parameters
    ----------
    ell : float
        The exponent of the rule, above 0.

    Returns
    -------
    float
        Strictly between 0 and 1.

    Raises
    ------
    DeclarationError
        For an exponent that is not positive and finite.

    Examples
    --------
    >>> inverse_proportional_guarantee(1.0), round(inverse_proportional_guarantee(2.0), 6)
    (0.75, 0.851852)
    """
    ell = check_ell(ell)
    return float(1.0 - np.exp(ell * np.log(ell) - (1.0 + ell) * np.log1p(ell)))
