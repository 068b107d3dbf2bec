"""Counts with Laplace noise that are cut off at 0: their transforms, and expected shares of a total."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.lattice import lattice_shares
from forcopt.privacy.noises import Noise

__all__ = ["clipped_mean", "clipped_transforms", "expected_shares"]

_NODES_AT_ONCE = 64
_STEP = 0.08
"""Of the trapezoidal rule in the logarithm of the transform's argument."""


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
        lower = np.where(z < 1e-12, x, -np.expm1(-z) / gap) * np.exp(-distance * x)
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
    first, last = np.log(1e-18 / largest), np.log(1e18 / w.min())
    log_t = np.arange(first, last + _STEP, _STEP)
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
    return np.asarray(out * _STEP)[of_kind.ravel()]
