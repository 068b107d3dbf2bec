"""Moments of a privacy loss by quadrature over the outcomes."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, expm1, inf, isfinite, log2

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["log_moment", "nodes", "power_above"]

_X, _W = np.polynomial.legendre.leggauss(20)

PHASE = 14.0
"""The most by which ``turn * loss`` may change on a panel of 20 nodes."""

HEAVY = 36.0
"""Panels whose integrand is below e^-HEAVY of the largest are left as they are."""

MOST_PANELS = 2000
"""A quadrature with more is refused."""


def power_above(values: Array) -> float:
    """The power of 2 above the largest magnitude; 0 for 0. Few different numbers make a cache useful."""
    largest = float(np.abs(values).max())
    return 2.0 ** ceil(log2(largest)) if largest > 0 else 0.0


def nodes(
    cuts: Array, laws: Callable[[Array], tuple[Array, Array]], tilt: float, turn: float
) -> tuple[Array, Array]:
    """Losses and logarithms of masses at the Gauss-Legendre nodes of panels that resolve the phase.

    Parameters
    ----------
    cuts : Array
        The ends of the panels; they are halved where ``e^(i turn L)`` turns too often.
    laws : callable
        Gives the losses and the logarithms of the density at outcomes; the loss falls.
    tilt, turn : float
        The largest real and imaginary part of z in ``E[e^(z L)]``.

    Raises
    ------
    DeclarationError
        If the phase needs too many panels.
    """
    while turn > 0:
        losses, logs = laws(cuts)
        with np.errstate(over="ignore", invalid="ignore"):
            tilted = np.nan_to_num(logs + tilt * losses, nan=-inf, posinf=inf, neginf=-inf)
            turned = turn * np.abs(np.diff(losses)) > PHASE
        steep = turned & (np.maximum(tilted[:-1], tilted[1:]) > tilted.max() - HEAVY)
        if not steep.any():
            break
        if len(cuts) > MOST_PANELS:
            raise DeclarationError('contour: the loss turns too often; use method="fft"')
        cuts = np.sort(np.append(cuts, ((cuts[:-1] + cuts[1:]) / 2)[steep]))
    half = np.diff(cuts)[:, None] / 2
    losses, logs = laws(((cuts[:-1] + cuts[1:])[:, None] / 2 + half * _X).ravel())
    return losses, logs + np.log(half * _W).ravel()


def log_moment(z: Array, losses: Array, log_mass: Array, lost: float = 0.0) -> Array:
    """``log(1 - lost + E[e^(z L) - 1])`` of a law on finitely many losses, which may be a quadrature's.

    Real and imaginary parts are sums of real terms without cancellation where z L is small, and the terms of
    one real part of z share their size. O(nodes) for each z.
    """
    z = np.asarray(z, dtype=complex)
    flat, out = z.ravel(), np.empty(z.size, dtype=complex)
    mass = np.exp(log_mass)
    for c in np.unique(flat.real):
        at = np.flatnonzero(flat.real == c)
        tilt = c * losses
        top = float((log_mass + tilt).max(initial=0.0))
        if not isfinite(top):
            out[at] = inf
            continue
        top = top if top > 600 else 0.0  # so that no exponential overflows
        scale = exp(-top)
        weight = np.exp(log_mass + tilt - top)
        small = np.abs(tilt) < 1
        real = float(np.where(small, mass * scale * np.expm1(np.where(small, tilt, 0.0)), 0.0).sum())
        real += float(np.where(small, 0.0, weight - mass * scale).sum())
        keep = weight > 1e-20 * weight.max(initial=0.0)
        heavy, weight = losses[keep], weight[keep]
        for part in range(0, len(at), 64):
            half = flat[at[part : part + 64], None].imag * (heavy / 2)
            sine = np.sin(half)
            terms = real - 2 * (sine**2 @ weight) + 2j * ((sine * np.cos(half)) @ weight)
            out[at[part : part + 64]] = top + np.log1p(terms + expm1(-top) - lost * scale)
    return out.reshape(z.shape)
