"""The least noise that keeps within a budget, by root finding on the exact profile."""

from __future__ import annotations

from math import exp, inf, isfinite, log
from typing import Any

import numpy as np
import scipy

from forcopt.errors import DeclarationError
from forcopt.privacy.budget import GDP, ApproximateDP, Budget, PureDP
from forcopt.privacy.mechanism import AdditiveMechanism
from forcopt.privacy.noises import Noise

__all__ = ["calibrate"]

TOLERANCE = 1e-11


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
    if not isinstance(budget, Budget):
        raise DeclarationError(f"budget is {budget!r}; it must be a budget, such as PureDP(1.0)")
    if family.size in fixed:
        raise DeclarationError(f"{family.size} is found by calibrate; leave it out")

    largest = next(
        (rule.le for rule in family.model_fields[family.size].metadata if hasattr(rule, "le")), inf
    )

    def mechanism(size: float) -> AdditiveMechanism:
        noise = family(**{family.size: min(size, largest)}, **fixed)
        return AdditiveMechanism(noise=noise, sensitivity=sensitivity, norm=norm, dimension=dimension)

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
        while high - low > TOLERANCE:
            middle = (low + high) / 2
            low, high = (middle, high) if over(middle) > 0 else (low, middle)
    else:
        high = float(scipy.optimize.brentq(over, low, high, xtol=TOLERANCE, rtol=4 * np.finfo(float).eps))
    step = TOLERANCE
    while not budget.holds(mechanism(exp(high)).profile()):  # a logarithm's rounding may hide an excess
        high, step = high + step, 2 * step
    return mechanism(_rounded(exp(high), lambda size: budget.holds(mechanism(size).profile())))


def _rounded(size: float, holds: Any) -> float:
    """The size, or the decimal number with 10 digits next to it if that holds as well."""
    near = float(f"{size:.10g}")
    return near if near > 0 and abs(near / size - 1) < 4 * TOLERANCE and holds(near) else size


def _why(family: type[Noise], budget: Budget, most: float, bounded: bool) -> str:
    if isinstance(budget, PureDP) or (isinstance(budget, ApproximateDP) and budget.delta == 0):
        kind = "that small" if bounded else "bounded"
    else:
        kind = "Gaussian" if isinstance(budget, GDP) and not bounded else "that small"
    size = f"up to a {family.size} of {most:g}"
    return f"no {family.__name__} noise keeps {budget!r}: {size} its loss is not {kind}"
