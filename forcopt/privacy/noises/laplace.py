"""Laplace noise and its whole kin, and the k-norm mechanism: noise for pure privacy."""

from __future__ import annotations

from math import expm1, sinh
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import ndtri_exp

from forcopt.arrays import Array
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.privacy.noises.base import Noise
from forcopt.privacy.noises.draws import discrete_laplace, exact_scale
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness, Secure
from forcopt.privacy.tolerances import EXPONENT, ROUNDING


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
                raise DeclarationError("Laplace: epsilon and scale are both given; they are inverse")
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


class DiscreteLaplace(Noise):
    """Whole noise with mass in proportion to ``exp(-|x| / scale)``.

    Parameters
    ----------
    scale : float
        Above 0; with ``scale = 1 / epsilon`` a count that one person changes by 1 is epsilon-private. Secure
        draws take at most 1e12.

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
            low = np.ceil(self.scale * np.log(u / tail) - ROUNDING)
            high = np.ceil(-1 - self.scale * np.log((1 - u) / tail) - ROUNDING)
        return np.asarray(np.where(low < 0, low, np.maximum(high, 0.0)))

    @property
    def variance(self) -> float:
        """``1 / (2 sinh^2(1 / (2 scale)))``."""
        return float(1 / (2 * np.sinh(0.5 / self.scale) ** 2))

    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """See `Noise`: the difference of two geometric variables."""
        p = -np.expm1(-1 / self.scale)
        return np.asarray(generator.geometric(p, size) - generator.geometric(p, size))

    def draw_securely(self, count: int, rng: Secure) -> Array:
        """See `Noise`: by exact rejection."""
        return discrete_laplace(exact_scale(self.scale), count, rng)

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
        e = min(1 / self.scale, EXPONENT)
        more = sinh(e) - e if e > 1e-3 else e**3 * (1 / 6 + e**2 / 120)
        return (shift * more + divergence(e * shift)) / sinh(e) / self.scale

    def mu(self, shift: float) -> float | None:
        """The parameter of the event next to half the shift, the best one as for Laplace noise."""
        near = (int(shift) - 1) // 2
        return -float(ndtri_exp(self.log_cdf(np.array([-near - 1, near - shift]))).sum())


class KNorm(Declared):
    """Joint noise of several numbers with density in proportion to ``exp(-max_i |x_i| / scale)``.

    Parameters
    ----------
    scale : float
        Above 0; ``1 / epsilon`` is epsilon-private for numbers each of which a person changes by at most 1.

    Notes
    -----
    The largest ``|x_i|`` of k has the law Gamma(k) times the scale; given it, the point is uniform on the
    surface of the cube.

    References
    ----------
    Hardt and Talwar (2010), On the geometry of differential privacy, section 4.

    Examples
    --------
    >>> KNorm(scale=2.0).expected_max(10), KNorm(scale=2.0).expected_abs(10)
    (20.0, 11.0)
    """

    scale: float = Field(gt=0.0, allow_inf_nan=False)

    def expected_max(self, count: int) -> float:
        """The mean of the largest ``|x_i|`` of `count`: ``count * scale``."""
        return count * self.scale

    def expected_abs(self, count: int) -> float:
        """The mean of one ``|x_i|`` of `count`: one coordinate is on the surface, the others are uniform."""
        return (count + 1) / 2 * self.scale

    def profile(self, shift: float = 1.0) -> Profile:
        """The privacy profile of numbers each of which one person moves by at most `shift`: pure."""
        return Profile.pure(shift / self.scale)

    def sample(self, size: tuple[int, int], rng: Randomness | None = None) -> Array:
        """Draw rows of `size` ``(rows, numbers)``.

        Raises
        ------
        DeclarationError
            Without a seed: floating-point draws are not private.
        """
        rng = Secure() if rng is None else rng
        if not rng.simulated:
            raise DeclarationError("KNorm is real noise, whose float draws are not private: simulate")
        generator = rng.generator()
        rows, count = size
        reach = generator.standard_gamma(count + 1, (rows, 1)) * self.scale
        return np.asarray(reach * generator.uniform(-1, 1, (rows, count)))
