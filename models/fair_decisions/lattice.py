"""Whole noise on counts, by sums over its lattice: clipped means, shares of a total, and tails of sums."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import gcd

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy.noises import Noise, TabulatedNoise

__all__ = ["LatticeSum", "lattice_clipped_mean", "lattice_shares", "masses"]

_TAIL = 1e-18
_MOST_POINTS = 2**24
_CELLS_AT_ONCE = 4_000_000
_STEP = 0.08
"""Of the trapezoidal rule in the logarithm of the transform's argument, as for Laplace noise."""


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
        first = int(noise.quantile(_TAIL)) - 1
        mass = np.asarray(noise.density(np.arange(first, 1 - first)), dtype=float)
    some = np.flatnonzero(mass > _TAIL * mass.max())
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
    log_t = np.arange(np.log(1e-18 / largest), np.log(100 / w.min()), _STEP)
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
    return np.asarray(out * _STEP)[of_kind.ravel()]


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
        at = int(np.floor(value / self.unit + 1e-9)) + 1 - self.first
        return float(min(1.0, self.above[min(max(at, 0), len(self.above) - 1)]))

    def quantile(self, tail: float) -> float:
        """The least value that the sum exceeds with at most this probability."""
        return self.unit * (self.first + int(np.argmax(self.above <= tail)) - 1)
