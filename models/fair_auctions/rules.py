"""Rules that allocate slots by values alone, with their guarantees."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import scipy

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.errors import DeclarationError, require
from forcopt.models.fair_auctions.tolerances import ROOT


def read_values(values: Any, slots: int) -> Array:
    """Effective values as an array of shape ``(T, n)``.

    Raises
    ------
    DeclarationError
        For negative values or NaN, with user and ad; for more slots than ads, or a number of slots that is
        no whole number at least 0.
    """
    u = np.atleast_2d(as_numbers(values, "values"))
    if u.ndim != 2 or not u.shape[1]:
        raise DeclarationError(f"values have shape {u.shape}; they must be (users, ads)")
    check_entries(u, u < 0, "values", "the value of an ad to a user must not be negative")
    given: Any = slots
    ads = u.shape[1]
    whole = not isinstance(given, bool) and isinstance(given, Real) and 0 <= slots <= ads
    require(whole and slots % 1 == 0, "slots", slots, f"be a whole number from 0 to {ads}, the ads")
    return u


def check_ell(ell: float) -> float:
    """The parameter of a rule, if it is above 0 and finite."""
    require(np.isfinite(ell) and ell > 0, "ell", ell, "be a number above 0")
    return float(ell)


def by_units(units: Callable[[int], Array], values: Array, slots: int) -> Array:
    """The allocation whose first h slots have the shares of the h-unit rule, for every h.

    Parameters
    ----------
    units : Callable[[int], Array]
        The shares of all users at h units, shape ``(T, n)``.
    values : Array
        Effective values, shape ``(T, n)``.
    slots : int
        How many.

    Returns
    -------
    Array
        Shape ``(T, n, slots)``: the generalized rule of Algorithms 1 and 2.
    """
    shares = [np.zeros(values.shape), *(units(h) for h in range(1, slots + 1))]
    return np.diff(np.stack(shares, axis=2), axis=2)


def by_rank(values: Array, slots: int, units: Callable[[Array, Array, int], Array]) -> Array:
    """`by_units` for a rule on sorted values.

    Users with at most h positive values give those ads 1, and the others share the rest: the limit of tiny
    values.

    Parameters
    ----------
    values : Array
        Effective values, shape ``(T, n)``.
    slots : int
        How many.
    units : Callable[[Array, Array, int], Array]
        The shares at h units, shape ``(T, n)``, of values that fall within each row and of which more than h
        are positive, given how many.

    Returns
    -------
    Array
        Shape ``(T, n, slots)``.
    """
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    positive = (ranked > 0).sum(axis=1)
    n = values.shape[1]

    def shares(h: int) -> Array:
        many = positive > h
        rest = (h - positive) / np.maximum(n - positive, 1)
        share = np.where(np.arange(n) < positive[:, None], 1.0, rest[:, None])
        if many.any():
            share[many] = units(ranked[many], positive[many], h)
        return share

    out = np.empty((*values.shape, slots))
    np.put_along_axis(out, order[:, :, None], by_units(shares, values, slots), axis=1)
    return out


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
    return by_units(lambda h: np.clip((h - above) / equal, 0.0, 1.0), u, slots)


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


def inverse_proportional(values: Any, slots: int, ell: float = 1.0) -> Array:
    """Give every ad 1 and take it back in inverse proportion to values, until the slots are full.

    Parameters
    ----------
    values : array_like
        Effective values (ad factor times value), at least 0; shape ``(T, n)`` or ``(n,)`` for one user.
    slots : int
        From 0 to n.
    ell : float, default 1.0
        The share taken back is in proportion to ``g(u) = u ** -ell``.

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
    return by_rank(u, slots, lambda ranked, positive, h: _inverse_units(ranked, positive, h, ell))


def _inverse_units(ranked: Array, positive: Array, h: int, ell: float) -> Array:
    """The shares of h units for values that fall within each row."""
    n = ranked.shape[1]
    rank = np.arange(1, n + 1)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        g = (ranked / ranked[:, h, None]) ** -ell
        total = np.cumsum(g, axis=1)
        holds = (rank > h) & (rank <= positive[:, None]) & ((rank - h) * g < total)
        s = np.where(holds.any(axis=1), n - holds[:, ::-1].argmax(axis=1), h + 1)
        level = (s - h) / np.take_along_axis(total, s[:, None] - 1, axis=1)[:, 0]
        return np.where(rank <= s[:, None], np.clip(1.0 - level[:, None] * g, 0.0, 1.0), 0.0)


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


def proportional(values: Any, slots: int, ell: float = 1.0) -> Array:
    """Give shares in proportion to a power of the values, each at most 1.

    Parameters
    ----------
    values : array_like
        Effective values (ad factor times value), at least 0; shape ``(T, n)`` or ``(n,)`` for one user.
    slots : int
        From 0 to n.
    ell : float, default 1.0
        Shares are in proportion to ``g(u) = u ** ell``. Below 1 there is a warning: no theorem covers it.

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
    return by_rank(u, slots, lambda ranked, positive, h: _proportional_units(ranked, h, ell))


def _proportional_units(ranked: Array, h: int, ell: float) -> Array:
    """The shares of h units for values that fall within each row."""
    rank = np.arange(ranked.shape[1])
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        g = (ranked / ranked[:, h - 1, None]) ** ell
        total = np.cumsum(g[:, ::-1], axis=1)[:, ::-1]
        # The last unit is never capped, even where rounding swallows the ads after it.
        r = ((rank == h - 1) | ((rank < h) & ((h - rank) * g < total))).argmax(axis=1)
        level = (h - r) / np.take_along_axis(total, r[:, None], axis=1)[:, 0]
        return np.where(rank < r[:, None], 1.0, np.clip(level[:, None] * g, 0.0, 1.0))


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
    e = scipy.optimize.brentq(lambda e: ell * (e - 1.0) + e * (1.0 + rho * e**ell), 0.0, 1.0, xtol=ROOT)
    return float((1.0 + rho * e ** (ell + 1.0)) / (1.0 + rho * e**ell))
