"""The privacy profile of two or three draws of a noise, by conditioning on all but one."""

from __future__ import annotations

from math import inf, log

import numpy as np
from scipy.interpolate import CubicSpline

from forcopt.arrays import Array
from forcopt.privacy.losses import AtomLoss, Loss, NoiseLoss

__all__ = ["can_condition", "conditioned"]

FEW = 3
"""The most draws: the cost grows by a factor of some hundred with each."""


SMALL = 2000
"""The most entries of a table."""


def can_condition(loss: Loss, count: int) -> bool:
    """Whether `conditioned` takes a composition: few draws of a real noise, or of a table of some size."""
    if isinstance(loss, AtomLoss):
        return count <= FEW and len(loss.losses) <= SMALL
    return count <= FEW and isinstance(loss, NoiseLoss) and not loss.noise.whole


def conditioned(loss: Loss, count: int, epsilon: float) -> float:
    """The logarithm of delta(epsilon) of `count` draws, 2 or 3, of an even log-concave noise.

    Given the first draws, delta is that of the last one at epsilon minus their losses, in closed form; the
    mean over the first is by Gauss-Legendre quadrature on panels that shrink towards the kinks of the loss.
    O(500^(count - 1)).

    Parameters
    ----------
    loss : Loss
        One that `can_condition` allows. For a table the mean is an exact sum.
    count : int
        2 or 3.
    epsilon : float
        The privacy loss.

    Returns
    -------
    float
        ``log(delta)``; relative error about 1e-9 for smooth losses.

    Examples
    --------
    >>> from forcopt.privacy import GeneralizedGaussian
    >>> loss = GeneralizedGaussian(shape=4, scale=2.0).loss(1.0)
    >>> round(float(np.exp(conditioned(loss, 2, 0.5))), 5)
    0.3346
    """
    mass, losses = _first(loss, count)
    if count == 2:
        value = float(mass @ _one(loss, epsilon - losses))
    else:
        sums, weights = np.add.outer(losses, losses), np.multiply.outer(mass, mass)
        upper = np.triu_indices(len(mass))  # the first two draws are exchangeable
        twice = np.where(upper[0] == upper[1], 1.0, 2.0) * weights[upper]
        value = float(twice @ _interpolated(loss, epsilon - sums[upper]))
    return min(0.0, log(value)) if value > 0 else -inf


def _interpolated(loss: Loss, epsilon: Array) -> Array:
    """Delta of one draw at very many epsilons: exact for a table, else a cubic spline on a graded grid."""
    if isinstance(loss, AtomLoss):
        return _one(loss, epsilon)
    u = np.arcsinh(epsilon)
    grid = np.linspace(u.min(), u.max(), 8_001)
    return np.asarray(CubicSpline(grid, _one(loss, np.sinh(grid)))(u))


def _one(loss: Loss, epsilon: Array) -> Array:
    """Delta of one draw at any real epsilon, by the tails of its loss."""
    above, other = loss.tails(epsilon)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.maximum(above - np.where(other > 0, np.exp(epsilon) * other, 0.0), 0.0))


def _first(loss: Loss, count: int) -> tuple[Array, Array]:
    """Masses and losses of one draw: all entries of a table, or nodes of a quadrature."""
    if isinstance(loss, AtomLoss):
        losses, mass = loss.atoms_up_to(np.inf)
        return np.append(mass, loss.infinite), np.append(np.clip(losses, -700.0, 700.0), 700.0)
    assert isinstance(loss, NoiseLoss)
    noise, shift = loss.noise, loss.shift
    end = -float(noise.quantile(0.0))
    reach = end if np.isfinite(end) else -float(noise.quantile(1e-25))
    graded = shift * 4.0 ** -np.arange(1, 7)
    wide = np.linspace(-reach, reach, 41 if count == 2 else 31)
    kinks = [0.0, shift, *-graded, *graded, *(shift - graded), *(shift + graded)]
    if np.isfinite(end):  # the loss is infinite beyond shift - end, and falls to -infinity at end
        near = (end - shift / 2) * 2.0 ** -np.arange(0, 14)
        kinks += [shift - end, *(shift - end + near), *(end - near)]
    cuts = np.unique(np.clip(np.concatenate([wide, kinks]), -reach, reach))
    x, w = np.polynomial.legendre.leggauss(12 if count == 2 else 8)
    half = np.diff(cuts)[:, None] / 2
    at = ((cuts[1:] + cuts[:-1])[:, None] / 2 + half * x).ravel()
    mass = (half * w).ravel() * noise.density(at)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = noise.log_density(at) - noise.log_density(at - shift)
    keep = mass > 1e-40
    return np.asarray(mass[keep]), np.clip(losses[keep], -700.0, 700.0)
