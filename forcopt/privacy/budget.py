"""Budgets of pure, approximate, zero-concentrated and Gaussian differential privacy."""

from __future__ import annotations

from abc import abstractmethod
from math import inf, isfinite
from numbers import Real
from typing import Any

import scipy
from pydantic import Field

from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.privacy.losses import GaussianLoss
from forcopt.privacy.profile import Profile

__all__ = ["GDP", "ZCDP", "ApproximateDP", "Budget", "PrivacyBudget", "PureDP", "composed_epsilon"]


class Budget(Declared):
    """The base of all budgets."""

    def holds(self, profile: Profile) -> bool:
        """Whether a profile is within the budget, up to rounding."""
        return self.spent(profile) <= self.total * (1 + 1e-12)

    @abstractmethod
    def profile(self) -> Profile:
        """The worst profile within the budget."""

    @abstractmethod
    def spent(self, profile: Profile) -> float:
        """The part of the budget that a profile spends, in its units; infinite if not measurable."""

    @property
    @abstractmethod
    def total(self) -> float:
        """The budget, in its own units."""


class PureDP(Budget):
    """Pure differential privacy: no outcome is more than e^epsilon times likelier.

    Parameters
    ----------
    epsilon : float
        Above 0. Composition adds it up.

    Examples
    --------
    >>> from forcopt.privacy import Laplace
    >>> PureDP(1.0).holds(Laplace(scale=1.0).profile(1))
    True
    """

    epsilon: float = Field(gt=0.0, allow_inf_nan=False)

    def profile(self) -> Profile:
        """See `Budget`."""
        return Profile.pure(self.epsilon)

    def spent(self, profile: Profile) -> float:
        """See `Budget`."""
        return profile.largest_loss

    @property
    def total(self) -> float:
        """See `Budget`."""
        return self.epsilon


class ApproximateDP(Budget):
    """(epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        From 0 to below 1.

    Examples
    --------
    >>> from forcopt.privacy import Gaussian
    >>> ApproximateDP(1.0, 1e-5).holds(Gaussian(scale=3.8).profile(1))
    True
    """

    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    delta: float = Field(default=0.0, ge=0.0, lt=1.0, allow_inf_nan=False)

    def holds(self, profile: Profile) -> bool:
        """See `Budget`."""
        if profile.largest_loss <= self.epsilon * (1 + 1e-12):
            return True
        return self.delta > 0 and profile.delta(self.epsilon) <= self.delta

    def profile(self) -> Profile:
        """See `Budget`."""
        return Profile.pure(self.epsilon, self.delta)

    def spent(self, profile: Profile) -> float:
        """See `Budget`: the epsilon at this delta."""
        return profile.epsilon(self.delta)

    @property
    def total(self) -> float:
        """See `Budget`."""
        return self.epsilon


class ZCDP(Budget):
    """Zero-concentrated differential privacy (Bun and Steinke 2016): every Renyi divergence of order a is at
    most ``rho a``.

    Parameters
    ----------
    rho : float
        Above 0. Composition adds it up.

    Examples
    --------
    >>> from forcopt.privacy import ZCDP, DiscreteGaussian, calibrate
    >>> calibrate(DiscreteGaussian, ZCDP(0.02)).noise
    DiscreteGaussian(scale=5.0)
    """

    rho: float = Field(gt=0.0, allow_inf_nan=False)

    def profile(self) -> Profile:
        """See `Budget`."""
        return Profile.concentrated(self.rho)

    def spent(self, profile: Profile) -> float:
        """See `Budget`."""
        return profile.rho

    @property
    def total(self) -> float:
        """See `Budget`."""
        return self.rho


class GDP(Budget):
    """Gaussian differential privacy (Dong, Roth and Su 2022): as hard to distinguish as N(0, 1) and N(mu, 1).

    Parameters
    ----------
    mu : float
        Above 0. Composition adds up its squares.

    Examples
    --------
    >>> from forcopt.privacy import GDP, Gaussian, calibrate
    >>> calibrate(Gaussian, GDP(0.5)).noise
    Gaussian(scale=2.0)
    """

    mu: float = Field(gt=0.0, allow_inf_nan=False)

    def profile(self) -> Profile:
        """See `Budget`."""
        return Profile.of(GaussianLoss(self.mu))

    def spent(self, profile: Profile) -> float:
        """See `Budget`: the square of mu, which adds up."""
        return inf if profile.mu is None else profile.mu**2

    @property
    def total(self) -> float:
        """See `Budget`."""
        return self.mu**2


class PrivacyBudget(ApproximateDP):
    """(epsilon, delta)-differential privacy for methods that look at the data many times.

    Parameters
    ----------
    epsilon : float
        The privacy loss of everything together, above 0.
    delta : float
        The probability with which it may be larger, from 0 to below 1.
    floor : float, optional
        A **public** lower bound on how many records each cell (group, label) holds, for mechanisms whose
        noise or guarantee depends on it; it must be known without looking at the data. Privacy then is
        between data sets that both keep it.

    Examples
    --------
    >>> round(PrivacyBudget(1.0).split(100), 9), round(PrivacyBudget(1.0, delta=1e-6).split(100), 5)
    (0.01, 0.02401)
    """

    floor: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)

    def split(self, mechanisms: int) -> float:
        """The epsilon of each of several purely private mechanisms, chosen one after the other.

        Raises
        ------
        DeclarationError
            For a number that is not whole, or below 1.
        """
        low = self.epsilon / _count(mechanisms)  # basic composition, which delta only improves
        if self.delta == 0 or mechanisms == 1:
            return low

        def over(epsilon: float) -> float:
            return composed_epsilon(epsilon, mechanisms, self.delta) - self.epsilon

        high, tolerance = self.epsilon + 1.0, 1e-9
        while over(high) <= 0:
            high *= 2
        if over(low) >= 0:  # rounding
            return low
        return max(low, float(scipy.optimize.brentq(over, low, high, rtol=tolerance)) * (1 - 2 * tolerance))


def composed_epsilon(epsilon: float, mechanisms: int, delta: float) -> float:
    """The privacy loss of several epsilon-private mechanisms together, except with probability delta.

    This is the optimal composition of Kairouz, Oh and Viswanath (2015). No mechanism loses more than
    randomized response with the same epsilon, whose losses are binomial.

    Parameters
    ----------
    epsilon : float
        The loss of each mechanism, above 0.
    mechanisms : int
        How many, at least 1.
    delta : float
        From 0 to below 1.

    Returns
    -------
    float
        At most ``mechanisms * epsilon``.

    Raises
    ------
    DeclarationError
        For a number out of its range.

    References
    ----------
    P. Kairouz, S. Oh and P. Viswanath, "The composition theorem for differential privacy", ICML (2015).

    Examples
    --------
    >>> round(composed_epsilon(0.01, 100, delta=1e-6), 4), composed_epsilon(0.01, 100, delta=0.0)
    (0.3923, 1.0)
    """
    if not (epsilon > 0 and epsilon < inf):
        raise DeclarationError(f"epsilon is {epsilon!r}; it must be positive and finite")
    if not 0 <= delta < 1:
        raise DeclarationError(f"delta is {delta!r}; it must be from 0 to below 1")
    return (Profile.pure(epsilon) ** _count(mechanisms)).epsilon(delta)


def _count(mechanisms: Any) -> int:
    number = isinstance(mechanisms, Real) and not isinstance(mechanisms, bool)
    if not number or not isfinite(mechanisms) or mechanisms != int(mechanisms) or mechanisms < 1:
        raise DeclarationError(f"mechanisms is {mechanisms!r}; it must be a whole number, at least 1")
    return int(mechanisms)
