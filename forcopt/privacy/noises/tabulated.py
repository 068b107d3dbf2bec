"""Noise from a table of probabilities, such as an optimal law that a program found."""

from __future__ import annotations

from functools import cached_property
from math import floor
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, field_validator

from forcopt.arrays import Array
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.privacy.losses import AtomLoss, Loss
from forcopt.privacy.noises.base import Noise
from forcopt.privacy.tolerances import LAW_SUM, ROUNDING

__all__ = ["TabulatedNoise"]


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
        if p.ndim != 1 or not len(p):
            raise DeclarationError(f"the shape is {p.shape}; it must be (n,), at least one")
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
        slopes = np.diff(np.log(p[support]))
        bad = np.flatnonzero(np.diff(slopes) > ROUNDING)
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
    def _table(self) -> tuple[Array, int, float]:
        """See `Noise`: the cumulative sums are exact rationals before they are rounded down."""
        total, ends = 0, []
        for p in self.law:
            total += floor(float(p) * 2.0**105)
            ends.append(total)
        scaled = np.array([(e << 63) // total for e in ends[:-1]], dtype=np.uint64)
        n = len(ends)
        return scaled, int(self.values[0]), n * (2.0**-63 + 2.0**-100) + abs(total / 2.0**105 - 1)

    def loss(self, shift: float) -> Loss:
        """See `Noise`: every outcome is listed."""
        return AtomLoss(*self._pair(int(shift)))

    def _pair(self, shift: int) -> tuple[Array, Array]:
        gap = np.zeros(shift)
        return np.concatenate([self.law, gap]), np.concatenate([gap, self.law])
