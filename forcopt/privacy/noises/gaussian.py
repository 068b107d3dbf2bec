"""Gaussian noise, its whole kin, and noise between Laplace and the uniform law for the worst of many."""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import lgamma, log
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import erfcx, gamma, gammaincc, gammainccinv, gammaln, log_ndtr, ndtr, ndtri, ndtri_exp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy.contour import log_moment, nodes, power_above
from forcopt.privacy.losses import GaussianLoss, Loss, NoiseLoss
from forcopt.privacy.noises.base import Noise
from forcopt.privacy.noises.draws import LARGEST_SCALE, discrete_gaussian, exact_scale
from forcopt.privacy.noises.laplace import Laplace
from forcopt.privacy.randomness import Secure
from forcopt.privacy.tolerances import FEW_ROUNDINGS, SMALLEST, TINY

TABLED = 1000.0
"""The largest scale of which `DiscreteGaussian` tabulates its law."""


class Gaussian(Noise):
    """The normal law with standard deviation `scale`.

    Parameters
    ----------
    scale : float
        The standard deviation, above 0.

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.

    Examples
    --------
    >>> profile = Gaussian(scale=2.0).profile(shift=1)
    >>> profile.rho, profile.mu, round(profile.delta(1.0), 9)
    (0.125, 0.5, 0.006829...)
    """

    scale: float = Field(gt=0.0, allow_inf_nan=False)

    def log_density(self, x: Any) -> Array:
        """See `Noise`."""
        return np.asarray(
            -0.5 * np.square(np.asarray(x) / self.scale) - np.log(self.scale * np.sqrt(2 * np.pi))
        )

    def cdf(self, x: Any) -> Array:
        """See `Noise`."""
        return np.asarray(ndtr(np.asarray(x) / self.scale))

    def log_cdf(self, x: Any) -> Array:
        """See `Noise`."""
        return np.asarray(log_ndtr(np.asarray(x) / self.scale))

    def quantile(self, u: Any) -> Array:
        """See `Noise`."""
        return np.asarray(self.scale * ndtri(u))

    @property
    def variance(self) -> float:
        """``scale^2``."""
        return self.scale**2

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`."""
        return np.asarray(generator.normal(scale=self.scale, size=size))

    def loss(self, shift: float) -> Loss:
        """See `Noise`."""
        return GaussianLoss(shift / self.scale)


class DiscreteGaussian(Noise):
    """Whole noise with mass in proportion to ``exp(-x^2 / (2 scale^2))``.

    Parameters
    ----------
    scale : float
        Above 0 and at most 1e12; the standard deviation is a little below for small scales.

    References
    ----------
    Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy, Theorems 1 and 7.

    Examples
    --------
    >>> noise = DiscreteGaussian(scale=1.0)
    >>> round(noise.variance, 6), noise.profile(1).rho
    (1.0, 0.5)
    """

    whole: ClassVar[bool] = True
    scale: float = Field(gt=0.0, le=LARGEST_SCALE, allow_inf_nan=False)

    @cached_property
    def _half(self) -> tuple[Array, float]:
        """The tails from below, ``P(X <= -i)`` for i = 0.., and the normaliser, for scales up to `TABLED`."""
        reach = int(np.ceil(self.scale * np.sqrt(-2 * np.log(TINY)))) + 2
        mass = np.exp(-0.5 * np.square(np.arange(reach + 1) / self.scale))
        below = np.cumsum(mass[::-1].astype(np.longdouble))[::-1]  # the smallest first, in 64 bits
        total = 2 * below[1] + 1
        return np.asarray(below / total, dtype=float), float(total)

    def log_density(self, x: Any) -> Array:
        """See `Noise`; the normaliser of large scales is the Gaussian's, up to ``e^(-2 pi^2 scale^2)``."""
        total = self._half[1] if self.scale <= TABLED else self.scale * np.sqrt(2 * np.pi)
        return np.asarray(-0.5 * np.square(np.asarray(x) / self.scale) - np.log(total))

    def cdf(self, x: Any) -> Array:
        """See `Noise`."""
        x = np.floor(np.asarray(x, dtype=float))
        half = np.exp(self._log_tail(np.where(x <= 0, -x, x + 1)))
        return np.where(x <= 0, half, 1 - half)

    def log_cdf(self, x: Any) -> Array:
        """See `Noise`."""
        x = np.floor(np.asarray(x, dtype=float))
        half = self._log_tail(np.where(x <= 0, -x, x + 1))
        return np.where(x <= 0, half, np.log1p(-np.minimum(np.exp(half), 0.5)))

    def _log_tail(self, i: Array) -> Array:
        """``log P(X <= -i)`` for whole i of at least 0.

        By the table or, for large scales, by Euler and Maclaurin's series about the Gaussian integral; far
        out by a sum over the next few scales.
        """
        if self.scale <= TABLED:
            tails = self._half[0]
            far = i >= len(tails)
            with np.errstate(divide="ignore"):
                logs = np.log(tails[np.where(far, 0, i).astype(np.int64)])
        else:
            far = i > self.scale**2 / 100  # nearer, the term after the last is below 1e-16 of the sum
            v, s = (0.5 - np.where(far, 0, i)) / self.scale, self.scale
            hazard = np.sqrt(2 / np.pi) / erfcx(-v / np.sqrt(2))
            logs = log_ndtr(v) + np.log1p(hazard * v * (1 / 24 - 7 * (v * v - 3) / (5760 * s * s)) / s**2)
        logs = np.where(np.isinf(i), -np.inf, logs)
        if (far := far & np.isfinite(i)).any():
            j = np.arange(min(4 * self.scale, 4000) + 3)
            with np.errstate(over="ignore"):
                further = np.exp(-(2 * i[far][..., None] * j + j * j) / (2 * self.scale**2)).sum(axis=-1)
                logs[far] = self.log_density(i[far]) + np.log(further)
        return logs

    def quantile(self, u: Any) -> Array:
        """See `Noise`; within the values beyond which the mass is 1e-60."""
        u = np.asarray(u, dtype=float)
        low, tail = u <= 0.5, np.maximum(np.minimum(u, 1 - u), TINY)
        if self.scale <= TABLED:  # the last i with P(X <= -i) >= u, or > 1 - u
            left, right = (np.searchsorted(-self._half[0], -tail, side=side) for side in ("left", "right"))
            i = np.where(low, right, left) - 1.0
        else:
            i = np.floor(0.5 - self.scale * ndtri(tail)) + 2
            for _ in range(4):
                logs = self._log_tail(i)
                i = i - np.where(low, logs < np.log(tail), logs <= np.log(tail))
        return np.asarray(np.where(low, -i, i))

    @property
    def variance(self) -> float:
        """A sum over the tails; that of the Gaussian for large scales."""
        if self.scale > TABLED:
            return self.scale**2
        tails = self._half[0][1:]
        return float(2 * (tails * (2 * np.arange(len(tails)) + 1.0)).sum())

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`: by inversion, in double precision."""
        return np.asarray(self.quantile(generator.random(size)), dtype=np.int64)

    def draw_securely(self, count: int, rng: Secure) -> Array:
        """See `Noise`: by exact rejection."""
        return discrete_gaussian(exact_scale(self.scale), count, rng)

    def crossing(self, t: Array, shift: float) -> Array:
        """See `Noise`: losses are ``shift (shift - 2 x) / (2 scale^2)``."""
        with np.errstate(over="ignore"):
            return np.ceil(shift / 2 - t * self.scale**2 / shift) - 1

    def loss_spacing(self, shift: float) -> float | None:
        """Losses are multiples of ``shift / (2 scale^2)``."""
        return shift / (2 * self.scale**2)

    def turns(self, shift: float, epsilon: float) -> Array:
        """See `Noise`: where `crossing` passes 0, -1, ...

        Between two, ``delta = P(X <= -j) - e^epsilon P(X <= -j - shift)``, and the ratio of the tails rises
        with the scale. By Poisson's summation formula the law differs from the rounded Gaussian's smooth one
        by ``e^(-2 pi^2 scale^2)``, so that no turn can be seen in floats beyond scale 1.5.
        """
        j = np.arange(max(0, int(np.ceil(1.5**2 * epsilon / shift - shift / 2)) + 1))
        return np.asarray(np.sqrt(shift * (shift / 2 + j) / epsilon))

    def rho(self, shift: float) -> float:
        """``shift^2 / (2 scale^2)``, as for the Gaussian."""
        return shift**2 / (2 * self.scale**2)

    def _check_shift(self, shift: float) -> None:
        super()._check_shift(shift)
        if shift > 1e6 * self.scale:
            raise DeclarationError(f"shift is {shift}, over a million scales; the noise hides nothing there")


class GeneralizedGaussian(Noise):
    """The density in proportion to ``exp(-|x / scale|^shape)``.

    Parameters
    ----------
    shape : float
        At least 1, so that the density is log-concave: 1 is Laplace, 2 a Gaussian of standard deviation
        ``scale / sqrt(2)``.
    scale : float
        Above 0.

    References
    ----------
    Ganesh and Zhao (2021), Privately answering counting queries with generalized Gaussian mechanisms.

    Examples
    --------
    >>> noise = GeneralizedGaussian(shape=4, scale=28.1805)
    >>> round(noise.expected_max(64), 3), round((noise.profile(1) ** 64).delta(1.0), 6)
    (35.197, 0.015625)
    """

    shape: float = Field(ge=1.0, allow_inf_nan=False)
    scale: float = Field(gt=0.0, allow_inf_nan=False)

    def _units(self, x: Any) -> Array:
        return np.abs(np.asarray(x, dtype=float) / self.scale) ** self.shape

    def log_density(self, x: Any) -> Array:
        """See `Noise`."""
        return -self._units(x) + log(self.shape / (2 * self.scale)) - lgamma(1 / self.shape)

    def cdf(self, x: Any) -> Array:
        """See `Noise`; near 0, where ``|x / scale|^shape`` may underflow, by its series."""
        v, a = np.abs(np.asarray(x, dtype=float) / self.scale), 1 / self.shape
        with np.errstate(over="ignore"):
            u = v**self.shape
            half = np.where(u < 1e-8, 1 - v / gamma(1 + a) * (1 - a / (1 + a) * u), gammaincc(a, u)) / 2
        return np.asarray(np.where(np.asarray(x) < 0, half, 1 - half))

    def log_cdf(self, x: Any) -> Array:
        """See `Noise`; far out by the continued fraction of the incomplete gamma function."""
        a, u = 1 / self.shape, self._units(x)
        far = (np.asarray(x) < 0) & (u > 500)
        with np.errstate(divide="ignore"):
            near = np.log(self.cdf(np.where(far, 0.0, x)))
        u = np.where(far, u, 500.0)
        fraction = u + 41 - a
        for n in range(20, 0, -1):  # Legendre's, from its end
            fraction = u + 2 * n - 1 - a - n * (n - a) / fraction
        with np.errstate(invalid="ignore"):
            tail = a * np.log(u) - u - np.log(fraction) - gammaln(a) - log(2)
        return np.where(far, np.where(np.isinf(u), -np.inf, tail), near)

    def quantile(self, u: Any) -> Array:
        """See `Noise`; near 0 the density is constant."""
        u, a = np.asarray(u, dtype=float), 1 / self.shape
        tail = 2 * np.minimum(u, 1 - u)
        flat = (1 - tail) * gamma(1 + a)
        reach = self.scale * np.where(flat**self.shape < 1e-17, flat, gammainccinv(a, tail) ** a)
        return np.asarray(np.where(u < 0.5, -reach, reach))

    @property
    def variance(self) -> float:
        """``scale^2 Gamma(3 / shape) / Gamma(1 / shape)``."""
        return float(self.scale**2 * np.exp(gammaln(3 / self.shape) - gammaln(1 / self.shape)))

    def moment(self, power: float) -> float:
        """``E|X|^power``, in closed form."""
        logs = gammaln((power + 1) / self.shape) - gammaln(1 / self.shape)
        return float(self.scale**power * np.exp(logs))

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`: uniform up to a random reach, whose power is a gamma variable."""
        reach = generator.standard_gamma(1 + 1 / self.shape, size) ** (1 / self.shape)
        return np.asarray(self.scale * reach * generator.uniform(-1, 1, size))

    def loss(self, shift: float) -> Loss:
        """See `Noise`; shapes 1 and 2 have their own closed forms."""
        if self.shape == 2:
            return GaussianLoss(shift * np.sqrt(2) / self.scale)
        if self.shape == 1:
            return Laplace(scale=self.scale).loss(shift)
        return NoiseLoss(self, shift)

    def crossing(self, t: Array, shift: float) -> Array:
        """See `Noise`: the root of the decreasing loss, by Newton steps within a bracket."""
        p, s = self.shape, shift / self.scale
        t = np.asarray(t, dtype=float)
        reach = -float(self.quantile(SMALLEST)) / self.scale + s
        grid = np.linspace(-reach, reach + s, 4097)
        losses = _loss(p, s, grid)
        x = np.interp(-t, -losses, grid)
        low, high = np.full(t.shape, -reach), np.full(t.shape, reach + s)
        beyond = (t > losses[0]) & (t < 1e6)  # further out than any probability that is a float
        while beyond.any() and reach < 1e30 and _loss(p, s, np.array(-reach)) < t[beyond].max():
            reach *= 2
        low, high = np.where(beyond, -reach, low), np.where(beyond, grid[0], high)
        moved = high - low
        for _ in range(200):  # Newton's step where it halves the last one, else bisection
            off = _loss(p, s, x) - t
            low, high = np.where(off > 0, x, low), np.where(off > 0, high, x)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                slope = np.sign(x - s) * np.abs(x - s) ** (p - 1) - np.sign(x) * np.abs(x) ** (p - 1)
                step = x - off / (p * slope)
            newton = (step > low) & (step < high) & (np.abs(step - x) < moved / 2)
            step = np.where(newton, step, (low + high) / 2)
            moved, x = np.abs(step - x), step
            if (moved <= FEW_ROUNDINGS * (1 + np.abs(x))).all():
                break
        return np.asarray(x * self.scale)

    @property
    def has_moments(self) -> bool:
        """For shapes above 1; the loss of shape 1 is bounded, with atoms at its ends."""
        return self.shape > 1

    def rho(self, shift: float) -> float:
        """For shapes up to 2 the Kullback-Leibler divergence, as for Laplace noise; infinite above."""
        found = _outcomes(self.shape, shift / self.scale, 0.0, 0.0) if self.shape < 2 else None
        return float(np.exp(found[1]) @ found[0]) if found else np.inf

    def mu(self, shift: float) -> float | None:
        """For shapes up to 2 the parameter of the total variation, as for Laplace noise."""
        return -2 * float(ndtri_exp(self.log_cdf(-shift / 2))) if self.shape < 2 else None

    def log_moment(self, z: Array, shift: float) -> Array:
        """See `Noise`: by Gauss-Legendre quadrature of ``f (e^(z L) - 1)``."""
        z = np.asarray(z, dtype=complex)
        found = _outcomes(self.shape, shift / self.scale, float(z.real.max()), power_above(z.imag))
        return log_moment(z, *found) if found else np.full(z.shape, np.inf, dtype=complex)


def _loss(p: float, s: float, v: Array) -> Array:
    """``|v - s|^p - |v|^p``, without cancellation where s is small beside v."""
    far = np.abs(v) > 2 * s
    safe = np.where(far, v, 4 * s + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        there, here = np.abs(v - s) ** p, np.abs(v) ** p
        near = np.where(np.isinf(there) & np.isinf(here), np.inf * np.sign(s - 2 * v), there - here)
        return np.where(far, np.abs(safe) ** p * np.expm1(p * np.log1p(-s / safe)), near)


@lru_cache(maxsize=16)
def _outcomes(p: float, s: float, tilt: float, turn: float) -> tuple[Array, Array] | None:
    """Losses and logarithms of masses at the nodes of a quadrature for ``|z| <= tilt + i turn``.

    The panels shrink towards the kinks 0 and s of the loss. None if the moment is beyond e^(1e300).
    """

    def laws(v: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore"):
            return _loss(p, s, v), log(p / 2) - lgamma(1 / p) - np.abs(v) ** p

    reach = 2.0 + s
    while True:  # as far as the tilted density goes
        grid = np.linspace(-reach, reach + s, 401)
        losses, logs = laws(grid)
        with np.errstate(over="ignore", invalid="ignore"):
            tilted = logs + tilt * losses
        if not (tilted < np.inf).all():
            return None
        if max(tilted[0], tilted[-1]) < tilted.max() - 60 and max(logs[0], logs[-1]) < -60:
            break
        reach *= 1.5
    keep = np.flatnonzero((tilted >= tilted.max() - 60) | (logs > -60))
    left, right = grid[max(keep[0] - 1, 0)], grid[min(keep[-1] + 1, len(grid) - 1)]
    graded = np.zeros(0) if p % 2 == 0 else (right - left) * 8.0 ** -np.arange(1, 9)
    cuts = np.concatenate([np.linspace(left, right, 25), [0.0, s], graded, -graded, s - graded, s + graded])
    cuts = np.unique(cuts[(cuts >= left) & (cuts <= right)])
    return nodes(cuts[np.append(True, np.diff(cuts) > 1e-13 * (right - left))], laws, tilt, turn)
