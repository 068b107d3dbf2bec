"""Gaussian noise and its whole kin, for (epsilon, delta), zero-concentrated and Gaussian privacy."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import log_ndtr, ndtr, ndtri

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy.losses import GaussianLoss, Loss
from forcopt.privacy.noises.base import Noise
from forcopt.privacy.tolerances import TINY

__all__ = ["DiscreteGaussian", "Gaussian"]


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
        Above 0 and at most 100,000; the standard deviation is a little below for small scales.

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
    scale: float = Field(gt=0.0, le=1e5, allow_inf_nan=False)

    @cached_property
    def _half(self) -> tuple[Array, Array, float]:
        """The tails from below, ``P(X <= -i)`` for i = 0.., and the masses there, and the normaliser."""
        reach = int(np.ceil(self.scale * np.sqrt(-2 * np.log(TINY)))) + 2
        mass = np.exp(-0.5 * np.square(np.arange(reach + 1) / self.scale))
        below = np.cumsum(mass[::-1].astype(np.longdouble))[::-1]  # the smallest first, in 64 bits
        total = 2 * below[1] + 1
        return np.asarray(below / total, dtype=float), mass / float(total), float(total)

    def log_density(self, x: Any) -> Array:
        """See `Noise`."""
        return np.asarray(-0.5 * np.square(np.asarray(x) / self.scale) - np.log(self._half[2]))

    def cdf(self, x: Any) -> Array:
        """See `Noise`."""
        tails = np.append(self._half[0], 0.0)
        x = np.floor(np.clip(np.asarray(x, dtype=float), -len(tails), len(tails))).astype(np.int64)
        below = tails[np.clip(-x, 0, len(tails) - 1)]
        above = tails[np.clip(x + 1, 0, len(tails) - 1)]
        return np.asarray(np.where(x <= 0, below, 1 - above))

    def log_cdf(self, x: Any) -> Array:
        """See `Noise`; beyond the table a sum over the next few scales."""
        x = np.floor(np.asarray(x, dtype=float))
        far = (x <= -len(self._half[0])) & np.isfinite(x)
        with np.errstate(divide="ignore"):
            near = np.log(self.cdf(x))
        x, j = np.where(far, x, -len(self._half[0])), np.arange(3 * self.scale + 3)
        further = np.exp((2 * x[..., None] * j - j * j) / (2 * self.scale**2)).sum(axis=-1)
        return np.where(far, self.log_density(x) + np.log(further), near)

    def quantile(self, u: Any) -> Array:
        """See `Noise`."""
        u = np.asarray(u, dtype=float)
        tails = self._half[0]
        low = -(np.searchsorted(-tails, -u, side="right") - 1.0)
        high = np.searchsorted(-tails, -(1 - u), side="left") - 1.0
        return np.asarray(np.where(u <= tails[0], low, np.maximum(high, 1.0)))

    @property
    def variance(self) -> float:
        """The sum of ``x^2`` over the masses."""
        mass = self._half[1]
        return float(2 * (mass * np.square(np.arange(len(mass), dtype=float))).sum())

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`: by inversion, in double precision."""
        tails = self._half[0]
        u = generator.random(size)
        values = np.searchsorted(-tails, -np.minimum(u, 1 - u), side="right") - 1  # P(X <= -v) >= u
        lower = np.where(u < 0.5, -values, values)
        return np.asarray(lower, dtype=np.int64)

    def crossing(self, t: Array, shift: float) -> Array:
        """See `Noise`: losses are ``shift (shift - 2 x) / (2 scale^2)``."""
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
        most = 1.5**2 * epsilon / shift - shift / 2
        j = np.arange(max(0, int(np.ceil(most)) + 1))
        return np.asarray(np.sqrt(shift * (shift / 2 + j) / epsilon))

    def rho(self, shift: float) -> float:
        """``shift^2 / (2 scale^2)``, as for the Gaussian."""
        return shift**2 / (2 * self.scale**2)

    def _check_shift(self, shift: float) -> None:
        super()._check_shift(shift)
        if shift > 1e6 * self.scale:
            raise DeclarationError(f"shift is {shift}, over a million scales; the noise hides nothing there")
