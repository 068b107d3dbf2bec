"""The loss of a noise without its largest values, so that a contour integral applies to the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import expm1, inf, log, log1p

import numpy as np

from forcopt.arrays import Array
from forcopt.privacy.contour import contour
from forcopt.privacy.losses import AtomLoss, Loss, NoiseLoss
from forcopt.privacy.quadrature import log_moment

__all__ = ["CappedLoss", "can_cap", "capped_contour"]

MANY = 1000
"""Atoms, from which on a table is smooth enough for a contour integral."""

ROOMS = 4.0, 15.0
"""The least and the largest distance above epsilon from which a loss counts as infinite."""

OVERSTATED = 1e-9
"""The part of delta that this may add, up to the largest distance."""

RESOLUTION = 1e-12
"""Of an outcome, in units of the largest; nearer outcomes to an infinite loss count as of one."""


@dataclass(frozen=True)
class CappedLoss(Loss):
    """The subprobability law of a loss on the outcomes whose loss is at most `cap`."""

    has_moments = True
    base: NoiseLoss | AtomLoss
    cap: float

    def tails(self, t: Array) -> tuple[Array, Array]:
        """See `Loss`."""
        p, q = self.base.tails(np.minimum(t, self.cap))
        beyond = self.base.tails(np.array([self.cap]))
        return p - beyond[0][0], q - beyond[1][0]

    @property
    def span(self) -> tuple[float, float]:
        """See `Loss`."""
        return self.base.span[0], self.cap

    def reversed(self) -> Loss:
        """See `Loss`."""
        return CappedLoss(self.base.reversed(), self.cap)  # type: ignore[arg-type]

    @cached_property
    def beyond(self) -> float:
        """The mass of the losses above the cap."""
        return float(self.base.tails(np.array([self.cap]))[0][0])

    @cached_property
    def _nodes(self) -> tuple[Array, Array]:
        """Losses at the nodes of a quadrature that is graded towards both ends, and the masses there."""
        if isinstance(self.base, AtomLoss):
            return self.base.atoms_up_to(self.cap)
        noise, shift = self.base.noise, self.base.shift
        left = float(noise.crossing(np.array([self.cap]), shift)[0])
        right = -float(noise.quantile(0.0))
        pole = shift - right  # where the loss becomes infinite
        reach = right - left
        ends = pole + (left - pole) * (reach / (left - pole)) ** np.linspace(0, 1, 30)
        ends = np.concatenate([ends[ends < left + 0.5 * reach], right - reach * 4.0 ** -np.arange(0.5, 30)])
        cuts = np.unique(np.concatenate([ends, np.linspace(left, right, 17)]))
        cuts = cuts[np.append(True, np.diff(cuts) > 1e-15 * reach)]
        x, w = np.polynomial.legendre.leggauss(16)
        half = np.diff(cuts)[:, None] / 2
        at = ((cuts[:-1] + cuts[1:])[:, None] / 2 + half * x).ravel()
        mass = (half * w).ravel() * noise.density(at)
        with np.errstate(divide="ignore"):
            losses = noise.log_density(at) - noise.log_density(at - shift)
        keep = (mass > 1e-300) & np.isfinite(losses)
        return losses[keep], mass[keep]

    def log_moment(self, z: Array) -> Array:
        """``log E[e^(z L); L <= cap]``, by quadrature of ``f (e^(z L) - 1)``."""
        losses, mass = self._nodes
        with np.errstate(divide="ignore"):
            return log_moment(z, losses, np.log(mass), self.beyond)


def can_cap(loss: Loss) -> bool:
    """Whether `capped_contour` takes a loss: of a smooth noise, or of a table with very many entries."""
    if isinstance(loss, AtomLoss):
        return loss.spacing is None and len(loss.losses) >= MANY
    return isinstance(loss, NoiseLoss) and loss.noise.smooth


def capped_contour(loss: NoiseLoss | AtomLoss, count: int, epsilon: float) -> float:
    """The logarithm of delta(epsilon) of `count` draws of a noise whose loss has no moments.

    Losses above a cap count as infinite. This adds at most ``count P(L > cap) e^(epsilon - cap)`` to delta,
    since the other draws have ``E[e^-L] <= 1``. The contour integral is over the rest.

    Parameters
    ----------
    loss : NoiseLoss or AtomLoss
        One that `can_cap` allows.
    count : int
        The number of draws.
    epsilon : float
        The privacy loss.

    Returns
    -------
    float
        ``log(delta)``, an upper bound up to the accuracy of the quadrature.

    Examples
    --------
    >>> from forcopt.privacy import BoundedNoise
    >>> round(capped_contour(BoundedNoise(power=4, radius=700).loss(1.0), 1000, 1.0), 3)
    -18.175
    """
    most = inf
    if isinstance(loss, NoiseLoss):  # the loss is not resolved next to the point where it becomes infinite
        right = -float(loss.noise.quantile(0.0))
        at = np.array(loss.shift - right + RESOLUTION * right)
        if at >= right:
            return 0.0
        most = float(loss.noise.log_density(at) - loss.noise.log_density(at - loss.shift))
    room = ROOMS[0]
    while True:
        rest = CappedLoss(loss, min(epsilon + room, most))
        value = contour([(rest, count)], epsilon)
        if rest.beyond > 0:
            value = float(np.logaddexp(value, log(-expm1(count * log1p(-min(rest.beyond, 1 - 1e-16))))))
        if rest.cap == most or room == ROOMS[1] or rest.beyond == 0:
            return min(0.0, value)
        needed = log(count * rest.beyond / OVERSTATED) - value
        if needed <= room:
            return min(0.0, value)
        room = min(needed, ROOMS[1])
