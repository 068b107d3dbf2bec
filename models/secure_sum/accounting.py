"""The privacy of shares and a noisy projection, and the norm check: closed forms of the paper, exact laws."""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy
from scipy.special import log_ndtr, ndtr

from forcopt.arrays import Array
from forcopt.models.secure_sum.tolerances import LAW_ENDS, LEAST_SHIFT, ROOT
from forcopt.privacy.losses import GaussianLoss, gaussian_shift
from forcopt.privacy.profile import Profile
from forcopt.privacy.tolerances import SMALLEST

NODES = 128


def gaussian_delta(epsilon: float, mu: Any) -> Array:
    """The delta of Gaussian mechanisms with parameters mu (Balle and Wang 2018, Theorem 8), elementwise."""
    mu = np.maximum(np.asarray(mu, dtype=float), LEAST_SHIFT)
    with np.errstate(over="ignore"):
        ratio = epsilon / mu
    delta = ndtr(mu / 2 - ratio) - np.exp(np.minimum(epsilon + log_ndtr(-mu / 2 - ratio), 0.0))
    return np.asarray(np.maximum(delta, 0.0))


def gaussian_loss(epsilon: float, delta: float) -> float:
    """The largest parameter mu of Gaussian privacy that keeps within (epsilon, delta).

    Examples
    --------
    >>> round(1 / gaussian_loss(1.0, 1e-6), 6)
    4.224679
    """
    return inf if delta >= 1 else gaussian_shift(epsilon, delta)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of a Gaussian mechanism with parameter mu; 0 for mu = 0."""
    if 0.4 * mu <= delta:  # at epsilon 0 delta is at most mu / sqrt(2 pi)
        return 0.0
    if mu > 1e100:
        return inf
    return Profile.of(GaussianLoss(mu)).epsilon(delta)


def printed_sigma(epsilon: float, delta: float) -> float:
    """The noise of Lemma 7 for a vector of norm 1, ``2 sqrt(ln(2 / delta)) / epsilon``.

    It is private for epsilon up to about 2.34 ln(2 / delta) only; the lemma states no such limit.

    Examples
    --------
    >>> round(printed_sigma(1.0, 1e-6), 6)
    7.618046
    """
    return 2 * sqrt(log(2 / delta)) / epsilon


def conditioning(delta: float, projections: Any) -> Any:
    """The factor c of Lemma 8, by which a random projection lengthens a vector but for probability delta.

    For one number of projections, or for each of several.

    Examples
    --------
    >>> round(float(conditioning(1e-3, 5)), 5)
    2.47263
    """
    tail = log(1 / delta) / projections
    return np.sqrt(1 + 2 * np.sqrt(tail) + 2 * tail)


def printed_check_noise(epsilon: float, delta: float, projections: Any, as_printed: bool = False) -> Any:
    """The noise of Theorem 15 for one server.

    Parameters
    ----------
    epsilon, delta : float
        Of the check.
    projections : int or Array
        k, or several.
    as_printed : bool, default False
        Keep ``c_delta``. The proof applies Corollary 11 with delta / 2, which needs ``c_(delta / 2)``.

    Examples
    --------
    >>> [round(float(printed_check_noise(1.0, 1e-6, 10, printed)), 6) for printed in (True, False)]
    [19.281303, 19.589291]
    """
    c = conditioning(delta if as_printed else delta / 2, projections)
    return c * printed_sigma(epsilon, delta / 2)


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    x, w = np.polynomial.legendre.leggauss(NODES)
    return x, w


@lru_cache(maxsize=4096)
def _law(projections: int) -> tuple[Array, Array]:
    """Nodes and weights for the mean over ``Q / k``, Q chi-square with k degrees of freedom.

    Gauss and Legendre's rule in the root of Q, whose density is smooth for every k.
    """
    low, high = np.sqrt(scipy.stats.chi2.isf([1 - LAW_ENDS[0], LAW_ENDS[1]], projections)).tolist()
    x, w = _rule()
    root = (high - low) / 2 * x + (high + low) / 2
    return root**2 / projections, (high - low) / 2 * w * scipy.stats.chi.pdf(root, projections)


def joint_delta(epsilon: float, projections: Any, share_loss: float, check_loss: Any) -> Array:
    """The exact delta of shares and check together, one number for each k.

    Parameters
    ----------
    epsilon : float
        At least 0.
    projections : int or array_like of int
        k, the rows of the random projection W, whose entries have variance 1 / k.
    share_loss : float
        The squared parameter mu of the shares that the coalition holds.
    check_loss : float or array_like
        The squared parameter mu of the check for a projection that keeps the vector's norm:
        ``1 / (h sigma_v**2)`` with h honest servers.

    Returns
    -------
    Array
        ``E D(epsilon; share_loss + check_loss Q / k)`` with Q chi-square with k degrees of freedom and D the
        profile of the Gaussian mechanism.

    Notes
    -----
    The coalition has W. Given W its view is Gaussian, and equivalent to the vector plus share noise and,
    independently, its projection plus check noise; squares of mu add up. The norm of the projection is
    ``sqrt(Q / k)`` times the vector's norm. Corollary 11 and Theorem 16 add two bounds instead.

    References
    ----------
    Talwar (2022), Lemma 8, Corollary 11 and Theorem 16, made exact.

    Examples
    --------
    >>> float(joint_delta(1.0, 55, 0.0, 1 / 4.5132197**2).round(9))
    1e-06
    """
    laws = [_law(int(k)) for k in np.atleast_1d(projections)]
    q, w = np.stack([a for a, _ in laws]), np.stack([b for _, b in laws])
    mu = np.sqrt(share_loss + np.asarray(check_loss, dtype=float).reshape(-1, 1) * q)
    delta = np.asarray((w * gaussian_delta(epsilon, mu)).sum(axis=1))
    return delta if np.ndim(projections) else delta[0]


def least_check_noise(
    epsilon: float, delta: float, projections: int, share_loss: float = 0.0, honest: int = 1
) -> float:
    """The least noise of each server's check that keeps shares and check together within (epsilon, delta).

    Parameters
    ----------
    epsilon, delta : float
        Of the whole protocol, for a vector of norm 1.
    projections : int
        k.
    share_loss : float, default 0.0
        See `joint_delta`.
    honest : int, default 1
        h, the number of servers outside the coalition.

    Returns
    -------
    float
        Infinite if the shares alone lose too much.

    Examples
    --------
    >>> round(least_check_noise(1.0, 2e-6, 20), 5)
    4.71046
    """
    if float(gaussian_delta(epsilon, sqrt(share_loss))) >= delta:
        return np.inf

    def over(log_loss: float) -> float:
        reached = float(joint_delta(epsilon, projections, share_loss, exp(log_loss)))
        return log(max(reached, SMALLEST)) - log(delta)

    high = 2 * log(gaussian_loss(epsilon, min(2 * delta, 0.999999))) + 1.0
    while over(high) < 0:
        high += 2.0
    low = high - 4.0
    while over(low) > 0:
        low -= 8.0
        if low < -300:
            return np.inf
    root = float(scipy.optimize.brentq(over, low, high, xtol=ROOT, rtol=ROOT))
    while over(root) > 0:  # on the safe side of rounding
        root -= ROOT
    return exp(-root / 2) / sqrt(honest)


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
    >>> from forcopt.models.secure_sum.accounting import exact_gap
    >>> gap = exact_gap(50, 2, 0.1, 0.01, 0.01)
    >>> round(gap.threshold, 3), round(gap.norm, 3)
    (1.745, 2.032)
    """

    threshold: float
    norm: float


def laurent_massart(projections: Any, tail: float) -> tuple[Any, Any]:
    """Theorem 10: bounds on the chi-square law that are exceeded with probability at most `tail` each."""
    t = log(1 / tail)
    return projections - 2 * np.sqrt(projections * t), projections + 2 * t + 2 * np.sqrt(projections * t)


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
    low = high / 2 if high > 2 * honest_norm else 0.0
    return Gap(sqrt(square * noise), float(scipy.optimize.brentq(over, low, high)))


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
