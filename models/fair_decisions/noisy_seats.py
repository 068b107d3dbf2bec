"""The law of each state's seats from noisy populations: Laplace noise by divisors, whole noise by quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.apportionment import DIVISORS, Apportionment
from forcopt.models.fair_decisions.grants import added_noise, laplace_scale
from forcopt.models.fair_decisions.tolerances import FAR, LEAST, TAIL
from forcopt.numeric.apportionment import DivisorMethod, signpost
from forcopt.privacy.mechanism import AdditiveMechanism
from forcopt.privacy.noises import Noise, TabulatedNoise

_REACH = 36.0
"""Scales of the noise beyond which it has probability below 2e-16."""

_STEPS = np.array([0.7, 1.5, 3.0, 6.0, 12.0, 22.0, _REACH])
_MOST_KINKS = 400
_NODES_AT_ONCE = 64


def seat_probabilities(problem: Apportionment, mechanism: AdditiveMechanism) -> Array:
    """Give the probability of each number of seats by a divisor method on noisy populations.

    Parameters
    ----------
    problem : Apportionment
        Its criterion is one of a divisor method, and it has no `quota`.
    mechanism : AdditiveMechanism
        With Laplace noise on each population; noisy populations below 0 become 0.

    Returns
    -------
    Array
        Shape ``(k, seats + 1)``: entry ``(a, s)`` is the probability that state a has s seats. Where all
        noisy populations are 0, each state has its minimum only.

    Raises
    ------
    DeclarationError
        For another criterion, a `quota`, other noise, or minimums that need too many seats.

    Notes
    -----
    The seat after s of state a is won if at most ``seats - s - 1`` seats of the others have a larger
    priority. Given the priority t of that seat, the other states' numbers of larger priorities are
    independent, with closed laws, and their sums are convolved by the fast Fourier transform; t is
    integrated by Gauss and Legendre's rule on panels between the kinks ``p_b / d(j)`` of the density. The
    interval of t where anything is uncertain is short if the noise is small: then only the few states near
    the last seat are convolved.

    The expected seats of all states sum to ``seats``; their difference measures the error of integration.

    References
    ----------
    Pujol et al. (2020), section 6, who sample these laws.

    Examples
    --------
    >>> from forcopt.models import Apportionment
    >>> from forcopt.privacy import AdditiveMechanism, Laplace
    >>> p = Apportionment([100, 200, 300], seats=6)
    >>> seat_probabilities(p, AdditiveMechanism(Laplace(epsilon=0.05)))[0, 1:3].round(4).tolist()
    [0.9777, 0.0223]
    """
    if problem.criterion not in DIVISORS:
        raise DeclarationError(
            f"criterion is {problem.criterion!r}; the law of noisy seats is known for divisor methods: "
            f"{', '.join(DIVISORS)}"
        )
    if problem.quota is not None:
        raise DeclarationError(f"quota is {problem.quota!r}; quotas depend on the noise: it must be None")
    scale, seats = laplace_scale(mechanism), problem.seats
    least = np.broadcast_to(problem.minimum, problem.populations.shape)
    posts = signpost(np.arange(seats), cast(DivisorMethod, problem.criterion))
    if int(np.maximum(least, int(posts[0] == 0)).sum()) > seats:
        raise DeclarationError(f"seats is {seats}; the minimums need more")
    p = problem.populations / scale
    wins = np.zeros((len(p), seats + 2))  # P(at least s seats)
    wins[:, 0] = 1.0
    wins[:, 1:-1][np.arange(seats) < least[:, None]] = 1.0
    free = np.arange(seats) >= least[:, None]
    held = int((~free).sum())
    posts = np.maximum(posts, LEAST)  # first seats of infinite priority go to positive populations
    at, away = p[:, None] / posts, np.broadcast_to(_REACH / posts, free.shape)
    # Above `high` at most all seats can be taken, below `low` more than all are.
    high = _largest(np.where(free, at + away, 0.0), seats - held + 1)
    low = max(_largest(np.where(free, at - away, 0.0), seats - held + 1), 0.0)
    claims = _Claims(p, posts, free, seats)
    low, high = claims.uncertain(low, high)
    wins[:, 1:-1][free] += (_tail(high * posts - p[:, None]))[free]
    if high > low:
        for t, weight in _panels(low, high, at[free], away[free] / _REACH):
            claims.add(wins, t, weight)
    wins = np.minimum(wins, 1.0)
    return np.asarray(np.maximum(-np.diff(wins, axis=1), 0.0))


class _Claims:
    """How many seats have a larger priority than t: for each state and in all.

    Populations are in scales of the noise; `posts` are signposts, and `free` marks the seats above the
    minimums, shape ``(k, seats)``.
    """

    def __init__(self, p: Array, posts: Array, free: Array, seats: int) -> None:
        self.p, self.posts, self.free, self.seats = p, posts, free, seats

    def transforms(self, t: Array) -> tuple[Array, ...]:
        """The states whose number is uncertain at some of these t, increasing, and its Fourier transforms.

        Returns
        -------
        tuple[Array, ...]
            The states; their certain seats; how many seats are left to them; the uncertain seats of each,
            shape ``(active, width)``; which of them exist; their distances from the population, and the
            transforms, shape ``(nodes, active, ...)``; and the length of the sums.
        """
        sure = (~self.free | (self.p[:, None] - _REACH > t[-1] * self.posts)).sum(axis=1)
        most = (~self.free | (self.p[:, None] + _REACH > t[0] * self.posts)).sum(axis=1)
        spare = max(self.seats - int(sure.sum()), -1)
        active = np.flatnonzero(most > sure)
        sizes = np.minimum(most - sure, spare + 1)[active]  # more than all seats count as one more than all
        slots = sure[active, None] + np.arange(sizes.max(initial=0))
        inside = slots < sure[active, None] + sizes[:, None]
        x = t[:, None, None] * self.posts[np.minimum(slots, self.seats - 1)] - self.p[active, None]
        above = np.where(inside, _tail(x), 0.0)  # P(at least slot + 1 seats)
        length = scipy.fft.next_fast_len(1 + int(sizes.sum()), real=True)
        found = scipy.fft.rfft(-np.diff(above, axis=2, prepend=1.0, append=0.0), length, axis=2)
        return active, sure, np.array(spare), slots, inside, x, found, np.array(length)

    def uncertain(self, low: float, high: float) -> tuple[float, float]:
        """Shorten an interval of t to where the priority of the last seat lies but for 1e-13."""
        ends = []
        for below in (True, False):
            inner, outer = (high, low) if below else (low, high)
            for _ in range(60):
                if abs(inner - outer) < 0.02 * abs(high - low):
                    break
                middle = (inner + outer) / 2
                _, _, spare, *_, found, length = self.transforms(np.array([middle]))
                law = scipy.fft.irfft(found[0].prod(axis=0), int(length))
                more = float(law[int(spare) + 1 :].sum())  # P(more than all seats)
                far = (1 - more if below else more) < FAR
                inner, outer = (inner, middle) if far else (middle, outer)
            ends.append(outer)
        return ends[0], ends[1]

    def add(self, wins: Array, t: Array, weight: Array) -> None:
        """Add to the probabilities of at least s seats the part of the integral at these priorities t."""
        active, sure, spare, slots, inside, x, found, length = self.transforms(t)
        if spare < 0 or not len(active):
            return
        ones = np.ones_like(found[:, :1])
        before = np.concatenate([ones, np.cumprod(found[:, :-1], axis=1)], axis=1)
        after = np.concatenate([np.cumprod(found[:, :0:-1], axis=1)[:, ::-1], ones], axis=1)
        others = np.cumsum(scipy.fft.irfft(before * after, int(length), axis=2), axis=2)
        # State a wins the slot if the others have at most `seats - slot - 1`, some of them for certain.
        room = np.clip(spare + sure[active, None] - slots - 1, -1, length - 1)
        reached = np.take_along_axis(others, np.maximum(room, 0)[None], axis=2)
        post = self.posts[np.minimum(slots, self.seats - 1)]
        density = np.where(inside & (room >= 0), np.exp(-np.abs(x)) * post / 2, 0.0)
        part = np.einsum("n,naw,naw->aw", weight, density, reached)
        rows = np.broadcast_to(active[:, None], slots.shape)[inside]
        np.add.at(wins, (rows, slots[inside] + 1), part[inside])


def _largest(values: Array, rank: int) -> float:
    """The value of that rank from the top, or 0."""
    flat = values.ravel()
    return float(np.partition(flat, -rank)[-rank]) if rank <= flat.size else 0.0


def _tail(x: Array) -> Array:
    """P(L > x) for Laplace noise of scale 1."""
    half = np.exp(-np.abs(x)) / 2
    return np.where(x > 0, half, 1 - half)


def _panels(low: float, high: float, kinks: Array, widths: Array) -> list[tuple[Array, Array]]:
    """Nodes and weights on ``[low, high]``, in chunks, increasing."""
    inside = (kinks > low) & (kinks < high)
    ends = np.unique(kinks[inside])
    if len(ends) > _MOST_KINKS:
        # Many states are uncertain at once, and each kink is weak.
        even = np.searchsorted(ends, np.linspace(low, high, _MOST_KINKS)).clip(0, len(ends) - 1)
        ends = ends[np.unique(np.r_[even, np.linspace(0, len(ends) - 1, _MOST_KINKS).astype(int)])]
    ends = np.concatenate([[low], ends, [high]])
    near = (kinks + _REACH * widths > low) & (kinks - _REACH * widths < high)
    around = np.concatenate([kinks[near] + sign * step * widths[near] for step in _STEPS for sign in (-1, 1)])
    own = np.tile(widths[near], 2 * len(_STEPS))
    some = (around > low) & (around < high)
    around, own = around[some], own[some]
    after = np.searchsorted(ends, around)
    far = np.minimum(around - ends[after - 1], ends[after] - around) > own / 2
    if len(around) and far.any():
        cell = np.unique(np.round(around[far] / own[far].min()) * own[far].min())
        ends = np.unique(np.concatenate([ends, cell[(cell > low) & (cell < high)]]))
    if low == 0:
        ends = np.concatenate([[0.0], ends[1] * 0.5 ** np.arange(40, 0, -1), ends[1:]])
    half = np.diff(ends)[:, None] / 2
    nodes, weights = np.polynomial.legendre.leggauss(8 if len(ends) < _MOST_KINKS else 4)
    t, w = (ends[:-1, None] + half + half * nodes).ravel(), (half * weights).ravel()
    chunks = range(0, len(t), _NODES_AT_ONCE)
    return [(t[i : i + _NODES_AT_ONCE], w[i : i + _NODES_AT_ONCE]) for i in chunks]


_MOST_POINTS = 2**22


def masses(noise: Noise) -> tuple[int, Array]:
    """Give the first value of a whole noise and the probabilities from there on, but for tails of 1e-18.

    Examples
    --------
    >>> from forcopt.privacy import DiscreteLaplace
    >>> first, mass = masses(DiscreteLaplace(scale=1.0))
    >>> first, round(float(mass[-first]), 6)
    (-41, 0.462117)
    """
    if isinstance(noise, TabulatedNoise):
        first, mass = int(noise.values[0]), noise.law
    else:  # an even law
        first = int(noise.quantile(TAIL)) - 1
        mass = np.asarray(noise.density(np.arange(first, 1 - first)), dtype=float)
    some = np.flatnonzero(mass > TAIL * mass.max())
    return first + int(some[0]), mass[some[0] : some[-1] + 1]


def rounded_seat_probabilities(problem: Apportionment, mechanism: AdditiveMechanism) -> Array:
    """Give the probability of each number of seats if each noisy quota is rounded by itself.

    The rule is the method ``as-printed``: one half is rounded up, and every state has at least the minimum.

    Parameters
    ----------
    problem : Apportionment
        With whole populations; neither its criterion nor its `quota` matters.
    mechanism : AdditiveMechanism
        With whole noise on each population; noisy populations below 0 become 0.

    Returns
    -------
    Array
        Shape ``(k, seats + 1)``. Where all noisy populations are 0, each state has its minimum.

    Raises
    ------
    DeclarationError
        For other noise, fractional populations, a minimum above `seats`, or noise with too many values.

    Notes
    -----
    With H seats, state a has s of them or more if ``x (2H - 2s + 1) >= (2s - 1) S`` for its own noisy
    population x and the sum S of the others'. The law of S is a product of Fourier transforms; all products
    but one are found by halving the states again and again, O(k n log k) for n values of S. The comparison is
    in whole numbers; the error of a probability is about 1e-14.

    References
    ----------
    Pujol et al. (2020), Table 3 and section 6, who sample these laws.

    Examples
    --------
    >>> from forcopt.models import Apportionment
    >>> from forcopt.privacy import AdditiveMechanism, DiscreteLaplace
    >>> p = Apportionment([100, 200, 300], seats=5)
    >>> law = rounded_seat_probabilities(p, AdditiveMechanism(DiscreteLaplace(scale=10.0)))
    >>> law[:, 1:4].round(4).tolist()
    [[1.0, 0.0, 0.0], [0.042, 0.958, 0.0], [0.0, 0.4906, 0.5094]]
    """
    noise, p, seats = added_noise(mechanism), problem.populations, problem.seats
    if not noise.whole:
        raise DeclarationError(
            f"the noise is {type(noise).__name__}; the law of rounded quotas is known for whole noise"
        )
    if (p != np.round(p)).any():
        raise DeclarationError("populations must be whole, since the noise is; round them first")
    least = np.broadcast_to(problem.minimum, p.shape)
    if (least > seats).any():
        raise DeclarationError(f"minimum is {int(least.max())}; it must be at most seats, {seats}")
    first, mass = masses(noise)
    lows, laws = zip(*(_clipped(int(x) + first, mass) for x in p), strict=True)
    length = 1 + sum(len(law) - 1 for law in laws)
    if length > _MOST_POINTS:
        raise DeclarationError(
            f"the sum of the noisy populations has {length:.3g} values; at most {_MOST_POINTS} are taken: "
            "count in a larger unit"
        )
    size = scipy.fft.next_fast_len(length, real=True)
    wins = np.zeros((len(p), seats + 2))
    for a, others in _all_but_one([scipy.fft.rfft(law, size) for law in laws]):
        upto = np.append(np.cumsum(np.maximum(scipy.fft.irfft(others, size), 0.0)), 0.0)
        start = sum(lows) - lows[a]
        x = lows[a] + np.arange(len(laws[a]))
        x, weight = x[x > 0], laws[a][x > 0]
        for s in range(1, seats + 1):
            room = x * (2 * seats - 2 * s + 1) // (2 * s - 1) - start
            wins[a, s] = weight @ upto[np.where(room < 0, -1, np.minimum(room, size - 1))]
            if wins[a, s] == 0:
                break
        wins[a, : least[a] + 1] = 1.0
    return np.asarray(np.maximum(-np.diff(np.minimum(wins, 1.0), axis=1), 0.0))


def _clipped(low: int, mass: Array) -> tuple[int, Array]:
    """The first value and the law of a noisy population, values below 0 becoming 0."""
    if low >= 0:
        return low, mass
    cut = min(-low, len(mass) - 1)
    return 0, np.concatenate([[mass[: cut + 1].sum()], mass[cut + 1 :]])


def _all_but_one(transforms: list[Array]) -> Iterator[tuple[int, Array]]:
    """For each position, the product of all other transforms."""

    def halve(low: int, high: int, outside: Array) -> Iterator[tuple[int, Array]]:
        if high - low == 1:
            yield low, outside
            return
        middle = (low + high) // 2
        yield from halve(low, middle, _product(outside, transforms[middle:high]))
        yield from halve(middle, high, _product(outside, transforms[low:middle]))

    yield from halve(0, len(transforms), np.ones_like(transforms[0]))


def _product(start: Array, factors: list[Array]) -> Array:
    out = start.copy()
    for factor in factors:
        out *= factor
    return out
