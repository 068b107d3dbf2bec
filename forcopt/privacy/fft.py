"""The privacy profile of a composition by fast Fourier transforms, with certified brackets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, exp, expm1, inf, isfinite, log, sqrt
from typing import NamedTuple

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.privacy.losses import Loss
from forcopt.privacy.tolerances import (
    BESIDE_ATOMS,
    BEYOND_SPAN,
    EXPONENT,
    FAR,
    FEW_ROUNDINGS,
    MOST_TILT,
    NEGLIGIBLE,
    ON_LATTICE,
    SMALLEST,
    TRANSFORM,
    WRAPPED,
)

Parts = Sequence[tuple[Loss, int]]

LARGEST = 2**22
"""The most lattice points of a transform."""

CEILING = 600.0
"""Losses above count as infinite, below the negative as none: e^600 is still a float."""


_SHARE = 1e-3
"""By how much, relatively, the first lattice may add to the variance."""

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


@dataclass
class _Lattice:
    """A subprobability on the points ``(first + i) h``, of `count` independent draws."""

    first: int
    mass: Array
    count: int

    def points(self, h: float) -> Array:
        return (self.first + np.arange(len(self.mass))) * h


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
    Upper: the mass of a lattice cell goes to both its ends so that its probabilities under P *and* under Q
    are kept, which only makes the pair easier to distinguish ("connect the dots", Doroshenko, Ghazi, Kamath,
    Kumar and Manurangsi 2022); the error is of second order. Lower: the mass of the cell around a lattice
    point becomes one outcome, which is post-processing; its loss is not quite the lattice point, so that all
    are moved down by the largest such gap, but for some mass that is dropped. Both are tilted so that the
    mean of the sum is epsilon before they are transformed, which makes the error relative to delta.
    """
    best = Bracket(0.0, 1.0)
    for spans, h in _steps(parts, points):
        upper = exp(_log_upper(parts, spans, h, epsilon, points))
        lower = _lower(parts, spans, h, epsilon, points)
        best = Bracket(max(best.lower, min(lower, upper)), min(best.upper, upper))
        if best.upper - best.lower <= rtol * best.upper or best.upper < SMALLEST:
            break
    return best


def log_upper_bound(parts: Parts, epsilon: float, rtol: float = 1e-4, points: int = LARGEST) -> float:
    """The logarithm of the upper end of `bracket`, refined until it settles to `rtol`."""
    best = 0.0
    for spans, h in _steps(parts, points):
        upper = min(best, _log_upper(parts, spans, h, epsilon, points))
        if upper == -inf or best - upper <= rtol:
            return upper
        best = upper
    return best


def _steps(parts: Parts, points: int) -> Iterator[tuple[list[tuple[float, float]], float]]:
    """Finer and finer lattice steps, while a transform has no more points than allowed."""
    spans = [_finite_span(loss) for loss, _ in parts]
    deviations = [_deviation(loss, span) for (loss, _), span in zip(parts, spans, strict=True)]
    spread = sqrt(sum(k * d**2 for (_, k), d in zip(parts, deviations, strict=True)))
    # A step h far above the deviation d of k draws adds about k d h to the variance: a small share will do.
    finest = min(
        (
            max(d / 4, _SHARE * spread**2 / (k * d))
            for (_, k), d in zip(parts, deviations, strict=True)
            if d > 0
        ),
        default=1.0,
    )
    exact = [loss.spacing for loss, _ in parts]
    h = min(finest, max(spread, min(deviations)) / 64) if spread > 0 else finest
    for _ in range(10):
        h = _aligned(h, exact, spans, spread / _FINE)
        if max(24 * spread, *(high - low for low, high in spans)) > points * h:
            return
        yield spans, h
        h /= 2


def _finite_span(loss: Loss) -> tuple[float, float]:
    """Where the finite losses are, but for mass of 1e-20 at either end."""
    low, high = loss.span
    low, high = max(low, -CEILING), min(high, CEILING)
    grid = np.linspace(low, high, 4001)
    above = loss.tails(grid)[0]
    inside = np.flatnonzero((above - above[-1] > BEYOND_SPAN) & (1 - above > BEYOND_SPAN))
    if loss.spacing is not None or not len(inside):
        return low, high
    return float(grid[max(inside[0] - 1, 0)]), float(grid[min(inside[-1] + 1, len(grid) - 1)])


def _deviation(loss: Loss, span: tuple[float, float]) -> float:
    """The standard deviation of the loss under P, roughly."""
    beyond = max(1e-3 * (span[1] - span[0]), BESIDE_ATOMS)  # so that atoms at the ends are within
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


def _aligned(
    h: float, spacings: list[float | None], spans: list[tuple[float, float]], finest: float
) -> float:
    """A step of at most h that divides the coarsest spacing of atoms, or else the largest loss.

    Where these are below both h and `finest`, h itself.
    """
    known = [s for s in spacings if s is not None]
    anchor = max(known) if known else max(high for _, high in spans)
    return anchor / ceil(anchor / h) if anchor > min(h, finest) else h


def _cells(loss: Loss, edges: Array) -> tuple[Array, Array, float, float]:
    """The mass under P and Q of each cell (edge, next edge], and of P above and below all."""
    p, q = loss.tails(edges)
    return np.maximum(p[:-1] - p[1:], 0.0), np.maximum(q[:-1] - q[1:], 0.0), float(p[-1]), float(1 - p[0])


def _log_upper(
    parts: Parts, spans: list[tuple[float, float]], h: float, epsilon: float, points: int
) -> float:
    lattices, finite = [], 0.0
    for (loss, count), (low, high) in zip(parts, spans, strict=True):
        first, last = int(np.floor(low / h + ON_LATTICE)) - 1, int(np.ceil(high / h - ON_LATTICE)) + 1
        edges = np.arange(first, last + 1) * h
        a, b, above, below = _cells(loss, edges)
        right = np.clip((a - b * np.exp(edges[:-1])) / -expm1(-h), 0.0, a)
        mass = np.zeros(len(edges))
        mass[1:] += right
        mass[:-1] += a - right
        mass[0] += below
        lattices.append(_Lattice(first, mass, count))
        finite += count * np.log1p(-above) if above < 1 else -inf
    front, value, error = _hockey_stick(lattices, h, epsilon, points)
    with np.errstate(divide="ignore"):
        seen = front + float(np.log(max(0.0, value) + error))
        return min(0.0, float(np.logaddexp(seen, np.log(-expm1(finite)))))


def _lower(parts: Parts, spans: list[tuple[float, float]], h: float, epsilon: float, points: int) -> float:
    cells, finite = [], 0.0
    for (loss, count), (low, high) in zip(parts, spans, strict=True):
        first, last = int(np.floor(low / h + ON_LATTICE)), int(np.ceil(high / h - ON_LATTICE))
        a, b, _, _ = _cells(loss, (np.arange(first, last + 2) - 0.5) * h)
        at = np.arange(first, last + 1) * h
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.where(a > 0, at - (np.log(a) - np.log(b)), -inf)
        infinite = min(float(loss.tails(np.array([FAR]))[0][0]), 1.0)
        finite += count * np.log1p(-infinite) if infinite < 1 else -inf
        cells.append((first, count, at, a, gap))
    slope = _slope(cells)  # a lattice of step (1 - slope) h fits the outcomes' losses better
    lattices, moved = [], 0.0
    for first, count, at, a, gap in cells:
        left = gap - slope * at
        step = h * (1 - slope)
        order = np.argsort(left)
        further = np.append(np.cumsum(a[order][::-1])[::-1][1:], 0.0)  # mass whose gap is larger
        best = int(np.argmin(np.maximum(left[order], 0.0) + step * further))
        allowed = float(max(left[order][best], -1.0)) if isfinite(left[order][best]) else 0.0
        with np.errstate(invalid="ignore"):
            down = np.where(a > 0, np.ceil(np.clip((left - allowed) / step, 0, len(at))), 0).astype(np.int64)
        onto = np.arange(len(at)) - down
        mass = np.bincount(onto[onto >= 0], a[onto >= 0], len(at))
        lattices.append(_Lattice(first, mass, count))
        moved += count * (allowed + FEW_ROUNDINGS * max(1.0, float(np.abs(at).max())))
    front, value, error = _hockey_stick(lattices, h * (1 - slope), epsilon + moved, points)
    return exp(min(front, EXPONENT)) * max(0.0, value - error) - expm1(finite)


def _slope(cells: list[tuple[int, int, Array, Array, Array]]) -> float:
    """The slope of the gaps over the losses, by least squares weighted by mass."""
    cross = square = 0.0
    for _, count, at, a, gap in cells:
        use = np.isfinite(gap) & (a > NEGLIGIBLE)
        if use.sum() > 2:
            weight = a[use] / a[use].sum()
            x, y = at[use] - weight @ at[use], gap[use] - weight @ gap[use]
            cross, square = cross + count * float(weight @ (x * y)), square + count * float(weight @ x**2)
    slope = cross / square if square > 0 else 0.0
    return slope if abs(slope) < 0.1 else 0.0


def _hockey_stick(
    lattices: list[_Lattice], h: float, epsilon: float, points: int
) -> tuple[float, float, float]:
    """``E[(1 - e^(epsilon - S))_+]`` of the sum S of all draws, and a bound on its error.

    Both over a common factor, whose logarithm comes first.
    """
    moments = [_Moments(lattice, h) for lattice in lattices]

    def cumulant(theta: float) -> float:
        return sum(m.cumulant(theta) * m.count for m in moments)

    def mean(theta: float) -> float:
        return sum(m.tilted(theta)[1] * m.count for m in moments)

    theta = 0.0
    if mean(0.0) < epsilon:
        top = sum(m.points[-1] * m.count for m in moments)
        if top <= epsilon:
            return 0.0, 0.0, 0.0
        high = 1.0
        while mean(high) < epsilon and high < MOST_TILT:
            high *= 2
        theta = (
            float(scipy.optimize.brentq(lambda t: mean(t) - epsilon, 0.0, high, rtol=1e-3))
            if high < MOST_TILT
            else high
        )
    centre = mean(theta)
    variance = sum(m.tilted(theta)[2] * m.count for m in moments)
    base = cumulant(theta)
    n = 2 ** max(6, ceil(np.log2(24 * sqrt(variance) / h + 64)))
    wrap = 1.0
    while n <= 2 * points:
        wrap = _outside(cumulant, theta, base, centre, n * h / 2 - h, sqrt(variance) + h)
        if wrap < WRAPPED:
            break
        n *= 2
    law = np.ones(n // 2 + 1, dtype=complex)
    start, draws = 0, 0
    for m in moments:
        tilted = m.tilted(theta)[0]
        folded = np.zeros(-(-len(tilted) // n) * n)
        folded[: len(tilted)] = tilted
        law *= scipy.fft.rfft(folded.reshape(-1, n).sum(axis=0)) ** m.count
        start += m.count * m.first
        draws += m.count
    pmf = scipy.fft.irfft(law, n)
    first = round(centre / h) - n // 2
    place = first + (start - first + np.arange(n)) % n
    x = place * h - epsilon
    with np.errstate(over="ignore"):
        weight = np.where(x > 0, np.exp(-theta * np.maximum(x, 0.0)) * -np.expm1(-np.maximum(x, 0.0)), 0.0)
    noise = TRANSFORM * (8 * log(n) + 4 * draws) * float(np.linalg.norm(pmf))
    error = noise * float(np.linalg.norm(weight)) + wrap
    return base - theta * epsilon, float(pmf @ weight), error


class _Moments:
    """Tilted laws of a lattice, kept from call to call."""

    def __init__(self, lattice: _Lattice, h: float) -> None:
        inside = np.flatnonzero(lattice.mass > 0)
        low, high = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 1)
        self.first, self.count = lattice.first + low, lattice.count
        self.points = lattice.points(h)[low:high]
        with np.errstate(divide="ignore"):
            self.logs = np.log(lattice.mass[low:high])
        self._known: dict[float, tuple[Array, float, float, float]] = {}

    def _at(self, theta: float) -> tuple[Array, float, float, float]:
        if theta not in self._known:
            logs = self.logs + theta * self.points
            top = float(logs.max())
            if not isfinite(top):
                return np.zeros_like(logs), 0.0, 0.0, -inf
            mass = np.exp(logs - top)
            total = float(mass.sum())
            mass /= total
            mean = float(mass @ self.points)
            variance = float(mass @ (self.points - mean) ** 2)
            if len(self._known) > 3:
                self._known.clear()
            self._known[theta] = mass, mean, variance, top + log(total)
        return self._known[theta]

    def tilted(self, theta: float) -> tuple[Array, float, float]:
        """The tilted law, its mean and its variance."""
        return self._at(theta)[:3]

    def cumulant(self, theta: float) -> float:
        """The logarithm of the moment generating function."""
        return self._at(theta)[3]


def _outside(
    cumulant: Callable[[float], float],
    theta: float,
    base: float,
    centre: float,
    reach: float,
    deviation: float,
) -> float:
    """A Chernoff bound on the tilted mass further than `reach` from the centre."""
    total = 0.0
    for sign in (1.0, -1.0):
        best = 0.0
        for factor in (0.1, 0.3, 1.0, 2.0, 4.0, 7.0, 10.0):
            u = factor / deviation
            value = cumulant(theta + sign * u) - base - u * (sign * centre + reach)
            best = min(best, value)
        total += exp(max(best, -EXPONENT))
    return total
