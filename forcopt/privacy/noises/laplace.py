"""Laplace noise: the least that pure differential privacy takes for one real number, but for staircases."""

from __future__ import annotations

from math import expm1
from typing import Any

import numpy as np
from pydantic import Field
from scipy.special import ndtri_exp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy.noises.base import Noise

__all__ = ["Laplace"]


class Laplace(Noise):
    """The density ``exp(-|x| / scale) / (2 scale)``.

    Parameters
    ----------
    scale : float
        Above 0; the standard deviation is sqrt(2) times that.
    epsilon : float
        Instead of `scale`: the privacy loss for a number that one person changes by at most 1, one over the
        scale. One of the two is given, by name.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), Calibrating noise to sensitivity in private data analysis.
    Dong, Roth and Su (2022), Gaussian differential privacy, has the trade-off function.

    Examples
    --------
    >>> Laplace(epsilon=0.5)
    Laplace(scale=2.0)
    >>> Laplace(scale=2.0).profile(shift=1).epsilon(0.0)
    0.5
    """

    scale: float = Field(gt=0.0, allow_inf_nan=False)

    def __init__(self, *args: Any, **fields: Any) -> None:
        if args:
            raise DeclarationError(
                f"Laplace({args[0]!r}): use Laplace(scale=...) or Laplace(epsilon=...), which differ"
            )
        if "epsilon" in fields:
            epsilon = fields.pop("epsilon")
            if "scale" in fields:
                raise DeclarationError(
                    "Laplace: epsilon and scale are both given; one is the other's inverse"
                )
            if not (isinstance(epsilon, int | float | np.number) and np.isfinite(epsilon) and epsilon > 0):
                raise DeclarationError(f"Laplace: epsilon is {epsilon!r}; it must be positive and finite")
            fields["scale"] = 1.0 / float(epsilon)
        super().__init__(**fields)

    @property
    def epsilon(self) -> float:
        """The privacy loss for a number that one person changes by at most 1."""
        return 1.0 / self.scale

    def log_density(self, x: Any) -> Array:
        """See `Noise`."""
        return np.asarray(-np.abs(x) / self.scale - np.log(2 * self.scale))

    def cdf(self, x: Any) -> Array:
        """See `Noise`."""
        half = np.exp(-np.abs(x) / self.scale) / 2
        return np.asarray(np.where(np.asarray(x) < 0, half, 1 - half))

    def log_cdf(self, x: Any) -> Array:
        """See `Noise`."""
        half = -np.abs(x) / self.scale - np.log(2.0)
        return np.asarray(np.where(np.asarray(x) < 0, half, np.log1p(-np.exp(half))))

    def quantile(self, u: Any) -> Array:
        """See `Noise`."""
        u = np.asarray(u, dtype=float)
        with np.errstate(divide="ignore"):
            return np.asarray(self.scale * np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u))))

    @property
    def variance(self) -> float:
        """``2 scale^2``."""
        return 2 * self.scale**2

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`."""
        return np.asarray(generator.laplace(scale=self.scale, size=size))

    def crossing(self, t: Array, shift: float) -> Array:
        """See `Noise`."""
        most = shift / self.scale
        return np.where(t >= most, -np.inf, np.where(t < -most, np.inf, (shift - t * self.scale) / 2))

    def pure(self, shift: float) -> float:
        """``shift / scale``."""
        return shift / self.scale

    def rho(self, shift: float) -> float:
        """The Kullback-Leibler divergence: the Renyi divergence of order a, over a, falls with a."""
        return divergence(shift / self.scale)

    def mu(self, shift: float) -> float | None:
        """The parameter of the total variation, since the tails are heavier than Gaussian ones."""
        return -2 * float(ndtri_exp(self.log_cdf(-shift / 2)))


def divergence(loss: float) -> float:
    """``loss - 1 + e^-loss``, without cancellation: the divergence of Laplace noise with that pure loss."""
    if loss > 1e-3:
        return loss + expm1(-loss)
    return loss**2 * (1 / 2 - loss / 6 + loss**2 / 24 - loss**3 / 120)
