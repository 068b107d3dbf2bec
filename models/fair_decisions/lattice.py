"""Whole noise on counts, by sums over its lattice: means, shares, tails of sums, rates of coverage."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.tolerances import TAIL, WHOLE
from forcopt.privacy.noises import Noise, TabulatedNoise

if TYPE_CHECKING:
    from forcopt.models.fair_decisions.coverage import CoverageRule

_MOST_POINTS = 2**24
_CELLS_AT_ONCE, _RATE_CELLS_AT_ONCE = 4_000_000, 2_000_000
LOG_STEP = 0.08
"""Of the trapezoidal rule in the logarithm of the transform's argument."""


def masses(noise: Noise) -> tuple[int, Array]:
    """Give the first value of a whole noise and the probabilities from there on, but for tails of 1e-18.

    Examples
    --------
    >>> from forcopt.privacy import DiscreteLaplace
    >>> first, mass = masses(DiscreteLaplace(scale=1.0))
    >>> first, round(float(mass[-first]), 6)
    (-41, 0.462117)
    """
    if isinstance(noise, TabulatedNoise):
        first, mass = int(noise.values[0]), noise.law
    else:  # an even law
        first = int(noise.quantile(TAIL)) - 1
        mass = np.asarray(noise.density(np.arange(first, 1 - first)), dtype=float)
    some = np.flatnonzero(mass > TAIL * mass.max())
    return first + int(some[0]), mass[some[0] : some[-1] + 1]


def lattice_clipped_mean(counts: Array, noise: Noise) -> Array:
    """Give ``E[max(0, x + N)]`` for whole noise N, of the shape of `counts`."""
    first, mass = masses(noise)
    values = first + np.arange(len(mass))
    return np.asarray(np.maximum(0.0, np.asarray(counts)[..., None] + values) @ mass)


def lattice_shares(counts: Array, noise: Noise, weights: Array) -> Array:
    """Give `expected_shares` under whole noise.

    Parameters
    ----------
    counts, weights : Array
        Whole counts at least 0, and weights above 0; shape ``(k,)``.
    noise : Noise
        Whole.

    Returns
    -------
    Array
        ``E[w_a X_a / sum_b w_b X_b]`` for ``X = max(0, x + N)``, shape ``(k,)``.

    Notes
    -----
    The integral is the one of `expected_shares`; the transforms are sums over the lattice. O(k n) for each of
    some hundred nodes, n being the number of values of the noise.

    Examples
    --------
    >>> from forcopt.privacy import DiscreteLaplace
    >>> noise = DiscreteLaplace(scale=10.0)
    >>> lattice_shares(np.array([10.0, 20.0, 70.0]), noise, np.ones(3)).round(4).tolist()
    [0.1098, 0.196, 0.6942]
    """
    first, mass = masses(noise)
    kinds, of_kind, districts = np.unique(
        np.stack([counts, weights / weights.max()]), axis=1, return_inverse=True, return_counts=True
    )
    x, w = kinds
    values = np.maximum(0.0, x[:, None] + first + np.arange(len(mass)))
    largest = float((districts * w * values.max(axis=1)).sum())
    if largest == 0:
        return np.zeros(len(counts))
    log_t = np.arange(np.log(TAIL / largest), np.log(100 / w.min()), LOG_STEP)
    out = np.zeros(len(x))
    at_once = max(1, _CELLS_AT_ONCE // values.size)
    for start in range(0, len(log_t), at_once):
        t = np.exp(log_t[start : start + at_once])
        decays = np.exp(-values[:, None, :] * (w[:, None] * t)[:, :, None])
        transform = decays @ mass
        derivative = np.einsum("ktn,kn->kt", decays, values * mass)
        with np.errstate(divide="ignore", invalid="ignore"):
            together = np.exp(districts @ np.log(transform))
            part = w[:, None] * derivative / transform
        out += np.where(together > 0, part, 0.0) @ (together * t)
    return np.asarray(out * LOG_STEP)[of_kind.ravel()]


class LatticeSum:
    """The law of a weighted sum of independent draws of a whole noise.

    Parameters
    ----------
    noise : Noise
        Whole.
    weights : Array
        Above 0, shape ``(k,)``: multiples of a common unit.
    positive : bool, default False
        Whether to sum the positive parts.

    Raises
    ------
    DeclarationError
        For weights whose common unit is so small that the sum has more than 2^24 values.

    Notes
    -----
    A power of a Fourier transform for each weight; the error is about 1e-15.

    Examples
    --------
    >>> from forcopt.privacy import DiscreteLaplace
    >>> total = LatticeSum(DiscreteLaplace(scale=1.0), np.array([2.0, 2.0]))
    >>> round(total.tail(2.0), 6), total.quantile(0.05)
    (0.178084, 6.0)
    """

    def __init__(self, noise: Noise, weights: Array, *, positive: bool = False) -> None:
        first, mass = masses(noise)
        if positive:
            mass = np.concatenate([[mass[: 1 - first].sum()], mass[1 - first :]])
            first = 0
        exact = [Fraction(float(w)) for w in weights]
        below = reduce(lambda a, b: a * b // gcd(a, b), (w.denominator for w in exact))
        wholes = [int(w * below) for w in exact]
        unit = reduce(gcd, wholes)
        steps, times = np.unique([min(w // unit, _MOST_POINTS) for w in wholes], return_counts=True)
        length = 1 + int((steps * times).sum()) * (len(mass) - 1)
        if length > _MOST_POINTS:
            raise DeclarationError(
                f"the weighted sum of {type(noise).__name__} noises has {length:.3g} values or more; give "
                f"weights that are small multiples of a common unit, so that there are {_MOST_POINTS} at most"
            )
        size = scipy.fft.next_fast_len(length, real=True)
        together = np.ones(size // 2 + 1, dtype=complex)
        for step, count in zip(steps, times, strict=True):
            spread = np.zeros(step * (len(mass) - 1) + 1)
            spread[::step] = mass
            together *= scipy.fft.rfft(spread, size) ** count
        law = np.maximum(scipy.fft.irfft(together, size)[:length], 0.0)
        self.unit = float(Fraction(unit, below))
        self.first = first * int((steps * times).sum())
        self.above = np.append(np.cumsum(law[::-1])[::-1], 0.0)  # P(sum >= unit (first + i))

    def tail(self, value: float) -> float:
        """The probability that the sum exceeds a value."""
        at = int(np.floor(value / self.unit + WHOLE)) + 1 - self.first
        return float(min(1.0, self.above[min(max(at, 0), len(self.above) - 1)]))

    def quantile(self, tail: float) -> float:
        """The least value that the sum exceeds with at most this probability."""
        return self.unit * (self.first + int(np.argmax(self.above <= tail)) - 1)


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
    rows = max(1, _RATE_CELLS_AT_ONCE // (len(sums) * max(len(first), len(second), 1)))
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
