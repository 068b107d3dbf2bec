"""Laws of noisy counts: sums and clipped counts, of Laplace noise and of whole noise on a lattice."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.tolerances import ORIGIN, POLE, QUANTILE, SINGULAR, TAIL, WHOLE
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


_STEP, _REACH, _TILT = 0.05, 12.0, 0.5
_NODES_AT_ONCE = 64


def laplace_sum_tail(value: float, scales: Any, *, positive: bool = False, least: Any = None) -> float:
    """Give the probability that independent Laplace variables sum to more than a value.

    Parameters
    ----------
    value : float
        v.
    scales : array_like
        Of the variables, above 0; shape ``(k,)``.
    positive : bool, default False
        Whether to sum the positive parts ``max(0, L_i)``.
    least : array_like, optional
        u, at least 0, shape ``(k,)``. With it, the event also demands ``L_i >= -u_i`` for all i; then the
        value is above 0.

    Returns
    -------
    float
        ``P(sum_i L_i > v)``, or ``P(sum_i L_i > v and L_i >= -u_i for all i)``, to about 1e-12.

    Raises
    ------
    DeclarationError
        For scales that are not positive; with `least`, for a value of 0 or less.

    Notes
    -----
    The tail is the integral of ``exp(-z v) / z * prod_i 1 / (1 - s_i^2 z^2)`` along any path from infinity to
    infinity around the poles ``1 / s_i``; for positive parts the factors are ``(1 + 1 / (1 - s_i z)) / 2``,
    and with `least` the transforms of the variables cut off at ``-u_i``. It is taken on the hyperbola
    ``x^2 = c^2 + y^2 / 4`` through the saddle point c on the real axis: no factor ``1 / (1 - s_i^2 z^2)`` is
    larger on it than at c, the product of many falls as a Gaussian, and ``exp(-z v)`` falls too. There the
    trapezoidal rule converges geometrically.

    References
    ----------
    Trefethen, Weideman: The exponentially convergent trapezoidal rule. SIAM Review 56, 2014, section 15.

    Examples
    --------
    >>> laplace_sum_tail(2.0, [1.0])  # exp(-2) / 2
    0.067667641618...
    """
    s = as_numbers(scales, "scales")
    if s.ndim != 1 or not s.size or (s <= 0).any():
        raise DeclarationError("scales must be a list of at least one number, each above 0")
    if least is not None:
        u = as_numbers(least, "least")
        if u.shape != s.shape or (u < 0).any() or value <= 0:
            raise DeclarationError(
                f"least must be {len(s)} numbers at least 0, and the value above 0; it is {value:g}"
            )
    elif positive and value <= 0:
        return 1.0 if value < 0 else float(1.0 - 0.5 ** len(s))
    elif value < 0:
        return 1.0 - laplace_sum_tail(-value, scales)
    elif value == 0:
        return 0.5
    else:
        u = np.full(len(s), np.inf)
    largest = float(s.max())
    (scale, cut), count = np.unique(np.stack([s / largest, u / s]), axis=1, return_counts=True)
    v, reached = value / largest, np.exp(-cut)

    def slope(z: float) -> float:
        """Of the logarithm of the integrand."""
        a = scale * z
        if positive:
            terms = 1 / (1 - a) - (1 - reached) / (2 - a - (1 - a) * reached)
        else:
            with np.errstate(invalid="ignore"):
                lost = np.where(reached > 0, reached ** (1 + a) * (1 + (1 - a) * cut), 0.0)
            terms = 2 * a / (1 - a**2) + lost / (2 - (1 - a) * reached ** (1 + a))
        return float((count * scale * terms).sum()) - v - 1 / z

    saddle = scipy.optimize.brentq(slope, ORIGIN / (1 + v), 1 - POLE, xtol=POLE)
    a = scale * saddle
    if positive:
        bends = scale**2 * (3 - 2 * a) / ((1 - a) * (2 - a)) ** 2
    else:
        bends = 2 * scale**2 * (1 + a**2) / (1 - a**2) ** 2
    bend = float((count * bends).sum())
    width = 1 / np.sqrt(bend + 1 / saddle**2)
    # A product that does not fall leaves it to exp(-z v).
    reach = max(_REACH, float(np.arcsinh(40 / (_TILT * width * v)))) if positive else _REACH
    steps = (np.arange(round(reach / _STEP)) + 0.5) * _STEP  # the lower half is its mirror image
    y = width * np.sinh(steps)
    x = np.sqrt(saddle**2 + (_TILT * y) ** 2)
    z, turn = x + 1j * y, width * (_TILT**2 * y / x + 1j) * np.cosh(steps)
    product = np.multiply.outer(scale, z)
    below = reached[:, None]  # the probability of L < -u is half of it
    if positive:
        factors = np.log((2 - product - (1 - product) * below) / (2 - 2 * product))
    else:
        factors = np.log1p(-(1 - product) * below ** (1 + product) / 2) - np.log(1 - product**2)
    logs = -z * v - np.log(z) + count @ factors
    integral = (np.exp(logs) * turn).imag.sum() * _STEP / np.pi
    return float(min(max(integral, 0.0), 1.0 if positive else 0.5))


def laplace_sum_quantile(tail: float, scales: Any) -> float:
    """Give the value that a sum of independent Laplace variables exceeds with a probability below 1/2.

    Parameters
    ----------
    tail : float
        Above 0 and below 1/2.
    scales : array_like
        As for `laplace_sum_tail`.

    Returns
    -------
    float
        In the unit of the scales; above 0.

    Examples
    --------
    >>> round(laplace_sum_quantile(0.05, [2.0]), 6)  # 2 log(10)
    4.60517
    """
    if not 0 < tail < 0.5:
        raise DeclarationError(f"tail is {tail!r}; it must be above 0 and below 1/2")
    s = as_numbers(scales, "scales")
    high = float(np.sqrt(2 * (s**2).sum()))
    while laplace_sum_tail(high, s) > tail:
        high *= 2
    return float(
        scipy.optimize.brentq(lambda v: laplace_sum_tail(v, s) - tail, 0.0, high, xtol=QUANTILE * high)
    )


def clipped_mean(counts: Any, scale: float) -> Array:
    """Give the expected value of ``max(0, x + L)`` for Laplace noise L.

    Parameters
    ----------
    counts : array_like
        At least 0.
    scale : float
        Of the noise, above 0.

    Returns
    -------
    Array
        ``x + scale / 2 * exp(-x / scale)``, of the shape of `counts`.

    Examples
    --------
    >>> round(float(clipped_mean(8, 1000.0)), 6)
    504.015957
    """
    x = np.asarray(counts, dtype=float)
    return np.asarray(x + scale / 2 * np.exp(-x / scale))


def clipped_transforms(counts: Array, argument: Array) -> tuple[Array, Array]:
    """Give ``E[exp(-t X)]`` and ``E[X exp(-t X)]`` of ``X = max(0, x + L)``, L Laplace noise of scale 1.

    Parameters
    ----------
    counts : Array
        x, at least 0.
    argument : Array
        t, at least 0; it broadcasts against `counts`.

    Returns
    -------
    tuple[Array, Array]
        Both transforms.

    Notes
    -----
    X is 0 with probability ``exp(-x) / 2``. Below x the density is ``exp(y - x) / 2``, above it
    ``exp(x - y) / 2``; the first part has a removable singularity at t = 1.
    """
    x, t = np.broadcast_arrays(np.asarray(counts, dtype=float), np.asarray(argument, dtype=float))
    gap, distance = np.abs(1 - t), np.minimum(t, 1.0)
    z = gap * x
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lower = np.where(z < SINGULAR, x, -np.expm1(-z) / gap) * np.exp(-distance * x)
    upper = np.exp(-t * x)
    transform = (np.exp(-x) + lower + upper / (1 + t)) / 2
    # e^-x times the integral of y e^((1 - t) y) over [0, x]
    series = np.where(t < 1, z, -z)
    small = np.abs(series) < 0.5
    z_small = series[small]
    near, term = np.zeros_like(z_small), np.ones_like(z_small)
    for n in range(20):
        near += term / (n + 2)
        term *= z_small / (n + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = 1 - t
        integral = x * upper / a - (upper - np.exp(-x)) / a**2
    integral[small] = near * x[small] ** 2 * np.exp(-x[small])
    derivative = (integral + x * upper / (1 + t) + upper / (1 + t) ** 2) / 2
    return transform, derivative


def expected_shares(counts: Any, scale: float | Noise, weights: Any = None) -> Array:
    """Return the mean share of each in 1, divided in proportion to noisy counts.

    Parameters
    ----------
    counts : array_like
        x, at least 0; shape ``(k,)``.
    scale : float or Noise
        Of the Laplace noise on each count, above 0; or a whole noise. Noisy counts below 0 become 0.
    weights : array_like, optional
        Above 0, shape ``(k,)``; 1 by default.

    Returns
    -------
    Array
        ``E[w_a X_a / sum_b w_b X_b]``, shape ``(k,)``; where all noisy counts are 0, all shares are 0,
        so that the shares sum to the probability of another case.

    Raises
    ------
    DeclarationError
        For counts, weights or a scale out of range.

    Notes
    -----
    Since ``1 / s`` is the integral of ``exp(-t s)``, the share is the integral over t of ``E[w_a X_a
    exp(-t w_a X_a)]`` times the other counts' ``E[exp(-t w_b X_b)]``, all closed. In log t the integrand is
    analytic in a strip, so that the trapezoidal rule converges geometrically. O(k) for each of some hundred
    nodes.

    References
    ----------
    Pujol et al. (2020), section 5, who sample these expectations.

    Examples
    --------
    >>> (expected_shares([10, 20, 70], 10.0) / [0.1, 0.2, 0.7]).round(5).tolist()
    [1.09782, 0.98013, 0.9917]
    """
    x = as_numbers(counts, "counts")
    w = np.ones(len(x)) if weights is None else as_numbers(weights, "weights")
    if x.ndim != 1 or not x.size or (x < 0).any():
        raise DeclarationError("counts must be a list of at least one number, each at least 0")
    if w.shape != x.shape or (w <= 0).any():
        raise DeclarationError(f"weights must be {len(x)} numbers above 0, one for each count")
    if isinstance(scale, Noise):
        if not scale.whole or (x != np.round(x)).any():
            raise DeclarationError("give the scale of Laplace noise, or whole noise and whole counts")
        return lattice_shares(x, scale, w)
    if not (np.isfinite(scale) and scale > 0):
        raise DeclarationError(f"scale is {scale!r}; it must be positive and finite")
    # Districts with equal counts and weights have equal shares.
    kinds, of_kind, districts = np.unique(
        np.stack([x / scale, w / w.max()]), axis=1, return_inverse=True, return_counts=True
    )
    x, w = kinds
    largest = float((districts * w * (x + 50)).sum())
    first, last = np.log(TAIL / largest), np.log(1e18 / w.min())
    log_t = np.arange(first, last + LOG_STEP, LOG_STEP)
    out = np.zeros(len(x))
    for start in range(0, len(log_t), _NODES_AT_ONCE):
        t = np.exp(log_t[start : start + _NODES_AT_ONCE])
        transform, derivative = clipped_transforms(x[:, None], w[:, None] * t)
        with np.errstate(divide="ignore"):
            together = np.exp(districts @ np.log(transform))
        some = together > 0
        if not some.any():
            break
        out += (w[:, None] * derivative[:, some] / transform[:, some]) @ (together * t)[some]
    return np.asarray(out * LOG_STEP)[of_kind.ravel()]
