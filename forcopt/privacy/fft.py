"""The privacy profile of a composition by fast Fourier transforms, with certified brackets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, log2, nextafter, sqrt
from typing import NamedTuple

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.privacy import tolerances as tol
from forcopt.privacy.losses import Loss

Part = tuple[Loss, int]
Parts = Sequence[Part]
Span = tuple[float, float]

LARGEST = 2**22
"""The most lattice points of a transform."""

CEILING = 600.0
"""Losses above count as infinite, below the negative as none: e^600 is still a float."""


_SHARE = 1e-3
"""By how much, relatively, the first lattice may add to the variance."""

_FEW = 4
"""Losses whose largest value the lattice meets; of more, each would take a lattice of its own."""

_FINE = 2**13
"""The least step that is taken to meet the atoms of a loss, as a part of the standard deviation."""


class Bracket(NamedTuple):
    """A certified interval that holds delta.

    Attributes
    ----------
    lower, upper : float
        From 0 to 1.

    Examples
    --------
    >>> Bracket(0.25, 0.5).upper
    0.5
    """

    lower: float
    upper: float


def bracket(parts: Parts, epsilon: float, rtol: float = 5e-3, points: int = LARGEST) -> Bracket:
    """Bracket delta(epsilon) of a composition.

    Parameters
    ----------
    parts : sequence of (Loss, int)
        The losses and how often each occurs.
    epsilon : float
        The privacy loss.
    rtol : float
        The lattice is refined until the bracket is narrower than this, relatively.
    points : int
        The most lattice points.

    Returns
    -------
    Bracket
        Lower and upper bounds that hold whatever the lattice. They include the error of the floating-point
        transform (its standard bound in the 2-norm), and of the mass outside of the window (Chernoff).

    Notes
    -----
    Both ends read one law. Upper: the mass of a lattice cell goes to both its ends so that its probabilities
    under P *and* under Q are kept, which only makes the pair easier to distinguish ("connect the dots",
    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022); the error is of second order. Lower: `_Rounded`
    bounds that error. The law is tilted so that the mean of the sum is epsilon before it is transformed,
    which makes the error relative to delta.
    """
    found = _Composition(tuple(parts), points)
    best = Bracket(0.0, 1.0)
    while True:
        lower, upper = found.rounded.ends(epsilon)
        best = Bracket(max(best.lower, exp(min(lower, upper))), min(best.upper, exp(upper)))
        if best.upper - best.lower <= rtol * best.upper or best.upper < tol.SMALLEST:
            return best
        if not found.refine(lower, upper, rtol):
            return best


@lru_cache(maxsize=256)
def log_upper_bound(parts: tuple[Part, ...], epsilon: float, limit: float = -inf) -> float:
    """The logarithm of the upper end of `bracket`, refined to `WIDEST`, or until it settles.

    The refinement ends where the bracket is on one side of `limit`, the logarithm of a delta.
    """
    if limit > -inf and (rough := _chernoff(parts, epsilon)) <= limit:
        return rough
    found = _Composition(parts, LARGEST)
    while True:
        lower, upper = found.rounded.ends(epsilon)
        if upper <= limit or lower > limit > -inf or found.final(epsilon, lower, upper):
            return upper


def _chernoff(parts: Parts, epsilon: float) -> float:
    """A bound on log delta: ``(1 - e^(epsilon - s))_+`` is at most ``e^(theta (s - epsilon))``.

    It takes no transform, and the moments of each loss are kept: most spends of a ledger need no more.
    """
    known = [(count, *_cumulants(loss)) for loss, count in parts]
    most: Array = sum((count * logs for count, logs, _ in known), -_TILTS * epsilon)
    return float(np.logaddexp(most.min(), _log(sum(count * beyond for count, _, beyond in known)))) + tol.FLAT


_TILTS, _STEPS = 2.0 ** np.arange(-1, 14, 0.5), 2**9
"""The powers of the moments in `_cumulants`, and the steps of its lattices."""


@lru_cache(maxsize=1024)
def _cumulants(loss: Loss) -> tuple[Array, float]:
    """Bounds on the cumulants at `_TILTS` of the losses within a span, and the chance of larger ones."""
    span = _shape(loss)[0]
    one = _lattice(loss, span, h := max(span[1] - span[0], tol.BESIDE_ATOMS) / _STEPS)
    points = h * (one.first + np.arange(len(one.logs)))
    return np.logaddexp.reduce(one.logs + _TILTS[:, None] * points, axis=1), one.beyond


@lru_cache(maxsize=256)
def least_epsilon(parts: tuple[Part, ...], delta: float, least: float, most: float) -> float:
    """The least epsilon from `least` to `most` at which the upper end of `bracket` is at most delta.

    The root is found on a coarse lattice, and again near it on each finer one.
    """
    found = _Composition(parts, LARGEST)
    target, before = nextafter(log(delta), -inf), inf  # so that its exponential is at most delta
    found.reach(target)

    def over(epsilon: float) -> float:
        return max(found.rounded.upper(epsilon), tol.LEAST_LOG_DELTA) - target

    root, step, last = least, min(1.0, most), inf
    while True:
        root = first_below(over, max(root - step, least), step, (least, most))
        if root in (least, inf):
            return root
        narrow, was, last = min(WIDEST, tol.NEXT_ROOT * root), last, over(root)
        kept = before - root <= tol.SETTLED_ROOT / WIDEST * narrow and (was <= 0 or was - last <= tol.FLAT)
        if kept or found.rounded.ends(root - narrow)[0] > target:
            return root
        if not found.refine(*found.rounded.ends(root), max(over(root - narrow), tol.SMALLEST)):
            return root
        before, step = root, tol.NEXT_ROOT * (1 + root)


def first_below(over: Callable[[float], float], start: float, step: float, ends: Span) -> float:
    """Where a falling function is 0, from `start` on in both directions; its least argument not above 0.

    The last end if it is positive up to there; infinity if it is at `FARTHEST`.
    """
    low = high = start
    while over(high) > 0 and high < ends[1]:
        if high > FARTHEST:
            return inf
        low, high, step = high, min(high + step, ends[1]), 2 * step
    if over(high) > 0:
        return high
    while over(low) <= 0:
        if low == ends[0]:
            return low
        low, high, step = max(low - step, ends[0]), low, 2 * step
    while over(high) == 0 and high - low > tol.ROUNDING * (1 + high):  # delta is flat: find where it begins
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) > 0 else (low, middle)
    root = float(scipy.optimize.brentq(over, low, high, xtol=tol.NEAR_ROOT, rtol=tol.ROUNDING))
    bump = tol.ROUNDING
    while over(root) > 0:  # on the safe side of rounding
        root, bump = root + bump * (1 + root), 2 * bump
    return root


FARTHEST = 1e5
"""Nats: no larger epsilon is searched for."""

WIDEST = 5e-5
"""Nats: how far below its upper end a bracket of an epsilon may reach."""


class _Composition:
    """The losses of parts, on one lattice that becomes finer; for one question, so that equal ones agree."""

    def __init__(self, parts: tuple[Part, ...], points: int) -> None:
        self.parts, self.points = parts, points
        shapes = [_shape(loss) for loss, _ in parts]
        self.spans = [span for span, _ in shapes]
        draws = [(k, d) for (_, k), (_, d) in zip(parts, shapes, strict=True)]
        spread = sqrt(sum(k * d**2 for k, d in draws))
        # A step h far above the deviation d of k draws adds about k d h to the variance: take a small share.
        finest = min((max(d / 4, _SHARE * spread**2 / (k * d)) for k, d in draws if d > 0), default=1.0)
        ends = zip(self.spans, parts, strict=True)
        self.widest = [(low, max(high, min(loss.span[1], CEILING))) for (low, high), (loss, _) in ends]
        self.spread, self.last = spread, inf
        h = min(finest, max(spread, min(d for _, d in shapes)) / 64) if spread > 0 else finest
        self.least = max(24 * spread, *(high - low for low, high in self.spans)) / points
        self._on(max(2 ** (floor(2 * log2(h)) / 2), self.least))

    def _on(self, h: float) -> None:
        h = _aligned(h, [loss for loss, _ in self.parts], self.spans, self.spread / _FINE)
        self.rounded = _rounded(self.parts, tuple(self.spans), h, self.points)

    def reach(self, upper: float) -> bool:
        """Take the losses far out if their mass, counted as infinite, is a part of this delta; whether so."""
        if self.rounded.beyond < upper + log(tol.AS_INFINITE) or self.spans == self.widest:
            return False
        self.spans = self.widest
        self._on(self.rounded.h)
        return True

    def refine(self, lower: float, upper: float, rtol: float) -> bool:
        """Make a bracket with these ends as narrow as `rtol`; False if that takes too many points."""
        if self.reach(upper):
            self.last = inf  # on the same lattice an equal end says nothing
            return True
        # Factors of root 2, so that questions share lattices.
        now, wanted = self.rounded.h, 1.1 * sqrt(min(256.0, (upper - lower) / rtol))
        h = max(now * 2 ** (-ceil(2 * log2(min(16.0, max(2.0, wanted)))) / 2), self.least)
        if h > now / 1.5:
            return False
        self._on(h)
        return True

    def final(self, epsilon: float, lower: float, upper: float) -> bool:
        """Whether the upper end is as near to delta, and its epsilon, as it is told; else it is refined.

        It is as near to an epsilon as `least_epsilon`, so that the delta of its root is kept within `WIDEST`.
        """
        low, high = self.rounded.ends(epsilon - WIDEST)
        settled = self.last - upper <= tol.SETTLED_ROOT / WIDEST * (high - upper)
        self.last = upper
        if upper == -inf or upper - lower <= tol.FLAT or low > upper or settled:
            return True
        return not self.refine(lower, upper, max(high - upper, tol.SMALLEST))


@lru_cache(maxsize=256)
def _shape(loss: Loss) -> tuple[Span, float]:
    """The span of the finite losses, and the standard deviation within."""
    span = _finite_span(loss)
    return span, _deviation(loss, span)


def _finite_span(loss: Loss) -> Span:
    """Where the finite losses are, but for mass of 1e-20 at either end."""
    low, high = loss.span
    low, high = max(low, -CEILING), min(high, CEILING)
    grid = np.linspace(low, high, 4001)
    above = loss.tails(grid)[0]
    inside = np.flatnonzero((above - above[-1] > tol.BEYOND_SPAN) & (1 - above > tol.BEYOND_SPAN))
    if loss.spacing is not None or not len(inside):
        return low, high
    return float(grid[max(inside[0] - 1, 0)]), float(grid[min(inside[-1] + 1, len(grid) - 1)])


def _deviation(loss: Loss, span: Span) -> float:
    """The standard deviation of the loss under P, roughly."""
    beyond = max(1e-3 * (span[1] - span[0]), tol.BESIDE_ATOMS)  # so that atoms at the ends are within
    edges = np.linspace(span[0] - beyond, span[1] + beyond, 4001)
    for _ in range(3):  # zoom in on where the mass is
        p, _ = loss.tails(edges)
        mass = np.clip(p[:-1] - p[1:], 0, None)
        middle = (edges[:-1] + edges[1:]) / 2
        total = mass.sum()
        if total <= 0:
            return float(edges[1] - edges[0])
        mean = float(mass @ middle) / total
        sd = sqrt(float(mass @ (middle - mean) ** 2) / total)
        if sd > 20 * (edges[1] - edges[0]):
            break
        reach = max(30 * sd, 30 * (edges[1] - edges[0]))
        edges = np.linspace(mean - reach, mean + reach, 4001)
    return sd


def _aligned(h: float, losses: list[Loss], spans: list[Span], finest: float) -> float:
    """A step of at most h that divides the coarsest spacing of atoms, or else the largest of a few losses.

    Where this is below both h and `finest`, or the losses are many, h itself.
    """
    anchors = [loss.spacing for loss in losses if loss.spacing is not None]
    anchor = max(anchors or [high for _, high in spans if len(spans) <= _FEW], default=0.0)
    return anchor / ceil(anchor / h) if anchor > min(h, finest) else h


class _Lattice(NamedTuple):
    """A loss as a subprobability on the points ``(first + i) h``, by its logarithms.

    And the chances that it is below all points, above all points, and infinite; the least and the largest
    point; whether the loss has no other values.
    """

    first: int
    logs: Array
    below: float
    beyond: float
    infinite: float
    ends: Span
    exact: bool


def _lattice(loss: Loss, span: Span, h: float) -> _Lattice:
    first = int(np.floor(span[0] / h + tol.ON_LATTICE)) - 1
    last = int(np.ceil(span[1] / h - tol.ON_LATTICE)) + 1
    edges = np.arange(first, last + 1) * h
    p, q = loss.tails(np.append(edges, tol.FAR))
    a, b = np.maximum(p[:-2] - p[1:-1], 0.0), np.maximum(q[:-2] - q[1:-1], 0.0)
    right = np.clip((a - b * np.exp(edges[:-1])) / -expm1(-h), 0.0, a)
    mass = np.append(0.0, right)
    mass[:-1] += a - right
    mass[0] += 1 - p[0]
    steps = (loss.spacing or 0.0) / h
    exact = round(steps) > 0 and abs(steps - round(steps)) <= tol.FEW_ROUNDINGS * steps
    inside = np.flatnonzero(mass > 0)
    start, stop = (inside[0], inside[-1] + 1) if len(inside) else (0, 1)
    with np.errstate(divide="ignore"):
        logs = np.log(mass[start:stop])
    chances = float(1 - p[0]), float(p[-2]), float(p[-1])
    return _Lattice(first + int(start), logs, *chances, (float(edges[0]), float(edges[-1])), exact)


_kept_lattice = lru_cache(maxsize=1024)(_lattice)

_KEPT = 2**13
"""Lattices with fewer points are kept: each spend of a ledger reads those of all releases before."""


class _Rounded:
    """Losses on a lattice: the mass of each cell lies on its two ends; and what that does to delta.

    Let T be the sum of the finite losses, U the sum of those on the lattice, delta_T and delta_U theirs, and
    c the logarithm of ``sinh(w) / w``, below ``w^2 / 6``. With n draws off the lattice, ``r = h / (1 -
    e^-h)`` and ``g = r h^2 / 8``, for each w up to 1/2

        delta_T(epsilon) >= delta_U(epsilon + c) - (w / 4 + n g / (2 w)) 4/3 P(|U - epsilon| < reach),
        reach = w + h + n g + h sqrt(n).

    Proof. Average over a uniform shift of epsilon within w. A shift moves the kink of
    ``(1 - e^(epsilon - s))_+``, so that the average of delta_T exceeds delta_T by at most
    ``w / 4 P(|T - epsilon| < w)``. Put one draw after the other on the lattice. One at a distance y above the
    lower end of its cell raises the average by at most ``(t h - y) / (2 w) <= g / (2 w)``, with
    ``t = (1 - e^-y) / (1 - e^-h)`` the chance of the upper end, and only if the sum is within w + h of
    epsilon. The draws that are not yet on the lattice move the sum by n g at most in the mean, and by a
    variance of ``n h^2 / 4`` at most, given where they were: by Chebyshev's inequality the chance to be near
    epsilon is at most 4/3 that of U to be within reach. Last, delta_U is convex in e^epsilon, so that its
    average is at least its value at the mean of e^epsilon.
    """

    def __init__(self, parts: Parts, spans: Sequence[Span], h: float, points: int = LARGEST) -> None:
        self.h, self.points, self.inexact, self.slack = h, points, 0, 0.0
        self.laws: dict[float, _Law] = {}
        self.low: list[Span] = []
        lattices, finite, certain = [], 0.0, 0.0
        for (loss, count), span in zip(parts, spans, strict=True):
            one = (_kept_lattice if span[1] - span[0] < _KEPT * h else _lattice)(loss, span, h)
            lattices.append(one)
            self.low.append((count * one.below, one.ends[0]))
            finite += count * log1p(-one.beyond) if one.beyond < 1 else -inf
            certain += count * log1p(-one.infinite) if one.infinite < 1 else -inf
            self.inexact += count * (not one.exact)
            self.slack += count * tol.FEW_ROUNDINGS * max(1.0, *np.abs(one.ends))
        self.moments = _Moments(lattices, [count for _, count in parts], h)
        with np.errstate(divide="ignore"):
            self.beyond, self.infinite = float(np.log(-expm1(finite))), float(np.log(-expm1(certain)))

    def law(self, epsilon: float) -> _Law:
        """The law of the sum, tilted to about epsilon; one for all that are near, whatever is asked first."""
        step = sqrt(self.moments.at(0.0)[1]) / 2
        for grid in (step, step / 4, step / 16, 0.0):
            theta = self.moments.tilt(round(epsilon / grid) * grid if grid > 0 else epsilon)
            centre, variance, _ = self.moments.at(theta)
            if abs(epsilon - centre) <= sqrt(variance) / 2 or (theta == 0 and epsilon < centre):
                break
        law = self.laws.get(theta) or _Law(self.moments, self.h, theta, self.points)
        self.laws = {**dict([*self.laws.items()][-1:]), theta: law}
        return law

    def upper(self, epsilon: float) -> float:
        """The logarithm of a bound on delta from above."""
        front, value, error = self.law(epsilon).hockey_stick(epsilon)
        return min(0.0, float(np.logaddexp(front + _log(max(0.0, value) + error), self.beyond)))

    def ends(self, epsilon: float) -> Span:
        """The logarithms of bounds on delta, below and above."""
        law, upper = self.law(epsilon), self.upper(epsilon)
        front = law.base - law.theta * epsilon
        n, h = self.inexact, self.h
        w = h * sqrt(n) / 2
        if w > 0.5:
            return self.infinite, upper
        shift = w * w / 6 + self.slack
        _, value, error = law.hockey_stick(epsilon + shift)
        lower = exp(-law.theta * shift) * (value - error - law.share(self.low))
        if n:
            g = h * h * h / -expm1(-h) / 8
            near = law.near(epsilon, w + h + n * g + h * sqrt(n))
            lower -= (w / 4 + n * g / (2 * w)) * 4 / 3 * near
        return float(np.logaddexp(front + _log(max(0.0, lower)), self.infinite)), upper


@lru_cache(maxsize=6)
def _rounded(parts: tuple[Part, ...], spans: tuple[Span, ...], h: float, points: int) -> _Rounded:
    """The losses on a lattice, which several questions read."""
    return _Rounded(parts, spans, h, points)


def _norm(values: Array) -> float:
    """The 2-norm; a sum is quicker than the threads of a linear algebra library."""
    return sqrt(float((values * values).sum()))


def _log(value: float) -> float:
    return log(value) if value > 0 else -inf


class _Law:
    """The law of a sum of draws, tilted so that its mean is an epsilon; what it says holds at any epsilon.

    Its mass is ``e^(theta s - base)`` times that of the sum s.
    """

    def __init__(self, moments: _Moments, h: float, theta: float, points: int = LARGEST) -> None:
        self.moments, self.h, self.theta = moments, h, theta
        self._known: dict[float, tuple[float, float, float]] = {}
        self.base = moments.cumulant(theta)
        self.centre, variance, _ = moments.at(theta)
        self.deviation = sqrt(variance)
        n = scipy.fft.next_fast_len(ceil(14 * self.deviation / h) + 64, real=True)
        self.wrap = 1.0
        while n <= 2 * points:
            self.wrap = _outside(moments, theta, n * h / 2 - h, self.deviation + h)
            if self.wrap < tol.WRAPPED:
                break
            n = scipy.fft.next_fast_len(n + n // 4, real=True)
        law = np.ones(n // 2 + 1, dtype=complex)
        for tilted, count in zip(moments.laws(theta), moments.counts, strict=True):
            folded = np.zeros(-(-len(tilted) // n) * n)
            folded[: len(tilted)] = tilted
            one = scipy.fft.rfft(folded.reshape(-1, n).sum(axis=0))
            if count > 1:  # where the power is below tol.FADED it counts as 0
                keep = np.abs(one) > tol.FADED ** (1 / count)
                one[~keep] = 0
                one[keep] = one[keep] ** count
            law *= one
        start = int(moments.counts @ moments.firsts)
        self.first = round(self.centre / h) - n // 2
        self.mass = np.roll(scipy.fft.irfft(law, n), (start - self.first) % n)
        self.noise = tol.TRANSFORM * (8 * log(n) + 4 * int(moments.counts.sum())) * _norm(self.mass)
        self.noise += tol.FADED * len(moments.counts) * sqrt(n)

    def hockey_stick(self, epsilon: float) -> tuple[float, float, float]:
        """``E[(1 - e^(epsilon - S))_+]`` of the sum S of all draws, and a bound on its error.

        Both over a common factor, whose logarithm comes first.
        """
        if self.moments.top <= epsilon:
            return self.base - self.theta * epsilon, 0.0, 0.0
        if epsilon in self._known:
            return self._known[epsilon]
        # Above the cut, the weights are below tol.FADED.
        x, mass = self._between(epsilon, epsilon - log(tol.FADED) / self.theta if self.theta else inf)
        x -= epsilon
        weight = np.exp(-self.theta * x) * -np.expm1(-x)
        error = self.noise * _norm(weight) + self.wrap + tol.FADED
        found = self.base - self.theta * epsilon, float((mass * weight).sum()), error
        self._known[epsilon] = found
        return found

    def _between(self, low: float, high: float) -> tuple[Array, Array]:
        """The points of the lattice above `low`, up to `high`, and their masses."""
        n = len(self.mass)
        start, stop = (int(np.clip(np.floor(end / self.h) + 1 - self.first, 0, n)) for end in (low, high))
        return (self.first + np.arange(start, stop)) * self.h, self.mass[start:stop]

    def near(self, epsilon: float, reach: float) -> float:
        """A bound on ``P(|S - epsilon| < reach)``, over the factor of `hockey_stick`."""
        points, mass = self._between(epsilon - reach, epsilon + reach)
        if self.theta * reach > tol.EXPONENT:
            return inf
        weight = np.exp(self.theta * (epsilon - points))
        return float((mass * weight).sum()) + self.noise * _norm(weight) + self.wrap * exp(self.theta * reach)

    def share(self, low: list[Span]) -> float:
        """The tilted chance of some draw of the given numbers of draws, each at its own place."""
        return sum(
            mass * exp(min(self.theta * at - float(cumulant), tol.EXPONENT))
            for cumulant, (mass, at) in zip(self.moments.at(self.theta)[2], low, strict=True)
            if mass > 0
        )


class _Moments:
    """The laws of the draws of a sum, and the moments of the sum under a tilt, kept from call to call."""

    def __init__(self, lattices: list[_Lattice], counts: list[int], h: float) -> None:
        self.counts = np.array(counts)
        self.firsts = np.array([lattice.first for lattice in lattices])
        self.lengths = np.array([len(lattice.logs) for lattice in lattices])
        self.starts = np.append(0, np.cumsum(self.lengths)[:-1])
        self.logs = np.concatenate([lattice.logs for lattice in lattices])
        steps = np.arange(len(self.logs)) - np.repeat(self.starts, self.lengths)
        self.points = h * (np.repeat(self.firsts, self.lengths) + steps)
        self.top = float(self.counts @ self.points[self.starts + self.lengths - 1])
        self._known: dict[float, tuple[float, float, Array]] = {}

    def _tilted(self, theta: float) -> tuple[Array, Array, Array]:
        """The tilted masses, their sum for each draw, and the logarithm of the factor they are over."""
        logs = self.logs + theta * self.points
        most = np.maximum.reduceat(logs, self.starts)
        most = np.where(np.isfinite(most), most, 0.0)
        mass = np.exp(logs - np.repeat(most, self.lengths))
        return mass, np.add.reduceat(mass, self.starts), most

    def at(self, theta: float) -> tuple[float, float, Array]:
        """The tilted mean and variance of the sum, and the cumulants of the draws."""
        if theta not in self._known:
            mass, total, most = self._tilted(theta)
            share = np.maximum(total, tol.SMALLEST)
            mass *= self.points
            mean = np.add.reduceat(mass, self.starts) / share
            mass *= self.points
            variance = np.maximum(np.add.reduceat(mass, self.starts) / share - mean**2, 0.0)
            with np.errstate(divide="ignore"):
                cumulants = most + np.log(total)
            self._known[theta] = float(self.counts @ mean), float(self.counts @ variance), cumulants
        return self._known[theta]

    def cumulant(self, theta: float) -> float:
        """The logarithm of the moment generating function of the sum."""
        return float(self.counts @ self.at(theta)[2])

    def laws(self, theta: float) -> list[Array]:
        """The tilted law of each draw."""
        mass, total, _ = self._tilted(theta)
        mass /= np.repeat(np.maximum(total, tol.SMALLEST), self.lengths)
        return np.split(mass, self.starts[1:])

    def tilt(self, epsilon: float) -> float:
        """A tilt at which the mean of the sum is near epsilon; 0 if it is above without one, or none is."""
        mean, variance, _ = self.at(0.0)
        if mean >= epsilon or epsilon >= self.top:
            return 0.0
        theta, low, high = min(100.0, (epsilon - mean) / max(variance, tol.SMALLEST)), 0.0, inf
        while theta < tol.MOST_TILT:
            mean, variance, _ = self.at(theta)
            if abs(mean - epsilon) <= 0.1 * sqrt(variance) or high - low < tol.ROUNDING * high:
                break
            low, high = (theta, high) if mean < epsilon else (low, theta)
            step = theta + (epsilon - mean) / variance if variance > 0 else inf
            if not low < step < min(high, 3 * theta + 3):
                step = (low + high) / 2 if high < inf else 2 * theta + 1
            theta = step
        return theta


def _outside(moments: _Moments, theta: float, reach: float, deviation: float) -> float:
    """A Chernoff bound on the tilted mass further than `reach` from the mean."""
    centre, base, total = moments.at(theta)[0], moments.cumulant(theta), 0.0
    for sign in (1.0, -1.0):
        best = 0.0
        for factor in (7.0, 4.0, 2.0, 1.0, 0.3):
            u = factor / deviation
            best = min(best, moments.cumulant(theta + sign * u) - base - u * (sign * centre + reach))
            if best < log(tol.WRAPPED / 2):
                break
        total += exp(max(best, -tol.EXPONENT))
    return total
