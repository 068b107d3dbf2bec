"""Generalized Gaussian noise: between Laplace and the uniform law, for the worst of many counts."""

from __future__ import annotations

from math import lgamma, log
from typing import Any

import numpy as np
from pydantic import Field
from scipy.special import gamma, gammaincc, gammainccinv, gammaln

from forcopt.arrays import Array
from forcopt.privacy.losses import GaussianLoss, Loss, NoiseLoss, log_moment
from forcopt.privacy.noises.base import Noise
from forcopt.privacy.noises.laplace import Laplace

__all__ = ["GeneralizedGaussian"]

_NODES = np.polynomial.legendre.leggauss(20)


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
            inner = v / gamma(1 + a) * (1 - a / (1 + a) * u)
            half = np.where(u < 1e-8, 1 - inner, gammaincc(a, u)) / 2
        return np.asarray(np.where(np.asarray(x) < 0, half, 1 - half))

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

    # -- the loss, in units of the scale ---------------------------------------------------------------------

    def _loss_at(self, v: Array, s: float) -> Array:
        """``|v - s|^p - |v|^p``, without cancellation where s is small beside v."""
        p = self.shape
        far = np.abs(v) > 2 * s
        safe = np.where(far, v, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            there, here = np.abs(v - s) ** p, np.abs(v) ** p
            near = np.where(np.isinf(there) & np.isinf(here), np.inf * np.sign(s - 2 * v), there - here)
            return np.where(
                far, np.abs(safe) ** p * np.expm1(p * np.log1p(-s / np.where(far, safe, 4 * s + 1))), near
            )

    def crossing(self, t: Array, shift: float) -> Array:
        """See `Noise`: the root of the decreasing loss, by Newton steps within a bracket."""
        p, s = self.shape, shift / self.scale
        t = np.asarray(t, dtype=float)
        reach = -float(self.quantile(1e-300)) / self.scale + s
        low, high = np.full(t.shape, -reach), np.full(t.shape, reach + s)
        grid = np.linspace(-reach, reach + s, 4097)
        losses = self._loss_at(grid, s)
        x = np.interp(-t, -losses, grid)
        moved = high - low
        for _ in range(200):  # Newton's step where it halves the last one, else bisection
            off = self._loss_at(x, s) - t
            low, high = np.where(off > 0, x, low), np.where(off > 0, high, x)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                slope = np.sign(x - s) * np.abs(x - s) ** (p - 1) - np.sign(x) * np.abs(x) ** (p - 1)
                step = x - off / (p * slope)
            newton = (step > low) & (step < high) & (np.abs(step - x) < moved / 2)
            step = np.where(newton, step, (low + high) / 2)
            moved, x = np.abs(step - x), step
            if (moved <= 1e-15 * (1 + np.abs(x))).all():
                break
        return np.asarray(x * self.scale)

    @property
    def has_moments(self) -> bool:
        """For shapes above 1; the loss of shape 1 is bounded, with atoms at its ends."""
        return self.shape > 1

    def log_moment(self, z: Array, shift: float) -> Array:
        """See `Noise`: by Gauss-Legendre quadrature of ``f (e^(z L) - 1)`` over graded panels."""
        p, s = self.shape, shift / self.scale
        z = np.asarray(z, dtype=complex)
        tilt = float(z.real.max())
        reach = 2.0 + s
        while True:  # as far as the tilted density goes
            grid = np.linspace(-reach, reach + s, 401)
            with np.errstate(over="ignore", invalid="ignore"):
                logs = -(np.abs(grid) ** p) + tilt * self._loss_at(grid, s)
            if not (logs < np.inf).all():  # the moment is beyond e^(1e300)
                return np.full(z.shape, np.inf, dtype=complex)
            if max(logs[0], logs[-1]) < logs.max() - 60 and max(-(np.abs(grid[[0, -1]]) ** p)) < -60:
                break
            reach *= 1.5
        keep = np.flatnonzero((logs >= logs.max() - 60) | (-(np.abs(grid) ** p) > -60))
        left, right = grid[max(keep[0] - 1, 0)], grid[min(keep[-1] + 1, len(grid) - 1)]
        nodes, weights = _panels(left, right, s, 0 if p % 2 == 0 else 12)
        losses = self._loss_at(nodes, s)
        logs = -(np.abs(nodes) ** p) + log(p / 2) - lgamma(1 / p)
        return log_moment(z, losses, logs + np.log(weights))


def _panels(left: float, right: float, s: float, graded: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes over [left, right], with panels that shrink towards the kinks 0 and s."""
    ends = set(np.linspace(left, right, 25)) | {0.0, s}
    if graded:
        for kink in (0.0, s):
            for j in range(graded):
                reach = 4.0**-j * (right - left) / 8
                ends |= {kink - reach, kink + reach}
    cuts = np.array(sorted(e for e in ends if left <= e <= right))
    cuts = cuts[np.append(True, np.diff(cuts) > 1e-13 * (right - left))]
    x, w = _NODES
    half = np.diff(cuts)[:, None] / 2
    middle = (cuts[:-1] + cuts[1:])[:, None] / 2
    return (middle + half * x).ravel(), (half * w).ravel()
