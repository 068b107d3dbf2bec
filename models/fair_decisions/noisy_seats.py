"""The law of each state's seats by rounded quotas of populations with whole noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, require
from forcopt.models.fair_decisions.apportionment import Apportionment
from forcopt.models.fair_decisions.grants import added_noise
from forcopt.models.fair_decisions.tolerances import TAIL
from forcopt.privacy.mechanism import AdditiveMechanism
from forcopt.privacy.noises import Noise, TabulatedNoise

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
        kind = type(noise).__name__
        raise DeclarationError(f"the noise is {kind}; the law of rounded quotas is known for whole noise")
    if (p != np.round(p)).any():
        raise DeclarationError("populations must be whole, since the noise is; round them first")
    least = np.broadcast_to(problem.minimum, p.shape)
    require((least <= seats).all(), "minimum", int(least.max()), f"be at most seats, {seats}")
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
