"""The base of all noises: the law, its samples, and the privacy loss of a shift."""

from __future__ import annotations

from abc import abstractmethod
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from forcopt.arrays import Array
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, require
from forcopt.privacy.losses import Loss, NoiseLoss
from forcopt.privacy.randomness import Randomness, Secure, Simulated
from forcopt.privacy.tolerances import MAXIMUM_END, TABLE_END, TINY

if TYPE_CHECKING:
    from forcopt.privacy.budget import Budget
    from forcopt.privacy.noises.bounded import TabulatedNoise
    from forcopt.privacy.profile import Profile
    from forcopt.privacy.queries import Calibrated


class Noise(Declared):
    """One real or whole random variable with mean 0, to be added to a number.

    A subclass states `log_density` (of a real noise) or log mass (of a whole one), `cdf`, `quantile`,
    `variance` and `draw`. An even, log-concave noise then has its exact privacy loss for free; others
    override `loss`.

    Attributes
    ----------
    whole : bool
        Whether it takes whole values only. Then `density` is the probability of each.
    smooth : bool
        Whether it is bounded with a density that is analytic inside, as `forcopt.privacy.contour` needs it.
    size : str
        The field that makes the noise larger, which `calibrate` searches for.

    Notes
    -----
    For an even log-concave density the ratio f(x) / f(x - s) is monotone, so that an event {L > t} is a
    half-line {x < c}, and ``delta(epsilon) = F(c) - e^epsilon F(c - s)`` without any integral.
    """

    whole: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    size: ClassVar[str] = "scale"

    # -- the law ---------------------------------------------------------------------------------------------

    @abstractmethod
    def log_density(self, x: Any) -> Array:
        """The logarithm of the density, or of the mass of a whole noise; -inf outside the support."""

    @abstractmethod
    def cdf(self, x: Any) -> Array:
        """The probability of at most x."""

    def log_cdf(self, x: Any) -> Array:
        """The logarithm of `cdf`; where that underflows, subclasses go on."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.cdf(x)))

    @abstractmethod
    def quantile(self, u: Any) -> Array:
        """The least x with ``cdf(x) >= u``."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance."""

    @abstractmethod
    def draw(self, size: Any, generator: np.random.Generator) -> Array:
        """Simulated draws, for `sample`."""

    def density(self, x: Any) -> Array:
        """The density at x; the probability of x for a whole noise."""
        return np.exp(self.log_density(x))

    def expected_max(self, count: int) -> float:
        """The mean of the largest ``|X|`` among independent draws of an even noise.

        Parameters
        ----------
        count : int
            Of draws, at least 1.

        Returns
        -------
        float
            By Gauss-Legendre quadrature between quantiles, relative error about 1e-12; a sum for whole noise.

        Examples
        --------
        >>> from forcopt.privacy import Laplace
        >>> round(Laplace(scale=1.0).expected_max(4), 10)  # 1 + 1/2 + 1/3 + 1/4
        2.0833333333
        """
        if self.whole:
            reach = int(-float(self.quantile(min(0.25, MAXIMUM_END / count)))) + 2
            x = np.arange(reach, dtype=float) + 1
            weight, tail = np.ones(reach), 2 * np.asarray(self.cdf(-x))
        else:
            levels = 10.0 ** -np.linspace(np.log10(2.0), 19 + np.log10(count), 90)
            extra = 0.5 - 10.0 ** -np.linspace(0.5, 14, 28)[::-1]
            cuts = np.unique(np.maximum(-self.quantile(np.concatenate([levels, extra])), 0.0))
            nodes, w = np.polynomial.legendre.leggauss(12)
            half = np.diff(cuts)[:, None] / 2
            x = ((cuts[1:] + cuts[:-1])[:, None] / 2 + half * nodes).ravel()
            weight, tail = (half * w).ravel(), 2 * self.cdf(-x)
        with np.errstate(divide="ignore"):
            return float(weight @ -np.expm1(count * np.log1p(-np.minimum(tail, 1.0))))

    # -- draws -----------------------------------------------------------------------------------------------

    def sample(self, size: Any = (), rng: Randomness | None = None) -> Array:
        """Draw independent values.

        Parameters
        ----------
        size : int or tuple
            The shape.
        rng : Secure or Simulated
            `Secure` by default, which draws whole noise; real noise is drawn securely only together with the
            number it is added to (`AdditiveMechanism.release`).

        Raises
        ------
        DeclarationError
            For a real noise without a seed, or a whole one of a scale above 1e12.
        """
        rng = Secure() if rng is None else rng
        if isinstance(rng, Simulated):
            return self.draw(size, rng.generator())
        return self.draw_securely(int(np.prod(size, dtype=np.int64)), rng).reshape(size)

    def draw_securely(self, count: int, rng: Secure) -> Array:
        """Draws of a whole noise from the system's randomness, shape ``(count,)``, for `sample`."""
        raise DeclarationError(
            f"{type(self).__name__} is real noise, whose floating-point draws are not private: release "
            "through a mechanism, take noise.on_integers(), or simulate with rng=Simulated(seed)"
        )

    @property
    def total_variation(self) -> float:
        """A bound on the total variation between one secure draw and the law; 0 but for tables.

        The rejections of discrete Laplace and Gaussian noise are exact but for events of probability
        ``e^-1000``, which no positive float bounds more closely than 0.
        """
        return 0.0

    @classmethod
    def calibrated(cls, budget: Budget, **fixed: Any) -> Calibrated:
        """The least noise of this family within a budget, for the query that it is put on.

        ``query >> DiscreteGaussian.calibrated(ZCDP(0.1))``; see `forcopt.privacy.queries.Calibrated`.
        """
        from forcopt.privacy.queries import Calibrated

        return Calibrated(cls, budget, fixed)

    def on_integers(self) -> TabulatedNoise:
        """The whole noise whose mass is in proportion to this density at the whole numbers."""
        from forcopt.privacy.noises.bounded import TabulatedNoise

        reach = int(np.ceil(-float(self.quantile(TABLE_END)))) + 1
        logs = self.log_density(np.arange(-reach, reach + 1.0))
        mass = np.exp(logs - logs.max())
        inside = np.flatnonzero(mass > 0)
        mass = mass[inside[0] : inside[-1] + 1]
        return TabulatedNoise(mass / mass.sum())

    # -- privacy ---------------------------------------------------------------------------------------------

    def profile(self, shift: float = 1.0) -> Profile:
        """The privacy profile of a number that one person moves by `shift`, released with this noise.

        Raises
        ------
        DeclarationError
            For a shift that is negative, not finite, or not whole for a whole noise.
        """
        from forcopt.privacy.profile import Profile

        self._check_shift(shift)
        if shift == 0:
            return Profile.nothing()
        loss = self.loss(float(shift))
        other = loss.reversed()
        return Profile.of(loss) if other is loss else Profile.of(loss, other)

    def loss(self, shift: float) -> Loss:
        """The privacy loss of the noise against itself moved by `shift` > 0."""
        return NoiseLoss(self, shift)

    def _check_shift(self, shift: float) -> None:
        require(np.isfinite(shift) and shift >= 0, "shift", shift, "be finite and not negative")
        if self.whole and shift != round(shift):
            raise DeclarationError(f"shift is {shift}; {type(self).__name__} is whole, so it must be whole")

    def crossing(self, t: Array, shift: float) -> Array:
        """The c with ``log f(x) - log f(x - shift) > t`` exactly for x < c (whole noise: x <= c).

        By bisection, for a log-concave law; subclasses have closed forms.
        """
        low = np.full(np.shape(t), float(self.quantile(TINY)))
        high = -low + shift
        for _ in range(80):
            middle = (low + high) / 2
            with np.errstate(invalid="ignore"):
                above = self.log_density(middle) - self.log_density(middle - shift) > t
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return low

    def loss_span(self, shift: float) -> tuple[float, float]:
        """The range of the finite losses, but for tails below 1e-60."""
        if isfinite(most := self.pure(shift)):
            return -most, most
        ends = np.array([float(self.quantile(TINY)), shift - float(self.quantile(TINY))])
        losses = self.log_density(ends) - self.log_density(ends - shift)
        return float(losses[1]), float(losses[0])

    def loss_spacing(self, shift: float) -> float | None:
        """A number of which all losses are multiples, if there is one."""
        return None

    def pure(self, shift: float) -> float:
        """The largest loss; infinite if losses are unbounded."""
        return inf

    def rho(self, shift: float) -> float:
        """The zCDP parameter; infinite if none is known."""
        return inf

    def turns(self, shift: float, epsilon: float) -> Array:
        """The sizes, rising, between which delta at this epsilon rises at most once and then falls.

        A size is a value of the field `size`. Beyond the last one delta falls: everywhere for real
        log-concave noise, and for whole noise whose event {L > epsilon} always holds 0.
        """
        return np.empty(0)

    def mu(self, shift: float) -> float | None:
        """The Gaussian-DP parameter; None if only pure privacy gives one."""
        return None

    @property
    def has_moments(self) -> bool:
        """Whether `log_moment` is there for contour integrals."""
        return False

    def log_moment(self, z: Array, shift: float) -> Array:
        """``log E[e^(z L)]`` for complex z of a positive real part."""
        raise NotImplementedError
