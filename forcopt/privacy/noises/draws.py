"""Exact draws of whole noise by rejection: comparisons of whole numbers, no logarithm and no exponential."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy.randomness import Secure
from forcopt.privacy.tolerances import UNDECIDED

LARGEST_SCALE = 1e12
"""Up to it, with `LONGEST`, all whole numbers below are of 63 bits and those in floats are exact."""

LONGEST = 1000
"""Nats: an event of probability ``e^-1000`` counts as impossible; no positive float is that small."""

_BLOCK = 2**15
"""Proposals at a time, so that their arrays stay in the processor's cache."""


def exact_scale(scale: float) -> Fraction:
    """The fraction that the scale is.

    Raises
    ------
    DeclarationError
        Above `LARGEST_SCALE`.

    Examples
    --------
    >>> exact_scale(0.75)
    Fraction(3, 4)
    """
    if scale > LARGEST_SCALE:
        raise DeclarationError(f"scale is {scale:g}; a secure draw takes at most {LARGEST_SCALE:g}")
    return Fraction(scale)


def discrete_laplace(scale: Fraction, count: int, rng: Secure) -> Array:
    """Draw whole numbers with mass in proportion to ``exp(-|x| / scale)``.

    Parameters
    ----------
    scale : Fraction
        Of `exact_scale`: above 0, its numerator at most 2^53.
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
    events of probability ``e^-1000``. The running time depends on the drawn values: do not publish it.

    References
    ----------
    Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy, section 5.

    Examples
    --------
    >>> discrete_laplace(Fraction(10**9), 3, Secure()).shape
    (3,)
    """
    n, d = scale.as_integer_ratio()
    period, divisor = np.uint64(n), np.uint64(min(d, 2**63))  # above every n (LONGEST + 1)

    def propose(size: int) -> Array:
        u = rng.integers(n, size)
        u = u[_survive(lambda at: rng.integers(n, len(at)) < u[at], size, rng)]
        magnitude = ((u + period * _geometric(len(u), rng)) // divisor).astype(np.int64)
        negative = rng.integers(2, len(u)) == 1
        return np.asarray(np.where(negative, -magnitude, magnitude)[~negative | (magnitude > 0)])

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
    with the probability ``exp(-g)``, ``g = (|y| - scale^2 / t)^2 / (2 scale^2)``. Uniform numbers are
    compared with floats; within their rounding, the comparison goes on with further bits and the fraction.

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
        return y[_kept(g, lambda i: (abs(int(y[i])) - centre) ** 2 / (2 * scale**2), rng)]

    return _accepted(propose, count)


def negative_binomial(scale: Fraction, parts: int, count: int, rng: Secure) -> Array:
    """Draw whole numbers, `parts` of which sum to one with mass in proportion to ``exp(-x / scale)``, x >= 0.

    Parameters
    ----------
    scale, count, rng
        See `discrete_laplace`.
    parts : int
        At least 1; the law is negative binomial with parameter 1 / parts.

    Returns
    -------
    Array
        Shape ``(count,)``, of 64-bit integers.

    Notes
    -----
    The number is the sum of the points of a Poisson process on 1, 2, ... of intensity
    ``exp(-k / scale) / (k parts)``. From 2^j to 2^(j + 1) the intensity is below ``2^-j / parts``: points of
    that intensity, 1 / parts in the mean, are kept with the probability ``2^j exp(-k / scale) / k``.

    References
    ----------
    Johnson, Kemp and Kotz (2005), Univariate discrete distributions, section 5.3: the law as a sum of a
    Poisson number of logarithmic variables.

    Examples
    --------
    >>> negative_binomial(Fraction(10**9), 3, 5, Secure()).shape
    (5,)
    """
    total, size = np.zeros(count, dtype=np.int64), float(scale)

    def points(start: int) -> tuple[Array, Array]:
        owner = np.repeat(np.arange(count), _poisson(count, rng))
        owner = owner[rng.integers(parts, len(owner)) == 0]
        k = start + rng.integers(start, len(owner)).astype(np.int64)
        near = _below(start / k, lambda i: Fraction(start, int(k[i])), rng)
        far = k[near]
        kept = _kept(far / size, lambda i: int(far[i]) / scale, rng)
        return owner[near][kept], far[kept]

    for power in range(int(LONGEST * scale).bit_length()):
        np.add.at(total, *points(2**power))
    return total


def _accepted(propose: Callable[[int], Array], count: int) -> Array:
    """The first `count` accepted values; each call of `propose` makes so many proposals."""
    found, missing = [np.empty(0, dtype=np.int64)], count
    while missing > 0:
        found.append(propose(min(2 * missing + 8, _BLOCK)))
        missing -= len(found[-1])
    return np.concatenate(found)[:count]


def _poisson(count: int, rng: Secure) -> Array:
    """Poisson variables of mean 1: 0 half of the time, else the length n of a run, in proportion to 1 / n!.

    A run has the length n with the probability ``n / (n + 1)!``, and is accepted with ``(n + 1) / (2 n)``.
    """

    def propose(size: int) -> Array:
        n = np.where(rng.integers(2, size) == 0, 0, _first_failures(_always, size, rng) - 1)

        def exact(i: int) -> Fraction:
            return Fraction(int(n[i]) + 1, 2 * max(int(n[i]), 1))

        return n[_below((n + 1) / (2 * np.maximum(n, 1)), exact, rng)]

    return _accepted(propose, count)


def _kept(g: Array, exact: Callable[[int], Fraction], rng: Secure) -> Array:
    """Whether events of probability ``exp(-g)`` occur; `exact` are the fractions whose floats are `g`.

    Each is m events of probability ``exp(-g / m)``, m > g.
    """
    kept, alive, done = np.zeros(len(g), dtype=bool), np.flatnonzero(g < LONGEST), 0
    times = np.floor(1.01 * np.minimum(g, LONGEST)) + 1  # above g, also where its float is a little less

    def below(at: Array) -> Array:
        where = alive[at]
        return _below(g[where] / times[where], lambda i: exact(where[i]) / int(times[where[i]]), rng)

    while len(alive):
        alive, done = alive[_survive(below, len(alive), rng)], done + 1
        kept[alive[times[alive] == done]] = True
        alive = alive[times[alive] > done]
    return kept


def _survive(below: Callable[[Array], Array], size: int, rng: Secure) -> Array:
    """Whether events of probability ``exp(-g)`` occur, for g from 0 to 1: algorithm 1 of the reference."""
    return np.asarray(_first_failures(below, size, rng) % 2 == 1)


def _first_failures(below: Callable[[Array], Array], size: int, rng: Secure) -> Array:
    """The place of the first that fails among events of probability g, g / 2, g / 3, ...; shape ``(size,)``.

    ``below(at)`` draws, for the places `at`, whether new uniform numbers are below their g, from 0 to 1.
    """
    places, alive, k = np.zeros(size, dtype=np.int64), np.arange(size), 1
    while len(alive):
        occur = below(alive)
        if k > 1:
            occur[occur] = rng.integers(k, int(occur.sum())) == 0
        places[alive[~occur]] = k
        alive, k = alive[occur], k + 1
    return places


def _always(at: Array) -> Array:
    return np.ones(len(at), dtype=bool)


def _geometric(size: int, rng: Secure) -> Array:
    """How many events of probability 1 / e occur before the first that does not, at most `LONGEST`."""
    counts, alive = np.zeros(size, dtype=np.uint64), np.arange(size)
    for _ in range(LONGEST):
        alive = alive[_survive(_always, len(alive), rng)]
        if not len(alive):
            break
        counts[alive] += np.uint64(1)
    return counts


def _below(chance: Array, exact: Callable[[int], Fraction], rng: Secure) -> Array:
    """Whether new uniform numbers are below fractions, of which `chance` are the floats."""
    first = rng.integers(2**63, len(chance))
    uniform = first * 2.0**-63
    found: Array = uniform < chance
    for i in np.flatnonzero(np.abs(uniform - chance) <= UNDECIDED).tolist():
        number, bits, edge = int(first[i]), 63, exact(i)
        while number < edge * 2**bits < number + 1:
            number, bits = (number << 63) + int(rng.integers(2**63)[0]), bits + 63
        found[i] = number < edge * 2**bits
    return found
