"""The norm check as tails of the chi-square law: its threshold, and the least norm that it stops."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import NamedTuple

import scipy
from scipy.special import ndtr

__all__ = ["Gap", "acceptance", "exact_gap", "laurent_massart", "no_projection_gap", "printed_gap"]


FAR = 1e8


class Gap(NamedTuple):
    """A check's threshold, and its gap.

    Attributes
    ----------
    threshold : float
        tau: a vector passes if its noisy projection has a norm below it.
    norm : float
        rho, the least norm that passes with probability at most `soundness`; infinite if none is known.

    Examples
    --------
    >>> from forcopt.models.secure_sum.gap import exact_gap
    >>> gap = exact_gap(50, 2, 0.1, 0.01, 0.01)
    >>> round(gap.threshold, 3), round(gap.norm, 3)
    (1.745, 2.032)
    """

    threshold: float
    norm: float


def laurent_massart(projections: int, tail: float) -> tuple[float, float]:
    """Theorem 10: bounds on the chi-square law that are exceeded with probability at most `tail` each."""
    t = log(1 / tail)
    return projections - 2 * sqrt(projections * t), projections + 2 * t + 2 * sqrt(projections * t)


def exact_gap(
    projections: int,
    servers: int,
    check_noise: float,
    completeness: float,
    soundness: float,
    honest_norm: float = 1.0,
) -> Gap:
    """Exact threshold and gap.

    Parameters
    ----------
    projections, servers : int
        k and S.
    check_noise : float
        sigma_v, of each of the S servers.
    completeness, soundness : float
        The probabilities that a vector of `honest_norm` is rejected, and one of norm rho accepted.
    honest_norm : float, default 1.0
        The largest norm of an honest vector.

    Returns
    -------
    Gap
        Both conditions hold with equality.

    Notes
    -----
    The squared norm of the noisy projection of a vector of norm r is ``r^2 / k + S sigma_v^2`` times a
    chi-square variable with k degrees of freedom.

    Examples
    --------
    >>> gap = exact_gap(50, 2, 0.1, 0.01, 0.01)
    >>> round(gap.threshold, 9), round(gap.norm, 9)
    (1.745323938, 2.031515332)
    """
    noise = servers * check_noise**2
    square = (honest_norm**2 / projections + noise) * float(scipy.stats.chi2.isf(completeness, projections))
    low = float(scipy.stats.chi2.ppf(soundness, projections))
    return Gap(sqrt(square), sqrt(max(projections * (square / low - noise), 0.0)) if low > 0 else inf)


def printed_gap(
    projections: int,
    servers: int,
    check_noise: float,
    completeness: float,
    soundness: float,
    honest_norm: float = 1.0,
) -> Gap:
    """Theorems 13 and 14: the same with the bounds of Laurent and Massart; see `exact_gap`.

    Theorem 14 gives no bound for ``k <= 4 ln(1 / soundness)``: the norm then is infinite.

    Examples
    --------
    >>> gap = printed_gap(50, 2, 0.1, 0.01, 0.01)
    >>> round(gap.threshold, 9), round(gap.norm, 9)
    (1.892711103, 2.848636851)
    >>> printed_gap(10, 2, 0.1, 1e-3, 1e-3).norm
    inf
    """
    noise = servers * check_noise**2
    square = (honest_norm**2 / projections + noise) * laurent_massart(projections, completeness)[1]
    low = laurent_massart(projections, soundness)[0]
    return Gap(sqrt(square), sqrt(projections * (square / low - noise)) if low > 0 else inf)


def no_projection_gap(
    dimension: int,
    servers: int,
    check_noise: float,
    completeness: float,
    soundness: float,
    honest_norm: float = 1.0,
) -> Gap:
    """The gap of a check that reveals the whole vector with noise, by the noncentral chi-square law.

    Examples
    --------
    >>> from forcopt.models.secure_sum.accounting import printed_sigma
    >>> round(no_projection_gap(100, 2, printed_sigma(1.0, 0.5e-6), 1e-3, 1e-3).norm, 3)
    122.301
    """
    noise = servers * check_noise**2
    square = float(scipy.stats.ncx2.isf(completeness, dimension, honest_norm**2 / noise))

    def over(norm: float) -> float:
        return float(scipy.stats.ncx2.cdf(square, dimension, norm**2 / noise)) - soundness

    high = 2 * honest_norm
    while over(high) > 0:
        high *= 2
    return Gap(
        sqrt(square * noise),
        float(scipy.optimize.brentq(over, high / 2 if high > 2 * honest_norm else 0.0, high)),
    )


def noncentral(square: float, dimension: int, shift: float) -> float:
    """The noncentral chi-square law at a number; by the normal law of its root beyond `FAR`.

    Examples
    --------
    >>> near, far = (noncentral(shift - 2e4, 10, shift) for shift in (0.999e8, 1.001e8))
    >>> abs(near - far) < 1e-3
    True
    """
    if shift <= FAR:
        return float(scipy.stats.ncx2.cdf(square, dimension, shift))
    return float(ndtr(sqrt(square) - sqrt(shift + dimension - 1)))


def acceptance(
    norm: float, threshold: float, servers: int, check_noise: float, projections: int | None, dimension: int
) -> float:
    """The probability that a vector of this norm passes; `projections` is None without a projection."""
    noise = servers * check_noise**2
    if projections is None and noise > 0:
        return noncentral(threshold**2 / noise, dimension, norm**2 / noise)
    if projections is None or norm == noise == 0:
        return float(norm < threshold)
    return float(scipy.stats.chi2.cdf(threshold**2 / (norm**2 / projections + noise), projections))
