"""Bounded noise: a density that vanishes at both ends of an interval, for the worst of very many counts."""

from __future__ import annotations

from math import log
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import betainc, betaincinv, betaln

from forcopt.arrays import Array
from forcopt.privacy.noises.base import Noise
from forcopt.privacy.tolerances import ROUND_END

__all__ = ["BoundedNoise"]


class BoundedNoise(Noise):
    """The density in proportion to ``(1 - x^2 / radius^2)^power`` on [-radius, radius].

    Parameters
    ----------
    power : float
        Above 0; the privacy loss is infinite with a small probability, the smaller the larger the power.
    radius : float
        Above 0.

    Notes
    -----
    ``x / radius`` is ``2 B - 1`` with B of the law Beta(power + 1, power + 1).

    References
    ----------
    Dagan and Kur (2022), A bounded-noise mechanism for differential privacy, has other densities of this
    kind.

    Examples
    --------
    >>> noise = BoundedNoise(power=2, radius=7)
    >>> round(noise.variance, 6), round(noise.profile(1).delta(10.0), 6)
    (7.0, 0.003305)
    """

    smooth: ClassVar[bool] = True
    size: ClassVar[str] = "radius"
    power: float = Field(gt=0.0, allow_inf_nan=False)
    radius: float = Field(gt=0.0, allow_inf_nan=False)

    def log_density(self, x: Any) -> Array:
        """See `Noise`."""
        v = np.asarray(x, dtype=float) / self.radius
        inside = np.abs(v) < 1
        logs = self.power * np.log1p(-(np.where(inside, v, 0.0) ** 2))
        front = -log(self.radius) - (2 * self.power + 1) * log(2) - betaln(self.power + 1, self.power + 1)
        return np.where(inside, logs + front, -np.inf)

    def cdf(self, x: Any) -> Array:
        """See `Noise`; the smaller tail is computed, so that both are relatively exact."""
        v = np.asarray(x, dtype=float) / self.radius
        a = self.power + 1
        end = (1 - np.abs(v)) / 2
        end = np.where(end < ROUND_END, 0.0, np.minimum(end, 0.5))
        with np.errstate(invalid="ignore"):
            half = betainc(a, a, end)
        return np.asarray(np.where(v < 0, half, 1 - half))

    def log_cdf(self, x: Any) -> Array:
        """See `Noise`; near the end by the first terms of a series of the incomplete beta function."""
        a = self.power + 1
        end = (1 + np.asarray(x, dtype=float) / self.radius) / 2
        near = (end >= ROUND_END) & (end < 1e-3)
        v = np.where(near, end, 0.5)
        term = series = np.ones(v.shape) / a
        for n in range(1, 40):  # (1 - v)^(a - 1) in powers of v, integrated
            term = term * v * (n - a) / n
            series = series + term * a / (a + n)
        logs = a * np.log(v) + np.log(np.where(near, series, 1.0)) - betaln(a, a)
        with np.errstate(divide="ignore"):
            return np.where(near, logs, np.log(self.cdf(x)))

    def quantile(self, u: Any) -> Array:
        """See `Noise`."""
        u = np.asarray(u, dtype=float)
        a = self.power + 1
        reach = 1 - 2 * betaincinv(a, a, np.minimum(u, 1 - u))
        return np.asarray(np.where(u < 0.5, -reach, reach) * self.radius)

    @property
    def variance(self) -> float:
        """``radius^2 / (2 power + 3)``."""
        return self.radius**2 / (2 * self.power + 3)

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`."""
        return np.asarray(self.radius * (2 * generator.beta(self.power + 1, self.power + 1, size) - 1))

    def crossing(self, t: Array, shift: float) -> Array:
        """See `Noise`: ``(R^2 - x^2) = r (R^2 - (x - s)^2)`` with ``r = e^(t / power)``, a quadratic."""
        t, s, radius = np.asarray(t, dtype=float), shift, self.radius
        if s >= 2 * radius:  # no outcome is possible under both
            return np.full(t.shape, radius)
        half = np.clip(t / (2 * self.power), -350, 350)
        # with c = coth of half: x = s/2 + u solves u^2 + s c u + s^2/4 - R^2 = 0, of which one root is inside
        free = radius**2 - s**2 / 4
        tanh = np.tanh(half)
        root = 2 * free * tanh / (s + np.sqrt(s**2 + 4 * free * tanh**2))
        return np.clip(s / 2 - root, s - radius, radius)

    def loss_span(self, shift: float) -> tuple[float, float]:
        """See `Noise`: finite losses reach to infinity, with vanishing mass."""
        end = 2 * self.power * np.log(1e16)
        return -float(end), float(end)
