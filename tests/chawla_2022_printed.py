"""Algorithms 3 and 4 as their paper prints them, step by step: Chawla, Rezvan and Sauerberg (2022).

If fewer than h ads have a positive value, the shares of Algorithm 3 leave [0, 1]. The last line of Algorithm
4 divides ``k - r`` units where ``k - r + 1`` are left, and its test compares with k instead of the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.models.fair_auctions.rules import read_values

__all__ = ["inverse_proportional_as_printed", "proportional_as_printed"]


def inverse_proportional_as_printed(values: Any, slots: int, ell: float = 1.0) -> Array:
    """Algorithm 3; as `forcopt.models.fair_auctions.inverse_proportional`."""
    u = read_values(values, slots)
    return by_rank(u, slots, lambda ranked, positive, h: _inverse(ranked, positive, h, ell))


def by_rank(values: Array, slots: int, units: Any) -> Array:
    """The shares of each slot by the shares of h units, on values sorted within each row."""
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    total = np.zeros((*values.shape, slots + 1))
    for h in range(1, slots + 1):
        np.put_along_axis(total[:, :, h], order, units(ranked, (ranked > 0).sum(axis=1), h), axis=1)
    return np.diff(total, axis=2)


def _inverse(ranked: Array, positive: Array, h: int, ell: float) -> Array:
    """The shares of h units by Algorithm 3."""
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


def proportional_as_printed(values: Any, slots: int, ell: float = 1.0) -> Array:
    """Algorithm 4; as `forcopt.models.fair_auctions.proportional`."""
    u = read_values(values, slots)
    return by_rank(u, slots, lambda ranked, positive, h: _proportional(ranked, positive, h, ell))


def _proportional(ranked: Array, positive: Array, h: int, ell: float) -> Array:
    """The shares of h units by Algorithm 4; its loop is stopped after the last positive value."""
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
