"""The privacy profile of a composition by a contour integral through the saddle point."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy.losses import Loss

__all__ = ["contour"]

MOST_NODES = 4096
"""Of the trapezoidal rule: a handful of compositions of noises with a kinked loss would need many more."""

MOST_HALVED = 2**17
"""Nodes after the step was halved."""

SETTLED = 1e-8
"""The relative change that ends the halving; the error after a halving is about the square of the change."""

NOISE = 1e-6
"""The relative change below which changes that no longer fall are rounding, of 10^6 losses for instance."""

Parts = Sequence[tuple[Loss, int]]


def contour(parts: Parts, epsilon: float) -> float:
    """The logarithm of delta(epsilon) of a composition whose losses have exponential moments.

    Parameters
    ----------
    parts : sequence of (Loss, int)
        The losses and how often each occurs.
    epsilon : float
        The privacy loss.

    Returns
    -------
    float
        ``log(delta)``, which may lie far below the smallest float's.

    Raises
    ------
    DeclarationError
        For a loss without moments, or with atoms, and where the integrand falls off too slowly.

    Notes
    -----
    For c > 0, delta is the integral over the line Re z = c of
    ``prod_i E[e^(z L_i)]^(k_i) e^(-z epsilon) / (2 pi i z (z + 1))``, since
    ``(1 - e^(epsilon - l))_+`` is the inverse Laplace transform of ``e^(-z epsilon) / (z (z + 1))``. The line
    goes through the integrand's saddle point, where the trapezoidal rule converges exponentially. With the
    step h, the rule adds ``delta(epsilon + 2 pi n / h) e^(2 pi n c / h)`` for every whole n other than 0. The
    step is halved until the sum no longer changes. The cost does not depend on the k_i.

    Examples
    --------
    >>> from forcopt.privacy import GeneralizedGaussian
    >>> loss = GeneralizedGaussian(shape=4, scale=270.5318).loss(1.0)
    >>> round(contour([(loss, 1000)], 1.0), 4)
    -13.8155
    """
    for loss, _ in parts:
        if not loss.has_moments:
            raise DeclarationError(
                f"contour: {type(getattr(loss, 'noise', loss)).__name__} has no smooth loss with exponential "
                'moments; use method="fft"'
            )

    def exponent(z: Array) -> Array:
        total: Array = -z * epsilon
        for loss, count in parts:
            total = total + count * loss.log_moment(z)
        return np.asarray(total - np.log(z) - np.log(z + 1))

    def height(log_c: float) -> float:
        with np.errstate(all="ignore"):
            value = float(exponent(np.array([exp(log_c) + 0j]))[0].real)
        return value if np.isfinite(value) else 1e300

    grid = np.linspace(log(1e-3), log(1e6), 22)  # the exponent is convex in c: it falls, then rises
    low, high = 0, len(grid) - 1
    while high - low > 2:
        middle = (low + high) // 2
        low, high = (low, middle + 1) if height(grid[middle]) <= height(grid[middle + 1]) else (middle, high)
    found = scipy.optimize.minimize_scalar(
        height, bounds=(grid[low], grid[high]), method="bounded", options={"xatol": 0.01}
    )
    c, top = exp(float(found.x)), float(found.fun)
    step = 1e-2 * c
    near = exponent(np.array([c - step, c, c + step], dtype=complex)).real
    curvature = max(float(near[0] - 2 * near[1] + near[2]) / step**2, 1e-300)
    width = min(curvature**-0.5, c / 3)
    total, start = 0.5, 1
    while True:
        terms = np.exp(exponent(c + 1j * width * np.arange(start, start + 64)) - top).real
        total += float(terms.sum())
        start += 64
        if np.abs(terms[-16:]).max() < 1e-14 * abs(total):
            break
        if start > MOST_NODES:
            raise DeclarationError('contour: the integrand does not fall off; use method="fft"')
    value, change, last = total * width, inf, inf
    while change > SETTLED * abs(value) and not NOISE * abs(value) > change > last / 4:
        if start > MOST_HALVED:
            raise DeclarationError('contour: the trapezoidal rule does not converge; use method="fft"')
        middle = width * (np.arange(start) + 0.5)
        total += float(np.exp(exponent(c + 1j * middle) - top).real.sum())
        width, start, before = width / 2, 2 * start, value
        value = total * width
        change, last = abs(value - before), change
    value /= np.pi
    return top + log(value) if value > 0 else -inf
