"""Privacy losses: the law of log(P(x) / Q(x)) of a pair of laws, as the tails under both.

A loss L of a pair (P, Q) gives ``P(L > t)`` and ``Q(L > t)``. The hockey-stick divergence is their
difference, ``delta(epsilon) = P(L > epsilon) - e^epsilon Q(L > epsilon)``, exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, expm1, inf, isfinite, isinf, log, log1p, sqrt, tanh
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr, ndtri

from forcopt.arrays import Array
from forcopt.privacy import tolerances as tol

if TYPE_CHECKING:
    from forcopt.privacy.noises.base import Noise


Neighbours = Literal["add_remove", "substitute"]
"""Between populations: one has a record more, or one record differs."""

SampleRelation = Literal["add_remove", "substitute", "either"]
"""Between samples, under which a mechanism is private: one of the two, or both."""


class Loss(ABC):
    """The privacy loss of a pair (P, Q).

    `spacing` is a number of which all finite losses are multiples, or None; `span` the range of the finite
    losses, but for tails of mass below 1e-60.
    """

    spacing: float | None = None

    @abstractmethod
    def tails(self, t: Array) -> tuple[Array, Array]:
        """``P(L > t)`` and ``Q(L > t)``, each of the shape of t."""

    @property
    @abstractmethod
    def span(self) -> tuple[float, float]:
        """The least and the largest finite loss."""

    @abstractmethod
    def reversed(self) -> Loss:
        """The loss of the pair (Q, P)."""

    @property
    def pure(self) -> float:
        """The largest loss; infinite if some outcome is possible under P alone, or losses are unbounded."""
        return inf

    @property
    def rho(self) -> float:
        """A zCDP parameter, the least one of one noise or table; infinite if none is known."""
        return self.pure * tanh(self.pure / 2) if isfinite(self.pure) else inf

    @property
    def mu(self) -> float | None:
        """A Gaussian-DP parameter, the least one of one noise or table; None if none is known."""
        return float(-2 * ndtri(1 / (1 + exp(self.pure)))) if self.pure < tol.EXPONENT else None

    @property
    def has_moments(self) -> bool:
        """Whether `log_moment` is there, and decays as a contour integral needs it."""
        return False

    def log_moment(self, z: Array) -> Array:
        """``log E_P[e^(z L)]`` for complex z."""
        raise NotImplementedError

    def log_tails(self, t: float) -> tuple[float, float]:
        """The logarithms of `tails`."""
        with np.errstate(divide="ignore"):
            above, other = np.log(self.tails(np.array([t])))
        return float(above[0]), float(other[0])

    def log_delta(self, epsilon: float) -> float:
        """The logarithm of delta(epsilon), exact; the difference is taken in logarithms."""
        above, other = self.log_tails(epsilon)
        gap = epsilon + other - above if above > -inf else 0.0
        return above + log(-expm1(gap)) if gap < 0 else -inf


@dataclass(frozen=True)
class GaussianLoss(Loss):
    """The loss between N(0, 1) and N(mu, 1), itself Gaussian (Dong, Roth and Su 2022)."""

    has_moments = True
    shift: float

    def tails(self, t: Array) -> tuple[Array, Array]:
        """See `Loss`."""
        m = self.shift
        return ndtr(m / 2 - t / m), ndtr(-m / 2 - t / m)

    @property
    def span(self) -> tuple[float, float]:
        """See `Loss`."""
        m = self.shift
        reach = -float(ndtri(tol.TINY)) * m
        return m * m / 2 - reach, m * m / 2 + reach

    def reversed(self) -> Loss:
        """See `Loss`."""
        return self

    @property
    def rho(self) -> float:
        """``mu^2 / 2``."""
        return self.shift**2 / 2

    @property
    def mu(self) -> float | None:
        """The shift."""
        return self.shift

    def log_moment(self, z: Array) -> Array:
        """See `Loss`."""
        return np.asarray(z * (z + 1) * self.shift**2 / 2)

    def log_tails(self, t: float) -> tuple[float, float]:
        """See `Loss`."""
        m = self.shift
        return float(log_ndtr(m / 2 - t / m)), float(log_ndtr(-m / 2 - t / m))

    def log_delta(self, epsilon: float) -> float:
        """See `Loss`; far out both tails share the factor ``e^(-a^2 / 2)``."""
        a = self.shift / 2 - epsilon / self.shift
        if a > 0 or not isfinite(a * a):
            return super().log_delta(epsilon)
        gap = float(erfcx(-a / sqrt(2)) - erfcx((self.shift - a) / sqrt(2))) / 2
        return log(gap) - a * a / 2 if gap > 0 else -inf


def gaussian_shift(epsilon: float, delta: float) -> float:
    """The mu of Gaussian differential privacy that gives exactly (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        Above 0 and below 1; the search is on its logarithm.

    Returns
    -------
    float
        The shift of a Gaussian of standard deviation 1; relative error about 1e-14.

    References
    ----------
    Balle and Wang (2018), Theorem 8; Dong, Roth and Su (2022), Corollary 2.13.

    Examples
    --------
    >>> round(gaussian_shift(1.0, 1e-5), 6)
    0.268051
    """
    target = log(delta)

    def over(log_mu: float) -> float:
        return max(GaussianLoss(exp(log_mu)).log_delta(epsilon), tol.LEAST_LOG_DELTA) - target

    low = high = log(epsilon / (1 + sqrt(-2 * target)))
    while over(low) > 0:
        low -= 1.0
    while over(high) < 0:
        high += 1.0
    return exp(float(scipy.optimize.brentq(over, low, high, xtol=1e-14)))


class AtomLoss(Loss):
    """A loss with finitely many values, and perhaps infinity.

    Parameters
    ----------
    p, q : array_like
        The probabilities of the outcomes under P and Q, shape ``(n,)``.
    spacing : float, optional
        A number of which all losses are multiples.
    """

    def __init__(self, p: Array, q: Array, spacing: float | None = None) -> None:
        p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
        self.pair, self.spacing = (p, q), spacing
        self.infinite = float(p[q <= 0].sum())
        both = (p > 0) & (q > 0)
        p, q = p[both], q[both]
        losses = np.log(p) - np.log(q)
        if spacing is not None:
            losses = np.round(losses / spacing) * spacing
        order = np.argsort(losses)
        self.losses = losses[order]
        self._p = np.append(np.cumsum(p[order][::-1])[::-1], 0.0) + self.infinite
        self._q = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)

    def tails(self, t: Array) -> tuple[Array, Array]:
        """See `Loss`. O(log n) each."""
        at = np.searchsorted(self.losses, t, side="right")
        return self._p[at], self._q[at]

    @property
    def span(self) -> tuple[float, float]:
        """See `Loss`."""
        return (float(self.losses[0]), float(self.losses[-1])) if len(self.losses) else (0.0, 0.0)

    def atoms_up_to(self, cap: float) -> tuple[Array, Array]:
        """The losses up to `cap`, and the mass of each under P."""
        at = int(np.searchsorted(self.losses, cap, side="right"))
        return self.losses[:at], (self._p[:-1] - self._p[1:])[:at]

    def reversed(self) -> Loss:
        """See `Loss`."""
        return AtomLoss(self.pair[1], self.pair[0], self.spacing)

    @property
    def pure(self) -> float:
        """See `Loss`."""
        return inf if self.infinite > 0 else max(0.0, self.span[1])

    @cached_property
    def rho(self) -> float:
        """See `Loss`: the largest Renyi divergence over its order, from order 1 up."""
        if not 0 < self.pure < inf:
            return self.pure
        losses, mass = self.atoms_up_to(inf)

        def negative(log_excess: float) -> float:
            excess = exp(log_excess)
            tilt = excess * losses
            top = max(0.0, float(tilt[-1]))
            mean = top + log(mass @ np.exp(tilt - top)) if top > 1 else log1p(mass @ np.expm1(tilt))
            return float(-mean / (excess * (1 + excess)))

        grid = np.linspace(-7.0, 7.0, 57) - log(min(self.pure, 1.0)) / 2
        best = int(np.argmin([negative(x) for x in grid]))
        ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        found = scipy.optimize.minimize_scalar(negative, bounds=ends, options={"xatol": 1e-8})
        return min(super().rho, max(-float(found.fun), float(mass @ losses)))

    @property
    def mu(self) -> float | None:
        """See `Loss`: a trade-off function of straight pieces lies above a convex one if its corners do."""
        back = AtomLoss(self.pair[1], self.pair[0])
        if self.infinite > 0 or back.infinite > 0:
            return None
        tails = (self._p, back._q), (self._q, back._p)  # above each loss, and up to it
        levels = [
            np.where(above[1:-1] < 0.5, ndtri(above[1:-1]), -ndtri(below[-2:0:-1])) for above, below in tails
        ]
        return float((levels[0] - levels[1]).max(initial=0.0))


def symmetric_loss(one: AtomLoss) -> AtomLoss:
    """The loss whose delta, at each epsilon, is the larger one of a pair (P, Q) and of (Q, P).

    It belongs to a pair itself, since the maximum of two convex functions of e^epsilon is convex (Zhu, Dong
    and Wang 2022, Proposition 8), and it is symmetric. Its compositions dominate all
    compositions of the two pairs, as when one person moves one number up and another number down. A loss that
    is symmetric up to rounding is returned as it is. O(n log n).
    """
    both = (one, AtomLoss(one.pair[1], one.pair[0], one.spacing))
    if len(one.losses) == len(both[1].losses) and all(
        np.allclose(getattr(one, name), getattr(both[1], name), rtol=tol.ROUNDING, atol=tol.ZERO_LOSS)
        for name in ("losses", "_p", "_q", "infinite")
    ):
        return one
    cuts = np.unique(np.concatenate([loss.losses for loss in both]))
    cuts = cuts[cuts > tol.ZERO_LOSS]  # at 0 the curves meet; below, symmetry determines them
    tails = [loss.tails(cuts) for loss in both]
    with np.errstate(over="ignore", invalid="ignore"):
        deltas = [p - np.where(q > 0, np.exp(cuts) * q, 0.0) for p, q in tails]
    first = deltas[0] >= deltas[1] - tol.FEW_ROUNDINGS * deltas[0]
    p, q, below = [], [], [loss.tails(np.nextafter(cuts, -inf)) for loss in both]
    for i in range(len(cuts)):
        at = 0 if first[i] else 1
        p.append(float(below[at][0][i] - tails[at][0][i]))
        q.append(float(below[at][1][i] - tails[at][1][i]))
        if i + 1 < len(cuts) and first[i] != first[i + 1]:  # the curves cross between: an atom is there
            mass = [tails[at][k][i] - tails[1 - at][k][i] for k in (0, 1)]
            p.append(float(max(mass[0], 0.0)))
            q.append(float(max(mass[1], 0.0)))
    at = int(both[1].infinite > both[0].infinite)
    beyond = both[at].infinite
    rest = max(0.0, 1 - sum(p) - sum(q) - beyond)  # outcomes without loss
    return AtomLoss(np.array([*p, *q, rest, beyond, 0.0]), np.array([*q, *p, rest, 0.0, beyond]))


def pure_loss(epsilon: float, delta: float = 0.0) -> Loss:
    """The loss of the pair that dominates every (epsilon, delta)-private mechanism.

    It is randomized response, except for the mass delta (Kairouz, Oh and Viswanath 2015).
    """
    if delta == 0:
        return BinomialLoss(epsilon, 1)
    truth, lie = 1 / (1 + exp(-epsilon)), exp(-epsilon) / (1 + exp(-epsilon))
    keep = 1 - delta
    p = np.array([delta, keep * truth, keep * lie, 0.0])
    return AtomLoss(p, p[[3, 2, 1, 0]], epsilon)


@dataclass(frozen=True)
class BinomialLoss(Loss):
    """The loss of `count` randomized responses of the same epsilon (Kairouz, Oh and Viswanath 2015).

    With j lies it is ``(count - 2 j) epsilon``, and j is binomial.
    """

    each: float
    count: int

    @property
    def spacing(self) -> float:  # type: ignore[override]
        """The loss of one."""
        return self.each

    def tails(self, t: Array) -> tuple[Array, Array]:
        """See `Loss`."""
        with np.errstate(over="ignore"):
            most = np.ceil((self.count - np.asarray(t) / self.each) / 2) - 1  # lies, for a loss above t
        lie = 1 / (1 + exp(self.each)) if self.each < tol.EXPONENT else exp(-min(self.each, 740))
        # Under Q all others lie; the truth itself would round to 1.
        return scipy.stats.binom.cdf(most, self.count, lie), scipy.stats.binom.sf(
            self.count - most - 1, self.count, lie
        )

    def log_tails(self, t: float) -> tuple[float, float]:
        """See `Loss`."""
        logs = list(super().log_tails(t))
        most = ceil((self.count - t / self.each) / 2) - 1  # lies
        lie = 1 / (1 + exp(min(self.each, tol.EXPONENT)))
        lies = np.arange(max(0, most - 5000), most + 1)  # in a tail that underflows, fewer do not count
        for k, chance in enumerate((lie, 1 - lie)):
            if logs[k] < -650 and len(lies):
                logs[k] = float(logsumexp(scipy.stats.binom.logpmf(lies, self.count, chance)))
        return logs[0], logs[1]

    @property
    def span(self) -> tuple[float, float]:
        """See `Loss`."""
        return -self.count * self.each, self.count * self.each

    def reversed(self) -> Loss:
        """See `Loss`."""
        return self

    @property
    def pure(self) -> float:
        """See `Loss`."""
        return self.count * self.each

    @property
    def rho(self) -> float:
        """See `Loss`: every part is ``epsilon tanh(epsilon / 2)``-zCDP."""
        return self.count * self.each * tanh(self.each / 2)

    @property
    def mu(self) -> float | None:
        """See `Loss`: the parts compose as Gaussians."""
        one = -2 * float(ndtri(1 / (1 + exp(self.each)))) if self.each < tol.EXPONENT else inf
        return sqrt(self.count) * one if isfinite(one) else None

    def table(self) -> AtomLoss:
        """The same loss by its outcomes, the numbers of lies."""
        lies, lie = np.arange(self.count + 1), 1 / (1 + exp(min(self.each, tol.EXPONENT)))
        return AtomLoss(
            scipy.stats.binom.pmf(lies, self.count, lie),
            scipy.stats.binom.pmf(self.count - lies, self.count, lie),
        )

    def log_delta(self, epsilon: float) -> float:
        """See `Loss`."""
        if self.count == 1 and abs(epsilon) < self.each:  # the tails' difference, without cancellation
            return log(-expm1(epsilon - self.each)) - float(np.log1p(exp(-self.each)))
        return super().log_delta(epsilon)


MOST_OUTCOMES = 20_000
"""Of a composition that is enumerated."""


def enumerated(parts: Sequence[tuple[Loss, int]]) -> AtomLoss | None:
    """The loss of a composition of tables and randomized responses with few outcomes together."""
    tables, outcomes = [], 1
    for loss, count in parts:
        table = loss.table() if isinstance(loss, BinomialLoss) else loss
        if not isinstance(table, AtomLoss):
            return None
        outcomes *= max(2, len(table.pair[0])) ** min(count, 20)
        if outcomes > MOST_OUTCOMES:
            return None
        tables += [table.pair] * count
    p, q = np.ones(1), np.ones(1)
    for one, other in tables:
        p, q = np.outer(p, one).ravel(), np.outer(q, other).ravel()
    return AtomLoss(p, q)


@dataclass(frozen=True)
class NoiseLoss(Loss):
    """The loss between a noise and the same noise moved by `shift`, for a log-concave noise.

    The likelihood ratio then is monotone, so that ``L > t`` is a half-line (``noise.crossing(t, shift)``).
    """

    noise: Noise
    shift: float
    mirrored: bool = False

    @property
    def spacing(self) -> float | None:  # type: ignore[override]
        """See `Noise`."""
        return self.noise.loss_spacing(self.shift)

    def tails(self, t: Array) -> tuple[Array, Array]:
        """See `Loss`."""
        c = self.noise.crossing(np.asarray(t, dtype=float), self.shift)
        return self.noise.cdf(c), self.noise.cdf(c - self.shift)

    def log_tails(self, t: float) -> tuple[float, float]:
        """See `Loss`."""
        c = self.noise.crossing(np.array([t]), self.shift)
        above, other = self.noise.log_cdf(np.concatenate([c, c - self.shift]))
        return float(above), float(other)

    @property
    def span(self) -> tuple[float, float]:
        """See `Loss`."""
        return self.noise.loss_span(self.shift)

    def reversed(self) -> Loss:
        """See `Loss`; the noise is even, so that it is the same."""
        return self

    @property
    def pure(self) -> float:
        """See `Loss`."""
        return self.noise.pure(self.shift)

    @property
    def rho(self) -> float:
        """See `Loss`."""
        return min(self.noise.rho(self.shift), super().rho)

    @property
    def mu(self) -> float | None:
        """See `Loss`."""
        known = self.noise.mu(self.shift)
        return super().mu if known is None else known

    @property
    def has_moments(self) -> bool:
        """See `Noise`."""
        return self.noise.has_moments

    def log_moment(self, z: Array) -> Array:
        """See `Loss`."""
        return self.noise.log_moment(z, self.shift)


def sampled_loss(base: Loss, rate: float, added: bool = False) -> Loss:
    """The loss of a sampled mechanism, see `SampledLoss`; a table stays a table."""
    if not isinstance(base, AtomLoss):
        return SampledLoss(base, rate, added)
    p, q = base.pair
    return AtomLoss(p, (1 - rate) * p + rate * q) if added else AtomLoss((1 - rate) * q + rate * p, q)


def _mixed(rate: float, loss: float) -> float:
    """``log(1 - rate + rate e^loss)``."""
    return log1p(rate * expm1(loss)) if loss < tol.EXPONENT else loss + log(rate)


@dataclass(frozen=True)
class SampledLoss(Loss):
    """The loss if a record takes part with probability `rate` only: (1 - rate) Q + rate P against Q.

    ``added=True`` gives the other direction, P against (1 - rate) P + rate Q. A sampled loss is a monotone
    function of the full one, ``log(1 - rate + rate e^L)``.
    """

    base: Loss
    rate: float
    added: bool = False

    def tails(self, t: Array) -> tuple[Array, Array]:
        """See `Loss`."""
        t = np.asarray(t, dtype=float)
        if self.added:  # {-log(1 - rate + rate e^-L) > t}, with L the loss of P against Q
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                inner = (np.exp(-np.minimum(t, tol.EXPONENT)) - 1 + self.rate) / self.rate
                at = np.where(inner > 0, -np.log(np.where(inner > 0, inner, 1.0)), inf)
            p, q = self.base.tails(np.minimum(at, tol.FAR))
            none = t >= -np.log1p(-self.rate) if self.rate < 1 else np.zeros(t.shape, dtype=bool)
            p, q = np.where(none, 0.0, p), np.where(none, 0.0, q)
            return p, (1 - self.rate) * p + self.rate * q
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inner = np.expm1(np.minimum(t, tol.EXPONENT)) / self.rate + 1
            at = np.where(inner > 0, np.log(np.where(inner > 0, inner, 1.0)), -inf)
        p, q = self.base.tails(np.maximum(at, -tol.FAR))
        everything = inner <= 0
        p, q = np.where(everything, 1.0, p), np.where(everything, 1.0, q)
        return (1 - self.rate) * q + self.rate * p, q

    def log_delta(self, epsilon: float) -> float:
        """See `Loss`: a multiple of the base's delta at a larger epsilon (Balle et al. 2018)."""
        more = log(self.rate)
        if not self.added:
            if epsilon > tol.EXPONENT:
                return more + self.base.log_delta(epsilon - more)
            return more + self.base.log_delta(log1p(expm1(epsilon) / self.rate))
        excess = epsilon + log1p(-self.rate) if self.rate < 1 else -inf
        if excess >= 0:
            return -inf
        keep = -expm1(excess)
        return log(keep) + self.base.log_delta(epsilon + more - log(keep))

    @property
    def span(self) -> tuple[float, float]:
        """See `Loss`."""
        if self.rate == 1:
            return self.base.span
        low, high = self.base.span  # an infinite loss of the base is a finite one here
        if self.added:
            low, high = -(inf if isinf(self.base.pure) else high), -low
        elif isinf(self.base.reversed().pure):
            low = -inf
        low, high = _mixed(self.rate, low), _mixed(self.rate, high)
        low, high = low - tol.ROUNDING * abs(low), high + tol.ROUNDING * abs(high)  # so that atoms are within
        return (-high, -low) if self.added else (low, high)

    def reversed(self) -> Loss:
        """See `Loss`."""
        return SampledLoss(self.base.reversed(), self.rate, not self.added)

    @property
    def pure(self) -> float:
        """See `Loss`; attained by the removing direction."""
        base = self.base.pure
        if self.added:
            most = -float(np.log1p(-self.rate)) if self.rate < 1 else inf
            return min(most, self.span[1]) if isfinite(base) else most
        return _mixed(self.rate, base)


@dataclass(frozen=True)
class SubstitutedLoss(Loss):
    """The loss of the pair that dominates a mechanism on a simple random sample, under a substitution.

    At epsilon >= 0 it has the hockey-stick divergence of (1 - rate) Q + rate P against Q, and below 0 the
    divergence of P against (1 - rate) P + rate Q (Zhu, Dong and Wang 2022, Proposition 30).
    """

    base: Loss
    rate: float

    def tails(self, t: Array) -> tuple[Array, Array]:
        """See `Loss`."""
        t = np.asarray(t, dtype=float)
        high, low = (SampledLoss(self.base, self.rate, added).tails(t) for added in (False, True))
        return np.where(t >= 0, high[0], low[0]), np.where(t >= 0, high[1], low[1])

    def log_delta(self, epsilon: float) -> float:
        """See `Loss`; for an epsilon from 0 up."""
        return SampledLoss(self.base, self.rate).log_delta(epsilon)

    @property
    def span(self) -> tuple[float, float]:
        """See `Loss`."""
        low = SampledLoss(self.base, self.rate, added=True).span[0]
        return min(0.0, low), max(0.0, SampledLoss(self.base, self.rate).span[1])

    def reversed(self) -> Loss:
        """See `Loss`."""
        return SubstitutedLoss(self.base.reversed(), self.rate)

    @property
    def pure(self) -> float:
        """See `Loss`."""
        return SampledLoss(self.base, self.rate).pure
