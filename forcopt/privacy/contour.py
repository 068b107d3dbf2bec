"""The privacy profile of a composition by a contour integral through the saddle point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, expm1, inf, isfinite, log, log1p, log2, sqrt

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy import tolerances as tol
from forcopt.privacy.losses import AtomLoss, Loss, NoiseLoss

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


def _turned(turns: Array, losses: Array) -> Array:
    """``e^(i y L) - 1`` without cancellation, a row for each turn y."""
    half = turns[:, None] * (losses / 2)
    sine = np.sin(half)
    return np.asarray(2 * sine * (1j * np.cos(half) - sine))


BLOCK = 64
"""Rows of a table of turns and losses: few enough for the cache."""


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
        keep = weight > tol.LIGHT * weight.max(initial=0.0)
        heavy, weight = losses[keep], weight[keep]
        y = flat[at].imag
        steps = np.diff(y)
        block = min(ceil(sqrt(len(y))), BLOCK)  # evenly spaced turns are sums of two among about 2 sqrt(n)
        if len(y) < 4 or not np.allclose(steps, steps[0], rtol=tol.ROUNDING, atol=0.0):
            block = 1
        inner = _turned(y[:block] - y[0], heavy)
        for part in range(0, len(at), BLOCK * block):  # e^(a + b) - 1 by those of a and of b
            outer = _turned(y[part : part + BLOCK * block : block], heavy) * weight
            moved = np.einsum("ik,jk->ij", outer, inner) + outer.sum(axis=1)[:, None]
            moved += np.einsum("jk,k->j", inner, weight)
            out[at[part : part + BLOCK * block]] = moved.ravel()[: len(at) - part]
        out[at] = top + np.log1p(real + out[at] + expm1(-top) - lost * scale)
    return out.reshape(z.shape)


MOST_NODES = 4096
"""Of the trapezoidal rule: a handful of compositions of noises with a kinked loss would need many more."""

MOST_HALVED = 2**17
"""Nodes after the step was halved."""


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

    Where the law of the losses has a sharp peak, as that of shapes above 2, the integrand falls off slowly.
    Its slow part belongs to the peak, not to epsilon: a weight that fades out leaves the integral as it is,
    once sums that fade out at three places agree.

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
        return value if np.isfinite(value) else tol.FAR

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
    width = min(max(float(near[0] - 2 * near[1] + near[2]) / step**2, tol.SMALLEST) ** -0.5, c / 3)
    start, terms = 64, np.exp(exponent(c + 1j * width * np.arange(64)) - top).real
    terms[0] /= 2
    while True:
        total, fade = float(terms.sum()), np.ones(start)
        if np.abs(terms[-16:]).max() < tol.FALLEN * abs(total):
            break
        ends = [_fade(np.arange(start) / (part * start)) for part in (1, 3 / 4, 1 / 2)]
        faded = [float(terms @ end) for end in ends]
        if max(faded) - min(faded) < tol.FADED_OUT * abs(faded[0]):
            total, fade = faded[0], ends[0]
            break
        if start >= MOST_NODES:
            raise DeclarationError('contour: the integrand does not fall off; use method="fft"')
        more = np.exp(exponent(c + 1j * width * np.arange(start, 2 * start)) - top).real
        start, terms = 2 * start, np.append(terms, more)
    value, change, last = total * width, inf, inf
    reach = inf if fade.all() and fade[-1] == 1 else start * width
    while change > tol.SETTLED * abs(value) and not tol.NOISE * abs(value) > change > last / 4:
        if start > MOST_HALVED:
            raise DeclarationError('contour: the trapezoidal rule does not converge; use method="fft"')
        middle = width * (np.arange(start) + 0.5)
        total += float(np.exp(exponent(c + 1j * middle) - top).real @ _fade(middle / reach))
        width, start, before = width / 2, 2 * start, value
        value = total * width
        change, last = abs(value - before), change
    value /= np.pi
    return top + log(value) if value > 0 else -inf


def _fade(place: Array) -> Array:
    """A weight that falls from 1 to 0 between the places 0 and 1, flat at both up to rounding."""
    return np.asarray(scipy.special.erfc(12 * place - 6) / 2)


MANY = 1000
"""Atoms, from which on a table is smooth enough for a contour integral."""

ROOMS = 4.0, 15.0
"""The least and the largest distance above epsilon from which a loss counts as infinite."""


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
        cuts = cuts[np.append(True, np.diff(cuts) > tol.FEW_ROUNDINGS * reach)]
        x, w = np.polynomial.legendre.leggauss(16)
        half = np.diff(cuts)[:, None] / 2
        at = ((cuts[:-1] + cuts[1:])[:, None] / 2 + half * x).ravel()
        mass = (half * w).ravel() * noise.density(at)
        with np.errstate(divide="ignore"):
            losses = noise.log_density(at) - noise.log_density(at - shift)
        keep = (mass > tol.SMALLEST) & np.isfinite(losses)
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
        at = np.array(loss.shift - right + tol.RESOLUTION * right)
        if at >= right:
            return 0.0
        most = float(loss.noise.log_density(at) - loss.noise.log_density(at - loss.shift))
    room = ROOMS[0]
    while True:
        rest = CappedLoss(loss, min(epsilon + room, most))
        value = contour([(rest, count)], epsilon)
        if rest.beyond > 0:
            value = float(np.logaddexp(value, log(-expm1(count * log1p(-min(rest.beyond, tol.BELOW_ONE))))))
        if rest.cap == most or room == ROOMS[1] or rest.beyond == 0:
            return min(0.0, value)
        needed = log(count * rest.beyond / tol.OVERSTATED) - value
        if needed <= room:
            return min(0.0, value)
        room = min(needed, ROOMS[1])
