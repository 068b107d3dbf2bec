"""Generalized proportional allocation (PA): Algorithms 2 and 4 of the paper, for all users at once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.models.fair_auctions.rules import by_rank, check_ell, read_values

__all__ = ["proportional", "proportional_guarantee"]


def proportional(values: Any, slots: int, ell: float = 1.0, *, as_printed: bool = False) -> Array:
    """Give shares in proportion to a power of the values, each at most 1.

    Parameters
    ----------
    values : array_like
        Effective values (ad factor times value), at least 0; shape ``(T, n)`` or ``(n,)`` for one user.
    slots : int
        From 0 to n.
    ell : float, default 1.0
        Shares are in proportion to ``g(u) = u ** ell``. Below 1 there is a warning: no theorem covers it.
    as_printed : bool, default False
        Algorithm 4 as the paper has it: its last line divides ``k - r`` units where ``k - r + 1`` are left,
        and its test compares with k instead of the rest. Values (1, 1, 1) and one unit give (0, 0, 0).

    Returns
    -------
    Array
        The probability that an ad has a slot, shape ``(T, n, slots)``.

    Raises
    ------
    DeclarationError
        Naming user and ad, or the parameter.

    Notes
    -----
    The first h slots together have shares ``min(1, t g(u_i))`` whose sum is h: with values sorted, the first
    r are capped, where r is the least number with ``(h - r) g(u_(r+1)) < g(u_(r+1)) + ... + g(u_n)``. If at
    most h values are positive, those ads get 1 and the others share the rest. It is dual to the inverse
    proportional rule: ``PA_h(u) = 1 - IPA_(n-h)(1 / u)``. O(T n (log n + slots)).

    It keeps ordered stability (Theorem 23). Total variation stability, claimed in Theorem 21, it has for one
    slot, at ``(lambda**ell - 1) / (lambda**ell + 1)``; for more slots the claim and its Lemma 22 are false.

    References
    ----------
    Chawla, Rezvan and Sauerberg (2022), Algorithms 2 and 4; Theorems 19, 20 and 23.

    Examples
    --------
    >>> proportional([8, 4, 2, 1], 2)[0].sum(axis=1).round(4).tolist()
    [1.0, 0.5714, 0.2857, 0.1429]
    """
    u, ell = read_values(values, slots), check_ell(ell)
    if ell < 1:
        warnings.warn(
            f"proportional with ell = {ell:g} below 1: u ** ell is not super-additive, no theorem covers it",
            stacklevel=2,
        )
    rule = _printed if as_printed else _units
    return by_rank(u, slots, lambda ranked, positive, h: rule(ranked, positive, h, ell))


def _units(ranked: Array, positive: Array, h: int, ell: float) -> Array:
    """The shares of h units for values that fall within each row."""
    n = ranked.shape[1]
    rank = np.arange(n)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        g = (ranked / ranked[:, h - 1, None]) ** ell
        total = np.cumsum(g[:, ::-1], axis=1)[:, ::-1]
        # The last unit is never capped, even where rounding swallows the ads after it.
        r = ((rank == h - 1) | ((rank < h) & ((h - rank) * g < total))).argmax(axis=1)
        level = (h - r) / np.take_along_axis(total, r[:, None], axis=1)[:, 0]
        share = np.where(rank < r[:, None], 1.0, np.clip(level[:, None] * g, 0.0, 1.0))
    few = positive <= h
    if few.any():
        rest = (h - positive[few]) / np.maximum(n - positive[few], 1)
        share[few] = np.where(rank < positive[few, None], 1.0, rest[:, None])
    return share


def _printed(ranked: Array, positive: Array, h: int, ell: float) -> Array:
    """Algorithm 4, step by step, user by user; its loop is stopped after the last positive value."""
    n = ranked.shape[1]
    out = np.zeros(ranked.shape)
    for t, s in enumerate(positive.tolist()):
        share, u = out[t, :], ranked[t, :]
        if s == 0:
            share[:] = h / n
            continue
        g, r = u[:s] ** ell, 1
        while r <= s and h * g[r - 1] / g[r - 1 :].sum() >= 1:
            share[r - 1] = 1
            r += 1
        if r <= s:
            share[r - 1 : s] = (h - r) * g[r - 1 :] / g[r - 1 :].sum()
    return out


def proportional_guarantee(ads: int, ell: float) -> float:
    """The share of the largest welfare that the rule keeps whatever the values are, for ell of at least 1.

    Parameters
    ----------
    ads : int
        How many; at least 1.
    ell : float
        Of the rule.

    Returns
    -------
    float
        ``phi = min over e in (0, 1) of (1 + (n - 1) e**(ell + 1)) / (1 + (n - 1) e**ell)``. For ell = 1 this
        is ``2 / (1 + sqrt(n))``.

    Notes
    -----
    The eta of Theorem 24 is false for two ads, where it is 1. Proof of phi: with K units, no cap and a the
    mean of the K largest values, Chebyshev's sum inequality and convexity give
    ``welfare / optimum >= phi`` with ``(n - K) / K`` in place of n - 1. Capped ads get all that they get in
    the optimum, and at least one unit is left for the others. Phi falls in its first argument, and a
    position auction is a sum of auctions of h units.

    References
    ----------
    Chawla, Rezvan and Sauerberg (2022), Lemma 25 and Theorem 24, corrected.

    Examples
    --------
    >>> round(proportional_guarantee(10, 1.0), 6), round(proportional_guarantee(10, 2.0), 6)
    (0.480506, 0.643955)
    """
    ell, rho = check_ell(ell), float(ads - 1)
    if ell == 1.0:
        return float(2.0 / (1.0 + np.sqrt(1.0 + rho)))

    # The ratio falls while this derivative, up to a positive factor, is negative, and then rises.
    e = scipy.optimize.brentq(lambda e: ell * (e - 1.0) + e * (1.0 + rho * e**ell), 0.0, 1.0, xtol=1e-15)
    return float((1.0 + rho * e ** (ell + 1.0)) / (1.0 + rho * e**ell))
