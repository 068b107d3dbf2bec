"""Discrete Laplace noise, also called geometric: the best whole noise for a count under pure privacy."""

from __future__ import annotations

from math import sinh
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import ndtri_exp

from forcopt.arrays import Array
from forcopt.privacy.noises.base import Noise
from forcopt.privacy.noises.laplace import divergence

__all__ = ["DiscreteLaplace"]


class DiscreteLaplace(Noise):
    """Whole noise with mass in proportion to ``exp(-|x| / scale)``.

    Parameters
    ----------
    scale : float
        Above 0; with ``scale = 1 / epsilon`` a count that one person changes by 1 is epsilon-private.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2009), Universally utility-maximizing privacy mechanisms.

    Examples
    --------
    >>> noise = DiscreteLaplace(scale=1.0)
    >>> round(float(noise.density(0)), 6), round(noise.variance, 6)
    (0.462117, 1.841347)
    """

    whole: ClassVar[bool] = True
    scale: float = Field(gt=0.0, allow_inf_nan=False)

    def log_density(self, x: Any) -> Array:
        """See `Noise`."""
        return np.asarray(-np.abs(x) / self.scale + np.log(np.tanh(0.5 / self.scale)))

    def cdf(self, x: Any) -> Array:
        """See `Noise`."""
        x = np.floor(np.asarray(x, dtype=float))
        tail = 1 / (1 + np.exp(-1 / self.scale))  # of x and less, per e^(-|x| / scale), for x <= 0
        with np.errstate(over="ignore"):
            below = np.exp(np.minimum(x, 0) / self.scale) * tail
            above = np.exp(-(np.maximum(x, -1) + 1) / self.scale) * tail
        return np.asarray(np.where(x < 0, below, 1 - above))

    def log_cdf(self, x: Any) -> Array:
        """See `Noise`."""
        x = np.floor(np.asarray(x, dtype=float))
        below = np.minimum(x, 0) / self.scale - np.logaddexp(0.0, -1 / self.scale)
        with np.errstate(divide="ignore"):
            return np.where(x < 0, below, np.log(self.cdf(x)))

    def quantile(self, u: Any) -> Array:
        """See `Noise`."""
        u = np.asarray(u, dtype=float)
        tail = 1 / (1 + np.exp(-1 / self.scale))
        with np.errstate(divide="ignore"):
            low = np.ceil(self.scale * np.log(u / tail) - 1e-12)
            high = np.ceil(-1 - self.scale * np.log((1 - u) / tail) - 1e-12)
        return np.asarray(np.where(low < 0, low, np.maximum(high, 0.0)))

    @property
    def variance(self) -> float:
        """``1 / (2 sinh^2(1 / (2 scale)))``."""
        return float(1 / (2 * np.sinh(0.5 / self.scale) ** 2))

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`: the difference of two geometric variables."""
        p = -np.expm1(-1 / self.scale)
        return np.asarray(generator.geometric(p, size) - generator.geometric(p, size))

    def crossing(self, t: Array, shift: float) -> Array:
        """See `Noise`."""
        most = shift / self.scale
        inside = np.ceil((shift - t * self.scale) / 2) - 1
        return np.where(t >= most, -np.inf, np.where(t < -most, np.inf, inside))

    def loss_spacing(self, shift: float) -> float | None:
        """``1 / scale``: losses are ``(shift - 2 x) / scale`` between the two ends."""
        return 1 / self.scale

    def pure(self, shift: float) -> float:
        """``shift / scale``."""
        return shift / self.scale

    def rho(self, shift: float) -> float:
        """The Kullback-Leibler divergence, as for Laplace noise."""
        e = min(1 / self.scale, 700.0)
        more = sinh(e) - e if e > 1e-3 else e**3 * (1 / 6 + e**2 / 120)
        return (shift * more + divergence(e * shift)) / sinh(e) / self.scale

    def mu(self, shift: float) -> float | None:
        """The parameter of the event next to half the shift, the best one as for Laplace noise."""
        near = (int(shift) - 1) // 2
        return -float(ndtri_exp(self.log_cdf(np.array([-near - 1, near - shift]))).sum())
