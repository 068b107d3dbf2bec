"""Exact draws of whole noise by rejection: comparisons of whole numbers, no logarithm and no exponential."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from forcopt.arrays import Array
from forcopt.privacy.randomness import Secure
from forcopt.privacy.tolerances import UNDECIDED

LARGEST_SCALE = 1e12
"""Up to it, with `LONGEST`, all whole numbers below are of 63 bits and those in floats are exact."""

LONGEST = 1000
"""Nats: an event of probability ``e^-1000`` counts as impossible; no positive float is that small."""

_BLOCK = 2**15
"""Proposals at a time, so that their arrays stay in the processor's cache."""


def discrete_laplace(scale: Fraction, count: int, rng: Secure) -> Array:
    """Draw whole numbers with mass in proportion to ``exp(-|x| / scale)``.

    Parameters
    ----------
    scale : Fraction
        Above 0 and at most `LARGEST_SCALE`, the numerator at most 2^53, as those of floats are.
    count : int
        Of draws.
    rng : Secure
        The source of uniform whole numbers.

    Returns
    -------
    Array
        Shape ``(count,)``, of 64-bit integers.

    Notes
    -----
    Algorithm 2 of the reference: for a scale n / d a number x with mass in proportion to ``exp(-x / n)`` is
    ``u + n v``, u below n and v geometric; ``x // d`` has the magnitude's law. The law is exact but for
    events of probability ``e^-1000``. The time depends on the draws, so that it must not be shown.

    References
    ----------
    Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy, section 5.

    Examples
    --------
    >>> discrete_laplace(Fraction(10**9), 3, Secure()).shape
    (3,)
    """
    n, d = scale.as_integer_ratio()
    period, divisor = (
        np.uint64(n),
        np.uint64(min(d, 2**63)),
    )  # n (LONGEST + 1) < 2^63, so that more is as good

    def propose(size: int) -> Array:
        u = rng.integers(n, size)
        u = u[_survive(lambda at: rng.integers(n, len(at)) < u[at], size, rng)]
        magnitude = ((u + period * _geometric(len(u), rng)) // divisor).astype(np.int64)
        negative = rng.integers(2, len(u)) == 1
        return np.where(negative, -magnitude, magnitude)[~negative | (magnitude > 0)]

    return _accepted(propose, count)


def discrete_gaussian(scale: Fraction, count: int, rng: Secure) -> Array:
    """Draw whole numbers with mass in proportion to ``exp(-x^2 / (2 scale^2))``.

    Parameters
    ----------
    scale, count, rng
        See `discrete_laplace`.

    Returns
    -------
    Array
        Shape ``(count,)``, of 64-bit integers.

    Notes
    -----
    Algorithm 3 of the reference: of discrete Laplace draws y of scale ``t = floor(scale) + 1``, one is kept
    with the probability ``exp(-g)``, ``g = (|y| - scale^2 / t)^2 / (2 scale^2)``. This is the probability
    that m events of probability ``exp(-g / m)`` occur, m > g. A uniform number is compared with g / m in
    floats; within their rounding, the comparison goes on with further bits and the fraction.

    References
    ----------
    Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy, section 5.

    Examples
    --------
    >>> discrete_gaussian(Fraction(10**9), 3, Secure()).shape
    (3,)
    """
    t, size = int(scale) + 1, float(scale)
    centre = scale**2 / t

    def propose(wanted: int) -> Array:
        y = discrete_laplace(Fraction(t), wanted, rng)
        with np.errstate(over="ignore"):
            g = ((np.abs(y) - size * size / t) / size) ** 2 / 2
        y, g = y[g < LONGEST], g[g < LONGEST]
        times = np.floor(1.01 * g) + 1  # above g, also where its float is a little less
        chance, alive = g / times, np.arange(len(y))

        def below(at: Array) -> Array:
            where = alive[at]

            def exact(i: int) -> Fraction:
                j = where[i]
                return (abs(int(y[j])) - centre) ** 2 / (2 * scale**2 * int(times[j]))

            return _below(chance[where], exact, rng)

        kept, done = np.zeros(len(y), dtype=bool), 0
        while len(alive):
            alive, done = alive[_survive(below, len(alive), rng)], done + 1
            kept[alive[times[alive] == done]] = True
            alive = alive[times[alive] > done]
        return y[kept]

    return _accepted(propose, count)


def _accepted(propose: Callable[[int], Array], count: int) -> Array:
    """The first `count` accepted values; each call of `propose` makes so many proposals."""
    found, missing = [np.empty(0, dtype=np.int64)], count
    while missing > 0:
        found.append(propose(min(2 * missing + 8, _BLOCK)))
        missing -= len(found[-1])
    return np.concatenate(found)[:count]


def _survive(below: Callable[[Array], Array], size: int, rng: Secure) -> Array:
    """Whether events of probability ``exp(-g_i)`` occur, shape ``(size,)``.

    Algorithm 1 of the reference for g from 0 to 1: events of probability g, g / 2, g / 3, ... up to the first
    that does not occur, whose place is odd with the probability exp(-g). ``below(at)`` draws, for the places
    `at`, whether new uniform numbers are below their g.
    """
    odd, alive, k = np.zeros(size, dtype=bool), np.arange(size), 1
    while len(alive):
        occur = below(alive)
        if k > 1:
            occur[occur] = rng.integers(k, int(occur.sum())) == 0
        odd[alive[~occur]] = k % 2
        alive, k = alive[occur], k + 1
    return odd


def _geometric(size: int, rng: Secure) -> Array:
    """How many events of probability 1 / e occur before the first that does not, at most `LONGEST`."""
    counts, alive = np.zeros(size, dtype=np.uint64), np.arange(size)
    for _ in range(LONGEST):
        alive = alive[_survive(lambda at: np.ones(len(at), dtype=bool), len(alive), rng)]
        if not len(alive):
            break
        counts[alive] += np.uint64(1)
    return counts


def _below(chance: Array, exact: Callable[[int], Fraction], rng: Secure) -> Array:
    """Whether new uniform numbers are below fractions, of which `chance` are the floats."""
    first = rng.integers(2**63, len(chance))
    uniform = first * 2.0**-63
    found = uniform < chance
    for i in np.flatnonzero(np.abs(uniform - chance) <= UNDECIDED).tolist():
        number, bits, edge = int(first[i]), 63, exact(i)
        while number < edge * 2**bits < number + 1:
            number, bits = (number << 63) + int(rng.integers(2**63)[0]), bits + 63
        found[i] = number < edge * 2**bits
    return found
