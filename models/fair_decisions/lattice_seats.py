"""The law of each state's seats under whole noise: by a divisor method, or by rounding noisy quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.apportionment import Apportionment
from forcopt.models.fair_decisions.grants import known_noise
from forcopt.models.fair_decisions.lattice import masses
from forcopt.numeric.apportionment import DivisorMethod
from forcopt.privacy.mechanism import AdditiveMechanism
from forcopt.privacy.noises import Noise

__all__ = ["lattice_seat_probabilities", "rounded_seat_probabilities"]


def lattice_seat_probabilities(problem: Apportionment, noise: Noise) -> Array:
    """Give `seat_probabilities` under whole noise, equal claims going to the larger state, then the earlier.

    Parameters
    ----------
    problem : Apportionment
        With whole populations and the criterion of a divisor method; its minimums fit.
    noise : Noise
        Whole.

    Returns
    -------
    Array
        Shape ``(k, seats + 1)``.

    Notes
    -----
    Given the noisy population of state a, each other state has a larger claim than a's seat s on a number of
    seats whose law is read off the noise; these numbers are independent, and their laws are convolved.
    Claims are compared in whole numbers, exactly. O(k^2 seats^3 n) for n values of the noise.
    """
    p = problem.populations
    if (p != np.round(p)).any():
        raise DeclarationError("populations must be whole, since the noise is; round them first")
    first, mass = masses(noise)
    upto = np.concatenate([[0.0], np.cumsum(mass)])
    seats, k = problem.seats, len(p)
    least = np.broadcast_to(problem.minimum, p.shape)
    method = cast(DivisorMethod, problem.criterion)
    law = np.zeros((k, seats + 1))
    for a in range(k):
        own = int(p[a]) + first + np.arange(len(mass))
        some = own > 0
        y, weight = own[some], mass[some]
        wins = np.zeros(seats + 2)
        wins[: least[a] + 1] = 1.0
        for s in range(int(least[a]), seats):
            others = np.zeros(
                (len(y), seats - s)
            )  # counts of all seats with larger claims that leave this one
            others[:, 0] = 1.0
            for b in range(k):
                if b == a:
                    continue
                slots = np.arange(least[b], seats)
                ends = _least_claims(y, s, slots, method, b < a) - int(p[b]) - first
                reach = 1.0 - upto[np.clip(ends, 0, len(mass))]  # P(noisy population >= end)
                ones = np.ones((len(y), 1))
                counts = -np.diff(np.concatenate([ones, reach, 0 * ones], axis=1), axis=1)
                together = np.zeros_like(others)
                for j in range(counts.shape[1]):
                    taken = int(least[b]) + j
                    if taken < seats - s:
                        together[:, taken:] += counts[:, j, None] * others[:, : seats - s - taken]
                others = together
            wins[s + 1] = float(weight @ others.sum(axis=1))
        law[a] = np.maximum(-np.diff(wins), 0.0)
    return law


def _least_claims(y: Array, s: int, slots: Array, method: DivisorMethod, earlier: bool) -> Array:
    """The least populations whose claims to the seats after `slots` come before that of y to the one after s.

    Shape ``(len(y), len(slots))``.
    """
    j = slots.astype(object)
    if s == 0 and method in ("hill", "adams", "dean"):  # equal infinite claims: the larger state's is first
        return np.where(slots == 0, y[:, None] + (not earlier), np.iinfo(np.int64).max // 2)
    below: Array | int
    match method:  # the ratio of signposts is above / below, or its root
        case "hill":
            above, below = j * (j + 1), s * (s + 1)
        case "dean":
            above, below = 2 * j * (j + 1) * (2 * s + 1), 2 * s * (s + 1) * (2 * j + 1)
        case "webster":
            above, below = 2 * j + 1, 2 * s + 1
        case "jefferson":
            above, below = j + 1, s + 1
        case "adams":
            above, below = j, s
    whole = y.astype(object)[:, None]
    if method == "hill":
        numerator = whole * whole * above
        root = np.floor(np.sqrt((numerator / below).astype(float))).astype(np.int64).astype(object)
        root = root + ((root + 1) * (root + 1) * below <= numerator)
        root = root - (root * root * below > numerator)
        equal = root * root * below == numerator
    else:
        root = whole * above // below
        equal = root * below == whole * above
    first = equal & ((slots > s) | ((slots == s) & earlier))
    return np.maximum(np.asarray(root + ~first.astype(bool), dtype=np.int64), 1)


_MOST_POINTS = 2**22


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
    noise, p, seats = known_noise(mechanism), problem.populations, problem.seats
    if not isinstance(noise, Noise):
        raise DeclarationError("the noise is Laplace; the law of rounded quotas is known for whole noise")
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
