"""Staircase noise: the least expected magnitude that pure differential privacy allows one number."""

from __future__ import annotations

from math import ceil, exp, expm1
from typing import Any

import numpy as np
from pydantic import Field

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy.losses import AtomLoss, Loss
from forcopt.privacy.noises.base import Noise
from forcopt.privacy.tolerances import NEAREST_SHIFT, ROUNDING

__all__ = ["Staircase"]


class Staircase(Noise):
    """Steps: high on the first `gamma` of each period of length `scale`, then e^-epsilon as high.

    Period after period it falls by e^-epsilon, on both sides of 0. Moved by `scale`, no point is more than
    e^epsilon times likelier.

    Parameters
    ----------
    epsilon : float
        The privacy loss for a number that one person changes by at most `scale`, above 0.
    scale : float
        The length of a period; 1 by default.
    gamma : float, optional
        The share of the high step, from 0 to 1; by default the best for the expected magnitude,
        ``1 / (1 + e^(epsilon / 2))``.

    References
    ----------
    Geng and Viswanath (2014), The optimal mechanism in differential privacy, Theorems 3 and 7.

    Examples
    --------
    >>> noise = Staircase(epsilon=1.0)
    >>> round(noise.magnitude, 6), noise.profile(1).epsilon(0.0)
    (0.959517, 1.0)
    """

    epsilon: float = Field(gt=0.0, le=500.0, allow_inf_nan=False)
    scale: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    gamma: float | None = Field(default=None, ge=0.0, le=1.0)

    @property
    def share(self) -> float:
        """The share of the high step, as given or by default."""
        return 1 / (1 + exp(self.epsilon / 2)) if self.gamma is None else self.gamma

    @property
    def _high(self) -> float:
        """The density at 0, per unit of the scale."""
        b = exp(-self.epsilon)
        return (1 - b) / (2 * (self.share + b * (1 - self.share)))

    def log_density(self, x: Any) -> Array:
        """See `Noise`."""
        v = np.abs(np.asarray(x, dtype=float)) / self.scale
        step = np.floor(v)
        return np.asarray(np.log(self._high / self.scale) - self.epsilon * (step + (v - step >= self.share)))

    def _below(self, v: Array) -> Array:
        """The probability of at most -v, for v >= 0 in units of the scale."""
        b, g = exp(-self.epsilon), self.share
        step = np.floor(np.minimum(v, 1e15))
        part = v - step
        rest = np.maximum(g - part, 0) + b * (1 - np.maximum(g, part)) + b * (g + b * (1 - g)) / (1 - b)
        return np.where(np.isinf(v), 0.0, self._high * np.exp(-self.epsilon * step) * rest)

    def cdf(self, x: Any) -> Array:
        """See `Noise`."""
        v = np.asarray(x, dtype=float) / self.scale
        half = self._below(np.abs(v))
        return np.where(v < 0, half, 1 - half)

    def quantile(self, u: Any) -> Array:
        """See `Noise`; within a step the distribution function is a line."""
        u = np.asarray(u, dtype=float)
        b, g = exp(-self.epsilon), self.share
        tail = np.minimum(u, 1 - u)
        with np.errstate(divide="ignore"):
            step = np.floor(np.log(0.5 / tail) / self.epsilon + ROUNDING)
        left = 0.5 - tail * np.exp(self.epsilon * np.where(np.isfinite(step), step, 0.0))  # from the step on
        high = left / self._high
        part = np.where(high <= g, high, g + (high - g) / b)
        reach = (step + part) * self.scale
        return np.asarray(np.where(u < 0.5, -reach, reach))

    @property
    def magnitude(self) -> float:
        """``E|X|``; at the default share ``scale e^(epsilon / 2) / (e^epsilon - 1)``."""
        b, g = exp(-self.epsilon), self.share
        first = g * g / 2 + b * (1 - g * g) / 2
        mass = g + b * (1 - g)
        return 2 * self._high * self.scale * (first / (1 - b) + mass * b / (1 - b) ** 2)

    @property
    def variance(self) -> float:
        """``E X^2``, summed over the periods as derivatives of a geometric series."""
        b, g = exp(-self.epsilon), self.share
        zero, one, two = g + b * (1 - g), (g**2 + b * (1 - g**2)) / 2, (g**3 + b * (1 - g**3)) / 3
        sums = 1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3
        return 2 * self._high * self.scale**2 * (two * sums[0] + 2 * one * sums[1] + zero * sums[2])

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`: by inversion."""
        return self.quantile(generator.random(size))

    def loss(self, shift: float) -> Loss:
        """See `Noise`: both densities are constant between all steps, and far out they repeat.

        A shift below 1e-13 periods counts as that; the widths of intervals do not round it off.
        """
        s = max(shift / self.scale, NEAREST_SHIFT)
        if s > 50:
            raise DeclarationError(
                f"shift is {shift}; the noise's period is {self.scale}, over 50 times less"
            )
        g = self.share
        reach = ceil(s) + 2
        own = np.unique(np.concatenate([np.arange(-2 * reach, reach + 1.0) + d for d in (0.0, g, 1 - g)]))
        own = own[np.append(True, np.diff(own) > ROUNDING)]
        gap = np.abs(own[:, None] + s - own).min(axis=1)
        moved = own[gap > min(ROUNDING, s / 2)]  # by s, onto no step of the noise itself
        base = np.concatenate([own, moved])
        extra = np.repeat([0.0, s], [len(own), len(moved)])
        order = np.argsort(base + extra)
        order = order[np.abs(base + extra)[order] <= reach]
        cuts, width = (base + extra)[order], np.diff(base[order]) + np.diff(extra[order])
        middle = (cuts[:-1] + cuts[1:]) / 2

        def masses(moved: float) -> Array:
            far = np.where(middle < -reach + 1, 1, np.where(middle > reach - 1, 1, 0))
            mass = np.exp(self.log_density((middle - moved) * self.scale)) * self.scale * width
            return np.asarray(np.where(far == 1, mass / -expm1(-self.epsilon), mass))  # all further periods

        p, q = masses(0.0), masses(s)
        steps = np.round((np.log(p) - np.log(q)) / self.epsilon).astype(np.int64)
        kinds, place = np.unique(steps, return_inverse=True)
        sums = np.bincount(place, p, len(kinds))
        under = sums / sums.sum()
        return AtomLoss(under, under * np.exp(-self.epsilon * kinds), self.epsilon)

    def pure(self, shift: float) -> float:
        """``epsilon`` per period begun."""
        return self.epsilon * max(1, ceil(shift / self.scale - ROUNDING))
