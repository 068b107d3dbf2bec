"""Laws of noisy counts: sums and clipped counts with Laplace noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, require
from forcopt.models.fair_decisions.tolerances import ORIGIN, POLE, QUANTILE, SINGULAR, TAIL

LOG_STEP = 0.08
"""Of the trapezoidal rule in the logarithm of the transform's argument."""


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
            raise DeclarationError(f"least must be {len(s)} numbers >= 0, and the value {value:g} above 0")
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
    require(0 < tail < 0.5, "tail", tail, "be above 0 and below 1/2")
    s = as_numbers(scales, "scales")
    high = float(np.sqrt(2 * (s**2).sum()))
    while laplace_sum_tail(high, s) > tail:
        high *= 2
    xtol = QUANTILE * high
    return float(scipy.optimize.brentq(lambda v: laplace_sum_tail(v, s) - tail, 0.0, high, xtol=xtol))


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


def expected_shares(counts: Any, scale: float, weights: Any = None) -> Array:
    """Return the mean share of each in 1, divided in proportion to noisy counts.

    Parameters
    ----------
    counts : array_like
        x, at least 0; shape ``(k,)``.
    scale : float
        Of the Laplace noise on each count, above 0. Noisy counts below 0 become 0.
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
    require(np.isfinite(scale) and scale > 0, "scale", scale, "be positive and finite")
    # Districts with equal counts and weights have equal shares.
    pairs = np.stack([x / scale, w / w.max()])
    kinds, of_kind, districts = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
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
