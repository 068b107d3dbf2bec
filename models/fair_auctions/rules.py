"""The common part of the paper's two rules: sorted values of users and their differences over slots."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError

__all__ = ["by_rank", "by_units", "check_ell", "read_values"]


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
    if (u < 0).any():
        t, i = (int(at) for at in np.argwhere(u < 0)[0])
        raise DeclarationError(
            f"values[{t}, {i}] is {u[t, i]:g}; the value of ad {i} to user {t} must not be negative"
        )
    given: Any = slots
    whole = not isinstance(given, bool) and isinstance(given, Real) and 0 <= slots <= u.shape[1]
    if not whole or slots % 1 != 0:
        raise DeclarationError(
            f"slots is {slots!r}; it must be a whole number from 0 to {u.shape[1]}, the ads"
        )
    return u


def check_ell(ell: float) -> float:
    """The parameter of a rule, if it is above 0 and finite."""
    if not np.isfinite(ell) or ell <= 0:
        raise DeclarationError(f"ell is {ell!r}; it must be a number above 0")
    return float(ell)


def by_units(units: Callable[[int], Array], users: int, ads: int, slots: int) -> Array:
    """The allocation whose first h slots have the shares of the h-unit rule, for every h.

    Parameters
    ----------
    units : Callable[[int], Array]
        The shares of all users at h units, shape ``(T, n)``.
    users, ads, slots : int
        How many.

    Returns
    -------
    Array
        Shape ``(T, n, slots)``: the generalized rule of Algorithms 1 and 2.
    """
    out = np.zeros((users, ads, slots))
    before = np.zeros((users, ads))
    for h in range(1, slots + 1):
        share = units(h)
        out[:, :, h - 1] = share - before
        before = share
    return out


def by_rank(values: Array, slots: int, units: Callable[[Array, Array, int], Array]) -> Array:
    """`by_units` for a rule on sorted values.

    Parameters
    ----------
    values : Array
        Effective values, shape ``(T, n)``.
    slots : int
        How many.
    units : Callable[[Array, Array, int], Array]
        The shares at h units, shape ``(T, n)``, of values that fall within each row, given how many of each
        row are positive.

    Returns
    -------
    Array
        Shape ``(T, n, slots)``.
    """
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    positive = (ranked > 0).sum(axis=1)
    users, ads = values.shape
    shares = by_units(lambda h: units(ranked, positive, h), users, ads, slots)
    out = np.empty_like(shares)
    np.put_along_axis(out, order[:, :, None], shares, axis=1)
    return out
