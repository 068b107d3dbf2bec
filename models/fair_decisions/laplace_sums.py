"""The law of a weighted sum of Laplace variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError

__all__ = ["laplace_sum_quantile", "laplace_sum_tail"]

_STEP, _REACH, _TILT = 0.05, 12.0, 0.5


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

    saddle = scipy.optimize.brentq(slope, 1e-12 / (1 + v), 1 - 1e-15, xtol=1e-15)
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
    return float(scipy.optimize.brentq(lambda v: laplace_sum_tail(v, s) - tail, 0.0, high, xtol=1e-9 * high))
