"""The privacy profile of two or three draws of a noise, by conditioning on all but one."""

from __future__ import annotations

from math import inf, isinf, log

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.privacy.losses import AtomLoss, Loss, NoiseLoss
from forcopt.privacy.tolerances import EXPONENT, NO_MASS, REACH

FEW = 3
"""The most draws: the cost grows by a factor of some hundred with each."""


SMALL = 2000
"""The most entries of a table."""


def can_condition(loss: Loss, count: int) -> bool:
    """Whether `conditioned` takes a composition: few draws of a real noise, or of a table of some size."""
    if isinstance(loss, AtomLoss):
        return count <= FEW and len(loss.losses) <= SMALL
    smooth = isinstance(loss, NoiseLoss) and not loss.noise.whole and isinf(loss.pure)
    return count <= FEW and smooth  # a bounded loss has atoms, at which delta of the last draw bends


def conditioned(loss: Loss, count: int, epsilon: float) -> float:
    """The logarithm of delta(epsilon) of `count` draws, 2 or 3, of an even log-concave noise.

    Given the first draws, delta is the last one's at epsilon minus their losses, in closed form; the
    mean over the first is by Gauss-Legendre quadrature on panels that shrink towards the kinks of the loss.
    O(700^(count - 1)).

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
        ``log(delta)``; relative error about 1e-9, for three draws of a loss with kinks or a sharp peak
        about 1e-6.

    Examples
    --------
    >>> from forcopt.privacy import GeneralizedGaussian
    >>> loss = GeneralizedGaussian(shape=4, scale=2.0).loss(1.0)
    >>> round(float(np.exp(conditioned(loss, 2, 0.5))), 5)
    0.3346
    """
    if isinstance(loss, AtomLoss):
        losses, mass = loss.atoms_up_to(inf)
        mass = np.append(mass, loss.infinite)
        losses = np.append(np.clip(losses, -EXPONENT, EXPONENT), EXPONENT)
        if count == 2:
            value = float(mass @ _one(loss, epsilon - losses))
        else:
            sums, weights = np.add.outer(losses, losses), np.multiply.outer(mass, mass)
            upper = np.triu_indices(len(mass))  # the first two draws are exchangeable
            twice = np.where(upper[0] == upper[1], 1.0, 2.0) * weights[upper]
            value = float(twice @ _one(loss, epsilon - sums[upper]))
        return min(0.0, log(value)) if value > 0 else -inf
    assert isinstance(loss, NoiseLoss)
    mass, losses = _nodes(loss, np.array([epsilon]), count)
    if count == 2:
        value = float((mass * _one(loss, epsilon - losses)).sum())
    else:
        mass, losses = mass.ravel(), losses.ravel()
        mass, losses = mass[mass > NO_MASS], losses[mass > NO_MASS]
        inner, second = _nodes(loss, epsilon - losses, count)
        last = _interpolated(loss, (epsilon - losses)[:, None] - second)
        value = float(mass @ (inner * last).sum(axis=1))
    return min(0.0, log(value)) if value > 0 else -inf


def _interpolated(loss: NoiseLoss, epsilon: Array) -> Array:
    """Delta of one draw at very many epsilons: monotone cubic between the losses of a grid of outcomes.

    Where the loss is flat, delta bends sharply, and there the grid of losses is fine.
    """
    cuts = _cuts(loss, 400)
    outcomes = np.unique((cuts[:-1, None] + np.diff(cuts)[:, None] * np.arange(16) / 16).ravel())
    losses = np.clip(_losses(loss, outcomes[1:]), -EXPONENT, EXPONENT)
    low, high = float(epsilon.min()), float(epsilon.max())
    grid = np.unique(np.concatenate([losses[(losses > low) & (losses < high)], np.linspace(low, high, 500)]))
    return np.asarray(scipy.interpolate.PchipInterpolator(grid, _one(loss, grid))(epsilon))


def _one(loss: Loss, epsilon: Array) -> Array:
    """Delta of one draw at any real epsilon, by the tails of its loss."""
    above, other = loss.tails(epsilon)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.maximum(above - np.where(other > 0, np.exp(epsilon) * other, 0.0), 0.0))


def _losses(loss: NoiseLoss, at: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(loss.noise.log_density(at) - loss.noise.log_density(at - loss.shift))


def _cuts(loss: NoiseLoss, panels: int) -> Array:
    """Ends of panels of a quadrature over one draw, which shrink towards the kinks of its loss."""
    noise, shift = loss.noise, loss.shift
    end = -float(noise.quantile(0.0))
    reach = end if np.isfinite(end) else -float(noise.quantile(REACH))
    graded = shift * 4.0 ** -np.arange(1, 7)
    ends = [np.linspace(-reach, reach, panels + 1), np.array([0.0, shift]), graded, -graded]
    ends += [shift - graded, shift + graded]
    if np.isfinite(end):  # the loss is infinite beyond shift - end, and falls to -infinity at end
        near = (end - shift / 2) * 4.0 ** -np.arange(0, 21)
        ends += [np.array([shift - end]), near - end, shift - end - near, shift - end + near, end - near]
    return np.unique(np.clip(np.concatenate(ends), -reach, reach))


def _nodes(loss: NoiseLoss, epsilon: Array, count: int) -> tuple[Array, Array]:
    """Masses and losses at the nodes of a quadrature over one draw, a row for each epsilon.

    Delta of the other draws at epsilon minus the loss bends where that is 0, and at sums of losses at a
    kink of the density (0 or the shift). The panels shrink towards the outcomes where this is so.
    """
    noise = loss.noise
    common = _cuts(loss, 40 if count == 2 else 30)
    kink = _losses(loss, np.array([0.0])) * np.arange(1.0 - count, count)
    bend = noise.crossing((epsilon[:, None] - kink).ravel(), loss.shift).reshape(len(epsilon), -1)
    levels = (common[-1] - common[0]) / 40 * (2.0 ** -np.arange(14) if count == 2 else 4.0 ** -np.arange(7))
    own = (bend[:, :, None] + np.concatenate([-levels, [0.0], levels])).reshape(len(bend), -1)
    cuts = np.concatenate([np.broadcast_to(common, (len(bend), len(common))), own], axis=1)
    cuts = np.sort(np.clip(cuts, common[0], common[-1]), axis=1)
    x, w = np.polynomial.legendre.leggauss(12 if count == 2 else 8)
    half = np.diff(cuts)[:, :, None] / 2
    at = (cuts[:, 1:, None] + cuts[:, :-1, None]) / 2 + half * x
    mass = (half * w * noise.density(at)).reshape(len(bend), -1)
    losses = _losses(loss, at.reshape(len(bend), -1))
    losses = np.clip(np.nan_to_num(losses, posinf=EXPONENT, neginf=-EXPONENT), -EXPONENT, EXPONENT)
    return np.where(mass > NO_MASS, mass, 0.0), losses
