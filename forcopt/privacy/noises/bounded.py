"""Noise on an interval: a density that vanishes at both ends, and tables of probabilities."""

from __future__ import annotations

from functools import cached_property
from math import floor, log
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, field_validator
from scipy.special import betainc, betaincinv, betaln

from forcopt.arrays import Array
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require
from forcopt.privacy.losses import AtomLoss, Loss
from forcopt.privacy.noises.base import Noise
from forcopt.privacy.randomness import Secure
from forcopt.privacy.tolerances import LAW_SUM, ROUND_END, ROUNDING


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


class TabulatedNoise(Noise):
    """Noise on consecutive whole numbers with given probabilities; it need not be even or log-concave.

    Parameters
    ----------
    probabilities : array_like
        Of the values first, first + 1, ...; nonnegative, with sum 1; shape ``(n,)``.
    first : int, optional
        The first value; by default the table is centred on 0, and n must be odd.

    Examples
    --------
    >>> noise = TabulatedNoise([0.25, 0.5, 0.25])
    >>> noise.variance, noise.profile(1).delta(1.0)
    (0.5, 0.25)
    """

    whole: ClassVar[bool] = True
    probabilities: Numbers
    first: int | None = Field(default=None)

    @field_validator("probabilities")
    @classmethod
    def _is_law(cls, p: Array) -> Array:
        require(p.ndim == 1 and len(p), "the shape", p.shape, "be (n,), at least one")
        if (p < 0).any() or abs(p.sum() - 1) > LAW_SUM:
            raise DeclarationError(f"the sum is {p.sum():g}; they must be nonnegative and sum to 1")
        return p

    def model_post_init(self, context: Any) -> None:
        """Check that the table has a middle, if it needs one."""
        if self.first is None and len(self.probabilities) % 2 == 0:
            raise DeclarationError(
                f"TabulatedNoise: probabilities has {len(self.probabilities)} entries, so no middle; "
                "give first"
            )

    @property
    def values(self) -> Array:
        """The values, shape ``(n,)``."""
        n = len(self.probabilities)
        start = -(n // 2) if self.first is None else self.first
        return np.arange(start, start + n)

    @property
    def law(self) -> Array:
        """The probabilities, summing to 1 up to the last bit."""
        return np.asarray(self.probabilities / self.probabilities.sum())

    @property
    def not_log_concave(self) -> int | None:
        """The first value at which the table is not log-concave, or None."""
        p = self.probabilities
        support = np.flatnonzero(p)
        if len(gaps := np.flatnonzero(np.diff(support) > 1)):
            return int(self.values[support[gaps[0]] + 1])
        bad = np.flatnonzero(np.diff(np.diff(np.log(p[support]))) > ROUNDING)
        return int(self.values[support[bad[0] + 1]]) if len(bad) else None

    def log_density(self, x: Any) -> Array:
        """See `Noise`."""
        at = np.asarray(x, dtype=float) - self.values[0]
        inside = (at >= 0) & (at < len(self.law)) & (at == np.round(at))
        with np.errstate(divide="ignore"):
            return np.where(inside, np.log(self.law[np.where(inside, at, 0).astype(np.int64)]), -np.inf)

    @cached_property
    def _cumulative(self) -> Array:
        return np.asarray(np.cumsum(self.law.astype(np.longdouble)), dtype=float)

    def cdf(self, x: Any) -> Array:
        """See `Noise`."""
        at = np.floor(np.clip(np.asarray(x, dtype=float) - self.values[0], -1, len(self.law) - 1))
        return np.asarray(np.append(0.0, self._cumulative)[at.astype(np.int64) + 1])

    def quantile(self, u: Any) -> Array:
        """See `Noise`."""
        at = np.searchsorted(self._cumulative, u, side="left")
        return np.asarray(self.values[np.minimum(at, len(self.law) - 1)].astype(float))

    @property
    def mean(self) -> float:
        """The mean."""
        return float(self.law @ self.values)

    @property
    def variance(self) -> float:
        """The variance."""
        return float(self.law @ (self.values - self.mean) ** 2)

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`."""
        return np.asarray(generator.choice(self.values, size=size, p=self.law))

    @cached_property
    def _table(self) -> tuple[Array, float]:
        """Cumulative probabilities in units of 2^-63 but for the last, and the total variation.

        The cumulative sums are exact rationals before they are rounded down.
        """
        total, ends = 0, []
        for p in self.law:
            total += floor(float(p) * 2.0**105)
            ends.append(total)
        scaled = np.array([(e << 63) // total for e in ends[:-1]], dtype=np.uint64)
        return scaled, len(ends) * (2.0**-63 + 2.0**-100) + abs(total / 2.0**105 - 1)

    def draw_securely(self, count: int, rng: Secure) -> Array:
        """See `Noise`: by inversion of a table of 63 bits."""
        place = np.searchsorted(self._table[0], rng.integers(2**63, count), side="right")
        return np.asarray(place + self.values[0], dtype=np.int64)

    @property
    def total_variation(self) -> float:
        """See `Noise`: the table rounds each cumulative probability to 2^-63."""
        return self._table[1]

    def loss(self, shift: float) -> Loss:
        """See `Noise`: every outcome is listed."""
        return AtomLoss(*self._pair(int(shift)))

    def _pair(self, shift: int) -> tuple[Array, Array]:
        gap = np.zeros(shift)
        return np.concatenate([self.law, gap]), np.concatenate([gap, self.law])
