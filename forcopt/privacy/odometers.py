"""Fully adaptive composition: filters and odometers, where each profile may be chosen after the answers."""

from __future__ import annotations

from math import exp, inf, isfinite, log, log1p, sqrt

import scipy
from scipy.special import log_ndtr

from forcopt.errors import DeclarationError, require
from forcopt.privacy.budget import ZCDP, ApproximateDP, Budget, PureDP
from forcopt.privacy.profile import Profile
from forcopt.privacy.tolerances import CALIBRATED, SPLIT


def adaptive(budget: Budget) -> Budget:
    """The budget that adds up and keeps another one, also if each profile is chosen after earlier answers.

    Parameters
    ----------
    budget : Budget
        The promise.

    Returns
    -------
    Budget
        To spend from: `PureDP`, `ZCDP` and `GDP` themselves; for `ApproximateDP` the largest `ZCDP` that
        proves it, or `PureDP` if delta is 0.

    Notes
    -----
    Proved for fully adaptive parameters: sums of pure losses (Rogers, Roth, Ullman and Vadhan 2016), of rho
    (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023), and of squares of mu (Koskela, Tobaben
    and Honkela 2023). The exact composition of profiles is proved for profiles fixed in advance only. A
    release without a finite rho, such as a Gaussian on a Poisson sample, finds no place in a `ZCDP` budget.

    Examples
    --------
    >>> round(adaptive(ApproximateDP(1.0, 1e-6)).rho, 6)
    0.024356
    """
    if not isinstance(budget, ApproximateDP):
        return budget
    if budget.delta == 0:
        return PureDP(budget.epsilon)
    epsilon, delta = budget.epsilon, budget.delta
    found = scipy.optimize.brentq(
        lambda log_rho: Profile.concentrated(exp(log_rho)).log_delta(epsilon) - log(delta),
        log(epsilon**2 / (8 * (epsilon - log(delta)))),
        log(epsilon - 2 * log1p(-delta)),
        xtol=CALIBRATED,
    )
    return ZCDP(exp(found) * (1 - SPLIT))


def odometer(spent: Profile, delta: float, expected: float) -> float:
    """The epsilon of what was released so far, valid at all times at once.

    Parameters
    ----------
    spent : Profile
        The composition so far, with a finite rho. Each part may have been chosen after earlier answers, and
        so may the times of the questions.
    delta : float
        The probability that the loss ever exceeds the epsilon of its time, above 0 and below 1.
    expected : float
        The rho, above 0, near which epsilon shall be small; fixed in advance.

    Returns
    -------
    float
        At most about a third above the epsilon of the filter of `expected`, for rho near it.

    Raises
    ------
    DeclarationError
        For a profile without a finite rho, or a number out of range.

    Notes
    -----
    Let S be the sum of the losses and v twice the sum of rho. For every ``x >= 0`` the process
    ``exp(x (S - v / 2) - x^2 v / 2)`` is a supermartingale, and so is its mean over a half-normal x of
    variance 1 / g. By Ville's inequality this mean reaches 1 / delta with probability delta at most, which
    bounds S.

    References
    ----------
    Whitehouse, Ramdas, Rogers and Wu (2023), Fully adaptive composition in differential privacy; Howard,
    Ramdas, McAuliffe and Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences.

    Examples
    --------
    >>> from forcopt.privacy import Gaussian
    >>> twenty = Gaussian(scale=20.0).profile(1) ** 20
    >>> round(twenty.epsilon(1e-6), 3), round(odometer(twenty, 1e-6, expected=0.025), 3)
    (0.941, 1.263)
    """
    require(0 < delta < 1, "delta", delta, "be above 0 and below 1")
    require(0 < expected < inf, "expected", expected, "be above 0 and finite")
    if not isfinite(spent.rho):
        raise DeclarationError("the profile has no finite rho, which an odometer adds up")
    v, far = 2 * spent.rho, -2 * log(delta)
    g = 2 * expected / (far + log1p(far))

    def over(s: float) -> float:
        """The logarithm of delta times the mean, s deviations above v / 2."""
        return log(2 * delta) + log(g / (v + g)) / 2 + s * s / 2 + float(log_ndtr(s))

    if over(0.0) >= 0:
        return v / 2
    s = float(scipy.optimize.brentq(over, 0.0, sqrt(far + log1p(v / g)) + 1))
    return v / 2 + s * sqrt(v + g)
