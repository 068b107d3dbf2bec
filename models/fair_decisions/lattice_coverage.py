"""Exact rates of coverage under whole noise, by sums over the lattice of two of the three noises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.models.fair_decisions.lattice import masses
from forcopt.privacy.noises import Noise

if TYPE_CHECKING:
    from forcopt.models.fair_decisions.coverage import CoverageRule

__all__ = ["lattice_joint_rates", "lattice_scale"]

_CELLS_AT_ONCE = 2_000_000


def lattice_joint_rates(rule: CoverageRule, x: Array, noise: Noise, first: Array, second: Array) -> Array:
    """Give `CoverageRule.joint_rates` under `Nested` whole noise.

    Parameters
    ----------
    rule : CoverageRule
        Which.
    x : Array
        Rows ``(base, limited, illiterate)``, shape ``(k, 3)``.
    noise : Noise
        Whole, on each difference of the counts.
    first, second : Array
        Cuts of the margins in standard deviations, finite; shapes ``(m,)`` and ``(n,)``.

    Returns
    -------
    Array
        Shape ``(k, m, n)``.

    Notes
    -----
    The noise on `limited` is ``N1 + N2``, on `illiterate` ``N1``, on `base` ``N1 + N2 + N3``. For each value
    s of ``N1 + N2`` the first margin exceeds a cut from some ``N1`` on, and the second up to some ``N3``. The
    masses ``P(N1 >= n, N1 + N2 = s)`` are built up once for n from the largest value down. Margins are
    compared by the expressions of `CoverageRule.margins`, so that ties on the lattice are decided alike.
    O(N^2 + k (m + n) N) for a noise of N values, and k m n N for the products.
    """
    low, mass = masses(noise)
    values = low + np.arange(len(mass))
    sums = 2 * low + np.arange(2 * len(mass) - 1)
    upto = np.append(np.cumsum(mass), 0.0)  # of the value at each place; the last entry is for none
    out = np.empty((len(x), len(first), len(second)))
    rows = max(1, _CELLS_AT_ONCE // (len(sums) * max(len(first), len(second), 1)))
    for start in range(0, len(x), rows):
        part = x[start : start + rows]
        least = _first_above(rule, part, noise, first, sums) - low
        joint = _from(np.clip(least, 0, len(values)), mass)
        most = _last_above(rule, part, noise, second, sums) - low
        passes = upto[np.where(most < 0, len(mass), np.minimum(most, len(mass) - 1))]
        out[start : start + rows] = joint @ passes.transpose(0, 2, 1)
    return out


def _from(least: Array, mass: Array) -> Array:
    """``P(N1 >= its value at place least[..., s], N1 + N2 = s)``, of the shape of `least`."""
    size = len(mass)
    order = np.argsort(least, axis=None, kind="stable")
    ends = np.searchsorted(least.ravel()[order], np.arange(size + 1))
    flat, at = np.zeros(least.size), order % least.shape[-1]
    sums = np.zeros(2 * size - 1)
    for place in range(size - 1, -1, -1):
        sums[place : place + size] += mass[place] * mass
        some = slice(ends[place], ends[place + 1])
        flat[order[some]] = sums[at[some]]
    return flat.reshape(least.shape)


def lattice_scale(noise: Noise) -> float:
    """The standard deviation over the root of 2, as of Laplace noise; 1 for no noise at all."""
    return float(np.sqrt(noise.variance / 2)) or 1.0


def _first_above(rule: CoverageRule, x: Array, noise: Noise, cuts: Array, sums: Array) -> Array:
    """The least value of N1 with the first margin above each cut, shape ``(k, m, sums)``."""
    deviation, scale = rule.deviations[0], lattice_scale(noise)
    limited, illiterate = (x[:, 1, None] + sums)[:, None, :], x[:, 2, None, None]
    guess = np.floor(rule.literacy * limited + cuts[:, None] * deviation * scale - illiterate) - 1
    for _ in range(3):  # the guess is at most the answer, and rounding hides at most one step
        margin = (illiterate + guess - rule.literacy * limited) / deviation / scale
        guess += ~(margin > cuts[:, None])
    return guess.astype(np.int64)


def _last_above(rule: CoverageRule, x: Array, noise: Noise, cuts: Array, sums: Array) -> Array:
    """The largest value of N3 with the second margin above each cut, shape ``(k, n, sums)``."""
    (_, two, three), scale = rule.deviations, lattice_scale(noise)
    limited, base = (x[:, 1, None] + sums)[:, None, :], (x[:, 0, None] + sums)[:, None, :]
    guess = np.floor((limited - cuts[:, None] * two * scale) / rule.percent - base) + 1
    for _ in range(3):
        margin = (limited - rule.percent * (base + guess)) / two / scale
        guess -= ~(margin > cuts[:, None])
    always = (limited - rule.absolute) / three / scale > cuts[:, None]
    return np.where(always, np.iinfo(np.int64).max // 2, np.clip(guess, -1e15, 1e15)).astype(np.int64)
