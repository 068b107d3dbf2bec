"""Gaussian noise: exact under (epsilon, delta), zero-concentrated and Gaussian differential privacy."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field
from scipy.special import log_ndtr, ndtr, ndtri

from forcopt.arrays import Array
from forcopt.privacy.losses import GaussianLoss, Loss
from forcopt.privacy.noises.base import Noise

__all__ = ["Gaussian"]


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
