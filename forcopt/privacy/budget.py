"""Budgets of pure, approximate, concentrated and Gaussian privacy, and the least noise that keeps one."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from math import exp, inf, isfinite, log
from typing import Any

import numpy as np
import scipy
from pydantic import Field

from forcopt.arrays import whole_number
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, require
from forcopt.privacy.losses import GaussianLoss, gaussian_shift
from forcopt.privacy.mechanism import AdditiveMechanism
from forcopt.privacy.noises import Noise
from forcopt.privacy.profile import Profile
from forcopt.privacy.tolerances import CALIBRATED, ROUNDING, SPLIT


class Budget(Declared):
    """The base of all budgets."""

    def holds(self, profile: Profile) -> bool:
        """Whether a profile is within the budget, up to rounding."""
        return self.spent(profile) <= self.total * (1 + ROUNDING)

    @abstractmethod
    def profile(self) -> Profile:
        """The worst profile within the budget."""

    @abstractmethod
    def spent(self, profile: Profile) -> float:
        """The part of the budget that a profile spends, in its units; infinite if not measurable."""

    @property
    def total(self) -> float:
        """The budget, in its own units."""
        return self.spent(self.profile())


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
        if profile.largest_loss <= self.epsilon * (1 + ROUNDING):
            return True
        return self.delta > 0 and profile.keeps(self.epsilon, self.delta)

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
        # basic composition, which delta only improves
        low = self.epsilon / whole_number(mechanisms, "mechanisms", 1)
        if self.delta == 0 or mechanisms == 1:
            return low

        def over(epsilon: float) -> float:
            return composed_epsilon(epsilon, mechanisms, self.delta) - self.epsilon

        high, tolerance = self.epsilon + 1.0, SPLIT
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
    require(epsilon > 0 and epsilon < inf, "epsilon", epsilon, "be positive and finite")
    require(0 <= delta < 1, "delta", delta, "be from 0 to below 1")
    return (Profile.pure(epsilon) ** whole_number(mechanisms, "mechanisms", 1)).epsilon(delta)


def calibrate(
    family: type[Noise],
    budget: Budget,
    *,
    sensitivity: float = 1.0,
    norm: Any = "l1",
    dimension: int = 1,
    **fixed: Any,
) -> AdditiveMechanism:
    """Find the mechanism of a family with the least noise that keeps within a budget.

    Parameters
    ----------
    family : type of Noise
        Such as `Gaussian`; its scale (or radius) is searched for.
    budget : Budget
        `PureDP`, `ApproximateDP`, `ZCDP` or `GDP`.
    sensitivity, norm, dimension
        See `AdditiveMechanism`.
    fixed
        The other fields of the family, such as ``shape=4``.

    Returns
    -------
    AdditiveMechanism
        It keeps the budget. For one number no smaller scale does; for several, delta of whole noise may rise
        and fall with the scale, and then only the scales that are smaller by a factor close to 1 break it.
        Both up to a factor of ``1 + 1e-10`` and the accuracy of the profile.

    Raises
    ------
    DeclarationError
        If no scale keeps the budget, such as pure privacy with Gaussian noise, or only one that
        is above the family's limit.

    Notes
    -----
    The loss of real noise falls with the scale, which only divides the shift. That of whole noise need not:
    the delta of `DiscreteGaussian` turns at the scales `Noise.turns`, between which the least one that keeps
    the budget is bracketed. About 30 evaluations of the profile.

    References
    ----------
    Balle and Wang (2018), Algorithm 1, for the Gaussian.

    Examples
    --------
    >>> from forcopt.privacy import ApproximateDP, Gaussian, Laplace, PureDP
    >>> round(calibrate(Gaussian, ApproximateDP(1.0, 1e-5)).noise.scale, 6)
    3.730632
    >>> calibrate(Laplace, PureDP(0.5), sensitivity=2).noise
    Laplace(scale=4.0)
    """
    if not (isinstance(family, type) and issubclass(family, Noise)):
        raise DeclarationError(f"family is {family!r}; it must be a class of noises, such as Laplace")
    require(isinstance(budget, Budget), "budget", budget, "be a budget, such as PureDP(1.0)")
    if family.size in fixed:
        raise DeclarationError(f"{family.size} is found by calibrate; leave it out")

    largest = next((r.le for r in family.model_fields[family.size].metadata if hasattr(r, "le")), inf)

    def mechanism(size: float) -> AdditiveMechanism:
        noise = family(**{family.size: min(size, largest)}, **fixed)
        return AdditiveMechanism(noise=noise, sensitivity=sensitivity, norm=norm, dimension=dimension)

    @cache
    def over(log_size: float) -> float:
        """Above 0 if too much is lost."""
        profile = mechanism(exp(log_size)).profile()
        if isinstance(budget, ApproximateDP) and budget.delta > 0:
            if profile.largest_loss <= budget.epsilon:
                return -1e3
            return max(profile.log_delta(budget.epsilon), -1e3) - log(budget.delta)
        spent, total = budget.spent(profile), budget.total
        return 1e3 if spent == inf else (-1e3 if spent == 0 else log(spent / total))

    def turning() -> list[float]:
        """The logarithms of the sizes at which delta may turn."""
        if (norm == "linf" and dimension > 1) or not isinstance(budget, ApproximateDP) or budget.delta == 0:
            return []
        return list(np.log(mechanism(1.0).noise.turns(sensitivity, budget.epsilon)))

    start = log(sensitivity * dimension ** {"l1": 0.0, "l2": 0.0, "linf": 0.5}[norm])
    if norm == "linf" and isinstance(budget, ApproximateDP) and budget.delta > 0:
        start -= log(gaussian_shift(budget.epsilon, budget.delta))  # about as large as the Gaussian's
    limit = 40.0
    most = min(start + limit, log(largest))
    turns = [turn for turn in turning() if turn <= most]
    first = next((i for i, turn in enumerate(turns) if over(turn) <= 0), len(turns))
    low = turns[first - 1] if first else -inf  # too much is lost there
    high = turns[first] if first < len(turns) else max(min(start, most), low)
    while over(high) > 0:
        if high >= most:
            raise DeclarationError(
                _why(family, budget, exp(most), isfinite(mechanism(exp(most)).profile().largest_loss))
            )
        low, high = high, min(high + 1.0, most)
    if low == -inf:
        low = high
    while over(low) <= 0:
        low, high = low - 1.0, low
        if low < start - limit:
            raise DeclarationError(f"{budget} is kept by any {family.__name__} noise that differs from none")
    if over(high) < -500 or over(low) > 500:  # a jump, not a root: bisect
        while high - low > CALIBRATED:
            middle = (low + high) / 2
            low, high = (middle, high) if over(middle) > 0 else (low, middle)
    else:
        high = float(scipy.optimize.brentq(over, low, high, xtol=CALIBRATED, rtol=4 * np.finfo(float).eps))
    step = CALIBRATED
    while not budget.holds(mechanism(exp(high)).profile()):  # a logarithm's rounding may hide an excess
        high, step = high + step, 2 * step
    return mechanism(_rounded(exp(high), lambda size: budget.holds(mechanism(size).profile())))


def _rounded(size: float, holds: Any) -> float:
    """The size, or the decimal number with 10 digits next to it if that holds as well."""
    near = float(f"{size:.10g}")
    return near if near > 0 and abs(near / size - 1) < 4 * CALIBRATED and holds(near) else size


def _why(family: type[Noise], budget: Budget, most: float, bounded: bool) -> str:
    if isinstance(budget, PureDP) or (isinstance(budget, ApproximateDP) and budget.delta == 0):
        kind = "that small" if bounded else "bounded"
    else:
        kind = "Gaussian" if isinstance(budget, GDP) and not bounded else "that small"
    size = f"up to a {family.size} of {most:g}"
    return f"no {family.__name__} noise keeps {budget!r}: {size} its loss is not {kind}"
