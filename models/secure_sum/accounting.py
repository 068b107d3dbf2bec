"""The privacy of shares and a noisy random projection: closed forms of the paper, and the exact integral."""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
import scipy
from scipy.special import log_ndtr, ndtr

from forcopt.arrays import Array
from forcopt.privacy.losses import GaussianLoss
from forcopt.privacy.profile import Profile

__all__ = [
    "conditioning",
    "gaussian_epsilon",
    "gaussian_loss",
    "joint_delta",
    "least_check_noise",
    "printed_check_noise",
    "printed_sigma",
]

NODES = 128


def gaussian_delta(epsilon: float, mu: Any) -> Array:
    """The delta of Gaussian mechanisms with parameters mu (Balle and Wang 2018, Theorem 8), elementwise."""
    mu = np.maximum(np.asarray(mu, dtype=float), 1e-150)
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
    if delta >= 1:
        return np.inf

    def over(log_mu: float) -> float:
        return max(Profile.of(GaussianLoss(exp(log_mu))).log_delta(epsilon), -1e6) - log(delta)

    high = 0.0
    while over(high) < 0:
        high += 1.0
    low = high - 1.0
    while over(low) > 0:
        low -= 1.0
    return exp(float(scipy.optimize.brentq(over, low, high, xtol=1e-13)))


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


def conditioning(delta: float, projections: int) -> float:
    """The factor c of Lemma 8, by which a random projection lengthens a vector but for probability delta.

    Examples
    --------
    >>> round(conditioning(1e-3, 5), 5)
    2.47263
    """
    tail = log(1 / delta) / projections
    return sqrt(1 + 2 * sqrt(tail) + 2 * tail)


def printed_check_noise(epsilon: float, delta: float, projections: int, as_printed: bool = False) -> float:
    """The noise of Theorem 15 for one server.

    Parameters
    ----------
    epsilon, delta : float
        Of the check.
    projections : int
        k.
    as_printed : bool, default False
        Keep ``c_delta``. The proof applies Corollary 11 with delta / 2, which needs ``c_(delta / 2)``.

    Examples
    --------
    >>> [round(printed_check_noise(1.0, 1e-6, 10, printed), 6) for printed in (True, False)]
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
    low, high = (
        sqrt(scipy.stats.chi2.isf(1 - 1e-15, projections)),
        sqrt(scipy.stats.chi2.isf(1e-30, projections)),
    )
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
    ks = np.atleast_1d(projections)
    laws = [_law(int(k)) for k in ks]
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
        return log(max(reached, 1e-300)) - log(delta)

    high = 2 * log(gaussian_loss(epsilon, min(2 * delta, 0.999999))) + 1.0
    while over(high) < 0:
        high += 2.0
    low = high - 4.0
    while over(low) > 0:
        low -= 8.0
        if low < -300:
            return np.inf
    root = float(scipy.optimize.brentq(over, low, high, xtol=1e-14, rtol=1e-14))
    while over(root) > 0:  # on the safe side of rounding
        root -= 1e-14
    return exp(-root / 2) / sqrt(honest)
