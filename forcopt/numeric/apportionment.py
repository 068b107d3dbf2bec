"""Apportionment: whole seats in proportion to populations, by divisor methods and by largest remainders."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from heapq import heapify, heappop, heapreplace
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, require
from forcopt.numeric.tolerances import BAND

DivisorMethod = Literal["adams", "dean", "hill", "webster", "jefferson"]
"""A divisor method, from the one kindest to small parties to the one kindest to large ones."""


class Apportionment(NamedTuple):
    """Seats by a divisor method.

    Attributes
    ----------
    seats : Array
        Whole numbers, shape ``(k,)``.
    divisors : tuple[float, float]
        Every divisor d between these ends, rounded by the method's signposts, gives the seats:
        ``population / d``. The upper end is infinite if no party has a seat above its minimum; the lower end
        is 0 if every party is at its maximum.
    tied : tuple[int, ...]
        Parties with equal claims to the last seat of which some went without; empty if there is no tie.

    Examples
    --------
    >>> from forcopt.numeric import apportion
    >>> apportion([9.061, 7.179, 5.259, 3.319, 1.182], 26, "webster").seats.tolist()
    [9, 8, 5, 3, 1]
    """

    seats: Array
    divisors: tuple[float, float]
    tied: tuple[int, ...]


def signpost(seats: Any, method: DivisorMethod) -> Array:
    """Give the quotient from which a party with these seats gets one more.

    Parameters
    ----------
    seats : array_like
        Whole numbers at least 0.
    method : DivisorMethod
        ``"adams"``: s. ``"dean"``: the harmonic mean of s and s + 1. ``"hill"`` (Huntington-Hill): their
        geometric mean. ``"webster"`` (Sainte-Lague): their arithmetic mean. ``"jefferson"`` (D'Hondt):
        s + 1.

    Returns
    -------
    Array
        Of the shape of `seats`.

    References
    ----------
    Balinski, Young: Fair Representation, 2nd edition, 2001, appendix A.3.

    Examples
    --------
    >>> [round(float(signpost(1, m)), 4) for m in ("adams", "dean", "hill", "webster", "jefferson")]
    [1.0, 1.3333, 1.4142, 1.5, 2.0]
    """
    return np.asarray(_rule(method).signpost(np.asarray(seats, dtype=float)))


class _Rule(NamedTuple):
    """A divisor method.

    Attributes
    ----------
    signpost : Callable[[Array], Array]
        As in `signpost`.
    rounded : Callable[[Array], Array]
        For quotients, the number of j >= 1 with ``signpost(j - 1)`` at most the quotient.
    inverse : Callable[[int], Fraction]
        The exact signpost, to the `power` that makes it rational.
    power : int, default 1
        2 for Huntington-Hill.
    """

    signpost: Callable[[Array], Array]
    rounded: Callable[[Array], Array]
    inverse: Callable[[int], Fraction]
    power: int = 1


_RULES = {
    "adams": _Rule(lambda s: s, lambda q: np.floor(q) + 1, lambda s: Fraction(s)),
    "dean": _Rule(
        lambda s: 2 * s * (s + 1) / (2 * s + 1),
        lambda q: np.floor((1 + q + np.sqrt(1 + q * q)) / 2),
        lambda s: Fraction(2 * s * (s + 1), 2 * s + 1),
    ),
    "hill": _Rule(
        lambda s: np.sqrt(s * (s + 1)),
        lambda q: np.floor((1 + np.sqrt(1 + 4 * q * q)) / 2),
        lambda s: Fraction(s * (s + 1)),
        power=2,
    ),
    "webster": _Rule(lambda s: s + 0.5, lambda q: np.floor(q + 0.5), lambda s: Fraction(2 * s + 1, 2)),
    "jefferson": _Rule(lambda s: s + 1.0, lambda q: np.floor(q), lambda s: Fraction(s + 1)),
}


def apportion(
    populations: Any, seats: int, method: DivisorMethod = "hill", *, minimum: Any = 0, maximum: Any = None
) -> Apportionment:
    """Apportion seats by a divisor method.

    Parameters
    ----------
    populations : array_like
        Of the parties, at least 0; shape ``(k,)``. Floats are taken as the exact numbers that they are.
    seats : int
        In all.
    method : DivisorMethod, default "hill"
        See `signpost`.
    minimum, maximum : array_like, optional
        Whole numbers, one for all parties or one for each; 0 and no limit by default.

    Returns
    -------
    Apportionment
        Equal claims go to the larger party, then to the earlier one.

    Raises
    ------
    DeclarationError
        If the minimums need more seats than there are, or the maximums (or populations of 0) allow fewer.

    Notes
    -----
    The j-th seat of a party has the priority ``population / signpost(j - 1)``, and the seats go to the
    highest priorities; seats have this form exactly if ``max_i p_i / d(a_i) <= min_j p_j / d(a_j - 1)``
    (Balinski and Young, Theorem A.3.1). Under "adams", "dean" and "hill" every first seat has
    infinite priority. The level at which just these seats are taken is found by bisection over whole arrays;
    priorities within 1e-9 of it are compared as fractions. O(k) a bisection step, about 60 of them.

    References
    ----------
    Huntington: The apportionment of representatives in Congress. Transactions of the AMS 30, 1928.
    Balinski, Young: Fair Representation, 2nd edition, 2001.

    Examples
    --------
    >>> for method in ("adams", "dean", "hill", "webster", "jefferson"):
    ...     print(apportion([9061, 7179, 5259, 3319, 1182], 26, method).seats)
    [9 7 5 3 2]
    [9 7 5 4 1]
    [9 7 6 3 1]
    [9 8 5 3 1]
    [10  7  5  3  1]
    """
    p, low, high, spare = _read(populations, seats, method, minimum, maximum)
    if spare == 0:
        return _result(p, low, low, high, method, ())
    some = p[(p > 0) & (high > low)]
    # At the first level every party takes all seats that it may have, at the second no finite priority.
    below, above = float(some.min()) / (2.0 * seats + 2.0), 4.0 * float(some.max())

    def taken(level: float) -> Array:
        return np.clip(np.where(p > 0, _RULES[method].rounded(p / level), 0), low, high).astype(np.int64)

    if int(taken(above).sum()) > seats:  # more first seats of infinite priority than there are seats
        return _by_heap(p, low, low, high, seats, method)
    for _ in range(200):
        level = float(np.sqrt(below * above))
        if above <= below * (1 + BAND / 4) or not below < level < above:
            break
        below, above = (level, above) if int(taken(level).sum()) > seats else (below, level)
    return _by_heap(p, low, taken(above * (1 + BAND)), high, seats, method, least=below * (1 - BAND))


def largest_remainder(populations: Any, seats: int, *, minimum: Any = 0, maximum: Any = None) -> Array:
    """Apportion seats by largest remainders (Hamilton, Hare-Niemeyer).

    Parameters
    ----------
    populations : array_like
        At least 0, not all 0; shape ``(k,)``.
    seats : int
        In all.
    minimum, maximum : array_like, optional
        As for `apportion`. A party below its minimum, or above its maximum, gets that; the others share the
        rest.

    Returns
    -------
    Array
        Whole numbers, shape ``(k,)``. Every party gets its quota ``seats * p_i / sum(p)`` rounded down; the
        largest remainders get one more, the earlier party first among equals. Without minimum and maximum it
        never violates the quota.

    Raises
    ------
    DeclarationError
        As `apportion`.

    References
    ----------
    Balinski, Young: Fair Representation, 2nd edition, 2001, chapter 3.

    Examples
    --------
    >>> largest_remainder([47, 16, 15, 12, 10], 10).tolist()
    [5, 2, 1, 1, 1]
    """
    p, low, high, _ = _read(populations, seats, "webster", minimum, maximum)
    held = high == low
    found = low.copy()
    while True:  # fix parties out of bounds, one side at a time
        left, free = seats - int(found[held].sum()), np.flatnonzero(~held)
        total = sum(map(Fraction, p[free].tolist()))
        if not len(free):
            return found
        if total == 0:
            quotas = [Fraction(left, len(free))] * len(free)
        else:
            quotas = [Fraction(x) * left / total for x in p[free].tolist()]
        short = np.array([max(0.0, float(low[i] - q)) for i, q in zip(free, quotas, strict=True)])
        over = np.array([max(0.0, float(q - high[i])) for i, q in zip(free, quotas, strict=True)])
        if not short.any() and not over.any():
            break
        chosen, ends = (short, low) if short.sum() >= over.sum() else (over, high)
        fix = free[chosen > 0]
        found[fix], held[fix] = ends[fix], True
    down = [q.numerator // q.denominator for q in quotas]
    rest = left - sum(down)
    order = sorted(range(len(free)), key=lambda i: (down[i] - quotas[i], i))
    found[free] = down
    found[free[[i for i in order if down[i] < high[free[i]]][:rest]]] += 1
    return found


def _rule(method: Any) -> _Rule:
    require(method in _RULES, "method", method, f"be one of {', '.join(_RULES)}")
    return _RULES[method]


def _read(
    populations: Any, seats: int, method: DivisorMethod, minimum: Any, maximum: Any
) -> tuple[Array, Array, Array, int]:
    """The populations, minimums, maximums and the seats above the minimums."""
    _rule(method)  # refuses an unknown one
    p = as_numbers(populations, "populations")
    if p.ndim != 1 or not p.size or (p < 0).any():
        raise DeclarationError("populations must be a list of at least one number, each at least 0")
    given_seats: Any = seats
    if isinstance(given_seats, bool) or not isinstance(given_seats, Real) or not seats >= 0 or seats % 1 != 0:
        raise DeclarationError(f"seats is {seats!r}; it must be a whole number >= 0")
    ends = []
    for name, given, default in (("minimum", minimum, 0), ("maximum", maximum, seats)):
        values = as_numbers(default if given is None else given, name)
        if values.shape not in ((), p.shape) or (values < 0).any() or (values != np.round(values)).any():
            raise DeclarationError(f"{name} must be whole numbers >= 0, one or {len(p)}")
        ends.append(np.array(np.broadcast_to(values, p.shape), dtype=np.int64))
    low, high = ends[0], np.maximum(np.minimum(ends[1], seats), 0)
    if int(low.sum()) > seats:
        raise DeclarationError(f"seats is {seats}; the minimums need {int(low.sum())}")
    if (low > ends[1]).any():
        at = int(np.argmax(low > ends[1]))
        raise DeclarationError(f"minimum of party {at} is {low[at]}, above its maximum, {ends[1][at]}")
    high = np.where(p > 0, np.maximum(high, low), low)
    if int(high.sum()) < seats:
        raise DeclarationError(
            f"seats is {seats}; the maximums of parties with a positive population allow {int(high.sum())}"
        )
    return p, low, high, int(seats) - int(low.sum())


def _key(population: float, seats: int, rule: _Rule) -> tuple[bool, Fraction]:
    """The exact priority of the next seat, as an order: whether it is finite, and minus the priority.

    Infinite priorities are ordered by population.
    """
    p, inverse = Fraction(population), rule.inverse(seats)
    return (True, -(p**rule.power) / inverse) if inverse else (False, -p)


def _by_heap(
    p: Array, low: Array, base: Array, high: Array, seats: int, method: DivisorMethod, least: float = 0.0
) -> Apportionment:
    """Give the seats that `base` leaves, among parties whose priority is at least `least`."""
    found = base.copy()
    left = seats - int(found.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        may = (found < high) & (p / signpost(found, method) >= least)
    rule, key_of = _RULES[method], cache(_key)  # parties of equal size share theirs
    heap = [(*key_of(float(p[i]), int(found[i]), rule), -float(p[i]), int(i)) for i in np.flatnonzero(may)]
    heapify(heap)
    last: tuple[bool, Fraction] | None = None
    winners: list[int] = []
    while left and heap:
        finite, key, size, i = heap[0]
        if (finite, key) != last:
            last, winners = (finite, key), []
        winners.append(i)
        found[i] += 1
        left -= 1
        if found[i] < high[i]:
            heapreplace(heap, (*key_of(float(p[i]), int(found[i]), rule), size, i))
        else:
            heappop(heap)
    losers = [i for finite, key, _, i in heap if (finite, key) == last]
    return _result(p, found, low, high, method, tuple(sorted(winners + losers)) if losers else ())


def _result(
    p: Array, found: Array, low: Array, high: Array, method: DivisorMethod, tied: tuple[int, ...]
) -> Apportionment:
    with np.errstate(divide="ignore", invalid="ignore"):
        following = np.where(found < high, p / signpost(found, method), 0.0)
        last = np.where(found > low, p / signpost(np.maximum(found - 1, 0), method), np.inf)
    return Apportionment(found, (float(following.max()), float(last.min())), tied)
