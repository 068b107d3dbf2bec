"""Designs of secure sums against all numbers of projections; shares against one semidefinite program."""

from __future__ import annotations

from math import floor, inf, log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from scipy.stats import chi2, ncx2, norm

from benchmarks.fuzz.case import ProblemCase
from forcopt.models import SecureSum

MOST = 60
"""Projections: few, so that the oracle can try all of them."""


def gaussian(epsilon: float, mu: np.ndarray) -> np.ndarray:
    """The delta of the Gaussian mechanism."""
    mu = np.maximum(mu, 1e-100)
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def joint(epsilon: float, share: float, check: np.ndarray, k: np.ndarray) -> np.ndarray:
    """The delta of shares and check by Simpson's rule in log Q; one number for each k."""
    low, high = np.log(chi2.ppf(1e-16, k)), np.log(chi2.isf(1e-25, k))
    at = np.linspace(0, 1, 1001)[:, None] * (high - low) + low
    weights = np.ones(1001)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    q = np.exp(at)
    values = np.exp(chi2.logpdf(q, k)) * q * gaussian(epsilon, np.sqrt(share + check * q / k))
    return (weights[:, None] * values).sum(axis=0) * (high - low) / 3000


def share_noise(p: SecureSum) -> float | None:
    """The largest deviation of the unit noise that fits into the bits; None if there is none."""
    assert p.step is not None and p.bits is not None
    largest = p.step * floor(1 / p.step + (1e-12 if p.whole else 0.5))
    found = []
    for i in (0, 1):
        mean = largest / p.servers if p.sharing == "even" else largest * (i == 0)
        limit = (2 ** (p.bits - 1) - ((p.servers - 1) / 2 if i == 0 else 0.5)) * p.step
        if mean >= limit:
            return None

        def over(sd: float, mean: float = mean, limit: float = limit) -> float:
            return log(norm.sf((limit - mean) / sd) + norm.sf((limit + mean) / sd)) - log(p.overflow)

        sd = brentq(over, (limit - mean) / 30, 1e3 * limit, xtol=1e-15 * limit, rtol=1e-14)
        found.append(sd / sqrt(p.servers - 1) if p.sharing == "talwar" and i == 0 else sd)
    sd = min(found)
    return None if p.corrupted != p.servers - 1 and sd < p.step else sd


def design(rng: np.random.Generator) -> ProblemCase:
    """A design with a given step and at most 60 projections."""
    servers = int(rng.integers(2, 6))
    corrupted = int(rng.integers(1, servers))
    p = SecureSum(
        servers=servers,
        dimension=int(rng.choice([1, 2, 10, 50, 300, 2000])),
        epsilon=float(np.exp(rng.uniform(log(0.1), log(20)))),
        delta=float(rng.choice([1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.4])),
        corrupted=corrupted,
        completeness=float(rng.choice([1e-9, 1e-3, 0.1, 0.45])),
        soundness=float(rng.choice([1e-9, 1e-3, 0.1, 0.45])),
        bits=int(rng.integers(2, 33)),
        overflow=float(rng.choice([1e-12, 1e-8, 1e-2, 0.2])),
        sharing="even" if rng.random() < 0.5 else "talwar",
        step=float(np.exp(rng.uniform(-9, 0.5))),
        whole=bool(rng.random() < 0.4),
        server_reals=(servers - 1) * int(rng.integers(1, MOST)),
    )
    assert p.step is not None and p.server_reals is not None
    honest, most = servers - corrupted, p.server_reals // (servers - 1)
    length = 1.0 if p.whole else 1 + p.step * sqrt(p.dimension) / 2
    sd = share_noise(p)
    if sd is None:
        return ProblemCase(p, "infeasible")
    unit = corrupted * (servers - 1) / servers**2 if p.sharing == "even" else 1.0
    share = unit * length**2 / (honest * sd**2)
    if abs(gaussian(p.epsilon, np.array(sqrt(share))) / p.delta - 1) < 1e-6:
        return ProblemCase(p, "unknown")
    if gaussian(p.epsilon, np.array(sqrt(share))) >= p.delta:
        return ProblemCase(p, "infeasible")
    k = np.arange(1, most + 1)
    low, high = np.full(most, -12.0), np.full(most, 20.0)  # logarithms of the noise
    for _ in range(45):
        middle = (low + high) / 2
        enough = joint(p.epsilon, share, length**2 / (honest * np.exp(2 * middle)), k) <= p.delta
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    noise = servers * np.exp(2 * high)
    squares = k * ((length**2 / k + noise) * chi2.isf(p.completeness, k) / chi2.ppf(p.soundness, k) - noise)
    best = float(np.sqrt(squares.min()))
    return ProblemCase(p, "optimal", min(best, plain_gap(p, share, length, honest)), skip=beyond_theorems(p))


def beyond_theorems(p: SecureSum) -> tuple[str, ...]:
    """Lemma 7 fails for a large epsilon: then its methods solve another problem."""
    return ("talwar", "exact-tails") if p.epsilon > 2.3 * log(2 / p.delta) else ()


def plain_gap(p: SecureSum, share: float, length: float, honest: int) -> float:
    """The gap without a projection, by the noncentral chi-square law."""
    assert p.server_reals is not None
    if p.dimension > p.server_reals // (p.servers - 1):
        return inf

    def over(mu: float) -> float:
        return log(max(float(gaussian(p.epsilon, np.array(mu))), 1e-300)) - log(p.delta)

    mu = brentq(over, 1e-4, 500.0, xtol=1e-15, rtol=1e-14)
    noise = p.servers * length**2 / (honest * (mu**2 - share))
    square = ncx2.isf(p.completeness, p.dimension, length**2 / noise)
    high = 2.0
    while ncx2.cdf(square, p.dimension, high**2 / noise) > p.soundness:
        high *= 2
    return float(
        brentq(lambda r: ncx2.cdf(square, p.dimension, r**2 / noise) - p.soundness, 0, high, rtol=1e-13)
    )


CAMPAIGNS = {"secure-sum": design}
