"""Divisor methods against enumeration, each other, and the min-max inequality; published examples."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import ceil, floor
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forcopt.errors import DeclarationError
from forcopt.numeric import (
    DivisorMethod,
    apportion,
    largest_remainder,
    signpost,
)

METHODS = get_args(DivisorMethod)

DIVISORS = {
    "adams": lambda s: Fraction(s),
    "dean": lambda s: Fraction(2 * s * (s + 1), 2 * s + 1),
    "hill": lambda s: Fraction(s * (s + 1)),  # of squares of populations
    "webster": lambda s: Fraction(2 * s + 1, 2),
    "jefferson": lambda s: Fraction(s + 1),
}


def one_by_one(populations, seats, method, minimum):
    """The seats, given one after the other to the largest claim, and whether the last one was tied."""
    found, power = [minimum] * len(populations), 2 if method == "hill" else 1

    def claim(i):
        divisor = DIVISORS[method](found[i])
        return (divisor == 0, Fraction(populations[i] ** power) / (divisor or 1))

    last = None
    for _ in range(seats - sum(found)):
        winner = max(range(len(found)), key=lambda i: (claim(i), populations[i], -i))
        last = claim(winner)
        found[winner] += 1
    return found, any(claim(i) == last for i in range(len(found)))


def quota_violations(populations, seats):
    """The parties below their lower quota, and those above their upper quota."""
    quotas = [Fraction(int(p) * int(sum(seats)), sum(populations)) for p in populations]
    below = [i for i, q in enumerate(quotas) if seats[i] < floor(q)]
    return below, [i for i, q in enumerate(quotas) if seats[i] > ceil(q)]


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
    st.integers(0, 30),
    st.sampled_from(METHODS),
    st.integers(0, 2),
)
@settings(max_examples=300, deadline=None)
def test_seats_are_those_given_one_by_one(populations, seats, method, minimum) -> None:
    if minimum * len(populations) > seats:
        with pytest.raises(DeclarationError, match="minimums need"):
            apportion(populations, seats, method, minimum=minimum)
        return
    fast = apportion(populations, seats, method, minimum=minimum)
    slow, tied = one_by_one(populations, seats, method, minimum)
    assert fast.seats.tolist() == slow
    assert bool(fast.tied) == tied
    assert fast.seats.sum() == seats and (fast.seats >= minimum).all()
    low, high = fast.divisors
    assert low <= high * (1 + 1e-12)
    assert bool(fast.tied) == (high > 0 and low >= high * (1 - 1e-12)) or np.isinf(low) or seats == 0


@pytest.mark.parametrize("seed", range(20))
def test_webster_minimizes_its_measure(seed: int) -> None:
    """Webster minimizes the sum of (a - q)^2 / p over all seats (Sainte-Lague)."""
    rng = np.random.default_rng(seed)
    p, seats = rng.integers(1, 50, 4), int(rng.integers(1, 8))
    q = seats * p / p.sum()

    def loss(a):
        return (((np.array(a) - q) ** 2) / p).sum()

    best = min(loss(a) for a in product(range(seats + 1), repeat=4) if sum(a) == seats)
    assert loss(apportion(p, seats, "webster").seats) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_hill_minimizes_its_measure(seed: int) -> None:
    """Huntington-Hill minimizes the sum of p^2 / a, as an allocation to strata does (Wright 2012)."""
    rng = np.random.default_rng(seed)
    p, seats = rng.integers(1, 50, 4), int(rng.integers(4, 10))

    def loss(a):
        return (p**2 / np.array(a)).sum()

    best = min(loss(a) for a in product(range(1, seats + 1), repeat=4) if sum(a) == seats)
    assert loss(apportion(p, seats, "hill").seats) == pytest.approx(best, rel=1e-9)


def test_many_parties() -> None:
    p = np.random.default_rng(0).pareto(1.0, 100_000) + 1e-3
    for method in METHODS:
        found = apportion(p, 150_000, method)
        assert found.seats.sum() == 150_000
        lo, hi = found.divisors
        assert lo <= hi * (1 + 1e-12)


def test_equal_parties_tie_and_the_earlier_win() -> None:
    found = apportion([5] * 1000, 2500, "webster")
    assert found.seats.tolist() == [3] * 500 + [2] * 500
    assert found.tied == tuple(range(1000))


def test_ties_are_exact_where_floats_are_not() -> None:
    # 10**15 / sqrt(2) against (10**15 + 1) / sqrt(2): equal as far as floats can tell by priority alone
    p = [10**15, 10**15 + 1, 10**15]
    assert apportion(p, 4, "hill").seats.tolist() == [1, 2, 1]
    assert apportion(p, 4, "hill").tied == ()
    assert apportion([9, 18], 2, "jefferson").tied == (0, 1)  # 18 / 1, then 9 / 1 or 18 / 2


def test_few_seats_go_to_the_large_parties() -> None:
    assert apportion([5, 9, 7], 2, "hill").seats.tolist() == [0, 1, 1]
    assert apportion([5, 9, 0], 0, "adams").seats.tolist() == [0, 0, 0]


def test_bounds_hold() -> None:
    found = apportion([100, 1, 1], 10, "webster", minimum=[0, 2, 0], maximum=[6, 9, 9])
    assert found.seats.tolist()[0] == 6 and found.seats.sum() == 10 and found.seats[1] >= 2
    with pytest.raises(DeclarationError, match="allow 3"):
        apportion([1, 2, 3], 4, maximum=1)
    with pytest.raises(DeclarationError, match="allow 0"):
        apportion([0, 0], 1)
    with pytest.raises(DeclarationError, match="method is 'hil'"):
        apportion([1], 1, "hil")
    with pytest.raises(DeclarationError, match="party 0"):
        apportion([1, 1], 6, minimum=3, maximum=2)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 30))
@settings(max_examples=200, deadline=None)
def test_quotas(populations, seats) -> None:
    below, above = quota_violations(populations, largest_remainder(populations, seats))
    assert not below and not above
    assert not quota_violations(populations, apportion(populations, seats, "jefferson").seats)[0]
    assert not quota_violations(populations, apportion(populations, seats, "adams").seats)[1]


def test_jefferson_breaks_the_upper_quota() -> None:
    below, above = quota_violations(
        [660, 100, 90, 80, 70], apportion([660, 100, 90, 80, 70], 10, "jefferson").seats
    )
    assert (below, above) == ([], [0])


def test_signposts_lie_between() -> None:
    s = np.arange(1, 50)
    rising = [signpost(s, m) for m in METHODS]
    assert all((a < b).all() for a, b in pairwise(rising))
    assert (rising[0] == s).all() and (rising[-1] == s + 1).all()


def test_largest_remainder_with_bounds() -> None:
    assert largest_remainder([90, 5, 5], 10, minimum=1).tolist() == [8, 1, 1]
    assert largest_remainder([90, 5, 5], 10, maximum=4).tolist() in ([4, 3, 3], [2, 4, 4])
    assert largest_remainder([1, 1, 1], 2).tolist() == [1, 1, 0]


@pytest.mark.parametrize("seats", [float("nan"), float("inf"), "a", None, 1.5, -1, True])
def test_seats_that_are_no_whole_number_are_refused(seats):
    with pytest.raises(DeclarationError, match="it must be a whole number >= 0"):
        apportion([1, 2], seats)
